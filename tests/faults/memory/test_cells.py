"""Every cell with one fault; the long form: ``python -m tests.faults cells``."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from lance_nb.errors import LanceError
from tests.faults.memory import cells
from tests.faults.memory.cells import CrashGrid
from tests.faults.memory.scenarios import SCENARIOS

CELLS_MIN = 600
TWO_FAULTS = 10  # cells of each change


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_whatever_fails_the_dataset_is_as_before_or_as_after_and_a_repetition_succeeds(name: str):
    grid = CrashGrid([name])
    count = len(grid.cells)
    for number in range(1, count + TWO_FAULTS + 1):
        grid.check(number)
    print(f"{name}: {count} cells")


@pytest.mark.slow
def test_the_grid_is_large_enough():
    count = len(CrashGrid().cells)
    assert count >= CELLS_MIN
    print(f"{count} cells in all")


def test_a_change_that_hides_its_failure_is_found_and_its_cell_repeats_it(
    monkeypatch: pytest.MonkeyPatch,
):
    sound = SCENARIOS["tag created"]

    def act(table, made):
        with suppress(LanceError):
            sound.act(table, made)

    monkeypatch.setattr(cells, "SCENARIOS", {"tag created": replace(sound, act=act)})
    counts, failures = cells.share(range(1, 30), lambda _: None)
    assert counts["cases"] == 29
    assert 0 < len(failures) == counts["failing"] < 29
    number = int(failures[0].split()[1].rstrip(":"))
    _, again = cells.share(range(number, number + 1), lambda _: None)
    assert again == failures[:1]
    assert "done, readers see" in failures[0]
