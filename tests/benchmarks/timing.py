"""Compare two ways of doing one thing: in turns, in one process, by medians.

Wall time and CPU time are taken of each run; the ratio is pylance's time over ours, so more is
better. On a shared machine the CPU ratio is the one to trust.
"""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

Action = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Timing:
    """Medians in seconds."""

    wall: float
    cpu: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """One row of the table. ``goal`` is the least ratio that we want, None for a mere look."""

    name: str
    ours: Timing
    theirs: Timing
    goal: float | None

    @property
    def wall_ratio(self) -> float:
        """How many times faster than pylance, by the clock."""
        return self.theirs.wall / max(self.ours.wall, 1e-9)

    @property
    def cpu_ratio(self) -> float:
        """How many times faster than pylance, by processor time."""
        return self.theirs.cpu / max(self.ours.cpu, 1e-9)

    @property
    def reached(self) -> bool:
        """Whether the better of both ratios reaches the goal."""
        return self.goal is None or max(self.wall_ratio, self.cpu_ratio) >= self.goal


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
    mine: list[Timing] = []
    other: list[Timing] = []
    for _ in range(runs):
        if before is not None:
            before()
        mine.append(_timed(ours, times))
        other.append(_timed(theirs, times))
    return Comparison(name, _median(mine), _median(other), goal)


def _timed(action: Action, times: int) -> Timing:
    gc.collect()
    wall, cpu = time.perf_counter(), cpu_seconds()
    for _ in range(times - 1):
        action()
    result = action()
    taken = Timing(
        (time.perf_counter() - wall) / times,
        (cpu_seconds() - cpu) / times,
    )
    del result
    return taken


def cpu_seconds() -> float:
    """Return the processor time of this process and of those it has waited for."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


def _median(timings: list[Timing]) -> Timing:
    return Timing(
        statistics.median(one.wall for one in timings),
        statistics.median(one.cpu for one in timings),
    )


def table(rows: list[Comparison]) -> str:
    """Lay the comparisons out as a Markdown table."""
    lines = [
        "| operation | lance_nb ms (wall / cpu) | pylance ms | ratio wall | ratio cpu | goal | |",
        "|---|--:|--:|--:|--:|--:|---|",
    ]
    for row in rows:
        goal = "" if row.goal is None else f"{row.goal:g}x"
        verdict = "" if row.goal is None else "reached" if row.reached else "short"
        lines.append(
            f"| {row.name} | {row.ours.wall * 1e3:.2f} / {row.ours.cpu * 1e3:.2f} "
            f"| {row.theirs.wall * 1e3:.2f} / {row.theirs.cpu * 1e3:.2f} "
            f"| {row.wall_ratio:.2f} | {row.cpu_ratio:.2f} | {goal} | {verdict} |"
        )
    return "\n".join(lines)
