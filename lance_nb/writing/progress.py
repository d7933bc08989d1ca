"""Progress of long work: rows done and rows in all, reported to a callback of the caller."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[int, int], object]


class ProgressCounter:
    """Add up rows and report (rows done, rows in all). Without a callback it only counts."""

    def __init__(self, num_rows: int, progress: Progress | None) -> None:
        self._num_rows = num_rows
        self._progress = progress
        self._done = 0

    def add(self, num_rows: int) -> None:
        """Count rows and report the sum; whatever the callback raises ends the work."""
        self._done += num_rows
        if self._progress is not None:
            self._progress(self._done, self._num_rows)


class VersionReadProgress:
    """Count versions that are read; their number grows while reading finds more of them."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._done = self._total = 0

    def expect(self, number: int) -> None:
        """Add versions that are going to be read."""
        self._total += number

    def step(self) -> None:
        """Count one that was read and report; whatever the callback raises ends the reading."""
        self._done += 1
        if self._progress is not None:
            self._progress(self._done, self._total)

    def stop(self) -> None:
        """Report nothing from now on: what is read later belongs to another action."""
        self._progress = None
