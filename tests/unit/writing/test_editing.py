"""Edit cells by row id: what is written, what is refused, what others have written meanwhile."""

from __future__ import annotations

import shutil
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.errors import (
    ColumnNotFoundError,
    CommitConflictError,
    InvalidInputError,
    NotSupportedError,
)
from lance_nb.table.diff import unique_column
from lance_nb.transactions.operations.update import Update
from lance_nb.writing import editing
from lance_nb.writing.editing import CellEdits, carried_over, given_values, hand_value

STABLE = pytest.mark.parametrize("stable", [False, True], ids=["addresses", "stable ids"])


def made(folder: Path, *, stable: bool, count: int = 40, **options: Any) -> LanceDataset:
    table = pa.table({
        "id": pa.array(range(count), pa.int64()),
        "label": pa.array([f"n{n % 3}" for n in range(count)]).dictionary_encode(),
        "size": [n / 2 for n in range(count)],
        "box": [{"x": n, "tags": [str(n)]} for n in range(count)],
    })  # fmt: skip
    return lance_nb.write_dataset(
        table,
        str(folder / "d.lance"),
        max_rows_per_file=15,
        enable_stable_row_ids=stable,
        **options,
    )


def ids_of(ds: LanceDataset) -> dict[int, int]:
    table = ds.to_table(columns=["id"], with_row_id=True)
    return dict(zip(table["id"].to_pylist(), table["_rowid"].to_pylist(), strict=True))


def by_id(ds: LanceDataset) -> dict[int, dict[str, Any]]:
    return {row["id"]: row for row in ds.to_table().to_pylist()}


@STABLE
def test_cells_rows_and_deletions_are_one_version(tmp_path: Path, stable: bool) -> None:
    ds = made(tmp_path, stable=stable)
    rows, before = ids_of(ds), by_id(ds)
    new = {"id": 100, "label": "new", "size": None, "box": None}
    result = ds.edit(
        {
            rows[3]: {"label": "cat", "size": 9.5},
            rows[30]: {"box": {"x": 7, "tags": [None]}},
            rows[16]: {"label": None},
        },
        add=[new],
        delete=[rows[5], rows[39]],
    )
    assert result == {
        "num_edited_cells": 4, "num_updated_rows": 3, "num_inserted_rows": 1, "num_deleted_rows": 2,
    }  # fmt: skip
    assert ds.version == 2
    before[3] |= {"label": "cat", "size": 9.5}
    before[30] |= {"box": {"x": 7, "tags": [None]}}
    before[16] |= {"label": None}
    del before[5], before[39]
    assert by_id(ds) == before | {100: new}
    ds.validate()
    if stable:
        assert ids_of(ds)[3] == rows[3]


def test_a_deletion_alone_rewrites_nothing(tmp_path: Path) -> None:
    ds = made(tmp_path, stable=False)
    files = {one.path for fragment in ds.get_fragments() for one in fragment.data_files()}
    ds.edit(delete=[ids_of(ds)[0]])
    after = {one.path for fragment in ds.get_fragments() for one in fragment.data_files()}
    assert (files, ds.count_rows()) == (after, 39)


def test_a_narrow_column_of_wide_rows_is_written_alone(tmp_path: Path) -> None:
    count = 3000
    wide = pa.FixedSizeListArray.from_arrays(
        pa.array(np.random.default_rng(1).random(count * 400, np.float32)), 400
    )
    table = pa.table({"id": range(count), "wide": wide})
    ds = lance_nb.write_dataset(table, str(tmp_path / "d.lance"), enable_stable_row_ids=True)
    rows = ids_of(ds)
    ds.edit({rows[n]: {"id": n + 10_000} for n in range(0, count, 2)})
    transaction = ds.read_transaction(2)
    assert transaction is not None
    assert isinstance(transaction.operation, Update)
    assert transaction.operation.update_mode == "rewrite_columns"
    expected = [n + 10_000 if n % 2 == 0 else n for n in range(count)]
    assert ds.to_table(columns=["id"])["id"].to_pylist() == expected
    assert ds.to_table(columns=["wide"]).column(0).combine_chunks().equals(wide)


