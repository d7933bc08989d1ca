"""Manifest stores in a SQL table: the statements, whatever the database.

Layout: ``lance_manifests(base_uri, version, path, committer, size, e_tag)``, primary key
``(base_uri, version)``; the columns are those of Lance's DynamoDB table.

Limits: versions below 2**63.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from lance_nb.errors import CorruptFileError, ObjectExistsError, ObjectNotFoundError
from lance_nb.transactions.external.base import COMMITTER, ManifestEntry

CREATE = """CREATE TABLE IF NOT EXISTS lance_manifests (
    base_uri TEXT NOT NULL, version BIGINT NOT NULL, path TEXT NOT NULL, committer TEXT NOT NULL,
    size BIGINT, e_tag TEXT, PRIMARY KEY (base_uri, version))"""


GET = """SELECT version, path, size, e_tag FROM lance_manifests
    WHERE base_uri = ? AND version = ?"""
LATEST = """SELECT version, path, size, e_tag FROM lance_manifests
    WHERE base_uri = ? ORDER BY version DESC LIMIT 1"""
PUT_IF_NOT_EXISTS = """INSERT INTO lance_manifests (base_uri, version, path, committer, size, e_tag)
    VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"""
PUT_IF_EXISTS = """UPDATE lance_manifests SET path = ?, committer = ?, size = ?, e_tag = ?
    WHERE base_uri = ? AND version = ?"""
FORGET = "DELETE FROM lance_manifests WHERE base_uri = ?"


class SqlManifestStore(ABC):
    """Entries in a table; a database adds how it connects and which errors leave doubt."""

    placeholder = "?"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.place!r})"

    @property
    @abstractmethod
    def place(self) -> str:
        """The URL without credentials."""

    @abstractmethod
    def _connected(self) -> AbstractContextManager[Any]:
        """Open a connection with the table made. Raises StorageError, also from its body."""

    def get(self, base_uri: str, version: int) -> ManifestEntry | None:
        """Return the entry of a version."""
        return self._entry(GET, (base_uri, version))

    def latest(self, base_uri: str) -> ManifestEntry | None:
        """Return the entry of the highest version."""
        return self._entry(LATEST, (base_uri,))

    def put_if_not_exists(self, base_uri: str, entry: ManifestEntry) -> None:
        """Add the entry of a version."""
        row = (base_uri, entry.version, entry.path, COMMITTER, entry.size_bytes, entry.e_tag)
        if not self._changed(PUT_IF_NOT_EXISTS, row):
            raise ObjectExistsError(entry.path)

    def put_if_exists(self, base_uri: str, entry: ManifestEntry) -> None:
        """Change the entry of a version."""
        row = (entry.path, COMMITTER, entry.size_bytes, entry.e_tag, base_uri, entry.version)
        if not self._changed(PUT_IF_EXISTS, row):
            raise ObjectNotFoundError(entry.path)

    def forget(self, base_uri: str) -> None:
        """Remove every entry of a dataset."""
        self._changed(FORGET, (base_uri,))

    def _entry(self, statement: str, parameters: tuple[Any, ...]) -> ManifestEntry | None:
        with self._connected() as connection:
            row = connection.execute(self._in_dialect(statement), parameters).fetchone()
        return None if row is None else entry_of(row, self.place)

    def _changed(self, statement: str, parameters: tuple[Any, ...]) -> int:
        with self._connected() as connection:
            return int(connection.execute(self._in_dialect(statement), parameters).rowcount)

    def _in_dialect(self, statement: str) -> str:
        return statement.replace("?", self.placeholder)


def entry_of(row: Sequence[Any], place: str) -> ManifestEntry:
    """Return the entry in a row. Raises CorruptFileError."""
    version, path, size, e_tag = row
    whole = isinstance(version, int) and (size is None or isinstance(size, int))
    if not whole or not isinstance(path, str) or not isinstance(e_tag, str | None):
        raise CorruptFileError(place, None, "a version, a path, a size and a tag", repr(row)[:200])
    return ManifestEntry(version, path, size, e_tag)
