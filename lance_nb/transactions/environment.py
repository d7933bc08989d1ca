"""The environment of a commit, which tests replace, and how long a commit waits in it.

Clocks, sleep, random numbers and unique names: nothing else in this package reads any of these, so
a seed reproduces a whole history.

Backoff: between attempts for the next version slot the shortest attempt so far measures how long
an attempt takes (the unit, with a tenth to spare). Then a writer waits a random number of units out
of 4, then out of 8, 16, ... so that writers that collide spread out over slots long enough for one
of them to finish.

Limits: a wait is at most ``WAIT_S_MAX``.
Source: lance-core ``backoff.rs`` (``SlotBackoff``, ``Backoff``) and their use in pylance 14.0.2.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import field
from typing import TypeVar

from lance_nb.errors import RetryableCommitConflictError, TooMuchWriteContentionError
from lance_nb.value_classes import dataclass


def new_uuid() -> str:
    """Return a new random id as text with dashes."""
    return str(uuid.uuid4())


@dataclass(frozen=True, slots=True)
class Environment:
    """Clocks, sleep, chance and names.

    ``clock`` gives nanoseconds since the epoch (for timestamps), ``monotonic`` seconds that never
    go back (for timeouts), ``random`` a number in [0, 1).
    """

    clock: Callable[[], int] = time.time_ns
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    random: Callable[[], float] = field(default_factory=lambda: random.SystemRandom().random)
    new_uuid: Callable[[], str] = new_uuid


SLOTS_FIRST = 4
UNIT_SPARE = 1.1
UNIT_S_MIN = 0.001
WAIT_S_MAX = 5.0

_RETRY_WAIT_S = 0.05
_RETRY_JITTER_S = 0.05

T = TypeVar("T")


class SlotBackoff:
    """The waits of one writer that competes for version slots."""

    def __init__(self, unit_s: float) -> None:
        self._unit_s = max(unit_s * UNIT_SPARE, UNIT_S_MIN)
        self._slots = SLOTS_FIRST

    def measured(self, unit_s: float) -> None:
        """Take note of how long another attempt took: the shortest counts.

        The first one may have opened connections and read many versions.
        """
        self._unit_s = min(self._unit_s, max(unit_s * UNIT_SPARE, UNIT_S_MIN))

    def next_wait_s(self, environment: Environment) -> float:
        """Return how long to wait before the next attempt."""
        slot = int(environment.random() * self._slots)
        self._slots *= 2
        return min(slot * self._unit_s, WAIT_S_MAX)


def attempts(environment: Environment, max_retries: int, timeout_s: float | None) -> Iterator[int]:
    """Yield 1, 2, ... before each attempt, waiting in between; ends when the budget is used up.

    The timeout ends the sequence between attempts, it never interrupts one.
    """
    started = environment.monotonic()
    yield 1
    backoff = SlotBackoff(environment.monotonic() - started)
    for number in range(2, max_retries + 2):
        wait_s = backoff.next_wait_s(environment)
        elapsed_s = environment.monotonic() - started
        if timeout_s is not None and elapsed_s + wait_s >= timeout_s:
            return
        if wait_s:
            environment.sleep(wait_s)
        began = environment.monotonic()
        yield number
        backoff.measured(environment.monotonic() - began)


def retrying(
    change: Callable[[], T],
    environment: Environment,
    *,
    max_retries: int = 10,
    timeout_s: float | None = 30.0,
) -> T:
    """Do a change, and do it again on the newest version after every retryable conflict.

    ``change`` must read the newest version each time it is called and commit on it. Waits 50 ms,
    100 ms, ... up to 5 s, each give or take 50 ms. Raises TooMuchWriteContentionError.
    """
    started = environment.monotonic()
    wait_s = _RETRY_WAIT_S
    for number in range(max_retries + 1):
        try:
            return change()
        except RetryableCommitConflictError as conflict:
            elapsed_s = environment.monotonic() - started
            late = timeout_s is not None and elapsed_s + wait_s >= timeout_s
            if late or number == max_retries:
                raise TooMuchWriteContentionError(
                    f"gave up after {number + 1} attempts in {elapsed_s:.1f} s, because every one "
                    f"met a concurrent commit; the last conflict was: {conflict}"
                ) from conflict
        jitter_s = (environment.random() * 2 - 1) * _RETRY_JITTER_S
        environment.sleep(max(wait_s + jitter_s, 0.0))
        wait_s = min(wait_s * 2, WAIT_S_MAX)
    raise TooMuchWriteContentionError("no attempt was allowed")
