"""Files that were written for a commit which has not begun: removed when it does not come to it.

From the moment a file is offered to a commit it stays, whatever becomes of the commit: an unknown
outcome may still turn into a version that needs it.

Limits: a process that is killed removes nothing; clean-up finds such files.
Source: the commit protocol of transactions/commit.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import Self

from lance_nb.errors import LanceError
from lance_nb.format.fragment import DataFile
from lance_nb.storage.base import Store


class UnofferedFiles:
    """Data files below ``home`` that go when the context is left by an error before ``offer``."""

    def __init__(self, home: Store) -> None:
        self._home = home
        self._is_offered = False
        self._paths: list[str] = []

    def add(self, files: Iterable[DataFile]) -> None:
        """Take care of files."""
        self._paths += [one.location() for one in files]

    def offer(self) -> None:
        """Let the files stay from now on."""
        self._is_offered = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None or self._is_offered:
            return
        for path in self._paths:
            try:
                self._home.delete(path)
            except LanceError:
                continue  # an orphan is harmless, and the error on its way says more
