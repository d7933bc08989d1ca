"""Time actions, compare two ways of doing one thing by turns, and lay results out as a table.

Wall time and CPU time are taken of each run; a ratio is pylance's time over ours, so more is
better. On a shared machine the CPU ratio is the one to trust.
"""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

Action = Callable[[], object]
ONLY: dict[str, Any] = {"default": "", "help": "a part of the names of the rows to measure"}
SHORTEST_S = 1e-9  # nothing is divided by zero


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds by the clock and of the processor."""

    wall: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.wall:.2f} / {self.cpu:.2f}"

    def faster_than(self, other: Timing) -> Timing:
        """Return the other's seconds over these, of clock and processor."""
        return Timing(
            other.wall / max(self.wall, SHORTEST_S), other.cpu / max(self.cpu, SHORTEST_S)
        )


@dataclass(frozen=True, slots=True)
class Comparison:
    """One row of the table. ``goal`` is the least ratio that we want, None for a mere look."""

    name: str
    ours: Timing
    theirs: Timing
    goal: float | None

    @property
    def ratio(self) -> Timing:
        """How many times faster than pylance, by the clock and by processor time."""
        return self.ours.faster_than(self.theirs)

    @property
    def verdict(self) -> str:
        """Whether the better of both ratios reaches the goal."""
        if self.goal is None:
            return ""
        return "reached" if max(self.ratio.wall, self.ratio.cpu) >= self.goal else "short"


def compare(
    name: str,
    ours: Action,
    theirs: Action,
    *,
    goal: float | None = None,
    runs: int = 7,
    times: int = 1,
    before: Action | None = None,
) -> Comparison:
    """Run both once to warm up, then in turns; what is short, several ``times`` in one turn.

    ``before`` runs before both have their turn and is not measured.
    """
    ours()
    theirs()
    our_timings: list[Timing] = []
    their_timings: list[Timing] = []
    for _ in range(runs):
        if before is not None:
            before()
        our_timings.append(timed(ours, times))
        their_timings.append(timed(theirs, times))
    return Comparison(name, median(our_timings), median(their_timings), goal)


def timed(action: Action, times: int = 1) -> Timing:
    """Return what one of ``times`` runs took, without the time to free its result."""
    gc.collect()
    wall, cpu = time.perf_counter(), cpu_seconds()
    for _ in range(times - 1):
        action()
    result = action()
    taken = Timing((time.perf_counter() - wall) / times, (cpu_seconds() - cpu) / times)
    del result
    return taken


def cpu_seconds() -> float:
    """Return the processor time of this process and of those it has waited for."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def median(timings: Iterable[Timing]) -> Timing:
    """Return the medians of both times."""
    walls, cpus = zip(*((timing.wall, timing.cpu) for timing in timings), strict=True)
    return Timing(statistics.median(walls), statistics.median(cpus))


def best(timings: Iterable[Timing]) -> Timing:
    """Return the least of both times."""
    walls, cpus = zip(*((timing.wall, timing.cpu) for timing in timings), strict=True)
    return Timing(min(walls), min(cpus))


def table(rows: Iterable[Comparison]) -> str:
    """Lay comparisons out as a Markdown table."""
    titles = (
        "operation", "lance_nb ms (wall / cpu)", "pylance ms", "ratio wall", "ratio cpu", "goal", ""
    )  # fmt: skip
    return markdown(
        titles,
        (
            (
                row.name,
                Timing(row.ours.wall * 1e3, row.ours.cpu * 1e3),
                Timing(row.theirs.wall * 1e3, row.theirs.cpu * 1e3),
                f"{row.ratio.wall:.2f}",
                f"{row.ratio.cpu:.2f}",
                "" if row.goal is None else f"{row.goal:g}x",
                row.verdict,
            )
            for row in rows
        ),
    )


def markdown(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Lay rows out as a Markdown table; columns after the first are numbers unless untitled."""
    marks = ["---", *("--:" if title else "---" for title in titles[1:])]
    lines = [titles, marks, *([str(cell).replace("|", "/") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