@pytest.mark.parametrize(
    ("cells", "delete", "error", "words"),
    [
        ({0: {"nope": 1}}, (), ColumnNotFoundError, "nope"),
        ({0: {"size": "wide"}}, (), InvalidInputError, "'wide' is no value of column 'size'"),
        ({10**9: {"size": 1.0}}, (), InvalidInputError, "row id 1000000000"),
        ({0: {"size": 1.0}}, (0,), InvalidInputError, "to be deleted and to get new values"),
        ({}, (), InvalidInputError, "nothing is edited"),
        ({-1: {"size": 1.0}}, (), InvalidInputError, "-1 is no row id"),
        ({"x": {"size": 1.0}}, (), InvalidInputError, "row id"),
        ([1], (), InvalidInputError, "row id"),
    ],
)
def test_what_cannot_be_edited_is_refused_and_writes_nothing(
    tmp_path: Path, cells: Any, delete: Any, error: type[Exception], words: str
) -> None:
    ds = made(tmp_path, stable=True)
    files = sorted(tmp_path.rglob("*"))
    with pytest.raises(error, match=words):
        ds.edit(cells, delete=delete)
    assert ds.version == 1
    assert sorted(tmp_path.rglob("*")) == files


def test_blobs_are_not_edited_and_survive(tmp_path: Path) -> None:
    field = lance_nb.blob_field("data")
    table = pa.table(
        [lance_nb.blob_array([b"a" * 9, b"b", None]), pa.array([1, 2, 3])],
        schema=pa.schema([field, pa.field("id", pa.int64())]),
    )
    ds = lance_nb.write_dataset(table, str(tmp_path / "d.lance"))
    rows = ids_of(ds)
    with pytest.raises(NotSupportedError, match="blobs"):
        ds.edit({rows[1]: {"data": b"x"}})
    ds.edit({rows[1]: {"id": 10}})
    found = ds.to_table(columns=["id"], with_row_id=True)
    row = found["_rowid"][found["id"].to_pylist().index(10)].as_py()
    (blob,) = ds.take_blobs("data", ids=[row])
    assert blob is not None
    assert blob.readall() == b"a" * 9


@STABLE
@pytest.mark.parametrize("theirs", ["same cell", "same value", "other cell", "other row", "gone"])
def test_another_commit_is_never_written_over(tmp_path: Path, stable: bool, theirs: str) -> None:
    ds = made(tmp_path, stable=stable)
    rows = ids_of(ds)
    other = ds.checkout_version(1)
    if theirs == "gone":
        other.delete("id = 3")
    else:
        change = {
            "same cell": ({"size": "77.0"}, "id = 3"),
            "same value": ({"size": "9.5"}, "id = 3"),
            "other cell": ({"label": "'theirs'"}, "id = 3"),
            "other row": ({"size": "77.0"}, "id = 4"),
        }[theirs]
        other.update(*change)
    expected = by_id(other)
    # Without stable ids an updated row is at another address: it is found if no other cell of it
    # was changed.
    is_lost = not stable and theirs == "other cell"
    if theirs in ("same cell", "gone") or is_lost:
        with pytest.raises(CommitConflictError, match=r"row \d+ \(id 3\)"):
            ds.edit({rows[3]: {"size": 9.5}})
        assert by_id(ds.checkout_version((None, None))) == expected
        return
    ds.edit({rows[3]: {"size": 9.5}})
    expected[3]["size"] = 9.5
    assert by_id(ds) == expected


WROTE_AGAIN = {
    "compaction": lambda ds: ds.optimize.compact_files(),
    "update of nothing": lambda ds: ds.update({"label": "label"}, "id < 20"),
}


@pytest.mark.parametrize("name", WROTE_AGAIN)
def test_rows_that_are_written_again_as_they_were_are_followed(tmp_path: Path, name: str) -> None:
    ds = made(tmp_path, stable=False)
    rows, expected = ids_of(ds), by_id(ds)
    WROTE_AGAIN[name](ds.checkout_version(1))
    ds.edit({rows[3]: {"size": 9.5}, rows[4]: {"label": "new"}}, delete=[rows[5]])
    expected[3]["size"], expected[4]["label"] = 9.5, "new"
    del expected[5]
    assert by_id(ds) == expected


