"""The named rules, one by one, on bare footprints."""

from __future__ import annotations

import pytest

from lance_nb.format.key_filter import KeyFilter
from lance_nb.format.manifest import BasePath
from lance_nb.transactions import conflict_rules as rules
from lance_nb.transactions import index_rules
from lance_nb.transactions.footprint import (
    CONFIG,
    FIELD_METADATA,
    SCHEMA_METADATA,
    TABLE_METADATA,
    Footprint,
    Settings,
)
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


KEYS = (
    (FIELD_METADATA, 2, "k"),
    (CONFIG, -1, "c"),
    (TABLE_METADATA, -1, "t"),
    (SCHEMA_METADATA, -1, "s"),
)


def sets(*keys: tuple[str, int, str], replaced: tuple[tuple[str, int], ...] = ()) -> Footprint:
    return Footprint(settings=Settings(frozenset(keys), frozenset(replaced)))


@pytest.mark.parametrize(
    ("ours", "theirs", "overlap"),
    [
        (sets(KEYS[1]), sets(KEYS[1]), "both set config key 'c'"),
        (sets(KEYS[1]), sets((CONFIG, -1, "d")), None),
        (sets(KEYS[2]), sets((TABLE_METADATA, -1, "u")), None),
        (sets(KEYS[3]), sets((SCHEMA_METADATA, -1, "x")), "both change the schema metadata"),
        (
            sets(KEYS[0]),
            sets((FIELD_METADATA, 2, "l")),
            "both change the field metadata of field 2",
        ),
        (sets(KEYS[0]), sets((FIELD_METADATA, 3, "k")), None),
        (
            sets((FIELD_METADATA, 0, "k")),
            sets((FIELD_METADATA, 0, "k")),
            "both change the field metadata of field 0",
        ),
        (sets(replaced=((CONFIG, -1),)), sets(KEYS[1]), "both change the config"),
        (sets(KEYS[1]), sets(replaced=((CONFIG, -1),)), "both change the config"),
        (sets(replaced=((CONFIG, -1),)), sets(KEYS[2]), None),
        (sets(KEYS[1], KEYS[2]), sets(KEYS[2]), "both set table metadata key 't'"),
    ],
)
def test_settings_that_meet(ours: Footprint, theirs: Footprint, overlap: str | None) -> None:
    found = rules.SAME_KEYS.judge(ours, theirs, Circumstances())
    assert (None if found is None else found.overlap) == overlap
    assert found is None or found.verdict is Verdict.INCOMPATIBLE


@pytest.mark.parametrize("count", [4, 5, 6, 9])
def test_the_first_five_keys_that_both_set_are_named(count: int) -> None:
    both = sets(*((CONFIG, -1, f"k{number}") for number in range(count)))
    found = rules.SAME_KEYS.judge(both, both, Circumstances())
    named = ", ".join(f"config key 'k{number}'" for number in range(min(count, 5)))
    assert found is not None
    assert found.overlap == f"both set {named}"


def base(number: int, path: str, name: str | None = None) -> Footprint:
    return Footprint(new_bases=(BasePath(number, path, False, name),))


@pytest.mark.parametrize(
    ("ours", "theirs", "overlap"),
    [
        (base(1, "/a"), base(1, "/b"), "both add a base with id 1"),
        (base(0, "/a"), base(0, "/b"), None),
        (base(0, "/a"), base(0, "/a"), "both add the base '/a'"),
        (base(1, "/a", "n"), base(2, "/b", "n"), "both add a base named 'n'"),
        (base(1, "/a", "n"), base(2, "/b", "m"), None),
        (base(1, "/a"), base(2, "/a"), "both add the base '/a'"),
        (base(1, "/a"), PLAIN, None),
    ],
)
def test_bases_that_meet(ours: Footprint, theirs: Footprint, overlap: str | None) -> None:
    found = rules.SAME_BASES.judge(ours, theirs, Circumstances())
    assert (None if found is None else found.overlap) == overlap


def logs(**generations: int) -> Footprint:
    return Footprint(compacted=tuple(generations.items()))


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        (logs(a=3), logs(a=3), Verdict.INCOMPATIBLE),
        (logs(a=3), logs(a=4), Verdict.INCOMPATIBLE),
        (logs(a=3), logs(a=2), Verdict.RETRYABLE),
        (logs(a=3), logs(b=9), Verdict.COMPATIBLE),
        (logs(a=3, b=1), logs(a=2, b=1), Verdict.INCOMPATIBLE),
    ],
)
def test_logs_that_meet(ours: Footprint, theirs: Footprint, expected: Verdict) -> None:
    assert verdict(rules.SAME_LOGS, ours, theirs) is expected


