"""The named rules, one by one, on bare footprints."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lance_nb.format.fragment_reuse import REUSE_INDEX
from lance_nb.format.key_filter import KeyFilter
from lance_nb.format.manifest import BasePath
from lance_nb.format.merged_logs import WAL_INDEX
from lance_nb.transactions.conflict_rules import (
    RULES,
    Circumstances,
    Conflict,
    Verdict,
    enumerate_ids,
)
from lance_nb.transactions.operation import (
    CONFIG,
    FIELD_METADATA,
    SCHEMA_METADATA,
    TABLE_METADATA,
    Footprint,
    Settings,
)
from tests.support.versions import index

PLAIN = Footprint()
CHANGES_1 = Footprint(changed_fragments=frozenset({1}))
REMOVES_1 = Footprint(removed_fragments=frozenset({1}))
LEAVES_0 = Footprint(field_ids=frozenset({0}))
ANNOTATES_2 = Footprint(settings=Settings(frozenset({(FIELD_METADATA, 2, "k")})))
WAL = Footprint(new_indices=(index(WAL_INDEX, covers=()),))
REUSE = Footprint(new_indices=(index(REUSE_INDEX, covers=()),))


def judge(
    letter: str, ours: Footprint, theirs: Footprint, known: Circumstances | None = None
) -> Conflict | None:
    return RULES[letter].judge(ours, theirs, known or Circumstances())


def verdict(letter: str, ours: Footprint, theirs: Footprint, *, rows: bool = False) -> Verdict:
    found = judge(letter, ours, theirs, Circumstances(knows_rows=rows))
    assert found is None or found.overlap
    return Verdict.COMPATIBLE if found is None else found.verdict


@pytest.mark.parametrize(
    ("rule", "ours", "theirs", "expected"),
    [
        ("X", PLAIN, PLAIN, Verdict.INCOMPATIBLE),
        ("R", PLAIN, PLAIN, Verdict.RETRYABLE),
        ("f", CHANGES_1, REMOVES_1, Verdict.RETRYABLE),
        ("f", CHANGES_1, PLAIN, Verdict.COMPATIBLE),
        ("d", CHANGES_1, CHANGES_1, Verdict.RETRYABLE),
        ("d", CHANGES_1, PLAIN, Verdict.COMPATIBLE),
        ("t", CHANGES_1, REMOVES_1, Verdict.INCOMPATIBLE),
        ("t", CHANGES_1, CHANGES_1, Verdict.COMPATIBLE),
        ("F", ANNOTATES_2, LEAVES_0, Verdict.INCOMPATIBLE),
        ("F", ANNOTATES_2, PLAIN, Verdict.COMPATIBLE),
        ("s", PLAIN, ANNOTATES_2, Verdict.RETRYABLE),
        ("S", ANNOTATES_2, PLAIN, Verdict.INCOMPATIBLE),
        ("S", PLAIN, PLAIN, Verdict.COMPATIBLE),
        ("a", WAL, LEAVES_0, Verdict.RETRYABLE),
        ("a", REUSE, LEAVES_0, Verdict.COMPATIBLE),
        ("l", WAL, PLAIN, Verdict.REBASABLE),
        ("l", REUSE, PLAIN, Verdict.INCOMPATIBLE),
        ("b", REUSE, REMOVES_1, Verdict.COMPATIBLE),
    ],
)
def test_rule(rule: str, ours: Footprint, theirs: Footprint, expected: Verdict) -> None:
    assert verdict(rule, ours, theirs) is expected


def test_rows_are_worth_a_try_if_known_and_the_fragment_stays() -> None:
    assert verdict("d", CHANGES_1, CHANGES_1, rows=True) is Verdict.REBASABLE
    for ours, theirs in ((CHANGES_1, REMOVES_1), (REMOVES_1, CHANGES_1)):
        assert verdict("d", ours, theirs, rows=True) is Verdict.RETRYABLE


def test_every_rule_has_a_letter_of_its_own() -> None:
    assert len({rule.judge for rule in RULES.values()}) == len(RULES) == 26
    assert all(len(letter) == 1 and rule.text for letter, rule in RULES.items())


def test_an_index_that_does_not_say_what_it_covers_might_cover_it() -> None:
    silent = Footprint(new_indices=(replace(index("i", 0), fragment_bitmap=b""),))
    assert verdict("b", silent, REMOVES_1) is Verdict.RETRYABLE


def test_the_reuse_index_changes_alone() -> None:
    both = Footprint(new_indices=(*REUSE.new_indices, index("i", 0)))
    assert verdict("b", both, REMOVES_1) is Verdict.INCOMPATIBLE
    carrying = Footprint(carries_reuse_index=True)
    assert verdict("b", REUSE, carrying) is Verdict.REBASABLE


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
    found = judge("k", ours, theirs)
    assert (None if found is None else found.overlap) == overlap
    assert found is None or found.verdict is Verdict.INCOMPATIBLE


@pytest.mark.parametrize("count", [4, 5, 6, 9])
def test_the_first_five_keys_that_both_set_are_named(count: int) -> None:
    both = sets(*((CONFIG, -1, f"k{number}") for number in range(count)))
    found = judge("k", both, both)
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
    found = judge("p", ours, theirs)
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
    assert verdict("w", ours, theirs) is expected


def test_logs_that_meet_are_named() -> None:
    ours, known = logs(b=3, a=2), Circumstances()
    for theirs, overlap in (
        (logs(a=1), "both merge the log of shard a"),
        (logs(a=1, b=2), "both merge the log of shard b"),
        (logs(a=2), "theirs has merged shard a up to generation 2"),
    ):
        found = judge("w", ours, theirs, known)
        assert found is not None
        assert found.overlap == overlap


REPLACES = Footprint(replaced=frozenset({(1, 2), (1, -2)}))
STRICT, WRITES = Footprint(may_alter_nullability=True), Footprint(supplies_values=True)
KEYED = Footprint(inserted_keys=KeyFilter((0,), (1,)))


@pytest.mark.parametrize(
    ("rule", "ours", "theirs", "expected"),
    [
        ("c", REPLACES, REPLACES, Verdict.RETRYABLE),
        ("c", REPLACES, Footprint(replaced=frozenset({(2, 2)})), Verdict.COMPATIBLE),
        ("G", REPLACES, LEAVES_0, Verdict.INCOMPATIBLE),
        ("G", REPLACES, Footprint(field_ids=frozenset({2})),
         Verdict.COMPATIBLE),
        ("g", Footprint(fields_modified=frozenset({2, -2})), LEAVES_0,
         Verdict.RETRYABLE),
        ("g", Footprint(fields_modified=frozenset({0, -2})), LEAVES_0,
         Verdict.COMPATIBLE),
        ("g", Footprint(fields_modified=frozenset({2})), PLAIN,
         Verdict.COMPATIBLE),
        ("n", STRICT, WRITES, Verdict.RETRYABLE),
        ("n", WRITES, STRICT, Verdict.RETRYABLE),
        ("n", STRICT, STRICT, Verdict.COMPATIBLE),
        ("n", WRITES, WRITES, Verdict.COMPATIBLE),
        ("v", KEYED, PLAIN, Verdict.RETRYABLE),
        ("v", PLAIN, KEYED, Verdict.COMPATIBLE),
        ("u", KEYED, KEYED, Verdict.RETRYABLE),
        ("u", KEYED, PLAIN, Verdict.RETRYABLE),
        ("u", PLAIN, KEYED, Verdict.COMPATIBLE),
        ("u", KEYED, Footprint(inserted_keys=KeyFilter((0,), (2,))),
         Verdict.COMPATIBLE),
        ("s", ANNOTATES_2, PLAIN, Verdict.RETRYABLE),
        ("s", sets(KEYS[1]), sets(KEYS[2]), Verdict.COMPATIBLE),
        ("S", PLAIN, ANNOTATES_2, Verdict.INCOMPATIBLE),
    ],
)  # fmt: skip
def test_rule_on_fields_and_keys(
    rule: str, ours: Footprint, theirs: Footprint, expected: Verdict
) -> None:
    assert verdict(rule, ours, theirs) is expected


def test_two_upserts_that_do_not_say_their_keys_are_done_again() -> None:
    found = judge("u", PLAIN, PLAIN, Circumstances(both_insert=True))
    assert found is not None
    assert found.verdict is Verdict.RETRYABLE
    assert judge("u", PLAIN, PLAIN) is None


def test_a_larger_verdict_is_stricter() -> None:
    assert list(Verdict) == sorted(Verdict)
    assert Verdict.COMPATIBLE < Verdict.REBASABLE < Verdict.RETRYABLE < Verdict.INCOMPATIBLE


def test_long_lists_of_ids_are_cut() -> None:
    assert enumerate_ids("fragment", [3]) == "fragment 3"
    assert enumerate_ids("row", [2, 1]) == "rows 1, 2"
    assert enumerate_ids("row", range(9)) == "rows 0, 1, 2, 3, 4 and 4 more"
