"""CreateIndex."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lance_nb.errors import InvalidInputError
from lance_nb.transactions.conflict_grid import check
from lance_nb.transactions.conflict_rules import Verdict
from lance_nb.transactions.operations.create_index import CreateIndex
from lance_nb.transactions.operations.project import Project
from lance_nb.transactions.operations.update import Update, UpdateMode
from tests.support.versions import SCHEMA, Versions, index, new_fragment


def test_indices_are_added_and_removed_by_uuid() -> None:
    versions = Versions()
    old, new = index("old", 0), index("new", 1)
    versions.apply(CreateIndex((old,)))
    versions.apply(CreateIndex((new,), (old,)))
    assert versions.newest.indices == (new,)


def test_an_index_listed_again_takes_its_own_place() -> None:
    versions = Versions()
    versions.apply(CreateIndex((index("i", 0, covers=(0,)),)))
    versions.apply(CreateIndex((index("i", 0, covers=(0, 1)),)))
    assert versions.covered("i") == [0, 1]


def test_an_index_on_a_field_that_is_not_there_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="field 9"):
        Versions().apply(CreateIndex((index("i", 9),)))


def test_an_index_on_a_dropped_column_is_incompatible() -> None:
    dropped = Project(replace(SCHEMA, fields=SCHEMA.fields[:2]), True)
    assert check(CreateIndex((index("i", 2),)), dropped).verdict is Verdict.INCOMPATIBLE
    assert check(CreateIndex((index("i", 0),)), dropped).verdict is Verdict.COMPATIBLE


def test_only_indices_of_the_same_name_conflict() -> None:
    ours = CreateIndex((index("i", 0),))
    assert check(ours, ours).verdict is Verdict.RETRYABLE
    assert check(ours, CreateIndex((index("j", 0),))).verdict is Verdict.COMPATIBLE


def test_removing_an_index_twice_is_fine_and_building_on_a_removed_one_is_not() -> None:
    gone = index("i", 0)
    drop = CreateIndex((), (gone,))
    assert check(drop, drop).verdict is Verdict.COMPATIBLE
    more = CreateIndex((replace(gone, uuid="11111111-1111-1111-1111-111111111111"),))
    assert check(more, drop).verdict is Verdict.RETRYABLE
    assert check(drop, more).verdict is Verdict.RETRYABLE


def test_a_rewritten_column_takes_its_fragments_out_of_the_new_index() -> None:
    update = Update((), (new_fragment(),), (), (0,), (), UpdateMode.REWRITE_COLUMNS)
    assert check(CreateIndex((index("i", 0),)), update).verdict is Verdict.REBASABLE
    assert check(CreateIndex((index("i", 1),)), update).verdict is Verdict.COMPATIBLE
