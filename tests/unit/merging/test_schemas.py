"""Schemas and settings changed on two sides."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.format.field import Field
from lance_nb.format.fragment import DataFile, Fragment, RowIdMeta
from lance_nb.format.fragment_list import FragmentList
from lance_nb.format.manifest import Manifest
from lance_nb.format.merge_record import MergeRecord
from lance_nb.format.row_sequences import RowIdSegments
from lance_nb.format.schema import Schema
from lance_nb.merging.conflicts import Findings
from lance_nb.merging.matching import (
    FieldFates,
    Match,
    field_fates,
    match,
    match_rows,
    without_fields,
)
from lance_nb.merging.merge_base import (
    ALL_SHARED,
    Ends,
    History,
    Shared,
    Side,
    Step,
)
from lance_nb.merging.schemas import (
    MergedSchema,
    SchemaMerge,
    merge_maps,
)
from lance_nb.storage.memory import MemoryStore
from lance_nb.table.locations import Locations
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.operations.project import Project
from lance_nb.transactions.operations.restore import Restore
from lance_nb.transactions.transaction import Transaction

BASE = Schema.from_arrow(
    pa.schema([("id", pa.int64()), ("s", pa.struct([("x", pa.int64())])), ("t", pa.string())])
)


def _side(schema: Schema) -> Side:
    store = MemoryStore("schemas")
    return Side.of(Snapshot(Manifest(1, schema), Locations(store, store)), ())


def _field(name: str, number: int, parent: int = -1, **more: Any) -> Field:
    return Field(number, parent, name, "int64", **more)


def _with(*fields: Field) -> Schema:
    return Schema((*BASE.fields, *fields))


def _changed(column: str, **changes: Any) -> Schema:
    return Schema(tuple(replace(f, **changes) if f.name == column else f for f in BASE.fields))


def _merge(
    source: Schema, target: Schema, on_conflict: str = "fail", one_line: bool = False
) -> tuple[MergedSchema, Findings]:
    sides = [_side(one) for one in (BASE, source, target)]
    apart = ALL_SHARED if one_line else Shared(field_id=3)
    nothing = History((), lambda *_: sides[0])
    ends = Ends(*sides, ALL_SHARED, ALL_SHARED, apart, nothing, nothing, 1)
    findings = Findings(on_conflict)
    merged = SchemaMerge(ends, findings).run(
        match(sides[0], sides[1], ALL_SHARED),
        match(sides[0], sides[2], ALL_SHARED),
        match(sides[1], sides[2], apart).fields,
    )
    return merged, findings


def _paths(schema: Schema) -> dict[str | None, int]:
    return {schema.path_of(one.id): one.id for one in schema.walk()}


def test_new_columns_of_both_sides_get_ids_of_their_own() -> None:
    merged, findings = _merge(_with(_field("a", 4)), _with(_field("b", 4)))

    assert _paths(merged.schema) == {"id": 0, "s": 1, "s.x": 2, "t": 3, "b": 4, "a": 5}
    assert merged.fields[4] == 5
    assert merged.added == {5}
    assert not findings.conflicts


def test_an_id_that_nobody_has_had_is_kept() -> None:
    merged, _ = _merge(_with(_field("a", 9)), BASE)

    assert merged.fields[9] == 9


def test_a_part_of_a_struct_is_added_in_its_place() -> None:
    inner = replace(BASE.fields[1], children=(*BASE.fields[1].children, _field("y", 4, 1)))
    merged, _ = _merge(Schema((BASE.fields[0], inner, BASE.fields[2])), BASE)

    assert _paths(merged.schema)["s.y"] == 4


@pytest.mark.parametrize("side", ["ours", "theirs"])
def test_two_names_for_one_column_are_a_conflict(side: str) -> None:
    merged, findings = _merge(_changed("t", name="a"), _changed("t", name="b"), side)

    assert [one.kind for one in findings.conflicts] == ["columns"]
    assert merged.schema.names[-1] == ("b" if side == "ours" else "a")


def test_a_rename_meets_a_new_column_of_that_name() -> None:
    _, findings = _merge(_changed("t", name="a"), _with(_field("a", 4)))

    assert "two columns 'a'" in findings.open[0].text


def test_a_dropped_column_goes_unless_the_target_changed_it() -> None:
    without = Schema(BASE.fields[:2])
    merged, findings = _merge(without, BASE)
    assert merged.schema.names == ["id", "s"]
    assert not findings.conflicts

    merged, findings = _merge(without, _changed("t", nullable=False))
    assert merged.schema.names == ["id", "s", "t"]
    assert "dropped on the source and changed here" in findings.open[0].text


def test_a_struct_that_has_grown_is_not_dropped_silently() -> None:
    inner = replace(BASE.fields[1], children=(*BASE.fields[1].children, _field("y", 4, 1)))
    grown = Schema((BASE.fields[0], inner, BASE.fields[2]))

    _, findings = _merge(Schema((BASE.fields[0], BASE.fields[2])), grown)

    assert "column 's' is dropped on the source" in findings.open[0].text


def test_what_the_target_dropped_stays_dropped() -> None:
    merged, findings = _merge(BASE, Schema(BASE.fields[:2]))
    assert merged.schema.names == ["id", "s"]
    assert not findings.conflicts

    _, findings = _merge(_changed("t", name="u"), Schema(BASE.fields[:2]))
    assert "changed on the source and dropped here" in findings.open[0].text


def test_the_order_of_the_source_is_taken_when_the_target_kept_its_own() -> None:
    turned = Schema(BASE.fields[::-1])

    assert _merge(turned, BASE)[0].schema.names == ["t", "s", "id"]
    assert _merge(turned, _with(_field("b", 4)))[0].schema.names == ["id", "s", "t", "b"]


def test_columns_that_come_back_on_one_line_keep_their_id() -> None:
    source, target = _side(BASE), Schema((*BASE.fields[:2], _field("u", 7)))
    ends = [_side(target), source, _side(target)]
    nothing = History((), lambda *_: source)
    merged = SchemaMerge(
        Ends(*ends, ALL_SHARED, ALL_SHARED, ALL_SHARED, nothing, nothing, 1), Findings()
    ).run(
        match(ends[0], ends[1], ALL_SHARED),
        match(ends[0], ends[2], ALL_SHARED),
        match(ends[1], ends[2], ALL_SHARED).fields,
    )

    assert _paths(merged.schema)["t"] == 3


def test_without_steps_no_column_was_born_again() -> None:
    side = _side(BASE)
    nothing = History((), lambda *_: side)

    found = match(side, side, ALL_SHARED)
    assert field_fates(side, side, nothing, ALL_SHARED, found) == FieldFates()
    assert 3 not in without_fields(found, frozenset({3}), frozenset()).fields


# --- what is the same on both sides ---------------------------------------------------------------

NAME = "0" * 40 + ".lance"  # long enough to be nobody else's


def _holding(schema: Schema, *files: tuple[str, tuple[int, ...]], number: int = 0) -> Side:
    """Return a side whose one fragment has these files: path and field of each column."""
    made = [DataFile(path, fields, tuple(range(len(fields))), 2, 2) for path, fields in files]
    fragments = FragmentList.of([Fragment(number, tuple(made), 5)])
    store = MemoryStore("schemas")
    return Side.of(Snapshot(Manifest(1, schema, fragments), Locations(store, store)), ())


APART = Shared(fragment_id=-1, field_id=-1)


def test_columns_are_known_by_the_file_that_holds_them() -> None:
    one = _holding(BASE, (NAME, (0, 2, 3)))
    renumbered = Schema(
        (_field("n", 7), Field(8, -1, "s", "struct", children=(_field("x", 9, 8),)))
    )
    other = _holding(renumbered, (NAME, (7, 9, -2)), number=4)

    found = match(one, other, APART)

    assert found.fragments == {0: 4}
    assert found.fields == {0: 7, 2: 9, 1: 8}  # the struct by its part; ``t`` is not there


def test_files_of_other_names_hold_other_columns() -> None:
    one, other = _holding(BASE, (NAME, (0, 2, 3))), _holding(BASE, ("1" + NAME[1:], (0, 2, 3)))
    assert match(one, other, APART) == Match({}, {})
    tombs = _holding(BASE, (NAME, (-2, -2, -2)))
    assert match(one, tombs, APART) == Match({0: 0}, {})
    gone = _holding(Schema(BASE.fields[:1]), (NAME, (0, 2, 3)))
    assert match(one, gone, APART).fields == {0: 0}


def test_columns_that_no_file_shows_are_known_by_path_and_type_where_asked() -> None:
    one, other = _side(BASE), _side(Schema((_field("id", 5), Field(6, -1, "t", "int8"))))
    assert match(one, other, APART).fields == {}
    assert match(one, other, APART, by_path=True).fields == {0: 5}
    shared = Shared(fragment_id=-1, field_id=5)
    assert match(one, other, shared, by_path=True).fields == {}  # id 5 is another known field


def test_without_fields_leaves_out_either_end() -> None:
    found = Match({0: 0}, {0: 5, 1: 6, 2: 7})
    assert without_fields(found, frozenset({0}), frozenset({7})) == Match({0: 0}, {1: 6})
    assert without_fields(found, frozenset({7}), frozenset({0})) == found


Change = Schema | int | tuple[Schema, int] | None


def _history(base: Side, *changes: Change) -> History:
    """Return versions from 2 on: projections, restores and reverts of versions, unknown ones."""
    steps = tuple(Step("dev", number, _transaction(one)) for number, one in enumerate(changes, 2))
    return History(steps, lambda *_: base)


def _transaction(change: Change) -> Transaction | None:
    if change is None:
        return None
    if isinstance(change, int):
        return Transaction(1, Restore(change), "u")
    if isinstance(change, Schema):
        return Transaction(1, Project(change), "u")
    schema, number = change
    record = MergeRecord("revert", "dev", "", number, "dev", number - 1, 1, "replay")
    return Transaction(1, Project(schema), "u", transaction_properties=record.properties())


ELSEWHERE = "1" + NAME[1:]
WITHOUT = Schema(BASE.fields[:2])
RENAMED = Schema((*BASE.fields[:2], replace(BASE.fields[2], name="t2")))


@pytest.mark.parametrize(
    ("changes", "now", "file", "expected"),
    [
        ([WITHOUT, BASE], BASE, ELSEWHERE, FieldFates(reborn=frozenset({3}))),
        ([WITHOUT, BASE], BASE, NAME, FieldFates()),
        ([BASE], BASE, ELSEWHERE, FieldFates()),
        ([RENAMED], RENAMED, ELSEWHERE, FieldFates()),
        ([], BASE, ELSEWHERE, FieldFates()),
        ([WITHOUT, 1], BASE, ELSEWHERE, FieldFates()),
        ([RENAMED, WITHOUT, 2], RENAMED, ELSEWHERE, FieldFates()),
        ([WITHOUT, BASE, 3], BASE, ELSEWHERE, FieldFates(reborn=frozenset({3}))),
        ([WITHOUT, BASE, 1], BASE, ELSEWHERE, FieldFates()),
        ([RENAMED, WITHOUT, (RENAMED, 3)], RENAMED, ELSEWHERE, FieldFates()),
        ([WITHOUT, RENAMED, (BASE, 3)], BASE, ELSEWHERE, FieldFates(reborn=frozenset({3}))),
        ([None], BASE, ELSEWHERE, FieldFates()),
        ([None], RENAMED, NAME, FieldFates()),
        ([None], RENAMED, ELSEWHERE, FieldFates(doubtful=frozenset({3}))),
        ([WITHOUT, None], BASE, ELSEWHERE, FieldFates(doubtful=frozenset({3}))),
        ([None, 1], BASE, ELSEWHERE, FieldFates()),
    ],
    ids=[
        "dropped and given anew", "reverted with its data", "kept", "renamed", "nothing",
        "dropped and restored", "renamed, dropped and restored", "given anew and restored so",
        "given anew and restored to the base", "dropped and reverted", "given anew and reverted",
        "unknown", "unknown and renamed with its data",
        "unknown and renamed", "dropped and unknown", "unknown and restored to the base",
    ],
)  # fmt: skip
def test_what_became_of_a_field_whose_id_is_still_used(
    changes: list[Change], now: Schema, file: str, expected: FieldFates
) -> None:
    base = _holding(BASE, (NAME, (0, 2, 3)))
    side = _holding(now, (NAME, (0, 2, -2)), (file, (3,)))
    found = match(base, side, ALL_SHARED)
    assert field_fates(base, side, _history(base, *changes), ALL_SHARED, found) == expected


def test_row_ids_are_translated_where_they_differ() -> None:
    def with_ids(side: Side, *ids: int) -> Side:
        sequence = RowIdSegments.from_numpy(np.array(ids, np.uint64))
        meta = RowIdMeta.inline(sequence.to_bytes())
        fragments = {
            key: replace(one, row_id_meta=meta, physical_rows=len(ids))
            for key, one in side.fragments.items()
        }
        return replace(side, fragments=fragments)

    one, other = _holding(BASE, (NAME, (0,))), _holding(BASE, (NAME, (0,)))
    asked = np.array([9, 5, 77], np.uint64)
    same = match_rows(with_ids(one, 5, 9), with_ids(other, 5, 9), {0: 0}).of(asked)
    assert (same[0].tolist(), same[1].tolist()) == ([9, 5, 77], [False] * 3)
    moved = match_rows(with_ids(one, 9, 5), with_ids(other, 20, 30), {0: 0}).of(asked)
    assert (moved[0].tolist(), moved[1].tolist()) == ([20, 30, 77], [True, True, False])
    assert match_rows(one, other, {0: 0}).of(asked)[1].tolist() == [False] * 3


# --- what both sides changed ----------------------------------------------------------------------


def test_a_part_of_a_column_that_is_gone_is_a_conflict() -> None:
    inner = replace(BASE.fields[1], children=(*BASE.fields[1].children, _field("y", 4, 1)))
    source = Schema((BASE.fields[0], inner, BASE.fields[2]))
    target = Schema((BASE.fields[0], BASE.fields[2]))

    merged, findings = _merge(source, target)
    assert [one.text for one in findings.open] == [
        "column 's.y' was added in a column that is gone"
    ]
    assert merged.schema.names == ["id", "t"]
    assert not _merge(source, target, "ours")[1].open
    assert _merge(source, target, "theirs")[1].open


@pytest.mark.parametrize("side", ["ours", "theirs"])
def test_a_column_that_both_added_is_the_one_that_is_chosen(side: str) -> None:
    mine = Field(4, -1, "n", "string")
    merged, findings = _merge(_with(mine), _with(_field("n", 4)), side)
    assert [one.fields for one in findings.conflicts] == [(4,)]
    assert merged.schema.field("n").logical_type == ("string" if side == "theirs" else "int64")
    assert merged.dropped == (frozenset({4}) if side == "theirs" else frozenset())


def test_a_stricter_column_is_reported() -> None:
    merged, findings = _merge(_changed("t", nullable=False), BASE)
    assert merged.tightened == {3}
    assert not merged.schema.field("t").nullable
    assert not findings.conflicts
    assert _merge(BASE, _changed("t", nullable=False))[0].tightened == frozenset()
    assert _merge(_changed("t", name="u"), BASE)[0].tightened == frozenset()


def test_metadata_is_merged_key_by_key() -> None:
    merged, findings = _merge(
        _changed("t", metadata={"a": b"1", "b": b"2"}), _changed("t", metadata={"b": b"3"}), "ours"
    )
    assert merged.schema.field("t").metadata == {"a": b"1", "b": b"3"}
    assert [one.kind for one in findings.conflicts] == ["settings"]


def test_the_highest_field_id_counts_schema_files_and_manifest() -> None:
    assert _side(BASE).max_field_id == 3
    assert _holding(BASE, (NAME, (0, 9))).max_field_id == 9
    store = MemoryStore("schemas")
    known = Manifest(1, BASE, max_allocated_field_id=20)
    assert Side.of(Snapshot(known, Locations(store, store)), ()).max_field_id == 20
    assert _side(Schema(())).max_field_id == -1


def test_ids_of_the_source_are_kept_where_both_sides_are_on_one_line() -> None:
    for one_line, number in ((True, 4), (False, 7)):
        merged, _ = _merge(_with(_field("a", 4)), _with(_field("b", 6)), one_line=one_line)
        assert _paths(merged.schema)["a"] == number


SETTINGS_BASE = {"a": "1", "b": "1", "gone": "1"}


def test_each_key_comes_from_the_side_that_changed_it() -> None:
    findings = Findings()

    merged = merge_maps(
        SETTINGS_BASE, {"a": "2", "b": "1"}, {**SETTINGS_BASE, "c": "3"}, "key", findings
    )

    assert merged == {"a": "2", "b": "1", "c": "3"}
    assert not findings.conflicts


def test_the_same_change_on_both_sides_is_no_conflict() -> None:
    findings = Findings()

    assert merge_maps(SETTINGS_BASE, {"a": "2"}, {"a": "2", "b": "1"}, "key", findings) == {
        "a": "2"
    }
    assert not findings.conflicts


@pytest.mark.parametrize(("side", "value"), [("ours", "3"), ("theirs", "2"), ("fail", "3")])
def test_different_values_are_a_conflict(side: str, value: str) -> None:
    findings = Findings(side)

    merged = merge_maps({"a": "1"}, {"a": "2"}, {"a": "3"}, "config key", findings)

    assert merged == {"a": value}
    assert findings.conflicts[0].keys == ("a",)
    assert "config key 'a' is '2' on the source, '3' here" in findings.conflicts[0].text


def test_a_removal_against_a_change_is_a_conflict() -> None:
    findings = Findings("theirs")

    assert merge_maps({"a": "1"}, {}, {"a": "x" * 500}, "key", findings) == {}
    assert "not set" in findings.conflicts[0].text
    assert len(findings.conflicts[0].text) < 200


@pytest.mark.parametrize(("length", "shown"), [(60, "x" * 60), (61, "x" * 60 + "...")])
def test_long_values_are_shown_by_their_beginning(length: int, shown: str) -> None:
    findings = Findings("theirs")
    assert merge_maps({"a": b"1"}, {"a": b"x" * length}, {"a": b"\xff"}, "key", findings)
    assert f"is '{shown}' on the source, '\ufffd' here" in findings.conflicts[0].text


def test_a_key_that_only_one_side_has_is_merged_by_itself() -> None:
    findings = Findings()
    merged = merge_maps(
        {"a": "1", "b": "1"}, {"a": "1", "c": "2"}, {"b": "1", "d": "3"}, "k", findings
    )
    assert merged == {"c": "2", "d": "3"}
    assert not findings.conflicts
