"""What an upsert is given: its clauses and the rows of its source; rows as they are written.

A source may be a stream that cannot be read again, while an upsert needs its keys first, then its
rows in the order of the target, and all of it once more after a conflict. What does not fit into
``MEMORY_BYTES`` goes to a temporary file, which is mapped: rows are taken from there.

A matched row that is written keeps the target's value of every column (and of every field of a
struct) that the source does not have; an inserted row gets null there.

Limits: keys stay in memory. A table that the caller holds is not copied.
Source: ``MergeInsertBuilder`` of pylance 14.0.2, which spills such sources too; its partial
sources.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from itertools import accumulate
from pathlib import Path
from typing import Self

import numpy as np
import pyarrow as pa

from lance_nb import arrow_compute as pc
from lance_nb.arrow_casts import cast_array
from lance_nb.encodings.arrow_parts import one_array, taken_rows
from lance_nb.encodings.base import Ints
from lance_nb.encodings.kernels.memory import from_integers
from lance_nb.errors import MergeInsertError, NotSupportedError, SchemaMismatchError
from lance_nb.format.blob_fields import holds_blobs, is_blob
from lance_nb.format.fragment import Fragment
from lance_nb.format.merged_logs import MergedLog
from lance_nb.format.schema import Field, Schema
from lance_nb.table.blob_copies import BlobCopies
from lance_nb.table.filtered_scan import Selected, quoted, selected_table
from lance_nb.table.predicate import Filter
from lance_nb.table.projection import Projection, project
from lance_nb.table.scan import row_addresses
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.schema_change import writable_part
from lance_nb.value_classes import dataclass
from lance_nb.writing.fragment_writer import joined_batches

WRITE_MODES = ("auto", "rewrite_rows", "rewrite_columns")


class WhenMatched(Enum):
    """What becomes of target rows that have a partner; the value is the name in plans."""

    KEEP = "DoNothing"
    UPDATE = "UpdateAll"
    DELETE = "Delete"
    FAIL = "Fail"


@dataclass(frozen=True, slots=True)
class MergeClauses:
    """What an upsert does. ``unmatched`` rows are target rows without a partner.

    ``on`` are the columns of the key, ``key`` the unenforced primary key if it is the same columns.
    ``logs`` are write-ahead logs that the source comes from. ``bases`` (or ``all_bases``) are base
    paths that new rows go to, in turn. ``file_version`` names that of new files.
    """

    on: tuple[str, ...]
    key: tuple[str, ...] = ()
    matched: WhenMatched = WhenMatched.KEEP
    condition: str | None = None
    inserts: bool = False
    deletes_unmatched: bool = False
    unmatched_filter: Filter | None = None
    write_mode: str = "auto"
    logs: tuple[MergedLog, ...] = ()
    bases: tuple[str, ...] = ()
    all_bases: bool | None = None
    file_version: str | None = None

    @property
    def does_nothing(self) -> bool:
        """Whether no row can change."""
        return self.matched is WhenMatched.KEEP and not (self.inserts or self.deletes_unmatched)


def check_clauses(clauses: MergeClauses, source: pa.Schema, schema: Schema) -> None:
    """Check that a source of this schema can be merged.

    Raises SchemaMismatchError, MergeInsertError, NotSupportedError.
    """
    check_keys(source, clauses.on)
    for field in schema.fields:
        if field.name in clauses.on and holds_blobs(field):
            raise NotSupportedError(
                f"the key {field.name!r} holds blobs: rows are not matched by their bytes"
            )
    check_schema(source, schema, inserts=clauses.inserts)
    if clauses.write_mode == "rewrite_columns":
        obstacles = column_obstacles(clauses, source, schema)
        if obstacles:
            raise MergeInsertError(
                "write_mode('rewrite_columns') cannot express this: "
                + "; ".join(obstacles)
                + ". Use 'auto' or 'rewrite_rows'"
            )


def column_obstacles(clauses: MergeClauses, source: pa.Schema, schema: Schema) -> list[str]:
    """Say why columns of matched rows cannot be rewritten alone."""
    obstacles = []
    if clauses.matched is not WhenMatched.UPDATE:
        obstacles.append("matched rows are not updated")
    if clauses.inserts:
        obstacles.append("rows are inserted")
    if clauses.deletes_unmatched:
        obstacles.append("rows that are not matched are deleted")
    if set(schema.names) <= set(source.names):
        obstacles.append("the source has every column of the dataset")
    if set(source.names) <= set(clauses.on):
        obstacles.append("the source has no column besides the key")
    return obstacles


MEMORY_BYTES = 256 * 1024 * 1024
_RUN_ROWS = 64 * 1024
_RUN_BYTES = 16 * 1024 * 1024


class SourceRows:
    """The source's rows by number. A context: leaving it removes the temporary file."""

    def __init__(
        self,
        reader: pa.RecordBatchReader,
        memory_bytes: int | None = MEMORY_BYTES,
        folder: str | None = None,
    ) -> None:
        """Read everything; ``memory_bytes`` None keeps the batches as they are."""
        self.schema: pa.Schema = reader.schema
        self._path: str | None = None
        self._mapped: pa.MemoryMappedFile | None = None
        self._batches: list[pa.RecordBatch] = []
        is_read = False
        try:
            self._read(joined_batches(reader, _RUN_ROWS, _RUN_BYTES), memory_bytes, folder)
            is_read = True
        finally:
            if not is_read:
                self.close()
        self._starts = np.fromiter(
            accumulate((batch.num_rows for batch in self._batches), initial=0), np.int64
        )

    def _read(
        self, batches: Iterator[pa.RecordBatch], memory_bytes: int | None, folder: str | None
    ) -> None:
        size = 0
        for batch in batches:
            self._batches.append(batch)
            size += batch.nbytes
            if memory_bytes is not None and size > memory_bytes:
                self._spill(batches, folder)
                return

    def _spill(self, batches: Iterable[pa.RecordBatch], folder: str | None) -> None:
        """Write what was read and what is left to a file, and map it."""
        handle, self._path = tempfile.mkstemp(suffix=".arrow", prefix="lance_nb-", dir=folder)
        with os.fdopen(handle, "wb") as file, pa.ipc.new_stream(file, self.schema) as stream:
            while self._batches:
                stream.write_batch(self._batches.pop(0))
            for batch in batches:
                stream.write_batch(batch)
        self._mapped = pa.memory_map(self._path)
        self._batches = list(pa.ipc.open_stream(self._mapped))

    @property
    def num_rows(self) -> int:
        """Rows of the source."""
        return int(self._starts[-1])

    @property
    def row_bytes(self) -> float:
        """Bytes of a row on average."""
        size = float(sum(batch.nbytes for batch in self._batches))
        return size / max(self.num_rows, 1)

    def columns(self, names: Sequence[str]) -> pa.Table:
        """Return whole columns."""
        schema = pa.schema([self.schema.field(name) for name in names])
        parts = [batch.select(list(names)).replace_schema_metadata(None) for batch in self._batches]
        return pa.Table.from_batches(parts, schema)

    def take(self, rows: Ints, names: Sequence[str]) -> pa.Table:
        """Return rows by their numbers, in that order."""
        schema = pa.schema([self.schema.field(name) for name in names])
        if not rows.size:
            return pa.Table.from_batches([], schema)
        if len(self._batches) == 1 and self._mapped is None:
            batch = self._batches[0].select(list(names)).replace_schema_metadata(None)
            return pa.Table.from_batches([pc.take(batch, from_integers(rows))], schema)
        in_order = bool((np.diff(rows) >= 0).all())
        order = None if in_order else np.argsort(rows, kind="stable")
        ascending = rows if order is None else rows[order]
        owners = np.searchsorted(self._starts, ascending, side="right") - 1
        edges = np.flatnonzero(np.diff(owners, prepend=-1))
        parts = []
        for start, stop in zip(edges, [*edges[1:], len(owners)], strict=True):
            owner = int(owners[start])
            batch = self._batches[owner].select(list(names)).replace_schema_metadata(None)
            parts.append(pc.take(batch, from_integers(ascending[start:stop] - self._starts[owner])))
        table = pa.Table.from_batches(parts, schema)
        if order is None:
            return table
        back = np.empty_like(order)
        back[order] = np.arange(order.size)
        return taken_rows(table, from_integers(back))

    def close(self) -> None:
        """Let go of the rows and remove the temporary file."""
        self._batches = []
        if self._mapped is not None:
            self._mapped.close()
            self._mapped = None
        if self._path is not None:
            Path(self._path).unlink()
            self._path = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True, slots=True)