@pytest.mark.parametrize("column", ["when", "vector", "number"])
def test_values_of_every_type_tell_rows_apart(tmp_path: Path, column: str) -> None:
    """Nanoseconds, NaN, nulls and vectors; rows that they do not tell apart are not followed."""
    values = {
        "when": pa.array([1, 2, 2, None], pa.timestamp("ns")),
        "vector": pa.array([[0.0, 1.0], [2.0, 3.0], [2.0, 3.0], None], pa.list_(pa.float32(), 2)),
        "number": pa.array([1.5, float("nan"), float("nan"), None]),
    }[column]
    table = pa.table({"n": [7, 7, 7, 7], column: values, "size": [0.0, 1.0, 2.0, 3.0]})
    ds = lance_nb.write_dataset(table, str(tmp_path / "d.lance"), max_rows_per_file=2)
    rows = ds.to_table(with_row_id=True)["_rowid"].to_pylist()
    ds.checkout_version(1).optimize.compact_files()
    before, after = ds, ds.checkout_version((None, None))
    edits = CellEdits({row: {"size": 9.0} for row in rows})
    left, conflicts = carried_over(before.opened[1], after.opened[1], edits)
    assert [conflict.row_id for conflict in conflicts if conflict.is_lost] == rows[1:3]
    assert [conflict.edits["size"].as_py() for conflict in conflicts] == [9.0, 9.0]
    found = after.take_rows(sorted(left.cells), columns=["size"])
    assert found["size"].to_pylist() == [0.0, 3.0]


@pytest.mark.parametrize(
    ("keys", "shown"),
    [
        (pa.array([2**62, 2**62 + 1], pa.timestamp("us")), str(2**62)),
        (pa.array([b"\xff", b"\xfe"]), r"b'\\xff'"),
    ],
    ids=["times beyond the calendar", "bytes"],
)
def test_keys_that_python_or_utf8_cannot_hold_identify_rows(
    tmp_path: Path, keys: pa.Array, shown: str
) -> None:
    field = pa.field(
        "key", keys.type, nullable=False,
        metadata={"lance-schema:unenforced-primary-key": "true"},
    )  # fmt: skip
    schema = pa.schema([field, pa.field("size", pa.float64())])
    table = pa.Table.from_arrays([keys, pa.array([0.0, 1.0])], schema=schema)
    ds = lance_nb.write_dataset(table, str(tmp_path / "d.lance"), max_rows_per_file=1)
    rows = ds.to_table(with_row_id=True)["_rowid"].to_pylist()
    ds.checkout_version(1).optimize.compact_files()
    edits = CellEdits({rows[0]: {"size": 9.0}})
    newest = ds.checkout_version((None, None))
    left, conflicts = carried_over(ds.opened[1], newest.opened[1], edits)
    assert (len(left.cells), conflicts) == (1, ())
    newest.update({"size": "5.0"})
    with pytest.raises(CommitConflictError, match=f"key {shown}"):
        ds.edit(edits.cells)


def test_rows_of_one_key_are_not_followed(tmp_path: Path) -> None:
    """The key is not enforced: which of two edited rows was deleted is not known."""
    field = pa.field(
        "key", pa.int64(), nullable=False,
        metadata={"lance-schema:unenforced-primary-key": "true"},
    )  # fmt: skip
    schema = pa.schema([field, pa.field("size", pa.float64())])
    table = pa.table([[5, 5, 6], [0.0, 1.0, 2.0]], schema=schema)
    ds = lance_nb.write_dataset(table, str(tmp_path / "d.lance"), max_rows_per_file=1)
    rows = ds.to_table(with_row_id=True)["_rowid"].to_pylist()
    other = ds.checkout_version(1)
    other.delete("size = 0")
    other.optimize.compact_files()
    edits = CellEdits({row: {"size": 9.0} for row in rows})
    newest = ds.checkout_version((None, None))
    left, conflicts = carried_over(ds.opened[1], newest.opened[1], edits)
    assert [conflict.row_id for conflict in conflicts if conflict.is_lost] == rows[:2]
    assert len(left.cells) == 1


