"""Rewrite."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lance_nb.errors import InvalidInputError
from lance_nb.transactions.conflict_grid import check
from lance_nb.transactions.conflict_rules import Verdict
from lance_nb.transactions.operations.create_index import CreateIndex
from lance_nb.transactions.operations.reserve_fragments import ReserveFragments
from lance_nb.transactions.operations.rewrite import Rewrite, RewriteGroup, RewrittenIndex
from tests.support.sample_operations import rewritten
from tests.support.versions import Versions, index


def compaction(versions: Versions, *ids: int, new_id: int = 0, indices: tuple = ()) -> Rewrite:
    old = tuple(versions.fragment(one) for one in ids)
    return Rewrite((RewriteGroup(old, (replace(rewritten(*old), id=new_id),)),), indices)


def test_fragments_are_in_the_order_of_their_ids_afterwards() -> None:
    versions = Versions(4)
    versions.apply(compaction(versions, 1, 2))
    assert versions.fragment_ids == [0, 3, 4]
    assert versions.fragment(4).physical_rows == 20


def test_a_reserved_id_is_kept() -> None:
    versions = Versions(3)
    versions.apply(ReserveFragments(2))
    versions.apply(compaction(versions, 0, 1, new_id=4))
    assert versions.fragment_ids == [2, 4]
    assert versions.manifest.max_fragment_id == 4


def test_a_fragment_that_is_not_there_is_refused() -> None:
    versions = Versions(3)
    stale = compaction(versions, 0, 1)
    versions.apply(stale)
    with pytest.raises(InvalidInputError, match="fragment 0"):
        versions.apply(stale)


def test_a_remapped_index_covers_the_new_fragments_others_do_not() -> None:
    versions = Versions(3)
    versions.apply(CreateIndex((index("i", 0), index("j", 1))))
    new_id = "11111111-1111-1111-1111-111111111111"
    remapped = RewrittenIndex(index("i", 0).uuid, new_id)
    versions.apply(compaction(versions, 0, 1, indices=(remapped,)))
    assert versions.covered("i") == [2, 3]
    assert versions.covered("j") == [0, 1, 2]
    assert new_id in {one.uuid for one in versions.newest.indices}


def test_with_row_ids_an_index_that_knows_rows_by_id_covers_the_new_fragments() -> None:
    versions = Versions(3, stable_row_ids=True)
    versions.apply(
        CreateIndex((index("bitmap", 1, kind="Bitmap"), index("zones", 0, kind="ZoneMap")))
    )
    versions.apply(compaction(versions, 0, 1))
    assert versions.covered("bitmap") == [2, 3]
    assert versions.covered("zones") == [2]


def test_a_group_that_an_index_covers_in_part_is_refused() -> None:
    versions = Versions(3, stable_row_ids=True)
    versions.apply(CreateIndex((index("i", 1, covers=(0,), kind="Bitmap"),)))
    with pytest.raises(InvalidInputError, match="only"):
        versions.apply(compaction(versions, 0, 1))


def test_it_conflicts_with_an_index_that_covers_a_rewritten_fragment() -> None:
    versions = Versions(3)
    rewrite = compaction(versions, 0, 1)
    covering, other = CreateIndex((index("i", 0),)), CreateIndex((index("i", 0, covers=(2,)),))
    for ours, theirs in ((rewrite, covering), (covering, rewrite)):
        assert check(ours, theirs).verdict is Verdict.RETRYABLE
    for ours, theirs in ((rewrite, other), (other, rewrite)):
        assert check(ours, theirs).verdict is Verdict.COMPATIBLE


def test_a_fragment_reuse_index_makes_room_for_indices_on_whole_groups() -> None:
    versions = Versions(3)
    carried = replace(compaction(versions, 0, 1), frag_reuse_index=index("__lance_frag_reuse"))
    whole, part = CreateIndex((index("i", 0),)), CreateIndex((index("i", 0, covers=(1, 2)),))
    assert check(carried, whole).verdict is Verdict.COMPATIBLE
    assert check(carried, part).verdict is Verdict.RETRYABLE
    assert check(carried, replace(carried, groups=())).verdict is Verdict.RETRYABLE


def test_a_fragment_reuse_index_takes_the_place_of_the_one_before() -> None:
    versions = Versions(4)
    versions.apply(CreateIndex((index("i", 0),)))
    for group in ((0,), (1,)):
        carried = index("__lance_frag_reuse", covers=group)
        versions.apply(replace(compaction(versions, *group), frag_reuse_index=carried))

    assert sorted(one.name for one in versions.newest.indices) == ["__lance_frag_reuse", "i"]
    assert versions.covered("__lance_frag_reuse") == [1]