def test_logs_that_meet_are_named() -> None:
    ours, known = logs(b=3, a=2), Circumstances()
    for theirs, overlap in (
        (logs(a=1), "both merge the log of shard a"),
        (logs(a=1, b=2), "both merge the log of shard b"),
        (logs(a=2), "theirs has merged shard a up to generation 2"),
    ):
        found = rules.SAME_LOGS.judge(ours, theirs, known)
        assert found is not None
        assert found.overlap == overlap


REPLACES = Footprint(replaced=frozenset({(1, 2), (1, -2)}))
STRICT, WRITES = Footprint(may_alter_nullability=True), Footprint(supplies_values=True)
KEYED = Footprint(inserted_keys=KeyFilter((0,), (1,)))


@pytest.mark.parametrize(
    ("rule", "ours", "theirs", "expected"),
    [
        (rules.SAME_CELLS, REPLACES, REPLACES, Verdict.RETRYABLE),
        (rules.SAME_CELLS, REPLACES, Footprint(replaced=frozenset({(2, 2)})), Verdict.COMPATIBLE),
        (rules.REPLACED_FIELD_GONE, REPLACES, LEAVES_0, Verdict.INCOMPATIBLE),
        (rules.REPLACED_FIELD_GONE, REPLACES, Footprint(field_ids=frozenset({2})),
         Verdict.COMPATIBLE),
        (rules.MODIFIED_FIELD_GONE, Footprint(fields_modified=frozenset({2, -2})), LEAVES_0,
         Verdict.RETRYABLE),
        (rules.MODIFIED_FIELD_GONE, Footprint(fields_modified=frozenset({0, -2})), LEAVES_0,
         Verdict.COMPATIBLE),
        (rules.MODIFIED_FIELD_GONE, Footprint(fields_modified=frozenset({2})), PLAIN,
         Verdict.COMPATIBLE),
        (rules.NULLABILITY, STRICT, WRITES, Verdict.RETRYABLE),
        (rules.NULLABILITY, WRITES, STRICT, Verdict.RETRYABLE),
        (rules.NULLABILITY, STRICT, STRICT, Verdict.COMPATIBLE),
        (rules.NULLABILITY, WRITES, WRITES, Verdict.COMPATIBLE),
        (rules.UNKNOWN_NEW_KEYS, KEYED, PLAIN, Verdict.RETRYABLE),
        (rules.UNKNOWN_NEW_KEYS, PLAIN, KEYED, Verdict.COMPATIBLE),
        (rules.SAME_NEW_KEYS, KEYED, KEYED, Verdict.RETRYABLE),
        (rules.SAME_NEW_KEYS, KEYED, PLAIN, Verdict.RETRYABLE),
        (rules.SAME_NEW_KEYS, PLAIN, KEYED, Verdict.COMPATIBLE),
        (rules.SAME_NEW_KEYS, KEYED, Footprint(inserted_keys=KeyFilter((0,), (2,))),
         Verdict.COMPATIBLE),
        (rules.SCHEMA_METADATA_AGAIN, ANNOTATES_2, PLAIN, Verdict.RETRYABLE),
        (rules.SCHEMA_METADATA_AGAIN, sets(KEYS[1]), sets(KEYS[2]), Verdict.COMPATIBLE),
        (rules.SCHEMA_METADATA_NEVER, PLAIN, ANNOTATES_2, Verdict.INCOMPATIBLE),
    ],
)  # fmt: skip
def test_rule_on_fields_and_keys(
    rule: Rule, ours: Footprint, theirs: Footprint, expected: Verdict
) -> None:
    assert verdict(rule, ours, theirs) is expected


def test_two_upserts_that_do_not_say_their_keys_are_done_again() -> None:
    found = rules.SAME_NEW_KEYS.judge(PLAIN, PLAIN, Circumstances(both_insert=True))
    assert found is not None
    assert found.verdict is Verdict.RETRYABLE
    assert rules.SAME_NEW_KEYS.judge(PLAIN, PLAIN, Circumstances()) is None
