"""Verbs that read chosen rows: by position, by row id, at random; blobs as files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from lance_nb import table
from lance_nb.dataset.opened import OpenedVersion
from lance_nb.errors import InvalidInputError
from lance_nb.table.projection import project_nested, remembered
from lance_nb.table.scan_plan import live_counts

if TYPE_CHECKING:
    from lance_nb.table.blobs import BlobFile


# Row ids, row addresses or positions.
Rows: TypeAlias = "Sequence[int] | pa.Array | np.ndarray"


class Taking(OpenedVersion):
    """Rows of a version that are chosen one by one."""

    def take(
        self, indices: Sequence[int] | pa.Array | np.ndarray, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """Read the rows at the given positions, in that order, repeats included.

        Nested columns stay inside their structs. Unlike pylance, a position that does not exist is
        always an InvalidInputError.
        """
        schema, known = self.lance_schema, self._snapshot.projections
        projection = remembered(
            known, columns, ("nested",), lambda: project_nested(schema, columns)
        )
        return table.take.take_rows(self._snapshot, projection, indices)

    def take_rows(
        self, row_ids: Sequence[int] | pa.Array | np.ndarray, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """Read rows by row id (``_rowid``), in that order; ids that are gone are left out."""
        return self.take(table.row_id_index.positions_of_ids(self._snapshot, row_ids), columns)

    def take_blobs(
        self,
        blob_column: str,
        ids: Rows | None = None,
        addresses: Rows | None = None,
        indices: Rows | None = None,
        *,
        buffer_size: int = 0,
    ) -> list[BlobFile | None]:
        """Open the blobs of some rows as files; None for a null blob.

        Rows are given by row id, by row address or by position. Nothing but descriptions is read
        until a file is; files read without a buffer, whatever ``buffer_size``: wrap them in
        ``io.BufferedReader`` for many small reads. Raises InvalidInputError.
        """
        if buffer_size < 0:
            raise InvalidInputError(f"buffer_size must not be negative, got {buffer_size}")
        positions = table.row_id_index.choose_positions(self._snapshot, ids, addresses, indices)
        return table.blobs.open_blobs(self._snapshot, blob_column, positions)

    def read_blobs(
        self,
        blob_column: str,
        ids: Rows | None = None,
        addresses: Rows | None = None,
        indices: Rows | None = None,
        *,
        io_buffer_size: int | None = None,
        preserve_order: bool | None = None,
    ) -> list[tuple[int, bytes | None]]:
        """Read the blobs of some rows, as pairs of row address and payload (None for a null).

        Rows are given as for ``take_blobs`` and always come in their order; the other arguments are
        accepted for pylance's sake. Raises InvalidInputError.
        """
        positions = table.row_id_index.choose_positions(self._snapshot, ids, addresses, indices)
        found = table.blobs.addressed_blobs(self._snapshot, blob_column, positions)
        parts = [None if file is None else (file, 0, file.size()) for _, file in found]
        payloads = table.blobs.read_parts(parts)
        return [(address, data) for (address, _), data in zip(found, payloads, strict=True)]

    def read_blob_ranges(
        self,
        blob_column: str,
        requests: Sequence[tuple[int, int, int]],
        *,
        selector: str,
        io_buffer_size: int | None = None,
        preserve_order: bool | None = None,
    ) -> list[tuple[int, int, bytes | None]]:
        """Read parts of blobs, each asked for as ``(row, offset, length)``.

        ``selector`` says what rows are given by: "ids", "addresses" or "indices". Returns ``(number
        of the request, row address, bytes)``, None for a null blob. Raises InvalidInputError for a
        range that does not lie in its blob.
        """
        if selector not in {"ids", "addresses", "indices"}:
            raise InvalidInputError(
                f"selector must be one of 'ids', 'addresses', or 'indices', got {selector!r}"
            )
        return table.blobs.read_ranges(self._snapshot, blob_column, list(requests), selector)

    def sample(
        self,
        num_rows: int,
        columns: Sequence[str] | None = None,
        randomize_order: bool = True,
        *,
        seed: int | None = None,
    ) -> pa.Table:
        """Read ``num_rows`` different rows picked at random (repeatable with a ``seed``)."""
        total = int(live_counts(self._snapshot).sum())
        if not 0 <= num_rows <= total:
            raise InvalidInputError(f"cannot sample {num_rows} of {total} rows")
        picked = np.random.default_rng(seed).choice(total, num_rows, replace=False)
        return self.take(picked if randomize_order else np.sort(picked), columns)