@pytest.mark.parametrize(
    "row", [{"id": 100, "size": 1.5}, {"id": 3, "size": 77.0}, {"id": 3, "size": 1.5}], ids=str
)
def test_another_row_in_the_place_of_a_deleted_one_is_never_edited_in_secret(
    tmp_path: Path, row: dict[str, Any]
) -> None:
    ds = made(tmp_path, stable=False)
    rows, old = ids_of(ds), by_id(ds)[3]
    other = ds.checkout_version(1)
    other.delete("id = 3")
    other.insert(pa.Table.from_pylist([{**old, **row}], ds.schema))
    edits = CellEdits({rows[3]: {"size": 9.5}})
    left, conflicts = carried_over(ds.opened[1], other.opened[1], edits)
    is_same = row == {"id": 3, "size": 1.5}  # nobody could tell it from the one that was deleted
    assert bool(left.cells) is is_same
    assert [conflict.is_lost for conflict in conflicts] == ([] if is_same else [row["id"] == 100])


def test_a_row_with_other_values_is_followed_by_a_unique_column(tmp_path: Path) -> None:
    """The column may not be a key, so the edit is asked about and never done in secret."""
    ds = made(tmp_path, stable=False)
    rows = ids_of(ds)
    other = ds.checkout_version(1)
    other.update({"label": "'theirs'"}, "id = 3")
    edits = CellEdits({rows[3]: {"size": 9.5}})
    left, (conflict,) = carried_over(ds.opened[1], other.opened[1], edits)
    assert not left.cells
    assert (conflict.row_id, conflict.column) == (ids_of(other)[3], "size")
    assert [value.as_py() for value in (conflict.base, conflict.ours, conflict.theirs)] == [
        1.5, 9.5, 1.5,
    ]  # fmt: skip
    assert (conflict.is_likely, conflict.is_named, conflict.key["id"].as_py()) == (True, True, 3)
    with pytest.raises(CommitConflictError, match=r"\(id 3\) was written again .* 'size' is 1.5"):
        ds.edit({rows[3]: {"size": 9.5}})


@STABLE
def test_a_deleted_row_is_known_by_a_unique_column(tmp_path: Path, stable: bool) -> None:
    ds = made(tmp_path, stable=stable)
    rows = ids_of(ds)
    other = ds.checkout_version(1)
    other.delete("id = 3 OR id = 4")
    edits = CellEdits({rows[3]: {"size": 9.5}}, frozenset([rows[4]]))
    left, (conflict,) = carried_over(ds.opened[1], other.opened[1], edits)
    assert (left.cells, left.deleted, conflict.is_lost) == ({}, frozenset(), True)
    assert {name: value.as_py() for name, value in conflict.values.items()} == by_id(ds)[3]
    assert conflict.text == f"row {rows[3]} (id 3) was deleted"


def test_rows_are_not_looked_for_among_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ds = made(tmp_path, stable=False)
    rows = ids_of(ds)
    ds.checkout_version(1).optimize.compact_files()
    for name, most in (("REPLACED_MAX", 39), ("_ALIKE_MAX", 0)):
        with monkeypatch.context() as patched:
            patched.setattr(editing, name, most)
            patched.setattr(unique_column, "MAX_ROWS", 39)
            with pytest.raises(CommitConflictError, match="written again"):
                ds.edit({rows[3]: {"size": 9.5}})


def test_a_deletion_of_a_row_that_others_changed_is_refused(tmp_path: Path) -> None:
    ds = made(tmp_path, stable=True)
    rows = ids_of(ds)
    other = ds.checkout_version(1)
    other.update({"size": "77.0"}, "id = 3")
    other.delete("id = 4")
    with pytest.raises(CommitConflictError, match=r"row 3 \(id 3\) has other values"):
        ds.edit(delete=[rows[3], rows[4]])
    ds.edit({rows[5]: {"size": 0.0}}, delete=[rows[4]])  # it is gone, as was wanted
    assert 4 not in by_id(ds)
    assert by_id(ds)[3]["size"] == 77.0


