"""DataReplacement."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lance_nb.errors import InvalidInputError
from lance_nb.format.fragment import TOMBSTONE, DataFile
from lance_nb.format.row_sequences import RowVersionSequence
from lance_nb.format.schema import Schema
from lance_nb.transactions.conflict_grid import check
from lance_nb.transactions.conflict_rules import Verdict
from lance_nb.transactions.operations.create_index import CreateIndex
from lance_nb.transactions.operations.data_replacement import DataReplacement, DataReplacementGroup
from lance_nb.transactions.operations.delete import Delete
from lance_nb.transactions.operations.merge import Merge
from lance_nb.transactions.operations.project import Project
from tests.support.versions import SCHEMA, Versions, deleted, index, new_fragment

FILE = DataFile("new.lance", (2,), (0,), 2, 2, 55)


def replacement(fragment_id: int = 0, file: DataFile = FILE) -> DataReplacement:
    return DataReplacement((DataReplacementGroup(fragment_id, file),))


def split_versions(*, stable_row_ids: bool = False) -> Versions:
    """Return a history whose fragment 0 has field 2 in a file of its own, fragment 1 nowhere."""
    versions = Versions(2, stable_row_ids=stable_row_ids)
    part = replace(versions.fragment(0).files[0], fields=(0, 1), column_indices=(0, 1))
    c = DataFile("c.lance", (2,), (0,), 2, 2, 44)
    split = (
        replace(versions.fragment(0), files=(part, c)),
        replace(versions.fragment(1), files=(part,)),
    )
    versions.apply(Merge(split, SCHEMA))
    return versions


def test_the_file_takes_the_place_of_the_one_with_the_same_fields() -> None:
    versions = split_versions()
    versions.apply(replacement())
    assert [one.path for one in versions.fragment(0).files] == ["first0.lance", "new.lance"]
    assert versions.fragment(0).files[1].size_bytes == 55


def test_a_column_that_was_null_gets_its_first_file() -> None:
    versions = split_versions()
    versions.apply(replacement(1))
    assert versions.fragment(1).files[-1] == FILE


def test_a_file_with_some_fields_of_another_leaves_tombstones_there() -> None:
    versions = Versions(1)
    versions.apply(replacement())
    before, after = versions.fragment(0).files
    assert before.fields == (0, 1, TOMBSTONE)
    assert after == FILE


def test_a_file_for_no_fragment_or_of_other_fields_is_refused() -> None:
    versions = Versions(1)
    with pytest.raises(InvalidInputError, match="fragment 9"):
        versions.apply(replacement(9))
    two = (*replacement(0).replacements, DataReplacementGroup(0, replace(FILE, fields=(1,))))
    with pytest.raises(InvalidInputError, match="same fields"):
        versions.apply(DataReplacement(two))


def test_indices_on_the_field_leave_the_fragment_and_rows_count_as_updated() -> None:
    versions = split_versions(stable_row_ids=True)
    versions.apply(CreateIndex((index("a", 0, covers=(0, 1)), index("c", 2, covers=(0, 1)))))
    versions.apply(replacement())
    assert versions.covered("a") == [0, 1]
    assert versions.covered("c") == [1]
    stamped = versions.fragment(0).last_updated_at_versions
    assert RowVersionSequence.from_bytes(stamped.data).runs == ((10, 4),)


def test_verdicts() -> None:
    zero = new_fragment()
    cases = [
        (Delete((deleted(zero, 1),)), Verdict.COMPATIBLE),
        (Delete(deleted_fragment_ids=(0,)), Verdict.INCOMPATIBLE),
        (replacement(), Verdict.RETRYABLE),
        (replacement(1), Verdict.COMPATIBLE),
        (replacement(0, replace(FILE, fields=(1,))), Verdict.COMPATIBLE),
        (CreateIndex((index("c", 2),)), Verdict.RETRYABLE),
        (CreateIndex((index("a", 0),)), Verdict.COMPATIBLE),
        (Project(Schema(SCHEMA.fields[:2]), True), Verdict.INCOMPATIBLE),
        (Project(Schema(SCHEMA.fields[:2]), False), Verdict.INCOMPATIBLE),
        (Project(SCHEMA, False), Verdict.RETRYABLE),
        (Project(SCHEMA, True), Verdict.COMPATIBLE),
    ]
    for theirs, verdict in cases:
        assert check(replacement(), theirs).verdict is verdict, theirs
