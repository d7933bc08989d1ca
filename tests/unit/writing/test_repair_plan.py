"""Which steps of a repair wait, and the words for it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from lance_nb.writing import repair
from lance_nb.writing.repair import HINT, MOVED, SET_ASIDE, RepairStep

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


def held(*seconds: int | None, kind: str = SET_ASIDE, held_back: str = "") -> str:
    state = {
        str(at): (1, None if one is None else NOW - timedelta(seconds=one))
        for at, one in enumerate(seconds)
    }
    step = RepairStep(kind, "what", "why", held_back=held_back)
    return repair._held_back(step, state, NOW, HOUR)


def test_steps_on_files_that_changed_lately_wait() -> None:
    assert held() == ""
    assert held(3600, 7200) == ""
    assert held(7200, 3599).startswith("it changed 3599 s ago")
    assert held(-5).startswith("it changed 0 s ago")
    assert "until it is 1 h old" in held(5)
    assert held(7200, None).startswith("the store does not say")


def test_nothing_waits_when_nobody_writes_even_if_the_clock_of_the_store_is_ahead() -> None:
    state = {"a": (1, NOW + HOUR), "b": (1, None)}
    step = RepairStep(SET_ASIDE, "what", "why")
    assert repair._held_back(step, state, NOW, timedelta(0)) == ""


def test_hints_and_base_paths_do_not_wait_and_a_reason_stays() -> None:
    assert held(5, kind=HINT) == held(None, kind=MOVED) == ""
    assert held(7200, held_back="reason") == "reason"


@pytest.mark.parametrize(
    ("seconds", "words"), [(3600, "1 h"), (7200, "2 h"), (90, "90 s"), (3601, "3601 s"), (0, "0 h")]
)
def test_ages_are_reported_in_hours_or_seconds(seconds: int, words: str) -> None:
    assert repair._words(timedelta(seconds=seconds)) == words


def test_a_step_prints_its_files_and_why_it_waits() -> None:
    step = RepairStep(SET_ASIDE, "what", "why", files=("a", "b"), held_back="later")
    expected = "quarantine: what\n  because why\n  file a\n  file b\n  held back: later"
    assert str(step) == expected
