"""``dataset.inspect``: Arrow tables about what a dataset is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lance_nb import table
from lance_nb.table.snapshot import Snapshot

if TYPE_CHECKING:
    from lance_nb.table.history import VersionLog


class Inspection:
    """Tables about one version; the schemas are in lance_nb.table.inspect."""

    def __init__(
        self, snapshot: Snapshot, log: VersionLog, tags: Callable[[], dict[str, Any]]
    ) -> None:
        self._snapshot = snapshot
        self._log = log
        self._tags = tags

    def versions(self) -> pa.Table:
        """One row per version of the branch: time, operation, message, counts, tags."""
        return table.history.versions_table(self._log, self._tags())

    def fragments(self) -> pa.Table:
        """One row per fragment: rows, deletions, files, bytes."""
        return table.inspect.fragments(self._snapshot)

    def data_files(self) -> pa.Table:
        """One row per data file: fragment, path, version, bytes, columns."""
        return table.inspect.data_files(self._snapshot)

    def columns(self) -> pa.Table:
        """One row per field: id, dotted name, logical type, nullability, files that hold it."""
        return table.inspect.columns(self._snapshot)

    def pages(self, path: str) -> pa.Table:
        """One row per page of a data file: rows, bytes, encoding."""
        return table.inspect.pages(self._snapshot, path)