def test_a_renamed_column_is_the_same_column(tmp_path: Path) -> None:
    ds = made(tmp_path, stable=True)
    rows = ids_of(ds)
    other = ds.checkout_version(1)
    other.alter_columns({"path": "size", "name": "weight"})
    other.update({"label": "'theirs'"}, "id = 5")
    ds.edit({rows[5]: {"size": 0.0}})
    assert by_id(ds)[5]["weight"] == 0.0
    assert by_id(ds)[5]["label"] == "theirs"


def test_a_column_that_is_another_one_by_now_is_refused(tmp_path: Path) -> None:
    ds = made(tmp_path, stable=True)
    rows = ids_of(ds)
    ds.checkout_version(1).alter_columns({"path": "size", "data_type": pa.float32()})
    with pytest.raises(CommitConflictError):
        ds.edit({rows[5]: {"size": 0.0}})
    assert by_id(ds.checkout_version((None, None)))[5]["size"] == 2.5


def test_a_stage_holds_an_edit(tmp_path: Path) -> None:
    ds = made(tmp_path, stable=True)
    rows = ids_of(ds)
    stage = ds.stage().edit({rows[1]: {"size": 1.25}}, add=[{"id": 100}], delete=[rows[2]])
    preview = stage.preview()
    assert (preview.num_updated_rows, preview.num_inserted_rows, preview.num_removed_rows) == (
        1, 1, 1,
    )  # fmt: skip
    ds.checkout_version(1).update({"size": "0"}, "id = 30")
    stage.commit("by hand")
    found = by_id(ds.checkout_version((None, None)))
    assert 100 in found
    assert 2 not in found
    assert (found[1]["size"], found[30]["size"]) == (1.25, 0)


def test_a_row_is_not_taken_for_another_one_that_has_its_address(tmp_path: Path) -> None:
    """Somebody deletes the folder and writes another dataset there, with the same fragment ids."""
    ds = made(tmp_path, stable=False)
    row, other = ids_of(ds)[3], ds.to_table().slice(10, 20)
    shutil.rmtree(ds.uri)
    lance_nb.write_dataset(other, ds.uri)
    newest = lance_nb.write_dataset(other, ds.uri, mode="append")
    assert row in newest.to_table(with_row_id=True)["_rowid"].to_pylist()
    edits = CellEdits({row: {"size": pa.scalar(other["size"][3].as_py())}})
    left, (conflict,) = carried_over(ds.opened[1], newest.opened[1], edits)
    assert (left.cells, conflict.column, conflict.theirs) == ({}, None, None)


LOCAL = datetime(2024, 5, 1)  # noqa: DTZ001 - without a time zone
BERLIN = pa.timestamp("us", "Europe/Berlin")


