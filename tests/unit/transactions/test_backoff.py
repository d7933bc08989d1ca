from __future__ import annotations

import random

import pytest

from lance_nb.errors import (
    CommitConflictError,
    RetryableCommitConflictError,
    TooMuchWriteContentionError,
)
from lance_nb.transactions.environment import (
    WAIT_S_MAX,
    Environment,
    SlotBackoff,
    attempts,
    retrying,
)
from tests.support.committing import FakeTime, environment


def _always(fraction: float) -> Environment:
    time = FakeTime()
    return Environment(time.clock, time.monotonic, time.sleep, lambda: fraction)


def test_waits_are_whole_slots_out_of_four_then_eight_then_sixteen():
    backoff = SlotBackoff(0.01)
    last = [backoff.next_wait_s(_always(0.999)) for _ in range(3)]
    assert last == pytest.approx([3 * 0.011, 7 * 0.011, 15 * 0.011])
    assert SlotBackoff(0.01).next_wait_s(_always(0.0)) == 0


def test_a_wait_is_bounded():
    backoff = SlotBackoff(10.0)
    assert max(backoff.next_wait_s(_always(0.999)) for _ in range(30)) == WAIT_S_MAX


def test_the_first_attempt_measures_the_unit():
    time = FakeTime()
    world = Environment(time.clock, time.monotonic, time.sleep, lambda: 0.3)
    for number in attempts(world, 1, None):
        if number == 1:
            time.now_s += 0.1
    assert time.slept == pytest.approx([0.11], rel=0.01)


def test_a_first_attempt_that_opened_connections_does_not_make_every_wait_long():
    time = FakeTime()
    world = Environment(time.clock, time.monotonic, time.sleep, lambda: 0.3)
    for number in attempts(world, 2, None):
        time.now_s += 1.0 if number == 1 else 0.1
    assert time.slept == pytest.approx([1.1, 2 * 0.11], rel=0.01)


def test_attempts_are_one_more_than_retries():
    assert list(attempts(environment(), 3, None)) == [1, 2, 3, 4]
    assert list(attempts(environment(), 0, None)) == [1]


def test_writers_that_collide_spread_out():
    chance = random.Random(1)
    waits = set()
    for _ in range(8):
        backoff = SlotBackoff(0.01)
        world = Environment(random=chance.random)
        waits.add(tuple(backoff.next_wait_s(world) for _ in range(3)))
    assert len(waits) == 8


def _failing(times: int, error: type[Exception] = RetryableCommitConflictError):
    calls = []

    def change() -> int:
        calls.append(1)
        if len(calls) <= times:
            raise error("somebody else was first")
        return len(calls)

    return change


def test_a_change_is_done_again_after_a_retryable_conflict():
    assert retrying(_failing(4), environment()) == 5


def test_only_retryable_conflicts_are_retried():
    with pytest.raises(CommitConflictError):
        retrying(_failing(1, CommitConflictError), environment())


def test_giving_up_names_the_last_conflict():
    with pytest.raises(TooMuchWriteContentionError, match=r"3 attempts.*somebody else was first"):
        retrying(_failing(9), environment(), max_retries=2)


def test_giving_up_after_the_timeout():
    time = FakeTime()
    with pytest.raises(TooMuchWriteContentionError):
        retrying(_failing(10**6), environment(0, time), max_retries=10**6, timeout_s=3.0)
    assert 1.0 < time.now_s < 3.0


@pytest.mark.parametrize(
    ("timeout_s", "expected"), [(1.5, [1]), (2.05, [1]), (2.2, [1, 2]), (None, [1, 2, 3])]
)
def test_no_wait_begins_that_would_end_after_the_timeout(
    timeout_s: float | None, expected: list[int]
):
    """The first attempt takes 1 s, and the wait after it 1.1 s."""
    time = FakeTime()
    world = Environment(time.clock, time.monotonic, time.sleep, lambda: 0.3)
    done = []
    for number in attempts(world, 2, timeout_s):
        done.append(number)
        time.now_s += 1.0 if number == 1 else 0.1
    assert done == expected
    assert len(time.slept) == len(done) - 1


def test_waits_between_changes_double_and_vary_by_at_most_50_ms():
    for chance, jitter_s in ((0.0, -0.05), (0.5, 0.0), (0.75, 0.025)):
        time = FakeTime()
        world = Environment(time.clock, time.monotonic, time.sleep, lambda chance=chance: chance)
        assert retrying(_failing(9), world) == 10
        waits = [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, WAIT_S_MAX, WAIT_S_MAX]
        assert time.slept == pytest.approx([max(one + jitter_s, 0) for one in waits])


@pytest.mark.parametrize(("timeout_s", "calls"), [(0.05, 1), (0.06, 2), (0.151, 3), (0.149, 2)])
def test_a_change_is_not_done_again_when_the_wait_would_pass_the_timeout(
    timeout_s: float, calls: int
):
    world = _always(0.5)
    with pytest.raises(TooMuchWriteContentionError, match=f"after {calls} attempts"):
        retrying(_failing(9), world, timeout_s=timeout_s)


@pytest.mark.parametrize(("timeout_s", "expected"), [(0.001, [1]), (0.0011, [1, 2])])
def test_a_wait_that_ends_with_the_timeout_does_not_begin(timeout_s: float, expected: list[int]):
    """The unit is 1 ms where an attempt takes no time, and one slot is waited for."""
    slept = []
    world = Environment(lambda: 0, lambda: 0.0, slept.append, lambda: 0.3)
    assert list(attempts(world, 1, timeout_s)) == expected
    assert slept == [0.001] * (len(expected) - 1)


def test_no_wait_is_no_sleep():
    slept = []
    world = Environment(lambda: 0, lambda: 0.0, slept.append, lambda: 0.1)
    assert list(attempts(world, 2, None)) == [1, 2, 3]
    assert slept == []


def test_without_an_attempt_nothing_is_done():
    with pytest.raises(TooMuchWriteContentionError, match="no attempt was allowed"):
        retrying(_failing(0), environment(), max_retries=-1)
