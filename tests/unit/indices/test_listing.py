"""Damaged indices are reported once, with the line that builds them again."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import CorruptFileError
from lance_nb.indices import building
from lance_nb.indices.vectors import writer

ROWS, DIMENSION = 300, 4
FILTERS = {
    "BTREE": "n = 7",
    "BITMAP": "n = 7",
    "LABEL_LIST": "array_has(tags, 't3')",
    "NGRAM": "contains(text, 'ver 7')",
    "ZONEMAP": "n < 9",
    "BLOOMFILTER": "n = 7",
}
COLUMNS = {"LABEL_LIST": "tags", "NGRAM": "text"}
VECTORS: dict[str, dict[str, Any]] = {
    "IVF_FLAT": {},
    "IVF_PQ": {"num_sub_vectors": 2, "num_bits": 4},
    "IVF_SQ": {},
}


def written(path: Path, *, stable: bool = False) -> lance_nb.LanceDataset:
    rng = np.random.default_rng(2)
    values = rng.random(ROWS * DIMENSION, np.float32)
    data = pa.table(
        {
            "id": range(ROWS),
            "n": rng.permutation(ROWS),
            "tags": [[f"t{one}"] for one in rng.integers(0, 9, ROWS)],
            "text": [f"river {one} stone" for one in range(ROWS)],
            "v": pa.FixedSizeListArray.from_arrays(values, DIMENSION),
        }
    )
    rows = ROWS // 2
    return lance_nb.write_dataset(data, path, max_rows_per_file=rows, enable_stable_row_ids=stable)


def built(ds: lance_nb.LanceDataset, kind: str) -> dict[str, Any]:
    """Build an index named x; return a search that uses it."""
    if kind in FILTERS:
        ds.create_scalar_index(COLUMNS.get(kind, "n"), kind, "x")
        return {"filter": FILTERS[kind]}
    if kind == "INVERTED":
        ds.create_scalar_index("text", kind, "x", stem=False, with_position=True)
        return {"full_text_query": lance_nb.MatchQuery("7", "text")}
    ds.create_index("v", kind, "x", num_partitions=2, **VECTORS[kind])
    nearest = {"column": "v", "q": [0.5] * DIMENSION, "k": 5, "nprobes": 2, "refine_factor": 60}
    return {"nearest": nearest}


@pytest.mark.parametrize("kind", [*FILTERS, "INVERTED", *VECTORS])
def test_the_line_of_the_warning_builds_a_damaged_index_again(tmp_path: Path, kind: str) -> None:
    ds = written(tmp_path / "d.lance")
    search = built(ds, kind)
    expected = ds.to_table(["id"], **search)
    assert expected.num_rows
    files = sorted(one for one in (tmp_path / "d.lance" / "_indices").glob("*/*") if one.is_file())
    for file in files:
        ours = lance_nb.dataset(ds.uri)
        current = Path(ds.uri) / "_indices" / ours.list_indices()[0]["uuid"] / file.name
        data = current.read_bytes()
        current.unlink()
        current.write_bytes(data[: len(data) // 2])
        if file.name == "metadata.lance":  # without the way to cut texts there is no right answer
            with pytest.raises(CorruptFileError) as error:
                ours.to_table(["id"], **search)
            problem = str(error.value)
        else:
            with pytest.warns(UserWarning, match="index 'x' cannot be used") as said:
                found = ours.to_table(["id"], **search)["id"].to_pylist()
            assert sorted(found) == sorted(expected["id"].to_pylist())
            assert len(said) == 1
            problem = str(said[0].message)
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # it is not said again
                ours.to_table(["id"], **search)
        what, _, line = problem.partition("; build it again with ")
        assert file.name in what
        assert "restore" not in what
        exec(line, {"ds": ours})  # noqa: S102 - the line that the warning offers
        again = lance_nb.dataset(ds.uri)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert again.to_table(["id"], **search).equals(expected)
            assert "'x'" in again.scanner(["id"], **search).explain_plan()


def test_an_index_that_cannot_be_built_here_is_to_be_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ds = written(tmp_path / "d.lance")
    search = built(ds, "BTREE")
    monkeypatch.setattr("lance_nb.indices.registry.builders", dict)
    for file in (tmp_path / "d.lance" / "_indices").glob("*/*"):
        file.unlink()
    ours = lance_nb.dataset(ds.uri)
    with pytest.warns(UserWarning, match=r"; drop it with ds\.drop_index\('x'\)$"):
        ours.to_table(["id"], **search)


@pytest.mark.parametrize("kind", VECTORS)
def test_a_vector_index_that_names_a_row_twice_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    add = writer._Coded.add

    def twice(coded: Any, partitions: Any, ids: Any, stored: Any) -> None:
        ids = ids.copy()
        ids[1::2] = ids[::2]  # every second vector is said to be that of the row before it
        add(coded, partitions, ids, stored)

    ds = written(tmp_path / "d.lance")
    with monkeypatch.context() as patched:
        patched.setattr(writer._Coded, "add", twice)
        search = built(ds, kind)
    exact = {"nearest": {**search["nearest"], "use_index": False}}
    for options in ({}, {"filter": "n < 200", "prefilter": True}):
        ours = lance_nb.dataset(ds.uri)
        with pytest.warns(UserWarning, match="each row once, found row 0 twice"):
            found = ours.to_table(["id"], **search, **options)
        assert found.equals(ours.to_table(["id"], **exact, **options))


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("kind", ["BTREE", "BITMAP", "INVERTED", "IVF_FLAT"])
def test_an_index_that_names_rows_of_the_future_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, *, stable: bool
) -> None:
    """A changed bit of a row leads to another row; where that cannot be, it is damage."""
    ds = written(tmp_path / "d.lance", stable=stable)
    batches = building.SegmentRows.batches

    def damaged(rows: Any, *stage: str) -> Any:
        for batch in batches(rows, *stage):
            named = batch.column(1).to_numpy().copy()
            named[7] |= 1 << 45
            yield pa.record_batch([batch.column(0), pa.array(named)], schema=batch.schema)

    with monkeypatch.context() as patched:
        patched.setattr(building.SegmentRows, "batches", damaged)
        search = built(ds, kind)
    if kind in FILTERS:
        search = {"filter": f"n = {ds.take([7])['n'][0].as_py()}"}
    expected = [7] if kind in FILTERS or kind == "INVERTED" else None
    ours = lance_nb.dataset(ds.uri)
    with pytest.warns(UserWarning, match="index 'x' cannot be used.* up to"):
        found = ours.to_table(["id"], **search)["id"].to_pylist()
    if expected is not None:
        assert found == expected
    if "filter" in search:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert ours.count_rows(search["filter"]) == 1


@pytest.mark.parametrize("column", ["n", "text"])
def test_a_btree_whose_values_do_not_ascend_is_not_used(tmp_path: Path, column: str) -> None:
    ds = written(tmp_path / "d.lance")
    ds.create_scalar_index(column, "BTREE", "x")
    folder = Path(ds.uri) / "_indices" / ds.list_indices()[0]["uuid"]
    data = lance_nb.LanceFileReader(str(folder / "page_data.lance")).read_all().to_table()
    order = np.arange(ROWS)
    order[[100, 200]] = 200, 100
    with lance_nb.LanceFileWriter(str(folder / "new"), data.schema) as file:
        file.write_batch(data.take(order))
    (folder / "new").replace(folder / "page_data.lance")
    value = data["values"][50].as_py()
    ours = lance_nb.dataset(ds.uri)
    text = f"{column} = {value!r}"
    with pytest.warns(UserWarning, match="index 'x' cannot be used.*found .* at index 101"):
        found = ours.to_table(["id"], filter=text)
    assert found.equals(ours.to_table(["id"], filter=text, use_scalar_index=False))
