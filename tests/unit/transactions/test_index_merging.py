"""Indices that are rebased; the singletons."""

from __future__ import annotations

from dataclasses import replace

from lance_nb.format.fragment_reuse import REUSE_INDEX, moves
from lance_nb.format.merged_logs import merged_logs, with_merged_logs
from lance_nb.transactions.index_merging import rebase_index, rebase_rewrite, with_reuse_index
from lance_nb.transactions.operation import Built
from lance_nb.transactions.operations.create_index import CreateIndex
from lance_nb.transactions.operations.rewrite import Rewrite
from lance_nb.transactions.operations.update_mem_wal_state import UpdateMemWalState
from tests.support.sample_operations import LOG, log_index
from tests.support.versions import Versions, index
from tests.unit.format.test_fragment_reuse import FIRST, SECOND, THIRD, details

REUSE = index(REUSE_INDEX, kind="FragmentReuse")


def test_the_log_index_takes_up_what_was_merged_meanwhile() -> None:
    ours = log_index()
    theirs = UpdateMemWalState((LOG,))
    (merged,) = rebase_index(ours, [(4, theirs)], ()).added
    assert merged_logs(merged.details) == (LOG,)
    ahead = replace(LOG, generation=99)
    details_ahead = with_merged_logs(b"", [ahead])
    ours = CreateIndex((replace(ours.added[0], details=details_ahead),))
    (merged,) = rebase_index(ours, [(4, theirs)], ()).added
    assert merged_logs(merged.details) == (ahead,)


def test_a_singleton_that_appeared_meanwhile_is_replaced() -> None:
    there = replace(log_index().added[0], uuid="11111111-1111-1111-1111-111111111111")
    rebased = rebase_index(log_index(), [], (there, index("i", 0)))
    assert rebased.removed == (there,)


def test_a_clean_up_keeps_the_rewrite_that_came_meanwhile() -> None:
    ours = CreateIndex((replace(REUSE, details=details(SECOND)),))
    theirs = Rewrite((), frag_reuse_index=replace(REUSE, details=details(FIRST, SECOND, THIRD)))
    (merged,) = rebase_index(ours, [(4, theirs)], ()).added
    assert moves(merged.details) == moves(details(SECOND, THIRD))
    assert sorted(merged.fragment_ids()) == [6, 7, 8]


def test_a_rewrite_drops_what_was_cleaned_up_meanwhile() -> None:
    ours = Rewrite((), frag_reuse_index=replace(REUSE, details=details(FIRST, SECOND, THIRD)))
    theirs = CreateIndex((replace(REUSE, details=details(SECOND)),))
    rebased = rebase_rewrite(ours, [(4, theirs)])
    assert moves(rebased.frag_reuse_index.details) == moves(details(SECOND, THIRD))
    assert rebase_rewrite(Rewrite(()), [(4, theirs)]) == Rewrite(())


def test_that_a_rewrite_changed_the_reuse_index_is_seen_in_the_versions() -> None:
    versions = Versions(1)
    plain = versions.newest
    versions.built[2] = Built(plain.manifest, (REUSE,))
    versions.built[3] = Built(plain.manifest, (REUSE,))
    assert with_reuse_index(Rewrite(()), 2, versions.load).frag_reuse_index == REUSE
    assert with_reuse_index(Rewrite(()), 3, versions.load).frag_reuse_index is None
    assert with_reuse_index(Rewrite(()), 1, versions.load).frag_reuse_index is None
