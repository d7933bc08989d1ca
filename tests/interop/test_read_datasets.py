"""Every version of a dataset that pylance wrote reads equal: rows, order, schema, all ways in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count, product
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from tests.interop.matrix import SCALE, columns, with_nulls
from tests.support.reading import check_table
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop
Way = TypeVar("Way")

OPTIONS = [
    {"data_storage_version": "2.1", "enable_stable_row_ids": False},
    {"data_storage_version": "2.2", "enable_stable_row_ids": False},
    {"data_storage_version": "2.2", "enable_stable_row_ids": True},
    {"data_storage_version": "2.2", "enable_v2_manifest_paths": False},
]
TAKES = ([0], [5, 5, 5], [3, 1, 2], [], "random", "last")
WINDOWS = list(product((None, 0, 7, 4000), (None, 0, 1, 6000, 10**9)))


def rows(start: int, count: int) -> pa.Table:
    """Rows whose content follows from their id, with nested and nullable columns, and metadata."""
    rng = np.random.default_rng(start)
    ids = np.arange(start, start + count)
    point = pa.struct([pa.field("x", pa.int32(), nullable=False), pa.field("y", pa.string())])
    points = [[{"x": k, "y": None if k else f"{i}"} for k in range(i % 4)] for i in ids.tolist()]
    data = {
        "id": pa.array(ids),
        "number": with_nulls(pa.array(rng.random(count)), rng.random(count) < 0.2),
        "text": pa.array([None if i % 11 == 3 else f"row {i} of many" for i in ids.tolist()]),
        "vector": pa.FixedSizeListArray.from_arrays(pa.array(rng.random(count * 4), "float32"), 4),
        "tags": pa.array([None if i % 7 == 2 else ["a", None] * (i % 3) for i in ids.tolist()]),
        "points": pa.array([None if i % 13 == 0 else points[i - start] for i in ids.tolist()],
                           pa.list_(point)),
        "place": pa.array([None if i % 9 == 0 else {"x": i % 50, "y": "p"} for i in ids.tolist()],
                          point),
        "kind": pa.array([f"kind {i % 5}" for i in ids.tolist()], "string").dictionary_encode(),
    }  # fmt: skip
    fields = [pa.field(name, array.type, name != "id") for name, array in data.items()]
    fields[1] = fields[1].with_metadata({"unit": "m"})
    return pa.table(list(data.values()), schema=pa.schema(fields, metadata={"made by": "a test"}))


def grow(lance: Any, path: str, options: dict[str, Any]) -> Any:
    """Write a dataset with a long and varied past."""
    ds = lance.write_dataset(rows(0, 7000), path, max_rows_per_file=3000, **options)
    ds.tags.create("first", 1)
    ds.insert(rows(7000, 3000))
    ds.delete("id % 17 = 4")  # a few of each fragment: .arrow files
    ds.insert(rows(10_000, 9000), max_rows_per_file=9000)
    ds.delete("id >= 10000 AND id % 3 > 0")  # 6000 of one fragment: .bin file
    ds.delete("id >= 3000 AND id < 6000")  # a whole fragment
    ds.update({"text": "'changed'", "number": "number * 2"}, where="id % 100 = 1")
    ds.add_columns({"double": "number * 2", "label": "concat('n', cast(id as string))"})
    ds.alter_columns({"path": "text", "name": "words"})
    ds.drop_columns(["tags"])
    extra = pa.table({"id": pa.array(np.arange(0, 20_000, 3)), "extra": pa.array(np.arange(6667))})
    ds.merge(extra, "id")
    ds.insert(rows(20_000, 50).rename_columns(
        ["id", "number", "words", "vector", "tags", "points", "place", "kind"]
    ).drop_columns(["tags"]).append_column("double", pa.array(np.ones(50))))  # fmt: skip
    ds.alter_columns({"path": "id", "data_type": pa.int32()})
    ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(
        ds.to_table(limit=40, offset=100)
    )
    side = ds.create_branch("side/way", 5)
    side.insert(rows(30_000, 700))
    side.delete("id % 2 = 0 AND id > 29000")
    side.tags.create("aside", ("side/way", side.version))
    ds.optimize.compact_files(target_rows_per_fragment=5000)
    lance.dataset(path, version=3).restore()
    return lance.dataset(path)


@pytest.fixture(
    scope="module", params=OPTIONS, ids=lambda options: "-".join(map(str, options.values()))
)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    lance = require_pylance()
    path = str(tmp_path_factory.mktemp("past") / "grown.lance")
    grow(lance, path, request.param)
    return lance, path


def refs_of(theirs: Any) -> Iterator[Any]:
    yield from (version["version"] for version in theirs.versions())
    yield from ("first", "aside", (None, 2), ("main", None), ("side/way", None), ("side/way", 6))


def each(pair: Any, test: Callable[[Any, Any, Any], None], part: int | None = None) -> None:
    """Call the test with every ref, or with a third of them (0, 1 or 2); a larger run all."""
    lance, path = pair
    for number, ref in enumerate(refs_of(lance.dataset(path))):
        if part is not None and SCALE <= 1 and number % 3 != part:
            continue
        theirs = lance.dataset(path).checkout_version(ref)
        test(lance_nb.dataset(path, version=ref), theirs, ref)


def turns(ways: Sequence[Way], share: int) -> Iterator[Sequence[Way]]:
    """Give every ref one in ``share`` of the ways, another part each time; a larger run all."""
    step = share if SCALE <= 1 else 1
    return (ways[number % step :: step] for number in count())


def test_every_version_reads_equal(pair: Any) -> None:
    def test(ours: Any, theirs: Any, ref: object) -> None:
        check_table(ours.to_table(), theirs.to_table(), ref)
        assert ours.count_rows() == theirs.count_rows()
        assert ours.version == theirs.version
        assert ours.schema.equals(theirs.schema, check_metadata=True)

    each(pair, test)


def test_projections(pair: Any) -> None:
    ways = [slice(1), slice(None, None, -1), slice(1, None, 2), ["place.y"], ["points"], ["vector"]]
    turn = turns(ways, 2)

    def test(ours: Any, theirs: Any, ref: object) -> None:
        for way in next(turn):
            chosen = theirs.schema.names[way] if isinstance(way, slice) else way
            check_table(ours.to_table(chosen), theirs.to_table(chosen), (ref, chosen))

    each(pair, test, 0)


def test_limits_and_offsets(pair: Any) -> None:
    turn = turns(WINDOWS, 4)

    def test(ours: Any, theirs: Any, ref: object) -> None:
        for limit, offset in next(turn):
            options = {"columns": ["id", "points"], "limit": limit, "offset": offset}
            check_table(ours.to_table(**options), theirs.to_table(**options), (ref, options))
        check_table(ours.head(9), theirs.head(9), ref)

    each(pair, test, 1)


def test_takes(pair: Any) -> None:
    def test(ours: Any, theirs: Any, ref: object) -> None:
        num_rows = theirs.count_rows()
        rng = np.random.default_rng(num_rows)
        for take in TAKES:
            chosen: Any = take
            if take == "random":
                chosen = rng.integers(0, num_rows, 300).tolist()
            elif take == "last":
                chosen = [num_rows - 1, 0]
            # pylance loses the schema's own metadata when it has to reorder.
            check_table(ours.take(chosen), theirs.take(chosen), (ref, take), metadata=False)

    each(pair, test, 2)


def test_batches_are_the_table_in_pieces(pair: Any) -> None:
    def test(ours: Any, theirs: Any, ref: object) -> None:
        batches = list(ours.to_batches(columns=["id", "place"], batch_size=1000))
        assert max(batch.num_rows for batch in batches) <= 1000
        check_table(pa.Table.from_batches(batches), theirs.to_table(["id", "place"]), ref)

    each(pair, test, 0)


def test_row_ids_and_addresses(pair: Any) -> None:
    def test(ours: Any, theirs: Any, ref: object) -> None:
        options = {"columns": ["id"], "with_row_id": True, "with_row_address": True}
        check_table(ours.to_table(**options), theirs.to_table(**options), ref)

    each(pair, test, 1)


def test_fragments(pair: Any) -> None:
    def test(ours: Any, theirs: Any, ref: object) -> None:
        mine, other = ours.get_fragments(), theirs.get_fragments()
        assert [one.fragment_id for one in mine] == [one.fragment_id for one in other]
        for one, two in zip(mine, other, strict=True):
            assert one.count_rows() == two.count_rows()
            assert one.physical_rows == two.physical_rows
            assert one.num_deletions == two.num_deletions
        check_table(mine[-1].to_table(), other[-1].to_table(), ref)

    each(pair, test, 2)


def test_versions_tags_and_branches(pair: Any) -> None:
    lance, path = pair
    ours, theirs = lance_nb.dataset(path), lance.dataset(path)
    assert ours.versions() == theirs.versions()
    assert ours.tags.list() == theirs.tags.list()
    assert ours.branches.list() == theirs.branches.list()
    assert ours.latest_version == theirs.latest_version


@pytest.mark.parametrize("family", ["numbers", "temporal", "texts", "nested"])
def test_types_through_a_dataset(family: str, tmp_path: Path) -> None:
    lance = require_pylance()
    found = {name: array for name, array in columns(family, 300, "2.2", 5) if len(array) == 300}
    table = pa.table(found).append_column("n", pa.array(range(300)))
    lance.write_dataset(table, tmp_path / "d", max_rows_per_file=110)
    lance.dataset(tmp_path / "d").delete("n % 10 = 3")
    ours, theirs = lance_nb.dataset(str(tmp_path / "d")), lance.dataset(tmp_path / "d")
    check_table(ours.to_table(), theirs.to_table(), family)
    check_table(ours.take([269, 0, 110]), theirs.take([269, 0, 110]), family)


def test_an_empty_table(tmp_path: Path) -> None:
    lance = require_pylance()
    lance.write_dataset(rows(0, 0), tmp_path / "d")
    ours, theirs = lance_nb.dataset(str(tmp_path / "d")), lance.dataset(tmp_path / "d")
    check_table(ours.to_table(), theirs.to_table(), "empty")
    assert ours.count_rows() == 0
    check_table(ours.head(5), theirs.head(5), "head")
    assert pa.Table.from_batches(list(ours.to_batches()), theirs.schema).num_rows == 0
