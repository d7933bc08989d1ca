"""Coverage of indices whose remapping was put off."""

from __future__ import annotations

from dataclasses import replace

from lance_nb.transactions.deferred_rewrites import follow_deferred
from lance_nb.transactions.index_rules import REUSE_INDEX
from tests.support.versions import index
from tests.unit.format.test_fragment_reuse import FIRST, SECOND, details


def test_indices_cover_the_successors_step_by_step() -> None:
    reuse = replace(index(REUSE_INDEX, covers=(5, 6), kind="FragmentReuse"))
    reuse = replace(reuse, details=details(SECOND, FIRST))
    whole, part = index("whole", 0, covers=(0, 1, 2)), index("part", 0, covers=(0, 9))
    silent = replace(index("silent", 0), fragment_bitmap=b"")
    followed = follow_deferred([whole, part, silent, reuse])
    assert [sorted(one.fragment_ids() or ()) for one in followed] == [[6], [0, 9], [], [6]]


def test_without_such_an_index_nothing_changes() -> None:
    indices = [index("i", 0)]
    assert follow_deferred(indices) == indices
