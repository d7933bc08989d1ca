"""Verbs on secondary indices: what there is, what it covers, building and dropping it.

BTREE indices are built here, other kinds by pylance; every verb here keeps all of them right.

Source: the index methods of ``LanceDataset`` of pylance 14.0.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa

from lance_nb import table
from lance_nb.dataset import verbs
from lance_nb.dataset.opened import OpenedVersion
from lance_nb.errors import NotSupportedError

if TYPE_CHECKING:
    from lance_nb.table.indices import IndexDescription


class Indexing(OpenedVersion):
    """Secondary indices of a version."""

    @property
    def has_index(self) -> bool:
        """Whether there is an index."""
        return bool(self.describe_indices())

    def list_indices(self) -> list[dict[str, Any]]:
        """List the segments of the secondary indices of this version, as pylance does."""
        return table.indices.list_indices(self._snapshot)

    def describe_indices(self) -> list[IndexDescription]:
        """Describe every index with all its segments: type, fields, rows and fragments covered."""
        return table.indices.describe_indices(self._snapshot)

    def index_statistics(self, index_name: str) -> dict[str, Any]:
        """Return pylance's statistics of an index, as far as the manifest tells.

        What is inside the files of the index is not read; the entry ``not_read`` names it. Raises
        IndexNotFoundError (a KeyError).
        """
        return table.indices.statistics(self._snapshot, index_name)

    def index_coverage(self, index_name: str | None = None) -> pa.Table:
        """Tell for every index (or one) and fragment whether it is covered, and by which segments.

        The columns are ``lance_nb.table.indices.COVERAGE``. Raises IndexNotFoundError.
        """
        return table.indices.coverage(self._snapshot, index_name)

    def remap_row_addrs(self, addrs: pa.Array) -> pa.Array | None:
        """Follow row addresses through the compactions that the fragment-reuse index remembers.

        Rows that are gone become null, addresses that no compaction moved stay. None when there is
        no such index. Raises InvalidInputError for what are no addresses.
        """
        return table.row_moves.remap_row_addrs(self._snapshot, addrs)

    def drop_index(self, name: str) -> None:
        """Drop an index by its name, all segments; its files stay until a clean-up.

        Unlike pylance, the fragment-reuse index is not dropped while another index needs it. Raises
        IndexNotFoundError, InvalidInputError.
        """
        self._snapshot = verbs.indexing.drop(self._session, self._snapshot, name)

    def prewarm_index(self, name: str, **options: Any) -> NoReturn:
        """Raise NotSupportedError: files of indices are not read. Raises IndexNotFoundError."""
        table.indices.segments_of(self._snapshot, name)
        raise NotSupportedError(
            f"index {name!r} cannot be loaded ahead: scans here do not read the files of indices, "
            "so there is nothing to keep in memory"
        )

    def create_scalar_index(
        self,
        column: str,
        index_type: Any = "BTREE",
        name: str | None = None,
        *,
        replace: bool = True,
        **options: Any,
    ) -> None:
        """Build a BTREE index on a column, in memory, for pylance's queries.

        ``lance_nb.spark.create_scalar_index`` builds it in parts. Filters here do not look into
        indices. Raises ColumnNotFoundError, InvalidInputError, and NotSupportedError for kinds and
        options that only pylance has.
        """
        kind = str(index_type)
        if options:
            call = f"create_scalar_index({column!r}, {kind!r}, {next(iter(options))}=...)"
            raise NotSupportedError(verbs.index_building.not_built(self.uri, call))
        self._snapshot = verbs.index_building.create(
            self._session, self._snapshot, column, kind, name, replace=replace
        )

    def create_index(self, column: Any, index_type: Any, *args: Any, **options: Any) -> None:
        """Raise NotSupportedError: indices are built by pylance. Raises ColumnNotFoundError."""
        for one in [column] if isinstance(column, str) else column:
            self.lance_schema.field(one)
        call = f"create_index({column!r}, {str(index_type)!r})"
        raise NotSupportedError(verbs.index_building.not_built(self.uri, call))
