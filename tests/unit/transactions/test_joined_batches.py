"""Small batches become few; what is large or empty is not copied."""

from __future__ import annotations

import pyarrow as pa

from lance_nb.transactions.fragment_writer import joined_batches


def batches(*counts: int) -> list[pa.RecordBatch]:
    firsts = [sum(counts[:number]) for number in range(len(counts))]
    return [
        pa.record_batch({"n": pa.array(range(first, first + count), pa.int64())})
        for first, count in zip(firsts, counts, strict=True)
    ]


def test_small_batches_are_joined_up_to_the_rows_of_a_run() -> None:
    found = list(joined_batches(batches(3, 0, 4, 5, 1), 7, 1 << 20))
    assert [one.num_rows for one in found] == [7, 6]
    assert [n for one in found for n in one["n"].to_pylist()] == list(range(13))


def test_bytes_end_a_run_as_well() -> None:
    assert [one.num_rows for one in joined_batches(batches(2, 2, 2), 100, 32)] == [4, 2]


def test_a_large_batch_is_the_same_memory() -> None:
    (large,) = batches(1000)
    (found,) = joined_batches([large], 10, 1 << 20)
    assert found["n"].buffers()[1].address == large["n"].buffers()[1].address


def test_nothing_gives_nothing() -> None:
    assert list(joined_batches(batches(0, 0), 10, 10)) == []


def test_dictionaries_are_joined_and_may_have_null_items() -> None:
    parts = [
        pa.record_batch({"d": pa.DictionaryArray.from_arrays(pa.array(keys, pa.int8()), items)})
        for keys, items in (([0, 1], pa.array(["a", None])), ([1, 0], pa.array(["b", "c"])))
    ]
    (found,) = joined_batches(parts, 10, 1 << 20)
    assert found.schema == parts[0].schema
    assert found["d"].to_pylist() == ["a", None, "c", "b"]


def test_batches_without_columns_keep_their_rows() -> None:
    rows = pa.RecordBatch.from_struct_array(pa.StructArray.from_buffers(pa.struct([]), 3, [None]))
    assert [one.num_rows for one in joined_batches([rows, rows], 100, 100)] == [3, 3]


def test_dictionaries_that_are_too_many_together_are_not_joined() -> None:
    keys = pa.array(range(100), pa.int8())
    parts = [
        pa.record_batch(
            {"d": pa.DictionaryArray.from_arrays(keys, pa.array([f"{k}{n}" for n in range(100)]))}
        )
        for k in "ab"
    ]
    assert list(joined_batches(parts, 1000, 1 << 20)) == parts
