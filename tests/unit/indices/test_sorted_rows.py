"""Sorted and grouped values."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from pyroaring import BitMap64

from lance_nb.indices.row_sets import set64_rows, tree_map_rows
from lance_nb.indices.sorted_rows import grouped_rows, order_of, sorted_rows

NAN = float("nan")
rng = np.random.default_rng(22)
COUNT = 1200
LETTERS = np.array(list("ab\0\u00e9z"))


def words() -> list[str]:
    lengths = rng.integers(0, 14, COUNT)
    return ["https://" * (at % 2) + "".join(rng.choice(LETTERS, n)) for at, n in enumerate(lengths)]


COLUMNS = {
    "few": pa.array(rng.integers(-3, 3, COUNT)),
    "many": pa.array(rng.integers(-(2**62), 2**62, COUNT)),
    "small": pa.array(rng.integers(0, 255, COUNT), pa.uint8()),
    "unsigned": pa.array(rng.integers(0, 2**64 - 1, COUNT, np.uint64), pa.uint64()),
    "floats": pa.array(
        np.where(rng.random(COUNT) < 0.1, rng.choice([NAN, -NAN], COUNT), rng.normal(0, 1e5, COUNT))
    ),
    "zeros": pa.array(rng.choice(np.array([0.0, -0.0, 1.0, -1.0, NAN, -NAN]), COUNT)),
    "halves": pa.array(rng.normal(0, 9, COUNT).astype(np.float16)),
    "flags": pa.array(rng.random(COUNT) < 0.5),
    "texts": pa.array(words()),
    "large": pa.array(words(), pa.large_string()),
    "bytes": pa.array([one.encode("utf-16") for one in words()]),
    "fixed": pa.array([bytes(rng.integers(0, 9, 3).tolist()) for _ in range(COUNT)], pa.binary(3)),
    "moments": pa.array(rng.integers(-99, 99, COUNT)).cast(pa.timestamp("ns")),
    "decimals": pa.array([Decimal(int(one)) / 4 for one in rng.integers(-99, 99, COUNT)]),
}


def with_nulls(values: pa.Array) -> pa.Array:
    places = pa.array([None if at % 7 == 3 else at for at in range(len(values))])
    return values.take(places)


def batches(values: pa.Array, size: int) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    table = pa.table({"v": values, "row": pa.array(range(len(values)), pa.uint64())})
    return table.schema, iter(table.to_batches(max_chunksize=size))


def sort_key(value: object) -> tuple[int, object]:
    if value is None:
        return 0, 0
    if isinstance(value, float):  # total order: of negative floats the greater bits are less
        (bits,) = struct.unpack("<q", struct.pack("<d", value))
        return 1, bits ^ ((bits >> 63) & (2**63 - 1))
    return 1, value.encode() if isinstance(value, str) else value


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("run_bytes", [None, 3_000])
def test_values_are_sorted_with_their_rows(name: str, run_bytes: int | None) -> None:
    values = with_nulls(COLUMNS[name])
    schema, parts = batches(values, 100)
    found = pa.Table.from_batches(sorted_rows(parts, schema, run_bytes), schema)
    rows = found["row"].to_pylist()
    assert sorted(rows) == list(range(COUNT))
    listed = values.to_pylist()
    keys = [sort_key(listed[row]) for row in rows]
    assert keys == sorted(keys)
    assert str(found["v"].to_pylist()) == str([listed[row] for row in rows])


def test_runs_leave_no_files(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    schema, parts = batches(COLUMNS["many"], 100)
    ordered = sorted_rows(parts, schema, 3_000)
    next(ordered)
    assert list(tmp_path.iterdir())
    assert (next(tmp_path.iterdir()).stat().st_mode & 0o77) == 0
    ordered.close()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", [name for name in COLUMNS if name not in ("many", "unsigned")])
@pytest.mark.parametrize("is_wide", [False, True])
def test_rows_of_equal_values_are_one_set(name: str, is_wide: bool) -> None:
    values = with_nulls(COLUMNS[name])
    schema, parts = batches(values, 100)
    read = set64_rows if is_wide else tree_map_rows
    found = {}
    for keys, sets in grouped_rows(sorted_rows(parts, schema, 3_000), is_wide=is_wide):
        for key, one in zip(keys.to_pylist(), sets, strict=True):
            assert sort_key(key) not in found
            found[sort_key(key)] = read(one.as_buffer(), "").tolist()
            if is_wide:
                assert BitMap64.deserialize(one.as_py()) == BitMap64(found[sort_key(key)])
    wanted: dict[object, list[int]] = {}
    for row, value in enumerate(values.to_pylist()):
        wanted.setdefault(sort_key(value), []).append(row)
    assert found == wanted


def test_rows_of_a_set_come_in_order_and_once() -> None:
    schema = pa.schema([("v", pa.int64()), ("row", pa.uint64())])
    rows = [9, 2, 2, 1 << 40, 5, 70_000]
    values = pa.array([1, 1, 1, 1, 2, 2])
    batch = pa.RecordBatch.from_arrays([values, pa.array(rows, pa.uint64())], schema=schema)
    ((_, first), (_, last)) = grouped_rows([batch])
    assert tree_map_rows(first[0].as_buffer(), "").tolist() == [2, 9, 1 << 40]
    assert tree_map_rows(last[0].as_buffer(), "").tolist() == [5, 70_000]


def test_large_sets_are_bits() -> None:
    rows = np.arange(0, 400_000, 3, np.uint64)
    schema = pa.schema([("v", pa.int64()), ("row", pa.uint64())])
    values = np.repeat([1, 2], [120_000, rows.size - 120_000])
    batch = pa.RecordBatch.from_arrays([pa.array(values), pa.array(rows)], schema=schema)
    ((_, first), (_, last)) = grouped_rows([batch])
    assert np.array_equal(tree_map_rows(first[0].as_buffer(), ""), rows[:120_000])
    assert np.array_equal(tree_map_rows(last[0].as_buffer(), ""), rows[120_000:])
    assert len(first[0].as_py()) < 7 * 8192


def test_no_values_have_an_order() -> None:
    for values in COLUMNS.values():
        assert order_of(values.slice(0, 0)).tolist() == []
        assert order_of(values.slice(5, 1)).tolist() == [0]
