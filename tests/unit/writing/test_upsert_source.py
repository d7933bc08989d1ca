"""Rows of the source, rows as an upsert writes them, and its clauses."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import MergeInsertError, SchemaMismatchError
from lance_nb.format.schema import Schema
from lance_nb.table.blob_copies import BlobCopies
from lance_nb.writing.upsert_source import (
    MergeClauses,
    RowMaker,
    SourceRows,
    WhenMatched,
    check_clauses,
    column_obstacles,
    windows,
)

TABLE = pa.table({"id": range(1000), "name": [f"n{i}" if i % 5 else None for i in range(1000)]})
ROWS = np.array([999, 0, 500, 500, 3], np.int64)


def reader(rows_per_batch: int = 10) -> pa.RecordBatchReader:
    return TABLE.to_reader(rows_per_batch)


@pytest.mark.parametrize("memory_bytes", [None, 0, 4000, 1 << 30])
def test_rows_come_by_number_in_any_order(tmp_path: Path, memory_bytes: int | None) -> None:
    with SourceRows(reader(), memory_bytes, str(tmp_path)) as source:
        assert bool(list(tmp_path.iterdir())) is (memory_bytes in {0, 4000})
        assert source.num_rows == 1000
        assert source.take(ROWS, ["name", "id"]).equals(TABLE.select(["name", "id"]).take(ROWS))
        assert source.columns(["id"]).equals(TABLE.select(["id"]))
        assert source.take(np.zeros(0, np.int64), ["id"]).num_rows == 0
    assert not list(tmp_path.iterdir())


def test_rows_of_several_batches_are_put_back_in_order(tmp_path: Path) -> None:
    large = pa.concat_tables([TABLE] * 200)
    with SourceRows(large.to_reader(50_000), 1, str(tmp_path)) as source:
        rows = np.random.default_rng(1).permutation(large.num_rows)[:5000]
        assert source.take(rows, ["id"]).equals(large.select(["id"]).take(rows))
        assert source.row_bytes > 8


def test_a_source_that_breaks_leaves_no_file(tmp_path: Path) -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield from TABLE.to_batches(100)
        raise KeyboardInterrupt

    batches = pa.RecordBatchReader.from_batches(TABLE.schema, broken())
    with pytest.raises(KeyboardInterrupt):
        SourceRows(batches, 0, str(tmp_path))
    assert not list(tmp_path.iterdir())


def test_an_empty_source_has_its_schema() -> None:
    with SourceRows(TABLE.slice(0, 0).to_reader()) as source:
        assert source.num_rows == 0
        assert source.columns(["name"]).schema.names == ["name"]


_NUMBERS = count()
INNER = pa.struct([("x", pa.int64()), ("t", pa.struct([("y", pa.int64()), ("z", pa.string())]))])
SCHEMA = pa.schema(
    [("k", pa.int64()), ("a", pa.string()), ("s", INNER), ("l", pa.list_(pa.int32()))]
)
OLD = [
    {"k": 0, "a": "p", "s": {"x": 1, "t": {"y": 2, "z": "u"}}, "l": [1]},
    {"k": 1, "a": "q", "s": None, "l": None},
    {"k": 2, "a": None, "s": {"x": 3, "t": None}, "l": [2, 3]},
]


def made(source: pa.Table, rows: list[int], old: list[int] | None) -> list[dict[str, Any]]:
    """Return rows of the source, matched with rows of the target, or inserted."""
    uri = f"memory://merge-rows/{next(_NUMBERS)}"
    target = lance_nb.write_dataset(pa.Table.from_pylist(OLD, SCHEMA), uri)
    snapshot = target._snapshot
    with SourceRows(source.to_reader()) as given:
        maker = RowMaker.of(snapshot, given, snapshot.manifest.schema, BlobCopies(snapshot))
        wanted = np.array(rows, np.int64)
        if old is None:
            table = maker.inserted(wanted)
        else:
            place = np.array(old, np.int64)
            table = maker.updated(snapshot.manifest.fragments[0], place, wanted)
    assert table.schema.types == SCHEMA.types
    assert table.schema.names == SCHEMA.names
    table.validate(full=True)
    found: list[dict[str, Any]] = table.to_pylist()
    return found


def of(kind: pa.Schema, *rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), kind)


WHOLE = {"k": 7, "a": "w", "s": {"x": 8, "t": {"y": 9, "z": "v"}}, "l": [4]}


def test_a_source_with_every_column_reads_nothing_of_the_target() -> None:
    source = of(SCHEMA, WHOLE, OLD[1])
    assert made(source, [1, 0], [0, 2]) == [OLD[1], WHOLE]
    assert made(source, [0], None) == [WHOLE]


def test_columns_that_the_source_lacks_stay_or_are_null() -> None:
    source = of(pa.schema([SCHEMA.field("l"), SCHEMA.field("k")]), {"k": 0, "l": [9]}, {"k": 2})
    assert made(source, [0, 1], [0, 2]) == [
        OLD[0] | {"l": [9]}, {"k": 2, "a": None, "s": OLD[2]["s"], "l": None},
    ]  # fmt: skip
    assert made(source, [1], None) == [{"k": 2, "a": None, "s": None, "l": None}]


def test_fields_that_a_struct_lacks_stay_or_are_null() -> None:
    part = pa.struct([("t", pa.struct([("z", pa.string())]))])
    source = of(
        pa.schema([("k", pa.int64()), ("s", part)]),
        {"k": 0, "s": {"t": {"z": "new"}}}, {"k": 1, "s": {"t": {"z": "n"}}}, {"k": 2, "s": None},
    )  # fmt: skip
    assert [row["s"] for row in made(source, [0, 1, 2], [0, 1, 2])] == [
        {"x": 1, "t": {"y": 2, "z": "new"}},
        {"x": None, "t": {"y": None, "z": "n"}},
        None,
    ]
    assert [row["s"] for row in made(source, [1, 2], None)] == [
        {"x": None, "t": {"y": None, "z": "n"}},
        None,
    ]


def test_fields_in_another_order_are_the_same_fields() -> None:
    other = pa.struct(
        [("t", pa.struct([("z", pa.string()), ("y", pa.int64())])), ("x", pa.int64())]
    )
    source = of(
        pa.schema(
            [("s", other), ("l", pa.list_(pa.int32())), ("a", pa.string()), ("k", pa.int64())]
        ),
        WHOLE,
    )
    assert made(source, [0], [1]) == [WHOLE]


@pytest.mark.parametrize(
    ("count", "row_bytes", "sizes"),
    [
        (0, 1.0, []),
        (10, 1.0, [10]),
        ((1 << 16) + 1, 0.0, [1 << 16, 1]),
        (5000, float(32 << 20), [1024] * 4 + [904]),
        (10_000, float((32 << 20) // 4000), [4000, 4000, 2000]),
    ],
)
def test_windows_hold_32_mb_and_1024_to_65536_rows(
    count: int, row_bytes: float, sizes: list[int]
) -> None:
    found = windows(count, row_bytes)
    assert [stop - start for start, stop in found] == sizes
    assert [start for start, _ in found] == [0, *(stop for _, stop in found)][: len(found)]


TABLE_SCHEMA = Schema.from_arrow(
    pa.schema([pa.field("k", pa.int64(), nullable=False), ("a", pa.int64()), ("b", pa.string())])
)
KEY, A, B = (pa.field(one.name, one.type, one.nullable) for one in TABLE_SCHEMA.to_arrow())
PART, WHOLE_ROWS = pa.schema([KEY, A]), pa.schema([A, B, KEY])


def clauses(**more: Any) -> MergeClauses:
    return MergeClauses(("k",), **{"matched": WhenMatched.UPDATE, **more})


@pytest.mark.parametrize(
    ("asked", "source", "obstacles"),
    [
        (clauses(), PART, []),
        (clauses(matched=WhenMatched.DELETE), PART, ["matched rows are not updated"]),
        (clauses(matched=WhenMatched.KEEP), PART, ["matched rows are not updated"]),
        (clauses(inserts=True), PART, ["rows are inserted"]),
        (clauses(deletes_unmatched=True), PART, ["rows that are not matched are deleted"]),
        (clauses(), WHOLE_ROWS, ["the source has every column of the dataset"]),
        (clauses(), pa.schema([KEY]), ["the source has no column besides the key"]),
        (
            clauses(inserts=True, deletes_unmatched=True), WHOLE_ROWS,
            ["rows are inserted", "rows that are not matched are deleted",
             "the source has every column of the dataset"],
        ),
    ],
)  # fmt: skip
def test_columns_are_written_alone_unless_something_speaks_against_it(
    asked: MergeClauses, source: pa.Schema, obstacles: list[str]
) -> None:
    assert column_obstacles(asked, source, TABLE_SCHEMA) == obstacles
    wanted = MergeClauses(**{**vars_of(asked), "write_mode": "rewrite_columns"})
    if not obstacles:
        check_clauses(wanted, source, TABLE_SCHEMA)
        return
    with pytest.raises(MergeInsertError) as caught:
        check_clauses(wanted, source, TABLE_SCHEMA)
    assert all(one in str(caught.value) for one in obstacles)


def vars_of(asked: MergeClauses) -> dict[str, Any]:
    return {name: getattr(asked, name) for name in asked.__slots__}


@pytest.mark.parametrize("mode", ["auto", "rewrite_rows"])
def test_other_modes_find_their_own_way(mode: str) -> None:
    check_clauses(clauses(inserts=True, write_mode=mode), WHOLE_ROWS, TABLE_SCHEMA)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (MergeClauses(("k",)), True),
        (clauses(), False),
        (clauses(matched=WhenMatched.FAIL), False),
        (MergeClauses(("k",), inserts=True), False),
        (MergeClauses(("k",), deletes_unmatched=True), False),
        (MergeClauses(("k",), all_bases=True, bases=("b",)), True),
    ],
)
def test_clauses_that_change_no_row_are_known(asked: MergeClauses, expected: bool) -> None:
    assert asked.does_nothing is expected


@pytest.mark.parametrize(
    ("asked", "source", "said"),
    [
        (clauses(), pa.schema([A, B]), r"no column 'k', which rows are matched by.*'a', 'b'"),
        (clauses(inserts=True), pa.schema([("k", pa.int32()), A]), "'k' must have type int64"),
        (clauses(), pa.schema([KEY, ("z", pa.int8())]), "'z' is not in the dataset"),
        (clauses(inserts=True), pa.schema([KEY, A, ("z", pa.int8())]), "'z' is not in the dataset"),
        (MergeClauses(("a",), inserts=True, matched=WhenMatched.UPDATE), pa.schema([A, B]), "'k'"),
    ],
)
def test_a_source_that_does_not_fit_is_refused(
    asked: MergeClauses, source: pa.Schema, said: str
) -> None:
    with pytest.raises(SchemaMismatchError, match=said):
        check_clauses(asked, source, TABLE_SCHEMA)


def test_a_column_that_must_not_be_null_may_be_missing_where_nothing_is_inserted() -> None:
    asked = MergeClauses(("a",), matched=WhenMatched.UPDATE)
    check_clauses(asked, pa.schema([A, B]), TABLE_SCHEMA)


def test_a_refusal_names_at_most_twenty_columns() -> None:
    many = pa.schema([(f"c{n}", pa.int8()) for n in range(30)])
    with pytest.raises(SchemaMismatchError) as caught:
        check_clauses(clauses(), many, TABLE_SCHEMA)
    assert "'c19'" in str(caught.value)
    assert "'c20'" not in str(caught.value)
