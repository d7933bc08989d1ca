"""Rows and columns of fragments that are written anew."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import (
    ColumnNotFoundError,
    InvalidInputError,
    PredicateError,
    SchemaMismatchError,
)
from lance_nb.format.fragment import DataFile, Fragment, InlineSequence
from lance_nb.format.fragment_list import FragmentList
from lance_nb.format.manifest import DataStorageFormat, Manifest
from lance_nb.format.row_sequences import RowIdSegments
from lance_nb.format.schema import Schema
from lance_nb.storage.memory import MemoryStore, clear
from lance_nb.storage.registry import open_store
from lance_nb.table.filtered_scan import RowChoice
from lance_nb.table.predicate import compile_filter
from lance_nb.table.projection import project
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.schema_change import extend_schema, next_field_id
from lance_nb.writing.fragment_writer import WriteOptions
from lance_nb.writing.rewriting import (
    Touched,
    cast,
    check_updates,
    columns_are_cheaper,
    find_rows,
    has_blobs,
    rewrite_columns,
    rewrite_rows,
    rewrite_values,
    updated_part,
    with_file,
    with_row_ids,
    write_columns,
)
from lance_nb.writing.staged import ColumnRewrite, RowRewrite, combine

URI = "memory://column-rewrite.lance"


@pytest.fixture
def opened() -> lance_nb.LanceDataset:
    table = pa.table({"id": range(10), "v": [[n] for n in range(10)]})
    return lance_nb.write_dataset(table, URI, mode="overwrite", max_rows_per_file=6)


def rewritten(made: lance_nb.LanceDataset, rows: dict[int, list[int]], fails: int) -> ColumnRewrite:
    _, snapshot = made.opened
    part = Schema((snapshot.manifest.schema.field("v"),), {})
    fragments = list(snapshot.manifest.fragments)
    touched: list[Touched] = [
        (fragments[place], np.array(offsets, np.int64)) for place, offsets in rows.items()
    ]

    def values(fragment: Fragment, first: int, last: int) -> pa.Table:
        if fragment.id == fragments[fails].id if fails >= 0 else False:
            raise KeyboardInterrupt
        return pa.table({"v": pa.array([[-1]] * (last - first), pa.list_(pa.int64()))})

    return rewrite_columns(snapshot, part, touched, values, WriteOptions())


def test_new_values_lie_in_their_places(opened: lance_nb.LanceDataset) -> None:
    made = rewritten(opened, {0: [1, 5], 1: [0, 1, 2, 3]}, -1)
    assert (made.num_rows, len(made.files), made.offsets) == (6, 2, {})
    assert made.fields == (1, 2)
    after = lance_nb.LanceDataset.commit(opened, made.operation(), read_version=opened.version)
    expected = [[0], [-1], [2], [3], [4], [-1], [-1], [-1], [-1], [-1]]
    assert after.to_table(["v"]).to_pydict()["v"] == expected


def test_an_interrupt_removes_what_was_written(opened: lance_nb.LanceDataset) -> None:
    store = open_store(URI, None)
    before = {one.name for one in store.list_recursive("")}
    with pytest.raises(KeyboardInterrupt):
        rewritten(opened, {0: [0], 1: [1]}, 1)
    assert {one.name for one in store.list_recursive("")} == before


def test_an_interrupt_leaves_the_other_files_of_a_fragment(opened: lance_nb.LanceDataset) -> None:
    opened.add_columns({"w": "id + 1", "x": "id + 2"})
    opened.add_columns({"y": "id + 3"})
    store = open_store(URI, None)
    before = {one.name for one in store.list_recursive("")}
    with pytest.raises(KeyboardInterrupt):
        rewritten(opened, {0: [0], 1: [1]}, 1)
    assert {one.name for one in store.list_recursive("")} == before


SCHEMA = Schema.from_arrow(
    pa.schema([("a", pa.int64()), ("s", pa.struct([("x", pa.int64())]))], {"k": "v"})
)
FILE = DataFile("old.lance", (0, 2), (0, 1), 2, 2, 100)
FRAGMENT = Fragment(4, (FILE,), 3)


def manifest(schema: Schema = SCHEMA, version: str = "2.2", **more: object) -> Manifest:
    return Manifest(1, schema, data_format=DataStorageFormat("lance", version), **more)


@pytest.fixture
def store() -> MemoryStore:
    clear("column-files")
    return MemoryStore("column-files")


def test_ids_follow_the_highest_that_anybody_has_had() -> None:
    assert next_field_id(Manifest(1, Schema((), {}))) == 0
    assert next_field_id(manifest()) == 3
    assert next_field_id(manifest(max_allocated_field_id=7)) == 8
    assert next_field_id(manifest(max_allocated_field_id=0)) == 3
    wide = replace(FRAGMENT, files=(FILE, replace(FILE, fields=(-2, 11)), replace(FILE, fields=())))
    assert next_field_id(manifest(fragments=FragmentList.of([FRAGMENT, wide]))) == 12


def test_new_columns_are_at_the_end() -> None:
    after, part = extend_schema(manifest(), pa.schema([("b", pa.int8())], {"other": "x"}))
    assert [(one.name, one.id) for one in after] == [("a", 0), ("s", 1), ("b", 3)]
    assert [(one.name, one.id) for one in part] == [("b", 3)]
    assert after.metadata == {**SCHEMA.metadata, "other": b"x"}


@pytest.mark.parametrize(("version", "grows"), [("2.2", True), ("2.1", False), ("2.0", False)])
def test_structs_grow_in_files_of_version_2_2(version: str, grows: bool) -> None:
    added = pa.schema([("s", pa.struct([("y", pa.int8())]))])
    if not grows:
        with pytest.raises(SchemaMismatchError, match=f"'s' is a struct.*{version}"):
            extend_schema(manifest(version=version), added)
        return
    after, part = extend_schema(manifest(version=version), added)
    assert [one.name for one in after.field("s").children] == ["x", "y"]
    assert [one.id for one in part.walk()] == [1, 3]
    extend_schema(manifest(version=version), pa.schema([("t", pa.int8())]))


@pytest.mark.parametrize("name", ["a", "s"])
def test_columns_that_are_there_are_refused(name: str) -> None:
    with pytest.raises(SchemaMismatchError, match="already exists"):
        extend_schema(manifest(), pa.schema([(name, pa.int8())]))


def test_metadata_that_is_no_text_is_refused() -> None:
    field = pa.field("b", pa.int8(), metadata={b"k": b"\xff"})
    with pytest.raises(InvalidInputError, match="not UTF-8"):
        extend_schema(manifest(), pa.schema([field]))


def batches(*sizes: int) -> list[pa.RecordBatch]:
    return [pa.record_batch({"a": pa.array(range(size), pa.int64())}) for size in sizes]


PART = Schema(SCHEMA.fields[:1], {})


@pytest.mark.parametrize("sizes", [(3,), (1, 2), (2, 0, 1)])
def test_a_file_holds_the_columns_of_all_rows(store: MemoryStore, sizes: tuple[int, ...]) -> None:
    options = WriteOptions(max_rows_per_file=1)  # a fragment has one file of a column all the same
    made = write_columns(store, FRAGMENT, PART, batches(*sizes), options)
    assert (made.id, made.physical_rows) == (4, 3)
    old, new = made.files
    assert (old.path, old.fields) == ("old.lance", (-2, 2))
    assert new.fields == (0,)
    assert [one.name for one in store.list_recursive("data")] == [new.path]


@pytest.mark.parametrize(
    ("sizes", "said"), [((2,), "have 2"), ((), "have 0"), ((2, 2), "have more"), ((4,), "more")]
)
def test_another_number_of_rows_is_refused(
    store: MemoryStore, sizes: tuple[int, ...], said: str
) -> None:
    with pytest.raises(InvalidInputError, match=f"fragment 4 has 3 physical rows.*{said}"):
        write_columns(store, FRAGMENT, PART, batches(*sizes), WriteOptions())
    assert store.list_recursive("") == []


def test_a_fragment_without_rows_needs_no_file(store: MemoryStore) -> None:
    empty = replace(FRAGMENT, physical_rows=0)
    assert write_columns(store, empty, PART, [], WriteOptions()) == empty
    assert store.list_recursive("") == []


def test_files_whose_fields_all_moved_go() -> None:
    new = replace(FILE, path="new.lance", fields=(0,))
    assert with_file(FRAGMENT, None, PART.fields) is FRAGMENT
    moved = with_file(FRAGMENT, new, SCHEMA.fields)
    assert [one.path for one in moved.files] == ["new.lance"]
    one = with_file(FRAGMENT, new, SCHEMA.fields[1:])
    assert [(file.path, file.fields) for file in one.files] == [
        ("old.lance", (0, -2)), ("new.lance", (0,)),
    ]  # fmt: skip


_NUMBERS = count()
IDS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8]


def written(stable: bool = False, **columns: Any) -> lance_nb.LanceDataset:
    """Write twelve rows in fragments of five; the row with ``n`` 2 is deleted."""
    table = pa.table({"n": pa.array(range(12), pa.int32()), "id": IDS, "t": list("abcdefghijkl")})
    for name, values in columns.items():
        table = table.append_column(name, values)
    made = lance_nb.write_dataset(
        table,
        f"memory://row-rewrite/{next(_NUMBERS)}",
        max_rows_per_file=5,
        enable_stable_row_ids=stable,
    )
    made.delete("n = 2")
    return made


def choice(snapshot: Snapshot, where: str | None) -> RowChoice:
    if where is None:
        return RowChoice()
    return RowChoice(compile_filter(where, project(snapshot.manifest.schema, None).schema))


def rewrite(
    made: lance_nb.LanceDataset,
    updates: dict[str, str],
    where: str | None,
    *,
    found: bool = False,
    rows_per_file: int = 1000,
) -> tuple[RowRewrite, list[int]]:
    """Plan an update; return the plan and the numbers of rows that were counted."""
    snapshot = made._snapshot
    chosen = choice(snapshot, where)
    told: list[int] = []
    rows = find_rows(snapshot, chosen) if found else None
    options = WriteOptions(max_rows_per_file=rows_per_file)
    return rewrite_rows(snapshot, updates, chosen, options, rows, progress=told.append), told


def committed(made: lance_nb.LanceDataset, plan: RowRewrite | ColumnRewrite) -> pa.Table:
    """Return the rows of the version that the plan makes."""
    staged = combine(made._snapshot, [plan])
    deletions = staged.pending.write(made._snapshot.locations.home)
    assert len(deletions) == len(staged.pending.vectors)
    after = lance_nb.LanceDataset.commit(made, staged.operation, read_version=made.version)
    after.validate()
    return after.to_table(with_row_id=True).sort_by("n")


@pytest.mark.parametrize("found", [False, True])
@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize(
    ("where", "chosen"),
    [
        ("id = 5", [4, 8, 10]),
        ("n < 5", [0, 1, 3, 4]),
        ("n > 100", []),
        (None, [0, 1, *range(3, 12)]),
        ("t in ('a', 'l')", [0, 11]),
    ],
)
def test_chosen_rows_get_new_values_and_others_stay(
    where: str | None, chosen: list[int], stable: bool, found: bool
) -> None:
    made = written(stable)
    before = made.to_table(with_row_id=True)

    plan, told = rewrite(made, {"id": "id * 10 + n", "t": "upper(t)"}, where, found=found)

    assert plan.num_rows == sum(told) == len(chosen)
    assert sum(one.physical_rows for one in plan.fragments) == len(chosen)
    assert plan.deletion.predicate == (where or "")
    assert plan.deletion.read_version == made.version
    assert plan.fields == (1, 2)
    gone = {key: one.offsets().tolist() for key, one in plan.deletion.affected_rows.items()}
    assert gone == {
        part: offsets
        for part in (0, 1, 2)
        if (offsets := [one - 5 * part for one in chosen if one // 5 == part])
    }
    after = committed(made, plan)
    expected = [
        {"n": n, "id": IDS[n] * 10 + n, "t": "abcdefghijkl"[n].upper()}
        if n in chosen else {"n": n, "id": IDS[n], "t": "abcdefghijkl"[n]}
        for n in range(12) if n != 2
    ]  # fmt: skip
    assert after.drop_columns(["_rowid"]).to_pylist() == expected
    if stable:
        assert after["_rowid"].to_pylist() == before["_rowid"].to_pylist()


@pytest.mark.parametrize("rows_per_file", [2, 4, 1000])
def test_new_fragments_bring_the_ids_of_their_rows(rows_per_file: int) -> None:
    made = written(True)
    plan, _ = rewrite(made, {"id": "0"}, "n % 2 = 1", rows_per_file=rows_per_file)
    ids = [
        RowIdSegments.from_bytes(one.row_ids.data).to_numpy().tolist()
        for one in plan.fragments
        if isinstance(one.row_ids, InlineSequence)
    ]
    odd = [1, 3, 5, 7, 9, 11]
    assert ids == [odd[at : at + rows_per_file] for at in range(0, 6, rows_per_file)]
    plain, _ = rewrite(written(False), {"id": "0"}, "n = 1")
    assert [one.row_ids for one in plain.fragments] == [None]


def test_without_rows_there_are_no_ids() -> None:
    assert list(with_row_ids([], [])) == []
    (new,) = with_row_ids([Fragment(0, (), 3)], [])
    assert new.row_ids is None


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize(
    ("where", "chosen"), [("n >= 4 and n < 8", [4, 5, 6, 7]), (None, None), ("n = 99", [])]
)
def test_columns_are_written_anew_beside_the_others(
    where: str | None, chosen: list[int] | None, stable: bool
) -> None:
    made = written(stable)
    snapshot = made._snapshot
    chosen = [n for n in range(12) if n != 2] if chosen is None else chosen
    found = find_rows(snapshot, choice(snapshot, where))
    told: list[int] = []

    plan = rewrite_values(
        snapshot, {"t": "t || 'x'", "n": "n + 100"}, found, WriteOptions(), progress=told.append
    )

    assert plan.num_rows == sum(told) == len(chosen)
    assert plan.fields == (0, 2)
    assert [one.id for one in plan.fragments] == sorted({one // 5 for one in chosen})
    assert [one.files[-1].fields for one in plan.fragments] == [(0, 2)] * len(plan.fragments)
    assert set(plan.offsets) == ({one.id for one in plan.fragments} if stable else set())
    assert plan.files == tuple(one.files[-1] for one in plan.fragments)
    after = committed(made, plan)
    values = {
        (n + 100 if n in chosen else n, IDS[n], "abcdefghijkl"[n] + ("x" if n in chosen else ""))
        for n in range(12)
        if n != 2
    }
    assert {(one["n"], one["id"], one["t"]) for one in after.to_pylist()} == values


def test_found_rows_are_physical_offsets() -> None:
    snapshot = written()._snapshot
    found = find_rows(snapshot, choice(snapshot, "n in (1, 3, 11)"))
    assert [(one.id, rows.tolist()) for one, rows in found] == [(0, [1, 3]), (2, [1])]
    assert find_rows(snapshot, choice(snapshot, "n > 50")) == []


def test_rows_are_cut_into_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lance_nb.writing.rewriting.window_rows", lambda *_: 2)
    made = written()
    plan, told = rewrite(made, {"id": "-n"}, "n != 0", found=True)
    assert told == [2, 1, 2, 2, 1, 2]
    assert committed(made, plan)["id"].to_pylist() == [3, -1, *(-n for n in range(3, 12))]


@pytest.mark.parametrize(
    ("updates", "error", "said"),
    [
        ({}, InvalidInputError, "no updates"),
        ({"nope": "1"}, ColumnNotFoundError, "nope"),
        ({"id": 7}, InvalidInputError, "of 'id' is an SQL expression, text, not int"),
    ],
)
def test_updates_are_checked_before_anything_is_read(updates: Any, error: Any, said: str) -> None:
    schema = Schema.from_arrow(pa.schema([("id", pa.int64())]))
    with pytest.raises(error, match=said):
        check_updates(schema, updates)
    check_updates(schema, {"id": "1"})


def test_a_value_that_does_not_fit_leaves_no_file() -> None:
    made = written()
    home = made._snapshot.locations.home
    before = {one.name for one in home.list_recursive("")}
    with pytest.raises(PredicateError, match="'n' is no int32"):
        rewrite(made, {"n": "cast(n as bigint) + 3000000000"}, "n > 5")
    assert {one.name for one in home.list_recursive("")} == before


def test_changed_columns_are_in_the_order_of_the_schema() -> None:
    schema = Schema.from_arrow(pa.schema([(one, pa.int8()) for one in "abc"], {"k": "v"}))
    part = updated_part(schema, {"c": "1", "a": "2"})
    assert ([one.id for one in part], part.metadata) == ([0, 2], schema.metadata)


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([1.9, -1.9, None], pa.int64(), [1, -1, None]),
        ([1, 2], pa.float32(), [1.0, 2.0]),
        (["5"], pa.int8(), [5]),
        ([1], pa.int64(), [1]),
    ],
)
def test_values_are_cast_as_sql_does(values: list[Any], kind: pa.DataType, expected: Any) -> None:
    made = cast(pa.chunked_array([values]), pa.field("x", kind))
    assert (made.type, made.to_pylist()) == (kind, expected)


@pytest.mark.parametrize(
    ("values", "wanted", "expected"),
    [
        (pa.array([1_999], pa.timestamp("ms")), pa.timestamp("s"), 1),
        (pa.array([Decimal("1.99")], pa.decimal128(20, 3)), pa.decimal128(20, 0), 1),
    ],
)  # fmt: skip
def test_fractions_are_cut_off(values: pa.Array, wanted: pa.DataType, expected: int) -> None:
    made = cast(pa.chunked_array([values]), pa.field("x", wanted))
    assert made.cast(pa.int64()).to_pylist() == [expected]


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (300, pa.int8()),
        ("x", pa.int8()),
        (1e40, pa.int64()),
        (float("nan"), pa.int8()),
        (-129.0, pa.int8()),
    ],
)
def test_values_out_of_range_are_refused(value: Any, kind: pa.DataType) -> None:
    with pytest.raises(PredicateError, match=f"the new value of 'x' is no {kind}"):
        cast(pa.chunked_array([[value]]), pa.field("x", kind))


def test_values_out_of_range_are_refused_inside_lists_and_structs() -> None:
    lists = pa.array([[9.0], [1.5, None], None, [2.0]])
    for wanted in (pa.list_(pa.int8()), pa.large_list(pa.int8())):
        made = cast(pa.chunked_array([lists[1:]]), pa.field("x", wanted))
        assert made.to_pylist() == [[1, None], None, [2]]
    with pytest.raises(PredicateError, match="'x' is no list"):
        cast(pa.chunked_array([[[1.0], [128.0]]]), pa.field("x", pa.list_(pa.int8())))
    structs = pa.array([{"a": 1.0, "b": {"c": 1e30}}, {"a": 2.5, "b": None}])
    wanted = pa.struct([("a", pa.int8()), ("b", pa.struct([("c", pa.int64())]))])
    made = cast(pa.chunked_array([structs[1:]]), pa.field("x", wanted))
    assert made.to_pylist() == [{"a": 2, "b": None}]
    with pytest.raises(PredicateError, match="'x' is no struct"):
        cast(pa.chunked_array([structs]), pa.field("x", wanted))


# --- blobs ----------------------------------------------------------------------------------------

BLOB = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})


def blobs(version: str) -> lance_nb.LanceDataset:
    payloads = pa.array([b"x" * (n + 1) for n in range(6)], pa.large_binary())
    schema = pa.schema([pa.field("n", pa.int64()), BLOB])
    return lance_nb.write_dataset(
        pa.table([range(6), payloads], schema=schema),
        f"memory://row-rewrite/{next(_NUMBERS)}",
        max_rows_per_file=4,
        data_storage_version=version,
    )


def payloads(made: lance_nb.LanceDataset) -> dict[int, bytes]:
    after = lance_nb.dataset(made.uri)
    ids = after.to_table(["n"])["n"].to_pylist()
    found = [one.read() for one in after.take_blobs("b", indices=list(range(len(ids))))]
    return dict(zip(ids, found, strict=True))


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_payloads_go_along_or_are_written_anew(version: str) -> None:
    made = blobs(version)
    assert has_blobs(made._snapshot.manifest.schema)
    assert not has_blobs(written()._snapshot.manifest.schema)
    plan, _ = rewrite(made, {"n": "n + 10"}, "n in (1, 4)")
    committed(made, plan)
    before = {n: b"x" * (n + 1) for n in range(6)}
    moved = {n: before[n] for n in (0, 2, 3, 5)} | {11: before[1], 14: before[4]}
    assert payloads(made) == moved

    made = lance_nb.dataset(made.uri)
    plan, _ = rewrite(made, {"b": "b || X'79'"}, "n in (0, 14)")
    committed(made, plan)
    assert payloads(made) == moved | {0: b"xy", 14: b"xxxxxy"}


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_payloads_are_written_as_columns_too(version: str) -> None:
    made = blobs(version)
    snapshot = made._snapshot
    found = find_rows(snapshot, choice(snapshot, "n in (0, 5)"))
    plan = rewrite_values(snapshot, {"b": "b || X'79'"}, found, WriteOptions())
    committed(made, plan)
    expected = {n: b"x" * (n + 1) for n in range(6)}
    assert payloads(made) == expected | {0: b"xy", 5: b"xxxxxxy"}


def test_windows_are_cut_where_payloads_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lance_nb.writing.rewriting.payload_rows", lambda *_: 2)
    made = blobs("2.2")
    plan, told = rewrite(made, {"n": "length(b) * 100"}, None)
    assert told == [2, 2, 2]
    assert committed(made, plan)["n"].to_pylist() == [100, 200, 300, 400, 500, 600]


def test_narrow_columns_of_many_rows_are_cheaper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lance_nb.writing.rewriting.SAVED_BYTES_MIN", 0)
    table = pa.table({"id": range(1000), "text": [f"{n:0100}" for n in range(1000)]})
    _, snapshot = lance_nb.write_dataset(table, "memory://rewrite-cost.lance").opened
    schema = snapshot.manifest.schema
    (fragment,) = snapshot.manifest.fragments
    narrow, broad = (Schema((schema.field(name),), {}) for name in ("id", "text"))
    assert columns_are_cheaper(snapshot, [(fragment, 1000)], narrow)
    assert not columns_are_cheaper(snapshot, [(fragment, 10)], narrow)
    assert not columns_are_cheaper(snapshot, [(fragment, 500)], broad)
    assert not columns_are_cheaper(snapshot, [], narrow)
    monkeypatch.setattr("lance_nb.writing.rewriting.SAVED_BYTES_MIN", 1 << 30)
    assert not columns_are_cheaper(snapshot, [(fragment, 1000)], narrow)