@pytest.mark.parametrize(
    ("written", "kind", "value"),
    [
        ("12", pa.int8(), 12),
        (" 12 ", pa.int64(), 12),
        ("1.5", pa.float16(), 1.5),
        ("nan", pa.float64(), "nan"),
        ("inf", pa.float32(), float("inf")),
        ("true", pa.bool_(), True),
        (" a ", pa.string(), " a "),
        ("", pa.string(), ""),
        ("a", pa.large_string(), "a"),
        ("a", pa.dictionary(pa.int8(), pa.string()), "a"),
        ("5", pa.dictionary(pa.int8(), pa.int64()), 5),
        ("1.23", pa.decimal128(5, 2), Decimal("1.23")),
        ("2024-05-01", pa.date32(), date(2024, 5, 1)),
        ("10:30:01", pa.time32("s"), time(10, 30, 1)),
        ("10:30:01.5", pa.time64("us"), time(10, 30, 1, 500_000)),
        ("2024-05-01 10:00", pa.timestamp("us"), LOCAL.replace(hour=10)),
        ("2024-05-01 10:00", BERLIN, datetime(2024, 5, 1, 8, tzinfo=UTC)),
        ("2024-05-01 10:00+05:00", BERLIN, datetime(2024, 5, 1, 5, tzinfo=UTC)),
        ("2024-05-01T10:00Z", BERLIN, datetime(2024, 5, 1, 10, tzinfo=UTC)),
        ("[1, null]", pa.list_(pa.int32()), [1, None]),
        ('{"a": {"b": [1]}}', pa.struct([("a", pa.struct([("b", pa.list_(pa.int8()))]))]),
         {"a": {"b": [1]}}),
    ],
)  # fmt: skip
def test_text_is_read_as_the_type_has_it(written: str, kind: pa.DataType, value: object) -> None:
    made = hand_value(written, pa.field("c", kind))
    assert made.type == kind
    found = made[0].as_py()
    assert (str(found) == "nan") if value == "nan" else found == value


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        ("1.5", pa.int64()),
        ("300", pa.int8()),
        ("", pa.int64()),
        ("yes", pa.bool_()),
        ("1e400", pa.float64()),
        ("3.4e39", pa.float32()),
        ("1.234", pa.decimal128(5, 2)),
        ("2024-13-01", pa.date32()),
        ("25:00:00", pa.time32("s")),
        ("10:30:01.5", pa.time32("s")),
        ("2024-05-01 10:00Z", pa.timestamp("us")),
        ("2024-05-01 10:00:00.5", pa.timestamp("s")),
        ("2024-03-31 02:30", BERLIN),  # the clock skips this hour
        ("[1.5]", pa.list_(pa.int32())),
        ("[1", pa.list_(pa.int32())),
        ('{"b": 1}', pa.struct([("a", pa.int8())])),
        ("[" * 100_000, pa.list_(pa.int32())),
        ("[1, 2, 3]", pa.list_(pa.float32(), 2)),
        ("a", pa.binary()),
        ("5", pa.duration("s")),
    ],
)
def test_text_that_is_no_value_is_refused(written: str, kind: pa.DataType) -> None:
    with pytest.raises(InvalidInputError, match="column 'c'"):
        hand_value(written, pa.field("c", kind))


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (1.5, pa.int64()),
        (2**40, pa.int32()),
        (1e300, pa.float32()),
        (2**53 + 1, pa.float64()),
        ("1", pa.int64()),
        (1, pa.string()),
        (True, pa.int64()),
        (LOCAL.replace(microsecond=5), pa.timestamp("s")),
        (LOCAL, BERLIN),
        (datetime(2024, 1, 1, tzinfo=UTC), pa.timestamp("us")),
        ({"a": 1, "z": 2}, pa.struct([("a", pa.int8())])),
        ([1.5], pa.list_(pa.int8())),
        ([{"z": 1}], pa.list_(pa.struct([("a", pa.int8())]))),
        (pa.scalar(1.5), pa.int64()),
    ],
)
def test_a_python_value_that_would_change_is_refused(value: object, kind: pa.DataType) -> None:
    with pytest.raises(InvalidInputError, match="no value of column 'c'"):
        given_values([None, value], pa.field("c", kind))


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (2.0, pa.int64()),
        (0.1, pa.float32()),
        (pa.scalar(7), pa.float64()),
        (pa.scalar("a", pa.dictionary(pa.int8(), pa.string())),
         pa.dictionary(pa.int8(), pa.string())),
        ({"a": None}, pa.struct([("a", pa.int8())])),
        (b"x", pa.binary()),
        ([0.5, 1.5], pa.list_(pa.float32(), 2)),
    ],
)  # fmt: skip
def test_a_python_value_that_the_column_holds_is_taken(value: Any, kind: pa.DataType) -> None:
    made = given_values([value], pa.field("c", kind))
    assert made.type == kind
    assert made[0].is_valid


@pytest.mark.parametrize("null", [None, pa.scalar(None, pa.int64())])
def test_a_null_needs_a_column_that_takes_it(null: object) -> None:
    assert not given_values([null], pa.field("c", pa.int64()))[0].is_valid
    with pytest.raises(InvalidInputError, match="takes no nulls"):
        given_values([null], pa.field("c", pa.int64(), nullable=False))
