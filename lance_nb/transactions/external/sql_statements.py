"""The table of the SQL manifest stores, and what is asked of it.

Layout: ``lance_manifests(base_uri, version, path, committer, size, e_tag)``, primary key
``(base_uri, version)``; the columns are those of Lance's DynamoDB table.

Limits: versions below 2**63. The placeholder is ``?``; a driver with another one replaces it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lance_nb.errors import CorruptFileError
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


def inserted(base_uri: str, entry: ManifestEntry) -> tuple[Any, ...]:
    """Return the parameters of ``PUT_IF_NOT_EXISTS``."""
    return base_uri, entry.version, entry.path, COMMITTER, entry.size_bytes, entry.e_tag


def updated(base_uri: str, entry: ManifestEntry) -> tuple[Any, ...]:
    """Return the parameters of ``PUT_IF_EXISTS``."""
    return entry.path, COMMITTER, entry.size_bytes, entry.e_tag, base_uri, entry.version


def entry_of(row: Sequence[Any], place: str) -> ManifestEntry:
    """Return the entry in a row. Raises CorruptFileError."""
    version, path, size, e_tag = row
    whole = isinstance(version, int) and (size is None or isinstance(size, int))
    if not whole or not isinstance(path, str) or not isinstance(e_tag, str | None):
        raise CorruptFileError(place, None, "a version, a path, a size and a tag", repr(row)[:200])
    return ManifestEntry(version, path, size, e_tag)
