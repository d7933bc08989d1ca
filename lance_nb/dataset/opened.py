"""OpenedVersion: which version of which dataset is open. ``LanceDataset`` adds the methods."""

from __future__ import annotations

import pyarrow as pa

from lance_nb.dataset.session import Session
from lance_nb.format.schema import Schema
from lance_nb.table.snapshot import Snapshot

_SCHEMA = "the whole schema"


class OpenedVersion:
    """One version of a dataset: where it is, which it is, and its schema."""

    def __init__(self, session: Session, snapshot: Snapshot) -> None:
        self._session = session
        self._snapshot = snapshot

    @property
    def uri(self) -> str:
        """Root of the dataset (the same on every branch)."""
        return self._session.uri

    @property
    def name(self) -> str:
        """Last part of the URI."""
        place = self._session.root.uri
        return place.rstrip("/").rpartition("/")[2] or place

    @property
    def branch(self) -> str | None:
        """Name of the branch, None on main."""
        return self._snapshot.branch

    @property
    def version(self) -> int:
        """Number of this version."""
        return self._snapshot.version

    @property
    def schema(self) -> pa.Schema:
        """Arrow schema."""
        known = self._snapshot.projections  # made once per version: long, with 2,000 columns
        found: pa.Schema | None = known.get(_SCHEMA)
        if found is None:
            found = known[_SCHEMA] = self.lance_schema.to_arrow()
        return found

    @property
    def lance_schema(self) -> Schema:
        """Schema with field ids."""
        return self._snapshot.manifest.schema

    @property
    def opened(self) -> tuple[Session, Snapshot]:
        """The stores and the version behind it, for verbs that are functions."""
        return self._session, self._snapshot
