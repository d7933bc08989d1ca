"""Scan many fragments of a few rows each, as many small appends leave them.

The fixed cost of a fragment dominates here. Fragments of the simplest kind (``plain_fragment``)
whose wanted columns are constants (``constant_columns``) are read without opening their files as
data files, and a run of them becomes one array. Every other fragment is read as usual.

Limits: columns of numbers and times at the top level; no row columns.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lance_nb.errors import ObjectNotFoundError, StorageError
from lance_nb.file.metadata import CONSTANTS_VERSION, constant_columns
from lance_nb.format.layout import DATA
from lance_nb.format.serialized_fragments import PlainFragment, plain_fragment
from lance_nb.table.projection import Projection, result_table
from lance_nb.table.scan import read_task
from lance_nb.table.scan_tasks import FragmentTask, num_live_rows
from lance_nb.table.snapshot import Snapshot

ROWS_MEAN_MAX = 8
_FILE_BYTES_MAX = 64 * 1024
_MISSES_MAX = 8  # after so many fragments of another kind, the rest is read as usual


def has_tiny_fragments(snapshot: Snapshot, projection: Projection) -> bool:
    """Tell whether a scan of all rows reads small fragments and columns that may be constant."""
    fragments = snapshot.manifest.fragments
    rows = fragments.counts().physical_rows
    if not fragments.has_counts or int(rows.sum()) > ROWS_MEAN_MAX * len(rows):
        return False
    return bool(projection.outputs) and all(
        output.source >= 0 and not output.path and _is_number(projection, output.source)
        for output in projection.outputs
    )


def _is_number(projection: Projection, source: int) -> bool:
    type_ = projection.columns[source].arrow.type
    if isinstance(type_, pa.BaseExtensionType) or not pa.types.is_primitive(type_):
        return False
    return not pa.types.is_boolean(type_) and type_.bit_width <= 64


def scan_tiny(snapshot: Snapshot, projection: Projection) -> pa.Table:
    """Read all rows of all fragments. Raises as ``scan_table`` does."""
    fragments = snapshot.manifest.fragments
    run = _Run(snapshot, projection)
    tables: list[pa.Table] = []
    misses = 0
    for position, raw in enumerate(fragments.raw):
        if misses < _MISSES_MAX and run.add(raw):
            continue
        misses += 1
        tables += run.flush()
        fragment = fragments[position]
        count = num_live_rows(snapshot, fragment)
        if count:
            tables.append(read_task(snapshot, projection, FragmentTask(fragment, 0, count, 0)))
    tables += run.flush()
    return pa.concat_tables(tables) if tables else pa.Table.from_batches([], projection.schema)


class _Run:
    """Consecutive fragments of constant columns: the rows and the values of each."""

    def __init__(self, snapshot: Snapshot, projection: Projection) -> None:
        self._home = snapshot.locations.home
        self._projection = projection
        self._types = [column.arrow.type for column in projection.columns]
        self._ids = [column.field.id for column in projection.columns]
        self._columns_of: dict[tuple[tuple[int, ...], tuple[int, ...]], list[int]] = {}
        self._rows: list[int] = []
        self._values: list[list[bytes]] = []

    def add(self, raw: bytes) -> bool:
        """Read a serialized fragment; return False, and add nothing, if it is of another kind."""
        fragment = plain_fragment(raw)
        if fragment is None or fragment.file_version != CONSTANTS_VERSION or not fragment.num_rows:
            return False
        if fragment.size_bytes > _FILE_BYTES_MAX:
            return False
        columns = self._columns(fragment)
        try:
            data, size = self._home.read_tail(f"{DATA}/{fragment.name}", _FILE_BYTES_MAX)
        except (ObjectNotFoundError, StorageError):
            return False
        if size != fragment.size_bytes:
            return False
        values = constant_columns(data, columns, fragment.num_rows)
        if values is None or not self._fit(values):
            return False
        self._rows.append(fragment.num_rows)
        self._values.append(values)
        return True

    def _columns(self, fragment: PlainFragment) -> list[int]:
        """Return the wanted columns of the file, -1 for one that it does not have."""
        key = (fragment.fields, fragment.column_indices)
        columns = self._columns_of.get(key)
        if columns is None:
            column_of = dict(zip(*key, strict=True))
            columns = [column_of.get(field_id, -1) for field_id in self._ids]
            self._columns_of[key] = columns
        return columns

    def _fit(self, values: Sequence[bytes]) -> bool:
        return all(
            8 * len(value) == type_.bit_width
            for value, type_ in zip(values, self._types, strict=True)
        )

    def flush(self) -> list[pa.Table]:
        """Return the rows added so far as one table, or no table, and start a new run."""
        if not self._rows:
            return []
        count = sum(self._rows)
        repeated = count > len(self._rows)
        columns = []
        for type_, values in zip(self._types, zip(*self._values, strict=True), strict=True):
            if repeated:
                data = b"".join(
                    value * rows for value, rows in zip(values, self._rows, strict=True)
                )
            else:
                data = b"".join(values)
            array = pa.Array.from_buffers(type_, count, [None, pa.py_buffer(data)])
            columns.append(pa.chunked_array([array]))
        self._rows, self._values = [], []
        return [result_table(self._projection, columns, {}, count)]
