"""Every cell with one fault; cells with two, and as many as one likes: make torture-cells."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from lance_nb.errors import LanceError
from tests.concurrency import crash_grid
from tests.concurrency.crash_grid import CrashGrid
from tests.concurrency.scenarios import SCENARIOS

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
    cells = len(CrashGrid().cells)
    assert cells >= CELLS_MIN
    print(f"{cells} cells in all")


def test_a_change_that_hides_its_failure_is_found_and_its_cell_repeats_it(
    monkeypatch: pytest.MonkeyPatch,
):
    sound = SCENARIOS["tag created"]

    def act(table, made):
        with suppress(LanceError):
            sound.act(table, made)

    monkeypatch.setattr(crash_grid, "SCENARIOS", {"tag created": replace(sound, act=act)})
    counts, failures = crash_grid.share(range(1, 30), lambda _: None)
    assert counts["cells"] == 29
    assert 0 < len(failures) == counts["failing"] < 29
    number = int(failures[0].split()[1].rstrip(":"))
    _, again = crash_grid.share(range(number, number + 1), lambda _: None)
    assert again == failures[:1]
    assert "done, readers see" in failures[0]
