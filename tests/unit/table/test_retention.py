"""Which versions a clean-up may delete, and when a commit starts one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from lance_nb.errors import CleanupError, InvalidInputError
from lance_nb.format.layout import ManifestName, NamingScheme
from lance_nb.table.retention import (
    INTERVAL,
    OLDER_THAN,
    RETAIN_VERSIONS,
    Age,
    Protection,
    RetentionPolicy,
    auto_cleanup_config,
    auto_cleanup_policy,
    is_settled,
    parse_time_span,
    removable,
)

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


@pytest.mark.parametrize("span", [timedelta(days=900_000), timedelta.max])
def test_nothing_is_older_than_a_span_that_begins_before_the_calendar(span: timedelta):
    assert gone(rule(span)) == []


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
        ((None, 0, None), "retain_versions must be at least 1, not 0"),
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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0s", timedelta(0)),
        ("14days", timedelta(days=14)),
        ("1h 30m", timedelta(minutes=90)),
        ("1d3h", timedelta(hours=27)),
        ("10 ms", timedelta(milliseconds=10)),
        ("2 weeks", timedelta(weeks=2)),
        ("1M", timedelta(days=30.44)),
        ("999999999years", timedelta.max),
    ],
)
def test_spans_are_numbers_with_units(text: str, expected: timedelta) -> None:
    assert parse_time_span(text) == expected


@pytest.mark.parametrize(
    ("units", "seconds"),
    [
        ("nanos nsec ns", 5e-9), ("usec us", 5e-6), ("millis msec ms", 5e-3),
        ("seconds second secs sec s", 5), ("minutes minute mins min m", 300),
        ("hours hour hrs hr h", 5 * 3600), ("days day d", 5 * 86_400),
        ("weeks week w", 35 * 86_400), ("months month M", 5 * 30.44 * 86_400),
        ("years year y", 5 * 365.25 * 86_400),
    ],
)  # fmt: skip
def test_every_unit_has_its_length(units: str, seconds: float) -> None:
    """As in the Rust crate humantime, which reads these settings for pylance."""
    for unit in units.split():
        assert parse_time_span(f"5{unit}") == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "abc", "1000", "5 parsecs", "-1s", "1s x", "1.5h", "٣s"])
def test_other_texts_are_no_spans(text: str) -> None:
    with pytest.raises(CleanupError, match="older_than"):
        parse_time_span(text)


def test_versions_that_are_multiples_of_the_interval_clean_up() -> None:
    config = {INTERVAL: "3", OLDER_THAN: "1h"}
    due = [version for version in range(1, 10) if auto_cleanup_policy(version, config) is not None]
    assert due == [3, 6, 9]
    policy = auto_cleanup_policy(3, config)
    assert policy is not None
    assert (policy.older_than, policy.retain_versions) == (timedelta(hours=1), None)
    assert auto_cleanup_policy(1, {INTERVAL: "0", RETAIN_VERSIONS: "2"}) is not None


@pytest.mark.parametrize(
    "config", [{}, {INTERVAL: "1"}, {OLDER_THAN: "0s"}, {RETAIN_VERSIONS: "2"}]
)
def test_half_a_configuration_asks_for_nothing(config: dict[str, str]) -> None:
    assert auto_cleanup_policy(4, config) is None


@pytest.mark.parametrize("interval", ["x", "-1", "1.5", "", "9" * 30])
def test_an_interval_is_a_number(interval: str) -> None:
    with pytest.raises(CleanupError, match="interval"):
        auto_cleanup_policy(4, {INTERVAL: interval, OLDER_THAN: "0s"})


def test_what_options_leave_out_is_the_default() -> None:
    assert auto_cleanup_config({}) == {INTERVAL: "20", OLDER_THAN: "14days"}
    assert auto_cleanup_config({"interval": 3, "older_than_seconds": 5}) == {
        INTERVAL: "3",
        OLDER_THAN: "5s",
    }


@pytest.mark.parametrize("options", [{"interval": "3"}, {"older_than_seconds": -1}, {"x": 1}])
def test_options_without_meaning_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError, match="auto_cleanup_options"):
        auto_cleanup_config(options)
