"""42 random sequences of 30 verbs; the long form: ``python -m tests.faults stateful``."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.faults.stateful.sequences import STEPS, VERBS, both_engines, run, run_many, shortened
from tests.faults.stateful.world import DifferenceError, World
from tests.support.requirements import require_pylance

RUNS = 42
SHARES = 6  # so that two workers share the time
READ_AGAIN = 0.15  # of the old versions by us, at the end; the long form reads all


@pytest.mark.interop
@pytest.mark.slow
@pytest.mark.parametrize("share", range(SHARES))
def test_every_version_of_every_sequence_equals_the_model(share: int) -> None:
    require_pylance()
    count = RUNS // SHARES
    seeds = range(share * count, (share + 1) * count)
    taken = run_many(seeds, both_engines(), READ_AGAIN)
    print(f"seeds {seeds.start} to {seeds.stop - 1}: {taken} steps")
    assert taken > count * STEPS * 0.95


@pytest.mark.interop
def test_a_dataset_that_is_not_what_the_model_says_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    require_pylance()
    original = World.landed

    def forgetful(self: World, expected: object, **options: object) -> None:
        if len(expected.rows) > 20:
            expected = replace(expected, rows=expected.rows[1:])
        original(self, expected, **options)

    monkeypatch.setattr(World, "landed", forgetful)
    with pytest.raises(DifferenceError) as caught:
        for seed in range(20):
            run(seed, both_engines(), range(8))
    assert "create" in caught.value.__notes__[0]


def test_a_failing_sequence_is_made_short() -> None:
    def fails(steps: list[int]) -> bool:
        return {3, 17, 18} <= set(steps)

    assert shortened(list(range(30)), fails) == [3, 17, 18]


def test_the_verbs_have_names_of_their_own() -> None:
    names = [verb.__name__ for verb in VERBS]
    assert len(set(names)) == len(names) >= 20
