"""B-tree indices that are written."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import InvalidInputError
from lance_nb.indices.kinds import btree
from lance_nb.indices.sorted_rows import check_sorted, order_of

SORTABLE = (
    pa.int8(), pa.uint64(), pa.float16(), pa.float64(), pa.bool_(), pa.string(), pa.large_string(),
    pa.binary(), pa.large_binary(), pa.binary(4), pa.date32(), pa.timestamp("us"), pa.time64("ns"),
    pa.duration("s"), pa.decimal128(9, 2), pa.decimal256(40, 2),
)  # fmt: skip
OTHERS = (
    pa.list_(pa.int8()), pa.list_(pa.float32(), 2), pa.struct([("x", pa.int8())]), pa.null(),
    pa.map_(pa.string(), pa.int8()),
)  # fmt: skip


@pytest.mark.parametrize("type_", SORTABLE, ids=str)
def test_values_with_an_order_are_held(type_: pa.DataType) -> None:
    check_sorted("BTREE", pa.field("a", type_), {})


@pytest.mark.parametrize("type_", OTHERS, ids=str)
def test_values_without_an_order_are_refused(type_: pa.DataType) -> None:
    with pytest.raises(InvalidInputError, match="column 'a' is"):
        check_sorted("BTREE", pa.field("a", type_), {})


@pytest.mark.parametrize("type_", [pa.float16(), pa.float32()], ids=str)
def test_pages_say_their_bounds_and_how_many_nulls_they_hold(
    monkeypatch: pytest.MonkeyPatch, type_: pa.DataType
) -> None:
    monkeypatch.setattr(btree, "PAGE_ROWS", 2)
    values = pa.array([4, None, 3, None, 1, None, 2], pa.float32()).cast(type_)
    ordered = values.take(pa.array(order_of(values)))

    pages = btree._bounds(ordered, 5)

    assert pages.to_pydict() == {
        "min": [None, None, 2.0, 4.0],
        "max": [None, 1.0, 3.0, 4.0],
        "null_count": [2, 1, 0, 0],
        "page_idx": [5, 6, 7, 8],
    }
    assert pages.schema.metadata == {b"batch_size": b"2", b"range_partitioned": b"false"}


def test_a_segment_is_recorded_with_its_files_and_what_it_covers() -> None:
    made = lance_nb.write_dataset(pa.table({"a": [3, 1, 2]}), "memory://btree/one")

    made.create_scalar_index("a", "BTREE")

    (index,) = made.describe_indices()
    assert (index.name, index.num_rows_indexed) == ("a_idx", 3)
    assert made.to_table(filter="a = 2").to_pydict() == {"a": [2]}


def test_nulls_fill_one_page_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(btree, "PAGE_ROWS", 2)
    values = pa.array([None] * 5 + [1, 2], pa.int64())

    assert btree._bounds(values, 0)["null_count"].to_pylist() == [2, 2, 1, 0]


def test_only_the_last_page_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(btree, "PAGE_ROWS", 4)
    parts = [pa.record_batch({"v": pa.array(range(n), pa.int64())}) for n in (3, 3, 0, 9, 1, 1)]

    sizes = [one.num_rows for one in btree._whole_pages(parts)]

    assert sum(sizes) == 17
    assert all(size % 4 == 0 for size in sizes[:-1])
