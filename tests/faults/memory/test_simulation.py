"""Hundreds of seeded histories; the long form: ``python -m tests.faults simulate``."""

from __future__ import annotations

import pytest

from tests.faults.memory.simulation import Simulation, Turns, simulate

RUNS = 400
SHARES = 4  # so that two workers share the time


@pytest.mark.slow
@pytest.mark.parametrize("share", range(SHARES))
def test_every_history_equals_one_after_the_other(share: int):
    count = RUNS // SHARES
    counts = simulate(share * count, count)
    print(f"seeds {share * count} to {(share + 1) * count - 1}: {dict(counts)}")
    assert counts["faults"] > count


def test_a_seed_gives_the_same_history_again():
    one, other = (Simulation(17, writers=4) for _ in range(2))
    one.run()
    other.run()
    assert [(o.transaction, o.ended, o.version) for o in one.outcomes] == [
        (o.transaction, o.ended, o.version) for o in other.outcomes
    ]


def test_turns_hand_on_what_a_writer_raises():
    import random

    def fails() -> None:
        raise ValueError("in a writer")

    with pytest.raises(ValueError, match="in a writer"):
        Turns(random.Random(1)).run([fails, lambda: None])
