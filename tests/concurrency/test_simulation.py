"""Thousands of seeded histories of writers that meet and fail; a failure prints its seed.

python -m tests.concurrency.test_simulation 1000000 [first seed]     for a long run
"""

from __future__ import annotations

import sys
import time

import pytest

from tests.concurrency.simulation import Simulation
from tests.concurrency.turns import Turns

RUNS = 1000
SHARES = 4  # so that two workers share the time


def simulate(first: int, count: int) -> tuple[int, int]:
    """Run ``count`` seeds; return how many transactions were tried and faults happened."""
    transactions = faults = 0
    for seed in range(first, first + count):
        simulation = Simulation(seed, writers=3 + seed % 3, changes=2)
        try:
            simulation.run()
        except BaseException as error:
            error.add_note(f"seed {seed}: Simulation({seed}, writers={3 + seed % 3}).run()")
            raise
        transactions += len(simulation.outcomes)
        faults += simulation.faults
    return transactions, faults


@pytest.mark.slow
@pytest.mark.parametrize("share", range(SHARES))
def test_every_history_equals_one_after_the_other(share: int):
    count = RUNS // SHARES
    transactions, faults = simulate(share * count, count)
    print(f"seeds {share * count} to {(share + 1) * count - 1}: {transactions=} {faults=}")
    assert faults > count


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


if __name__ == "__main__":
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else RUNS
    started = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    began = time.perf_counter()
    done = simulate(started, wanted)
    print(f"{wanted} runs from seed {started} in {time.perf_counter() - began:.0f} s: {done}")
