"""Long histories of fixed seeds; the long form: ``python -m tests.faults stateful``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.requirements import require_pylance

pytestmark = [pytest.mark.interop, pytest.mark.slow]

SHARES = 6  # so that two workers share the time
RUNS = 7  # of each


@pytest.mark.parametrize("share", range(SHARES))
def test_every_version_of_every_history_stays_what_it_was(share: int) -> None:
    require_pylance()
    from tests.faults.differential.sequences import explained, play

    seeds = range(share * RUNS, (share + 1) * RUNS)
    taken = 0
    for seed in seeds:
        steps, finding = play(seed)
        taken += len(steps)
        if finding is not None:
            pytest.fail(explained(seed, steps, finding))
    print(f"seeds {seeds.start} to {seeds.stop - 1}: {taken} steps")
    assert taken > RUNS * 15  # some first steps are refused by both libraries


def test_a_version_that_changes_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    require_pylance()
    from tests.faults.differential.sequences import HistoryPlayer, play

    sound = HistoryPlayer._version

    def forgetful(self: HistoryPlayer, *arguments: Any) -> Any:
        version = sound(self, *arguments)
        return replace(version, table=version.table.slice(1))

    monkeypatch.setattr(HistoryPlayer, "_version", forgetful)
    _, finding = play(2)
    assert finding is not None
    assert "rows: " in finding.text


def test_rows_are_merged_three_ways() -> None:
    require_pylance()
    from tests.faults.differential.sequences import three_ways

    base = {1: "a", 2: "b", 3: "c", 4: "d"}
    ours = {1: "a", 2: "B", 3: "c", 5: "e"}
    theirs = {1: "A", 2: "b", 4: "d", 6: "f"}
    expected = {1: "A", 2: "B", 5: "e", 6: "f"}
    assert three_ways(base, ours, theirs) == (expected, set())
    assert three_ways(base, {**ours, 1: "x"}, theirs)[1] == {1}
