"""When a configuration asks for a clean-up after a commit, and by which rules."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lance_nb.errors import CleanupError, InvalidInputError
from lance_nb.table.auto_cleanup import (
    INTERVAL,
    OLDER_THAN,
    RETAIN_VERSIONS,
    policy_after,
    settings,
    span,
)


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
    assert span(text) == expected


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
        assert span(f"5{unit}") == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "abc", "1000", "5 parsecs", "-1s", "1s x", "1.5h", "٣s"])
def test_other_texts_are_no_spans(text: str) -> None:
    with pytest.raises(CleanupError, match="older_than"):
        span(text)


def test_versions_that_are_multiples_of_the_interval_clean_up() -> None:
    config = {INTERVAL: "3", OLDER_THAN: "1h"}
    due = [version for version in range(1, 10) if policy_after(version, config) is not None]
    assert due == [3, 6, 9]
    policy = policy_after(3, config)
    assert policy is not None
    assert (policy.older_than, policy.retain_versions) == (timedelta(hours=1), None)
    assert policy_after(1, {INTERVAL: "0", RETAIN_VERSIONS: "2"}) is not None


@pytest.mark.parametrize(
    "config", [{}, {INTERVAL: "1"}, {OLDER_THAN: "0s"}, {RETAIN_VERSIONS: "2"}]
)
def test_half_a_configuration_asks_for_nothing(config: dict[str, str]) -> None:
    assert policy_after(4, config) is None


@pytest.mark.parametrize("interval", ["x", "-1", "1.5", "", "9" * 30])
def test_an_interval_is_a_number(interval: str) -> None:
    with pytest.raises(CleanupError, match="interval"):
        policy_after(4, {INTERVAL: interval, OLDER_THAN: "0s"})


def test_what_options_leave_out_is_the_default() -> None:
    assert settings({}) == {INTERVAL: "20", OLDER_THAN: "14days"}
    assert settings({"interval": 3, "older_than_seconds": 5}) == {INTERVAL: "3", OLDER_THAN: "5s"}


@pytest.mark.parametrize("options", [{"interval": "3"}, {"older_than_seconds": -1}, {"x": 1}])
def test_options_without_meaning_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError, match="auto_cleanup_options"):
        settings(options)
