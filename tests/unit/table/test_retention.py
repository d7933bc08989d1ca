"""Which versions may go: ages, counts, names, and what protects them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from lance_nb.errors import CleanupError
from lance_nb.format.layout import ManifestName, NamingScheme
from lance_nb.table.retention import Age, Protection, RetentionPolicy, is_settled, removable

NOW = datetime(2026, 6, 1, tzinfo=UTC)
NAMES = [ManifestName(number, NamingScheme.V2) for number in range(1, 101)]


class Clock:
    """Version n was committed n - 100 days from now, and stored then or at ``stored``."""

    def __init__(self, stored: datetime | None = None) -> None:
        self.asked: list[int] = []
        self.stored_at = stored

    def committed(self, name: ManifestName) -> datetime:
        self.asked.append(name.version)
        return NOW - timedelta(days=100 - name.version)

    def stored(self, name: ManifestName) -> datetime | None:
        return self.stored_at or NOW - timedelta(days=100 - name.version)

    def age(self) -> Age:
        return Age(NOW, self.committed, self.stored)


def gone(
    policy: RetentionPolicy,
    clock: Clock | None = None,
    current: int = 100,
    **kept: dict[int, list[str]],
) -> list[int]:
    protection = Protection(kept.get("tags", {}), kept.get("forks", {}))
    age = (clock or Clock()).age()
    return [one.version for one in removable(policy, NAMES, current, age, protection)]


def rule(*rules: object, **flags: bool) -> RetentionPolicy:
    found = [*rules, None, None, None][:3]
    return RetentionPolicy.of(*found, **flags)  # type: ignore[arg-type]


def test_without_rules_versions_older_than_two_weeks_go():
    assert gone(rule()) == list(range(1, 86))


def test_the_boundary_is_found_by_halving():
    clock = Clock()
    assert gone(rule(timedelta(days=30)), clock) == list(range(1, 70))
    assert len(clock.asked) <= 8


def test_a_version_whose_file_was_copied_is_judged_by_its_manifest():
    clock = Clock(stored=NOW)
    assert gone(rule(timedelta(days=30)), clock) == list(range(1, 70))
    assert len(clock.asked) > 69


def test_a_version_before_the_boundary_with_a_late_clock_stays():
    clock = Clock(stored=NOW)
    late = clock.committed

    def committed(name: ManifestName) -> datetime:
        return NOW if name.version == 7 else late(name)

    age = Age(NOW, committed, clock.stored)
    found = removable(rule(timedelta(days=30)), NAMES, 100, age, Protection({}, {}))
    assert [one.version for one in found] == [n for n in range(1, 70) if n != 7]


def test_a_version_without_a_time_is_as_old_as_its_file():
    age = Age(NOW, lambda _: None, Clock().stored)
    found = removable(rule(timedelta(days=30)), NAMES, 100, age, Protection({}, {}))
    assert len(found) == 69
    nothing = Age(NOW, lambda _: None, lambda _: None)
    assert removable(rule(timedelta(days=30)), NAMES, 100, nothing, Protection({}, {})) == []


def test_all_rules_must_hold():
    assert gone(rule(timedelta(days=30), 50)) == list(range(1, 51))
    assert gone(rule(timedelta(days=90), 50)) == list(range(1, 10))
    assert gone(rule(None, None, [3, 99, 100, 500])) == [3, 99]
    assert gone(rule(None, 10, [3, 95])) == [3]


def test_the_version_that_is_open_and_later_ones_stay():
    assert gone(rule(None, 1), current=40) == list(range(1, 40))


def test_tagged_and_forked_versions_stay():
    kept = {"tags": {5: ["a"]}, "forks": {9: ["dev"]}}
    quiet = rule(None, 90, error_if_tagged_old_versions=False)
    assert gone(quiet, **kept) == [1, 2, 3, 4, 6, 7, 8, 10]
    with pytest.raises(CleanupError, match="'a' \\(version 5\\)"):
        gone(rule(None, 90), **kept)
    assert gone(rule(None, 96), **kept) == [1, 2, 3, 4]


def test_only_files_of_a_known_age_are_settled():
    assert is_settled(NOW - timedelta(days=7), NOW)
    assert not is_settled(NOW - timedelta(days=6.9), NOW)
    assert not is_settled(None, NOW)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((3, None, None), "older_than is a timedelta, not int"),
        ((timedelta(seconds=-1), None, None), "a span back in time"),
        ((None, True, None), "retain_versions is a number, not True"),
        ((None, 2.0, None), "retain_versions is a number"),
        ((None, 0, None), "retain_versions is at least 1, not 0"),
        ((None, None, []), "versions is empty"),
        ((None, None, [1, True]), "a list of version numbers"),
        ((None, None, ["1"]), "a list of version numbers"),
    ],
    ids=str,
)
def test_arguments_that_make_no_sense_are_refused(arguments: tuple, problem: str) -> None:
    with pytest.raises(CleanupError, match=problem):
        RetentionPolicy.of(*arguments)


def test_the_least_arguments_that_make_sense_are_taken() -> None:
    assert RetentionPolicy.of(timedelta(0), None, None).older_than == timedelta(0)
    assert RetentionPolicy.of(None, 1, None).retain_versions == 1
    assert RetentionPolicy.of(None, 1, None).older_than is None
    assert RetentionPolicy.of(None, None, [3, 3]).versions == {3}
    default = RetentionPolicy.of(None, None, None)
    assert (default.older_than, default.retain_versions, default.versions) == (
        timedelta(days=14), None, None,
    )  # fmt: skip
    assert (default.delete_unverified, default.error_if_tagged_old_versions) == (False, True)
