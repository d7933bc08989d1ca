"""The next version of the target, and the operation recorded for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.format.deletion_vector import DeletionVector
from lance_nb.format.fragment import DataFile
from lance_nb.format.fragment_list import FragmentList
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.format.manifest import Manifest
from lance_nb.format.schema import Schema
from lance_nb.merging.merge_base import Side
from lance_nb.merging.outcome import Outcome
from lance_nb.storage.memory import MemoryStore
from lance_nb.table.locations import Locations
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.deletion_files import PendingDeletions
from tests.support.committing import SCHEMA, fragment

INDEX = IndexMetadata("0" * 8 + "-0000-4000-8000-" + "0" * 12, "i", (0,), 1)
WIDER = Schema.from_arrow(
    pa.schema([("id", pa.int64()), ("name", pa.string()), ("more", pa.int64())])
)


@pytest.fixture
def target() -> Side:
    store = MemoryStore("outcome")
    manifest = Manifest(
        3, SCHEMA, FragmentList.of([fragment("a"), fragment("b", identity=1)]), max_fragment_id=1
    )
    return Side.of(Snapshot(manifest, Locations(store, store)), ())


def _outcome(target: Side, **changes: Any) -> Outcome:
    same = Outcome(target, SCHEMA, {}, {}, (), {}, frozenset(), (), (), 0)
    return replace(same, **changes)


NEW = fragment("c", identity=2)
CHANGED = replace(fragment("a"), physical_rows=9)


@pytest.mark.parametrize(
    ("changes", "arm"),
    [
        ({"added": (NEW,)}, "append"),
        ({"changed": {0: CHANGED}}, "delete"),
        ({"removed": frozenset({1})}, "delete"),
        ({"changed": {0: CHANGED}, "revived": frozenset({0})}, "update"),
        ({"changed": {0: CHANGED}, "added": (NEW,)}, "update"),
        ({"changed": {0: CHANGED}, "rewritten": {0: {1}}}, "update"),
        ({"config": {"a": "b"}}, "update_config"),
        ({"table_metadata": {"a": "b"}}, "update_config"),
        ({"schema": Schema(SCHEMA.fields, {"a": b"b"})}, "update_config"),
        ({"schema": Schema(SCHEMA.fields, {"a": b"\xff"})}, "merge"),
        ({"schema": Schema(SCHEMA.fields[:1])}, "project"),
        ({"schema": WIDER, "changed": {0: CHANGED}}, "merge"),
        ({"schema": WIDER, "config": {"a": "b"}}, "merge"),
        ({"added": (NEW,), "config": {"a": "b"}}, "merge"),
        ({"indices": (INDEX,)}, "create_index"),
        ({"indices": (INDEX,), "added": (NEW,)}, "overwrite"),
        ({"schema": WIDER, "changed": {0: CHANGED}, "rewritten": {0: {1}}}, "overwrite"),
        ({}, "update_config"),
    ],
)
def test_what_is_recorded_claims_no_less_than_what_was_done(
    target: Side, changes: dict[str, Any], arm: str
) -> None:
    outcome = _outcome(target, **changes)

    assert outcome.operation().arm == arm
    assert outcome.changes_nothing == (not changes)


def test_columns_written_in_place_are_named(target: Side) -> None:
    operation: Any = _outcome(
        target, changed={0: CHANGED}, rewritten={0: {1}}, added=(NEW,)
    ).operation()

    assert operation.fields_modified == (1,)
    assert operation.update_mode.value == "rewrite_rows"


def test_the_preview_is_the_version_that_would_be_made(target: Side) -> None:
    made = _outcome(target, removed=frozenset({1}), added=(NEW,), config={"k": "v"}).preview()

    assert made.version == 4
    assert [one.id for one in made.manifest.fragments] == [0, 2]
    assert made.manifest.max_fragment_id == 2
    assert made.manifest.config == {"k": "v"}
    assert target.manifest.version == 3


def test_a_fragment_that_comes_back_keeps_its_place(target: Side) -> None:
    back = replace(fragment("z"), id=0)
    outcome = _outcome(target, removed=frozenset({0}))
    without = Side.of(outcome.preview(), ())

    made = _outcome(without, added=(back,)).preview()

    assert [one.id for one in made.manifest.fragments] == [0, 1]


def test_files_in_other_folders_are_noticed(target: Side) -> None:
    far = replace(NEW, files=(replace(NEW.files[0], base_id=4),))

    assert _outcome(target, added=(far,), foreign_bases=frozenset({4})).refers_to_source
    assert not _outcome(target, added=(far,)).refers_to_source
    assert not _outcome(target, added=(NEW,), foreign_bases=frozenset({4})).refers_to_source


@pytest.mark.parametrize(
    ("changes", "mode"),
    [
        ({}, "rewrite_columns"),
        ({"removed": frozenset({1})}, "rewrite_rows"),
        ({"added": (NEW,)}, "rewrite_rows"),
        ({"revived": frozenset({0}), "rewritten": {}}, "rewrite_rows"),
    ],
)
def test_only_columns_written_alone_are_recorded_as_such(
    target: Side, changes: dict[str, Any], mode: str
) -> None:
    everything = {"changed": {0: CHANGED}, "rewritten": {0: {1}}, **changes}
    operation: Any = _outcome(target, **everything).operation()

    assert operation.update_mode.value == mode
    assert operation.removed_fragment_ids == tuple(changes.get("removed", ()))
    assert operation.updated_fragments == (CHANGED,)
    assert operation.new_fragments == changes.get("added", ())


def test_deleted_rows_beside_columns_in_place_are_rows(target: Side) -> None:
    pending = PendingDeletions()
    pending.add(0, 3, DeletionVector.of([1]))
    outcome = _outcome(target, changed={0: CHANGED}, rewritten={0: {1}}, pending=pending)

    operation: Any = outcome.operation()

    assert operation.update_mode.value == "rewrite_rows"


def test_files_without_a_column_that_is_left_go(target: Side) -> None:
    parts = (DataFile(f"{one}.lance", (one,), (0,), 2, 2, 9) for one in (0, 1))
    before = replace(fragment("a"), files=tuple(parts))
    manifest = replace(target.manifest, fragments=FragmentList.of([before]), max_fragment_id=0)
    side = Side.of(replace(target.snapshot, manifest=manifest), ())

    made = _outcome(side, schema=Schema(SCHEMA.fields[:1])).preview()

    (one,) = made.manifest.fragments
    assert [file.path for file in one.files] == ["0.lance"]


@pytest.mark.parametrize("highest", [1, 7, None])
def test_new_ids_count_on_from_the_highest_one(target: Side, highest: int | None) -> None:
    """The manifest may not say which the highest was: then the fragments do."""
    manifest = replace(target.manifest, max_fragment_id=highest)
    side = Side.of(replace(target.snapshot, manifest=manifest), ())
    new = replace(NEW, id=8)

    made = _outcome(side, added=(new,)).preview().manifest

    assert [one.id for one in made.fragments] == [0, 1, 8]
    assert made.max_fragment_id == 8


@pytest.mark.parametrize("moment", [None, 0, 5_000])
def test_a_preview_is_made_at_the_time_of_the_target(target: Side, moment: int | None) -> None:
    manifest = replace(target.manifest, timestamp_ns=moment)
    side = Side.of(replace(target.snapshot, manifest=manifest), ())

    assert _outcome(side, config={"k": "v"}).preview().manifest.timestamp_ns == (moment or 0)


def test_row_ids_are_never_given_back(target: Side) -> None:
    manifest = replace(target.manifest, next_row_id=20)
    side = Side.of(replace(target.snapshot, manifest=manifest), ())

    for mine, expected in ((0, 20), (30, 30)):
        made = _outcome(side, config={"k": "v"}, next_row_id=mine).preview()
        assert made.manifest.next_row_id == expected


def test_a_changed_schema_names_all_fragments_that_are_left(target: Side) -> None:
    operation: Any = _outcome(
        target, schema=WIDER, changed={0: CHANGED}, removed=frozenset({1}), added=(NEW,)
    ).operation()

    assert operation.arm == "merge"
    assert operation.fragments == (CHANGED, NEW)


def test_settings_are_recorded_by_their_changes(target: Side) -> None:
    manifest = replace(
        target.manifest,
        config={"same": "1", "other": "1", "gone": "1"},
        schema=Schema(SCHEMA.fields, {"old": b"1"}),
    )
    side = Side.of(replace(target.snapshot, manifest=manifest), ())

    operation: Any = _outcome(side, config={"same": "1", "other": "2", "new": "3"}).operation()

    assert operation.config_updates.updates == {"other": "2", "gone": None, "new": "3"}
    assert operation.table_metadata_updates is None
    assert operation.schema_metadata_updates.updates == {"old": None}


def test_indices_are_recorded_as_they_come_and_go(target: Side) -> None:
    side = Side.of(target.snapshot, (INDEX,))
    other = replace(INDEX, uuid="1" + INDEX.uuid[1:], name="j")

    operation: Any = _outcome(side, indices=(other,)).operation()

    assert [one.name for one in operation.new_indices] == ["j"]
    assert [one.name for one in operation.removed_indices] == ["i"]
    assert _outcome(side, indices=(INDEX,)).changes_nothing


def test_indices_in_other_folders_are_noticed(target: Side) -> None:
    far = replace(INDEX, base_id=4)
    known = Side.of(target.snapshot, (far,))

    assert _outcome(target, indices=(far,), foreign_bases=frozenset({4})).refers_to_source
    assert not _outcome(known, indices=(far,), foreign_bases=frozenset({4})).refers_to_source


def test_schema_metadata_that_is_no_text_is_carried(target: Side) -> None:
    outcome = _outcome(target, schema=Schema(SCHEMA.fields, {"a": b"\xff\x00"}))
    operation: Any = outcome.operation()

    assert dict(operation.schema.tree.metadata) == {"a": b"\xff\x00"}
    assert type(operation).from_pb(operation.to_pb()).schema.tree.metadata == {"a": b"\xff\x00"}
    assert outcome.preview().manifest.schema.metadata == {"a": b"\xff\x00"}


def test_files_that_hold_no_column_are_left_out_of_all_fragments(target: Side) -> None:
    narrow = Schema(SCHEMA.fields[:1])
    ids = [one.id for one in SCHEMA.fields]
    files = [DataFile(f"{name}.lance", fields, list(range(len(fields))), 2, 0, 9)
             for name, fields in (("kept", ids[:1]), ("dropped", ids[1:]), ("empty", []),
                                  ("dead", [-2]), ("unknown", [-7]))]  # fmt: skip
    one = replace(fragment("a"), files=tuple(files))
    manifest = replace(target.manifest, fragments=FragmentList.of([one]))
    here = Side.of(replace(target.snapshot, manifest=manifest), ())

    (found,) = _outcome(here, schema=narrow).preview().manifest.fragments

    assert [file.path for file in found.files] == ["kept.lance", "unknown.lance"]


ROWS = pa.table({"id": pa.array(range(4), pa.int64()), "x": [1.0, 2.0, 3.0, 4.0]})


@pytest.mark.parametrize(("added", "conflicts"), [(False, 0), (True, 1)])
def test_rows_added_beside_a_column_without_nulls_are_reported(added: bool, conflicts: int) -> None:
    place = f"memory://null-check/{added}"
    main = lance_nb.write_dataset(ROWS, place)
    dev = main.create_branch("dev")
    dev.alter_columns({"path": "x", "nullable": False})
    if added:
        main.insert(ROWS)
    plan = main.branches.plan_merge("dev")
    found = [one for one in plan.conflicts if "takes no nulls" in one.text]
    assert len(found) == conflicts
    if added:
        assert "'x'" in found[0].text
        assert "4 rows" in found[0].text
