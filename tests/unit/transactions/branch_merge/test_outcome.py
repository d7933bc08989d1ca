"""What is recorded for a merged version."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from lance_nb.format.fragment_list import FragmentList
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.format.manifest import Manifest
from lance_nb.format.schema import Schema
from lance_nb.storage.memory import MemoryStore
from lance_nb.table.locations import Locations
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.branch_merge.ends import Side
from lance_nb.transactions.branch_merge.outcome import Outcome
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
