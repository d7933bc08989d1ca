"""PostgreSQL as manifest store: ``postgresql://user:password@host:5432/database``.

How: ``INSERT ... ON CONFLICT DO NOTHING`` in a transaction of its own, on a connection per call.
The table is made when it is missing (base.py).

Limits: statements end after 15 s. With ``synchronous_commit = off`` on the server a
reported commit can be lost in a crash, so it is switched on here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from lance_nb.errors import (
    MissingPackageError,
    NotSupportedError,
    StorageError,
)
from lance_nb.transactions.external.base import (
    CREATE,
    SqlManifestStore,
    masked_url,
    without_secrets,
)

_CONNECT_S = 10
_SETTINGS = "SET statement_timeout = '15s'; SET synchronous_commit = on"
_PREPARE_TRIES = 3
_EXISTS = "SELECT to_regclass('lance_manifests') IS NOT NULL"


class PostgresManifestStore(SqlManifestStore):
    """Entries in a table of a PostgreSQL database."""

    placeholder = "%s"

    def __init__(self, url: str, storage_options: Mapping[str, Any] | None = None) -> None:
        try:
            import psycopg
        except ImportError as error:
            raise MissingPackageError(
                "a PostgreSQL manifest store", "psycopg", "lance-nb[postgres]"
            ) from error
        self._psycopg = psycopg
        self._url = url
        self._place = masked_url(url)
        self._prepared = False

    def __reduce__(self) -> tuple[object, ...]:
        raise NotSupportedError("a manifest store is not pickled: open it by its URL")

    @property
    def place(self) -> str:
        """The URL without credentials."""
        return self._place

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        connection = self._connect()
        try:
            yield connection
        except self._psycopg.Error as error:
            # Without an error code the answer did not come from the server.
            outcome = "failed" if error.sqlstate and error.sqlstate[:2] in _REFUSED else "unknown"
            text = without_secrets(str(error).strip(), self._url)
            raise StorageError(self.place, text, outcome) from error
        finally:
            connection.close()

    def _connect(self) -> Any:
        """Return a connection with the table made. Raises StorageError: nothing was changed."""
        try:
            connection = self._psycopg.connect(
                self._url, autocommit=True, connect_timeout=_CONNECT_S
            )
            connection.execute(_SETTINGS)
            if not self._prepared:
                self._prepare(connection)
            return connection
        except self._psycopg.Error as error:
            text = without_secrets(str(error).strip(), self._url)
            raise StorageError(self.place, text) from error

    def _prepare(self, connection: Any) -> None:
        """Make the table unless it is there, which takes no right to make one.

        Sessions that make it at the same time can get any of three errors despite IF NOT EXISTS;
        each says that another's table is committed.
        """
        errors = self._psycopg.errors
        for left in reversed(range(_PREPARE_TRIES)):
            if connection.execute(_EXISTS).fetchone()[0]:
                break
            try:
                connection.execute(CREATE)
                break
            except (errors.UniqueViolation, errors.DuplicateTable, errors.DuplicateObject):
                if not left:
                    raise
        self._prepared = True


# Classes of errors that say that a statement was looked at and refused.
_REFUSED = frozenset({"22", "23", "25", "28", "42", "53"})
