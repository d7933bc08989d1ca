"""Fragments of two versions that follow each other, against what the transaction says."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from lance_nb.format.fragment import (
    TOMBSTONE,
    DataFile,
    DeletionFile,
    DeletionFileType,
    Fragment,
)
from lance_nb.format.fragment_list import FragmentList
from lance_nb.format.manifest import Manifest, WriterVersion, parse_manifest
from lance_nb.format.transaction_effects import TransactionEffects
from lance_nb.storage.memory import MemoryStore
from lance_nb.table.locations import Locations
from lance_nb.table.snapshot import Snapshot
from lance_nb.table.verification.transactions import Step, step_findings
from lance_nb.transactions.operations.project import Project
from lance_nb.transactions.transaction import Transaction
from tests.support.committing import SCHEMA

ROWS = 10
FILE = DataFile("a.lance", [0, 1], [0, 1], 2, 2, 100)
WHOLE = Fragment(0, [FILE], ROWS)


def snapshot(version: int, fragment: Fragment | None) -> Snapshot:
    fragments = FragmentList.of([] if fragment is None else [fragment])
    made = Manifest(
        version, SCHEMA, fragments, max_fragment_id=0, writer_version=WriterVersion("x", "1.0.0")
    )
    store = MemoryStore("transaction-checks")
    return Snapshot(parse_manifest(made.to_bytes(), "m"), Locations(store, store))


def found(
    old: Fragment, new: Fragment | None, arm: str = "delete", **effects: object
) -> list[tuple[str, str]]:
    present = snapshot(2, new)
    before, after = Step.of(snapshot(1, old)), Step.of(present)
    assert before is not None
    assert after is not None
    done = TransactionEffects(1, "u", arm, **effects)  # type: ignore[arg-type]
    findings = list(step_findings(before, after, present, done))
    assert all((one.version, one.fragment) == (2, 0) for one in findings)
    return [(one.code, one.message) for one in findings]


def deletion(number: int, count: int) -> DeletionFile:
    return DeletionFile(1, number, DeletionFileType.ARROW, count)


@pytest.mark.parametrize(
    ("new", "said"),
    [
        (WHOLE, None),
        (replace(WHOLE, files=[replace(FILE, fields=[0, TOMBSTONE])]), None),
        (replace(WHOLE, files=[replace(FILE, fields=[0, 2])]), "other fields"),
        (replace(WHOLE, files=[replace(FILE, fields=[0], column_indices=[0])]), "other fields"),
        (replace(WHOLE, files=[replace(FILE, column_indices=[1, 0])]), "other columns"),
        (replace(WHOLE, files=[replace(FILE, file_size_bytes=101)]), "other sizes"),
        (replace(WHOLE, files=[replace(FILE, path="b.lance", fields=[0, 2])]), None),
        (replace(WHOLE, files=[replace(FILE, fields=[0, 2]), FILE]), None),
        (replace(WHOLE, physical_rows=9), "it has 9 rows instead of 10, in the same files"),
    ],
)
def test_the_same_file_is_described_in_the_same_way(new: Fragment, said: str | None) -> None:
    told = found(WHOLE, new)
    assert [code for code, _ in told] == ([] if said is None else ["file-entry-changed"])
    assert said is None or said in told[0][1]
    assert found(WHOLE, new, "merge") == []


def test_what_was_not_recorded_before_may_be_added() -> None:
    untold = replace(WHOLE, physical_rows=0, files=[replace(FILE, file_size_bytes=None)])
    assert found(untold, WHOLE) == []


def test_fields_that_an_old_release_named_twice_are_not_compared() -> None:
    twice = replace(WHOLE, files=[replace(FILE, fields=[1, 1])])
    assert found(twice, WHOLE) == []


@pytest.mark.parametrize(
    ("old", "new", "carried", "is_lost"),
    [
        (None, deletion(1, 3), {}, False),
        (deletion(1, 3), deletion(1, 3), {}, False),
        (deletion(1, 3), deletion(2, 4), {}, False),
        (deletion(1, 3), deletion(2, 3), {}, False),
        (deletion(1, 3), deletion(2, 2), {}, True),
        (deletion(1, 3), None, {}, True),
        (deletion(1, 3), None, {0: None}, False),
        (deletion(1, 3), deletion(2, 2), {0: "1-2"}, False),
        (deletion(1, 3), deletion(2, 2), {0: "1-3"}, True),
    ],
)
def test_deleted_rows_come_back_only_where_the_transaction_says_so(
    old: DeletionFile | None, new: DeletionFile | None, carried: dict[int, str | None],
    is_lost: bool,
) -> None:  # fmt: skip
    before, after = replace(WHOLE, deletion_file=old), replace(WHOLE, deletion_file=new)
    told = found(before, after, deletions=carried)
    assert [code for code, _ in told] == (["deletions-lost"] if is_lost else [])
    if is_lost:
        count = 0 if new is None else new.num_deleted_rows
        assert f"version 1 deletes 3 of its rows, version 2 {count}, and its" in told[0][1]


@pytest.mark.parametrize(
    ("arm", "effects", "is_lost"),
    [
        ("delete", {}, True), ("delete", {"removed": frozenset({0})}, False), ("merge", {}, False),
        ("merge", {"deletions": {0: None}}, True), ("overwrite", {}, False),
    ],
)  # fmt: skip
def test_fragments_go_only_where_the_transaction_says_so(
    arm: str, effects: dict[str, object], is_lost: bool
) -> None:
    told = found(WHOLE, None, arm, **effects)
    assert [code for code, _ in told] == (["fragment-lost"] if is_lost else [])


def test_the_columns_of_a_transaction_are_those_of_the_first_level() -> None:
    fields = [("s", pa.struct([("x", pa.int64())])), ("n", pa.int64())]
    transaction = Transaction(1, Project(pa.schema(fields)), "u")

    assert TransactionEffects.from_bytes(transaction.to_bytes()).columns == ("s", "n")
