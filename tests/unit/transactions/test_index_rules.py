"""The rules about indices, one by one, on bare footprints."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lance_nb.transactions import index_rules
from lance_nb.transactions.footprint import NOTHING, Footprint
from lance_nb.transactions.verdicts import Circumstances, Rule, Verdict
from tests.support.versions import index

PLAIN = Footprint()
REMOVES_1 = Footprint(removed_fragments=frozenset({1}))
LEAVES_0 = Footprint(field_ids=frozenset({0}))
WAL = Footprint(new_indices=(index(index_rules.WAL_INDEX, covers=()),))
REUSE = Footprint(new_indices=(index(index_rules.REUSE_INDEX, covers=()),))


def verdict(rule: Rule, ours: Footprint, theirs: Footprint) -> Verdict:
    found = rule.judge(ours, theirs, Circumstances())
    assert found is None or found.overlap
    return Verdict.COMPATIBLE if found is None else found.verdict


@pytest.mark.parametrize(
    ("rule", "ours", "theirs", "expected"),
    [
        (index_rules.WAL_INDEX_AGAIN, WAL, LEAVES_0, Verdict.RETRYABLE),
        (index_rules.WAL_INDEX_AGAIN, REUSE, LEAVES_0, Verdict.COMPATIBLE),
        (index_rules.LOG_STATE, WAL, PLAIN, Verdict.REBASABLE),
        (index_rules.LOG_STATE, REUSE, PLAIN, Verdict.INCOMPATIBLE),
        (index_rules.INDEX_COVERS, REUSE, REMOVES_1, Verdict.COMPATIBLE),
    ],
)
def test_rule(rule: Rule, ours: Footprint, theirs: Footprint, expected: Verdict) -> None:
    assert verdict(rule, ours, theirs) is expected


def test_an_index_that_does_not_say_what_it_covers_might_cover_it() -> None:
    silent = Footprint(new_indices=(replace(index("i", 0), fragment_bitmap=b""),))
    assert verdict(index_rules.INDEX_COVERS, silent, REMOVES_1) is Verdict.RETRYABLE


def test_the_reuse_index_changes_alone() -> None:
    both = Footprint(new_indices=(*REUSE.new_indices, index("i", 0)))
    assert verdict(index_rules.INDEX_COVERS, both, REMOVES_1) is Verdict.INCOMPATIBLE
    carrying = Footprint(removed_fragments=NOTHING, carries_reuse_index=True)
    assert verdict(index_rules.INDEX_COVERS, REUSE, carrying) is Verdict.REBASABLE
