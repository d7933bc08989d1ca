"""What an external manifest store is: (base URI, version) -> path of the manifest, put if absent.

An entry first names the staged manifest (``_versions/2.manifest-<uuid>``), which commits version 2,
and later the final one (``_versions/2.manifest``), when it has been put in place. Stores are named
by URLs, whose credentials are masked in every text.

``SqlManifestStore`` is one in a SQL table, whatever the database. Layout:
``lance_manifests(base_uri, version, path, committer, size, e_tag)``, primary key
``(base_uri, version)``; the columns are those of Lance's DynamoDB table.

Limits: versions below 2**63. An entry is never removed, but for ``forget``.
Source: spec page "transactions", external manifest store; the table of lance's DynamoDB store.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Protocol
from urllib.parse import parse_qsl, unquote, urlsplit

from lance_nb.errors import CorruptFileError, ObjectExistsError, ObjectNotFoundError
from lance_nb.format.layout import VERSIONS, ManifestName, parse_manifest_name
from lance_nb.value_classes import dataclass

COMMITTER = "lancedb"  # what every writer of Lance puts into this column

_STAGED = re.compile(r"(.+\.manifest)-[0-9A-Fa-f-]{32,36}")


@dataclass(frozen=True, slots=True)
class ManifestEntry:
    """Where the manifest of a version is. ``path`` begins with the base URI of the dataset."""

    version: int
    path: str
    size_bytes: int | None = None
    e_tag: str | None = None

    @property
    def object_path(self) -> str:
        """The path below the folder of the branch."""
        return f"{VERSIONS}/{self.path.rpartition('/')[2]}"

    @property
    def is_staged(self) -> bool:
        """Whether the manifest waits to be put in place."""
        return _STAGED.fullmatch(self.object_path) is not None

    def name(self, where: str) -> ManifestName:
        """Return the name that the manifest has or will have.

        ``where`` names the manifest store. Raises CorruptFileError when the path is not one of this
        version's manifest.
        """
        file_name = self.path.rpartition("/")[2]
        staged = _STAGED.fullmatch(file_name)
        manifest_name = parse_manifest_name(staged[1] if staged else file_name)
        folder = self.path.rpartition("/")[0].rpartition("/")[2]
        if manifest_name is None or manifest_name.version != self.version or folder != VERSIONS:
            raise CorruptFileError(
                where,
                None,
                f"the path of the manifest of version {self.version}",
                repr(self.path[:200]),
            )
        return manifest_name

    def finished(self, where: str) -> ManifestEntry:
        """Return the entry that names the final path."""
        folder = self.path.rpartition("/")[0]
        final = self.name(where).path.rpartition("/")[2]
        return replace(self, path=f"{folder}/{final}")


class ExternalManifestStore(Protocol):
    """A key-value store that can put if absent. Every method is safe to call from threads.

    Every failure raises StorageError; its ``outcome`` is ``"unknown"`` when the request may have
    been carried out all the same.
    """

    @property
    def place(self) -> str:
        """What messages call this store; free of secrets."""
        ...

    def get(self, base_uri: str, version: int) -> ManifestEntry | None:
        """Return the entry of a version, None if there is none; sees every completed put."""
        ...

    def latest(self, base_uri: str) -> ManifestEntry | None:
        """Return the entry of the highest version, None if there is none."""
        ...

    def put_if_not_exists(self, base_uri: str, entry: ManifestEntry) -> None:
        """Add the entry of a version. Raises ObjectExistsError if the version has one."""
        ...

    def put_if_exists(self, base_uri: str, entry: ManifestEntry) -> None:
        """Change the entry of a version. Raises ObjectNotFoundError if the version has none."""
        ...

    def forget(self, base_uri: str) -> None:
        """Remove every entry of a dataset (or branch) that has been deleted."""
        ...


_USER = re.compile(r"//[^/@]*@")
_SHOWN = frozenset({"region", "endpoint", "dbname", "host", "port", "sslmode", "connect_timeout"})
_HARMLESS_LENGTH_MAX = 3


def masked_url(url: str) -> str:
    """Return a URL without its user, password and unknown parameters."""
    plain, _, query = url.partition("?")
    plain = _USER.sub("//***@", plain)
    shown = [f"{name}={value}" for name, value in parse_qsl(query) if name in _SHOWN]
    return f"{plain}?{'&'.join(shown)}" if shown else plain


def without_secrets(text: str, url: str) -> str:
    """Return a driver's text with the secrets of the URL replaced."""
    parts = urlsplit(url)
    hidden = [value for name, value in parse_qsl(parts.query) if name not in _SHOWN]
    hidden += [secret for secret in (parts.password, unquote(parts.password or "")) if secret]
    for secret in sorted({url, *hidden}, key=len, reverse=True):
        if len(secret) > _HARMLESS_LENGTH_MAX:
            text = text.replace(secret, "***")
    return text


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
