"""The environment of a commit, which tests replace: clocks, sleep, random numbers, unique names.

Limits: nothing else in this package reads any of these, so a seed reproduces a whole history.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field


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
