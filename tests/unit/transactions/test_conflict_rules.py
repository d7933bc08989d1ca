"""The named rules, one by one, on bare footprints."""

from __future__ import annotations

import pytest

from lance_nb.transactions import conflict_rules as rules
from lance_nb.transactions import index_rules
from lance_nb.transactions.footprint import FIELD_METADATA, Footprint, Settings
from lance_nb.transactions.verdicts import Circumstances, Rule, Verdict
from tests.support.versions import index

PLAIN = Footprint()
CHANGES_1 = Footprint(changed_fragments=frozenset({1}))
REMOVES_1 = Footprint(removed_fragments=frozenset({1}))
LEAVES_0 = Footprint(field_ids=frozenset({0}))
ANNOTATES_2 = Footprint(settings=Settings(frozenset({(FIELD_METADATA, 2, "k")})))
WAL = Footprint(new_indices=(index(index_rules.WAL_INDEX, covers=()),))
REUSE = Footprint(new_indices=(index(index_rules.REUSE_INDEX, covers=()),))


def verdict(rule: Rule, ours: Footprint, theirs: Footprint, *, rows: bool = False) -> Verdict:
    found = rule.judge(ours, theirs, Circumstances(knows_rows=rows))
    assert found is None or found.overlap
    return Verdict.COMPATIBLE if found is None else found.verdict


@pytest.mark.parametrize(
    ("rule", "ours", "theirs", "expected"),
    [
        (rules.NEVER, PLAIN, PLAIN, Verdict.INCOMPATIBLE),
        (rules.AGAIN, PLAIN, PLAIN, Verdict.RETRYABLE),
        (rules.SAME_FRAGMENTS, CHANGES_1, REMOVES_1, Verdict.RETRYABLE),
        (rules.SAME_FRAGMENTS, CHANGES_1, PLAIN, Verdict.COMPATIBLE),
        (rules.SAME_ROWS, CHANGES_1, CHANGES_1, Verdict.RETRYABLE),
        (rules.SAME_ROWS, CHANGES_1, PLAIN, Verdict.COMPATIBLE),
        (rules.TARGET_REMOVED, CHANGES_1, REMOVES_1, Verdict.INCOMPATIBLE),
        (rules.TARGET_REMOVED, CHANGES_1, CHANGES_1, Verdict.COMPATIBLE),
        (rules.ANNOTATED_FIELD_GONE, ANNOTATES_2, LEAVES_0, Verdict.INCOMPATIBLE),
        (rules.ANNOTATED_FIELD_GONE, ANNOTATES_2, PLAIN, Verdict.COMPATIBLE),
        (rules.SCHEMA_METADATA_AGAIN, PLAIN, ANNOTATES_2, Verdict.RETRYABLE),
        (rules.SCHEMA_METADATA_NEVER, ANNOTATES_2, PLAIN, Verdict.INCOMPATIBLE),
        (rules.SCHEMA_METADATA_NEVER, PLAIN, PLAIN, Verdict.COMPATIBLE),
    ],
)
def test_rule(rule: Rule, ours: Footprint, theirs: Footprint, expected: Verdict) -> None:
    assert verdict(rule, ours, theirs) is expected


def test_rows_are_worth_a_try_if_known_and_the_fragment_stays() -> None:
    assert verdict(rules.SAME_ROWS, CHANGES_1, CHANGES_1, rows=True) is Verdict.REBASABLE
    for ours, theirs in ((CHANGES_1, REMOVES_1), (REMOVES_1, CHANGES_1)):
        assert verdict(rules.SAME_ROWS, ours, theirs, rows=True) is Verdict.RETRYABLE


def test_every_rule_has_a_letter_of_its_own() -> None:
    both = {**vars(rules), **vars(index_rules)}
    every = [one for one in both.values() if isinstance(one, Rule)]
    assert len({one.letter for one in every}) == len(every)
    assert all(one.name and one.text for one in every)
