"""Schemas changed on two sides."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from lance_nb.format.field import Field
from lance_nb.format.manifest import Manifest
from lance_nb.format.schema import Schema
from lance_nb.storage.memory import MemoryStore
from lance_nb.table.locations import Locations
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.branch_merge.ends import ALL_SHARED, Ends, History, Shared, Side
from lance_nb.transactions.branch_merge.findings import Findings
from lance_nb.transactions.branch_merge.matching import match, reborn_fields, without_fields
from lance_nb.transactions.branch_merge.schemas import MergedSchema, SchemaMerge

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
    assert reborn_fields(side, side, nothing, ALL_SHARED, found) == frozenset()
    assert 3 not in without_fields(found, frozenset({3}), frozenset()).fields
