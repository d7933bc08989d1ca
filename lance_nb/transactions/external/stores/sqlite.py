"""A SQLite file as manifest store: ``sqlite:////absolute/path/manifests.db``. Needs no server.

How: write-ahead log with full sync, so a commit that was reported is on the disk. Each call opens
the file anew, which makes it safe among threads, processes and forks.

Limits: all writers run on one machine: SQLite's log does not work over network file systems. The
folder must exist.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any

from lance_nb.errors import (
    InvalidInputError,
    StorageError,
)
from lance_nb.transactions.external.base import CREATE, SqlManifestStore

_BUSY_S = 20.0
_CERTAIN = frozenset({3, 5, 6, 8, 14, 23})  # PERM, BUSY, LOCKED, READONLY, CANTOPEN, AUTH
_REMEDIES = {
    5: "another program keeps it; end that one, or try again",
    8: "make the file and its folder writable",
    14: "its folder must exist and be writable",
    26: "name another file: this one stays as it is",
}


class SqliteManifestStore(SqlManifestStore):
    """Entries in a table of a SQLite file."""

    def __init__(self, url: str, storage_options: Mapping[str, Any] | None = None) -> None:
        scheme, separator, path = url.partition(":///")
        if scheme != "sqlite" or not separator or not path:
            raise InvalidInputError(
                f"{url!r} is not sqlite:///path (a relative path) or sqlite:////path (absolute)"
            )
        self._path = path

    @property
    def place(self) -> str:
        """The URL."""
        return f"sqlite:///{self._path}"

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        import sqlite3

        try:
            with closing(
                sqlite3.connect(self._path, timeout=_BUSY_S, isolation_level=None)
            ) as connection:
                connection.execute("PRAGMA synchronous = FULL")
                _write_ahead(connection)
                connection.execute(CREATE)
                yield connection
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            outcome = "failed" if code in _CERTAIN else "unknown"
            remedy = _REMEDIES.get(code)
            reason = f"{error}; {remedy}" if remedy else str(error)
            raise StorageError(self.place, reason, outcome) from error


def _write_ahead(connection: Any) -> None:
    """Switch the file to its write-ahead log, which is kept in the file: once in its life.

    SQLite does not wait for others at this one statement (it reads before it writes, and two that
    both did would wait for each other), so of several first writers all but one are refused.
    """
    import sqlite3

    give_up = time.monotonic() + _BUSY_S
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                raise
            time.sleep(0.005)
