"""Fragment metadata as values: pylance's constructors, attributes and JSON, in both directions."""

from __future__ import annotations

import dataclasses
import json
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop
lance = require_pylance()
import lance.fragment as theirs  # noqa: E402
from lance.file import LanceFileWriter  # noqa: E402


@pytest.fixture(scope="module", params=[False, True], ids=["addresses", "stable_ids"])
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A dataset with deletion files of both kinds, two files in a fragment, and a plain one."""
    uri = str(tmp_path_factory.mktemp("values") / "d.lance")
    rows = pa.table({"a": range(14_000), "b": [[1]] * 14_000})
    ds = lance.write_dataset(rows, uri, max_rows_per_file=6000, enable_stable_row_ids=request.param)
    ds.delete("a < 5500 or a = 6001")
    ds.add_columns({"c": "a + 1"})
    return uri


def pairs(uri: str) -> list[tuple[Any, Any]]:
    ours = [one.metadata for one in lance_nb.dataset(uri).get_fragments()]
    other = [one.metadata for one in lance.dataset(uri).get_fragments()]
    return list(zip(ours, other, strict=True))


def test_a_fragment_has_the_attributes_of_pylance(written: str) -> None:
    kinds = set()
    for ours, other in pairs(written):
        for name in ("id", "physical_rows", "num_deletions", "num_rows", "overlays"):
            assert getattr(ours, name) == getattr(other, name)
        for mine, file in zip(ours.files, other.files, strict=True):
            for one in dataclasses.fields(theirs.DataFile):
                name = one.name.lstrip("_")
                assert getattr(mine, name) == getattr(file, name)
            assert repr(mine) == repr(file)
        assert (ours.deletion_file is None) == (other.deletion_file is None)
        if other.deletion_file is not None:
            assert ours.deletion_file.asdict() == other.deletion_file.asdict()
            assert ours.deletion_file.path(3) == other.deletion_file.path(3)
            assert ours.deletion_file.path(3, "x") == other.deletion_file.path(3, "x")
            kinds.add(ours.deletion_file.file_type)
    assert kinds == {"array", "bitmap"}


def test_json_is_the_same_and_is_read_in_both_directions(written: str) -> None:
    for ours, other in pairs(written):
        assert ours.to_json() == other.to_json()
        text = json.dumps(ours.to_json())
        assert theirs.FragmentMetadata.from_json(text) == other
        assert lance_nb.FragmentMetadata.from_json(json.dumps(other.to_json())) == ours
        for name, kind, own in (
            ("deletion_file", theirs.DeletionFile, lance_nb.DeletionFile),
            ("row_id_meta", theirs.RowIdMeta, lance_nb.RowIdMeta),
            ("created_at_version_meta", theirs.RowDatasetVersionMeta,
             lance_nb.RowDatasetVersionMeta),
        ):  # fmt: skip
            mine, value = getattr(ours, name), getattr(other, name)
            if value is not None:
                assert kind.from_json(mine.json()) == value
                assert own.from_json(value.json()) == mine
                assert mine.asdict() == (json.loads(value.json()))
        assert pickle.loads(pickle.dumps(ours)) == ours  # noqa: S301


def build(engine: Any, values: Any) -> Any:
    """Make a fragment by the constructors of either library, as pylance's users do."""
    files = [
        values.DataFile("a.lance", [0, 1], [0, 1], 2, 1, 77),
        values.DataFile(path="b.lance", fields=[2], column_indices=[0], base_id=3),
    ]
    deletion = values.DeletionFile(4, 99, "array", 2, None)
    ids = values.RowIdSequence(range(5, 15))
    return engine.FragmentMetadata(
        id=3,
        files=files,
        physical_rows=10,
        deletion_file=deletion,
        row_id_meta=ids.to_inline_metadata(),
    )


def test_constructors_take_the_same_arguments() -> None:
    ours, other = build(lance_nb, lance_nb), build(lance, theirs)
    assert ours.to_json() == other.to_json()
    assert ours == build(lance_nb, lance_nb)
    assert ours.files == build(lance_nb, lance_nb).files
    assert (ours.num_rows, other.num_rows) == (8, 8)
    assert ours.files[0].fields == other.files[0].fields == [0, 1]


@pytest.mark.parametrize(
    "ids",
    [
        [7, 12, 9], [], [2**64 - 1], range(5, 15), range(0), range(0, 20, 5), range(9, 2, -1),
        [1, 2, 3, 5], pa.array([3, 1], pa.int32()), pa.chunked_array([[1], [7]]), (True,),
        iter([4, 2]), range(0, 100_000, 3),
    ],
    ids=[
        "list", "none", "largest", "range", "empty range", "step 5", "falling", "gap", "int32",
        "chunks", "bool", "iterator", "step 3",
    ],
)  # fmt: skip
def test_row_ids_are_the_same_and_read_in_both_directions(ids: Any) -> None:
    ids = list(ids) if not isinstance(ids, range | pa.Array | pa.ChunkedArray) else ids
    ours, other = lance_nb.RowIdSequence(ids), theirs.RowIdSequence(ids)
    assert list(ours) == list(other)
    assert len(ours) == len(other)
    assert ours.to_pyarrow() == other.to_pyarrow()
    back = theirs.RowIdMeta.from_json(ours.to_inline_metadata().json())
    assert list(theirs.RowIdSequence.from_inline_metadata(back)) == list(other)
    again = lance_nb.RowIdMeta.from_json(other.to_inline_metadata().json())
    assert lance_nb.RowIdSequence.from_inline_metadata(again) == ours
    assert pickle.loads(pickle.dumps(ours)) == ours  # noqa: S301
    if len(ours) <= 10:
        assert repr(ours) == repr(other)


