"""Random histories: the diff of any two versions, applied to the rows of one, gives the other."""

from __future__ import annotations

import random
from itertools import combinations

import pytest

from tests.support.diffs import History, check_diff


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("stable", [True, False])
def test_a_diff_applied_to_one_version_gives_the_other(seed: int, stable: bool) -> None:
    history = History(seed, stable=stable)
    for _ in range(6):
        history.step()
    choose = random.Random(seed)
    pairs = list(combinations(sorted(history.versions), 2))

    for older, newer in choose.sample(pairs, min(3, len(pairs))):
        for ends in ((older, newer), (newer, older)):
            a, b = history.versions[ends[0]], history.versions[ends[1]]
            for key in (None, "id"):
                check_diff(history.ds.diff(*ends, key=key), a, b)
