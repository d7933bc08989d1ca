"""How far long work is: rows done and rows in all, told to whoever asked."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[int, int], object]


class Told:
    """Adds up rows and tells (rows done, rows in all)."""

    def __init__(self, num_rows: int, progress: Progress | None) -> None:
        self._num_rows = num_rows
        self._progress = progress
        self._done = 0

    def add(self, num_rows: int) -> None:
        """Count rows."""
        self._done += num_rows
        if self._progress is not None:
            self._progress(self._done, self._num_rows)