class RowMaker:
    """Puts rows together. ``target_columns`` are the columns that are read from the target.

    ``copies`` refers to the blobs of the target that rows keep.
    """

    snapshot: Snapshot
    source: SourceRows
    part: Schema
    target_columns: Projection
    copies: BlobCopies

    @classmethod
    def of(
        cls, snapshot: Snapshot, source: SourceRows, part: Schema, copies: BlobCopies
    ) -> RowMaker:
        """Make rows of the columns of ``part``, each of which either side has."""
        given_fields = Schema.from_arrow(source.schema)
        by_name = {field.name: field for field in given_fields}
        fields = [
            field
            for field in part
            if field.name not in by_name or _lacks(field, by_name[field.name])
        ]
        names = [quoted([field.name]) for field in fields]
        return cls(
            snapshot,
            source,
            part,
            target_columns=project(snapshot.manifest.schema, names),
            copies=copies,
        )

    def updated(self, fragment: Fragment, physical: Ints, rows: Ints) -> pa.Table:
        """Return matched rows with their new values; ``physical`` ascends."""
        old = None
        if self.target_columns.outputs:
            place = Selected(fragment, physical, physical, {})
            old = selected_table(self.snapshot, self.target_columns, place)
            old = self.copies.table(old, row_addresses(fragment, physical))
        return self._table(rows, old)

    def inserted(self, rows: Ints) -> pa.Table:
        """Return rows that are new."""
        return self._table(rows, None)

    def _table(self, rows: Ints, old: pa.Table | None) -> pa.Table:
        names = [field.name for field in self.part if field.name in self.source.schema.names]
        new = self.source.take(rows, names)
        arrays = []
        for field, arrow in zip(self.part, self.part.to_arrow(), strict=True):
            before = None if old is None else _array(old, field.name)
            mine = _array(new, field.name)
            arrays.append(_fitted(mine, before, (field, arrow.type), int(rows.size)))
        return pa.Table.from_arrays(arrays, names=self.part.names)


