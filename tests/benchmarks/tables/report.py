"""Figures of the benchmark: ratios, their Markdown table, and what fell against stored ones.

A ratio is pylance's time over ours: above 1 we are faster.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.timing import Timing, markdown

RATIOS = Path(__file__).resolve().parents[1] / "ratios.json"
# The share by which a stored ratio may fall. The small size runs beside other tests, where calls of
# two milliseconds vary by half; what stops decoding in batches falls by nine tenths.
FALLS = {"full": 1 / 3, "ci": 0.6}

Ratios = dict[str, dict[str, float]]


@dataclass(frozen=True, slots=True)
class Figures:
    """What one engine took: its first call, the best of the later ones, its peak of memory."""

    first: Timing
    warm: Timing
    peak_mb: float


@dataclass(frozen=True, slots=True)
class Row:
    """Both engines in one operation."""

    key: str
    title: str
    goal: float | None
    ours: Figures
    theirs: Figures

    @property
    def warm(self) -> Timing:
        """Return the ratios of warm calls."""
        return self.ours.warm.faster_than(self.theirs.warm)

    @property
    def first(self) -> Timing:
        """Return the ratios of first calls."""
        return self.ours.first.faster_than(self.theirs.first)

    @property
    def verdict(self) -> str:
        """Say whether warm calls reach the goal, by which of the two times."""
        if self.goal is None:
            return ""
        by_cpu, by_wall = self.warm.cpu >= self.goal, self.warm.wall >= self.goal
        if by_cpu and by_wall:
            return "yes"
        return "cpu only" if by_cpu else "wall only" if by_wall else "no"


def table(rows: Iterable[Row]) -> str:
    """Lay the rows out as a Markdown table, the worst ratio by processor time first."""
    titles = (
        "operation", "ratio cpu", "ratio wall", "first call, cpu / wall", "lance_nb s, cpu / wall",
        "pylance s, cpu / wall", "peak MB, lance_nb / pylance", "goal", "met",
    )  # fmt: skip
    return markdown(
        titles,
        (
            (
                row.title,
                f"{row.warm.cpu:.2f}",
                f"{row.warm.wall:.2f}",
                f"{row.first.cpu:.2f} / {row.first.wall:.2f}",
                f"{row.ours.warm.cpu:.4f} / {row.ours.warm.wall:.4f}",
                f"{row.theirs.warm.cpu:.4f} / {row.theirs.warm.wall:.4f}",
                f"{row.ours.peak_mb:.0f} / {row.theirs.peak_mb:.0f}",
                "" if row.goal is None else f"{row.goal:.1f}",
                row.verdict,
            )
            for row in sorted(rows, key=lambda row: row.warm.cpu)
        ),
    )


def growth_table(rows: Sequence[Row]) -> str:
    """Lay out the processor time of each fragment, column or ref; a key ends in their number."""
    titles = ("shape", "lance_nb us each", "pylance us each", "ratio cpu", "ratio wall")
    counts = [int(row.key.rpartition("-")[2]) for row in rows]
    return markdown(
        titles,
        (
            (
                row.title,
                f"{row.ours.warm.cpu / count * 1e6:.1f}",
                f"{row.theirs.warm.cpu / count * 1e6:.1f}",
                f"{row.warm.cpu:.2f}",
                f"{row.warm.wall:.2f}",
            )
            for row, count in zip(rows, counts, strict=True)
        ),
    )


def ratios(rows: Iterable[Row]) -> Ratios:
    """Return what is stored of rows: three ratios of each."""
    return {
        row.key: {
            "cpu": round(row.warm.cpu, 2),
            "wall": round(row.warm.wall, 2),
            "first_cpu": round(row.first.cpu, 2),
        }
        for row in rows
    }


def store(path: Path, size: str, found: Ratios) -> None:
    """Put ratios of one size into a JSON file; other sizes and rows in it stay."""
    stored = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    stored[size] = {**stored.get(size, {}), **found}
    path.write_text(json.dumps(stored, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def stored_ratios(path: Path, size: str) -> Ratios:
    """Return the stored ratios of one size."""
    found: Ratios = json.loads(path.read_text(encoding="utf-8")).get(size, {})
    return found


def fallen(stored: Ratios, found: Ratios, size: str = "full") -> dict[str, str]:
    """Return a sentence for each row whose warm ratio by processor time fell too much."""
    return {
        key: f"{key}: {found[key]['cpu']:.2f} times as fast as pylance by processor time, "
        f"{stored[key]['cpu']:.2f} in the stored ratios"
        for key in found
        if key in stored and found[key]["cpu"] < stored[key]["cpu"] * (1 - FALLS[size])
    }
