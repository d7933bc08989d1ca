"""``dataset.inspect``: Arrow tables about what a dataset is made of."""

from __future__ import annotations

import pyarrow as pa

from lance_nb import table
from lance_nb.dataset.opened import VersionPart
from lance_nb.dataset.refs import Tags


class Inspection(VersionPart):
    """Tables about one version; the schemas are in lance_nb.table.inspect."""

    def versions(self) -> pa.Table:
        """One row per version of the branch: time, operation, message, counts, tags."""
        log = self._session.log(self._snapshot.branch)
        return table.history.versions_table(log, Tags(*self._version.opened).list())

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
