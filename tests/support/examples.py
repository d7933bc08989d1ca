"""How many examples a property is tried on: in CI a fixed choice, in a larger run others, and more.

The same examples each time, so that a change is judged by what it changes.
``make test-fast SIZE=100`` looks for new ones.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# How much more than in CI to try: `make test-fast SIZE=100` sets it.
SCALE = float(os.environ.get("LANCE_NB_TEST_SCALE", "1"))
USUAL = 50


def load_profile() -> None:
    """Set what holds for every property test."""
    # No deadline: two busy cores make a slow example, not a bug. A failure prints how to repeat it.
    settings.register_profile(
        "house",
        deadline=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow],
        derandomize=SCALE <= 1,
        max_examples=round(USUAL * SCALE),
    )
    settings.load_profile("house")


def examples(count: int) -> settings:
    """Try more, or fewer, examples than usual."""
    return settings(max_examples=round(count * SCALE))