@pytest.mark.parametrize(
    "ids",
    [[1, 1], [-1], ["x"], [2**64], [1.0], None, range(2**64 - 1, 2**64 + 1), pa.array([1, None]),
     pa.array([-1]), pa.array(["x"])],
    ids=lambda value: str(value).replace("\n", "")[:30],
)  # fmt: skip
def test_row_ids_that_cannot_be_are_refused_alike(ids: Any) -> None:
    with pytest.raises((ValueError, TypeError, OverflowError)) as other:
        theirs.RowIdSequence(ids)
    with pytest.raises(other.type):
        lance_nb.RowIdSequence(ids)


@pytest.mark.parametrize(
    "text", ["{}", "[]", "1", '{"Inline": [256]}', '{"Inline": "x"}', '{"x": [1]}', '"Column"']
)
def test_metadata_of_other_json_is_refused_alike(text: str) -> None:
    for mine, other in (
        (lance_nb.RowIdMeta, theirs.RowIdMeta),
        (lance_nb.RowDatasetVersionMeta, theirs.RowDatasetVersionMeta),
        (lance_nb.DeletionFile, theirs.DeletionFile),
    ):
        outcomes = []
        for kind in (mine, other):
            try:
                outcomes.append(json.loads(kind.from_json(text).json()))
            except ValueError as error:
                outcomes.append(type(error).__mro__[-3])
        assert outcomes[0] == outcomes[1]


def test_a_moved_row_keeps_the_id_that_its_fragment_brings(tmp_path: Path) -> None:
    """A transaction by hand, as pylance documents it for RowIdSequence, made with both."""
    found = []
    for engine, values in ((lance, theirs), (lance_nb, lance_nb)):
        uri = str(tmp_path / engine.__name__)
        rows = pa.table({"a": [1, 2, 3]})
        ds = engine.write_dataset(rows, uri, enable_stable_row_ids=True)
        fragment = engine.LanceFragment.create(uri, pa.table({"a": [30, 10, 40]}))
        ids = values.RowIdSequence([2, 0])
        fragment = dataclasses.replace(fragment, row_id_meta=ids.to_inline_metadata())
        kept = ds.get_fragments()[0].delete("a != 2")
        operation = engine.LanceOperation.Update(
            updated_fragments=[kept], new_fragments=[fragment], update_mode="rewrite_rows"
        )
        ds = engine.LanceDataset.commit(uri, operation, read_version=1)
        found.append(ds.to_table(with_row_id=True).to_pydict())
    assert found[0] == found[1] == {"a": [2, 30, 10, 40], "_rowid": [1, 2, 0, 3]}


def test_a_data_file_is_described_alike(tmp_path: Path) -> None:
    uri = str(tmp_path / "d")
    ds = lance.write_dataset(pa.table({"a": [1, 2], "b": ["x", "y"], "c": [[1], [2]]}), uri)
    for columns in (["a", "b", "c"], ["c"], ["b", "a"], ["c", "b", "a"]):
        name = f"{len(columns)}{columns[0]}.lance"
        with LanceFileWriter(f"{uri}/data/{name}", version="2.2") as writer:
            writer.write_batch(ds.to_table(columns=columns).to_batches()[0])
        ours = lance_nb.DataFile.create(lance_nb.dataset(uri), name)
        assert (
            ours.asdict()
            == lance_nb.DataFile.from_dict(
                {**dataclasses.asdict(theirs.DataFile.create(ds, name)), "path": name}
            ).asdict()
        )
    for create, handle in ((theirs.DataFile.create, ds),
                           (lance_nb.DataFile.create, lance_nb.dataset(uri))):  # fmt: skip
        with pytest.raises((OSError, ValueError)):
            create(handle, "missing.lance")


def test_a_file_with_another_order_of_columns_is_read_right(tmp_path: Path) -> None:
    """Columns were numbered in the order of the dataset, so that values changed places."""
    uri = str(tmp_path / "d")
    rows = pa.table({"a": [1, 2], "s": [{"x": 1, "y": "p"}, {"x": 2, "y": "q"}], "b": [3, 4]})
    ds = lance_nb.write_dataset(rows, uri)
    turned = pa.table({"b": [30, 40], "s": [{"y": "r", "x": 9}, {"y": "t", "x": 8}], "a": [10, 20]})
    with LanceFileWriter(f"{uri}/data/turned.lance", version="2.2") as writer:
        writer.write_batch(turned.to_batches()[0])
    fragment = lance_nb.LanceFragment.create_from_file("turned.lance", ds, 7)
    ds = lance_nb.LanceDataset.commit(uri, lance_nb.LanceOperation.Append([fragment]), 1)
    assert ds.to_table(offset=2).to_pylist() == turned.select(["a", "s", "b"]).to_pylist()
    assert lance.dataset(uri).to_table().to_pylist() == ds.to_table().to_pylist()