def check_schema(given_schema: pa.Schema, schema: Schema, *, inserts: bool) -> None:
    """Check that a source fits; columns may be missing where nothing is inserted without them.

    Raises SchemaMismatchError.
    """
    fields = tuple(field for field in schema if inserts or field.name in given_schema.names)
    writable_part(given_schema, Schema(fields, schema.metadata))


def check_keys(given_schema: pa.Schema, on: tuple[str, ...]) -> None:
    """Check that a source has the key. Raises SchemaMismatchError."""
    for name in on:
        if name not in given_schema.names:
            raise SchemaMismatchError(
                f"the source has no column {name!r}, which rows are matched by; its columns: "
                + ", ".join(repr(column) for column in given_schema.names[:20])
            )


def _lacks(field: Field, given_field: Field) -> bool:
    """Return whether a struct lacks fields of the dataset's."""
    if not field.children or field.logical_type != "struct" or is_blob(field):
        return False
    by_name = {child.name: child for child in given_field.children}
    return any(
        child.name not in by_name or _lacks(child, by_name[child.name]) for child in field.children
    )


def _array(table: pa.Table, name: str) -> pa.Array | None:
    if name not in table.column_names:
        return None
    column = table[name]
    return one_array(column)


def _fitted(
    new: pa.Array | None,
    old: pa.Array | None,
    target: tuple[Field, pa.DataType],
    num_rows: int,
) -> pa.Array:
    """Return the new values, completed by old ones or nulls, in the type of the dataset.

    Blobs stay in the form that either side has them in; a file writer takes both.
    """
    field, type_ = target
    if new is None:
        return pa.nulls(num_rows, type_) if old is None else old
    if new.type == type_ or is_blob(field):
        return new
    if not pa.types.is_struct(type_):
        return new if holds_blobs(field) else cast_array(new, type_)
    children = []
    for part, arrow in zip(field.children, type_, strict=True):
        mine = _child(new, part.name)
        before = None if old is None else _child(old, part.name)
        children.append(_fitted(mine, before, (part, arrow.type), num_rows))
    mask = pc.is_null(new) if new.null_count else None
    fields = [
        pa.field(child_field.name, child.type)
        for child_field, child in zip(type_, children, strict=True)
    ]
    array = pa.StructArray.from_arrays(children, fields=fields, mask=mask)
    return array if array.type == type_ or holds_blobs(field) else cast_array(array, type_)


def _child(values: pa.Array, name: str) -> pa.Array | None:
    place = values.type.get_field_index(name)
    if place < 0:
        return None
    child: pa.Array = values.flatten()[place]
    return child


def windows(count: int, row_bytes: float) -> list[tuple[int, int]]:
    """Cut rows into windows that fit into memory."""
    step = int(min(max((32 << 20) / max(row_bytes, 1), 1024), 1 << 16))
    return [(start, min(start + step, count)) for start in range(0, count, step)]
