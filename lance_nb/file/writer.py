"""Write a .lance data file (2.0, 2.1 or 2.2): batches in, pages out, the tail at the end.

Memory: each column keeps what has not filled a page yet, at most about ``page_bytes`` (less when
there are so many columns that all of them together would pass ``waiting_bytes_max``); finished
pages go to the store at once. The first few rows wait as they came: a file that gets no more is
written by ``few_rows``.

Limits: rows of one file are counted in 64 bits; fragments hold fewer than 2**32.
Not supported: what a version cannot hold (maps before 2.2, null structs in 2.0): refused by name.
Source: spec page "file format"; layout of files of pylance 14.0.2.

Which writer a column of a 2.1 or 2.2 file gets: plain values, blobs, structs without fields.

Source: files of pylance 14.0.2.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Protocol, Self

import pyarrow as pa

from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.page_encoder import Learned
from lance_nb.errors import InvalidInputError, NotSupportedError, SchemaMismatchError
from lance_nb.file.blob_values import StoredPayloads
from lance_nb.file.blob_writer import BlobLeafWriter, BlobV2LeafWriter
from lance_nb.file.column_writer import (
    ColumnPlan,
    ColumnWriter,
    EmptyStructWriter,
    LeafPlan,
    LeafWriter,
    plan_column,
)
from lance_nb.file.external_blobs import NO_BASES, BlobBases, ExternalBlobs
from lance_nb.file.few_rows import ROWS_MAX, is_plain, write_columns
from lance_nb.file.fitting import fit, has_text
from lance_nb.file.metadata import descriptor_bytes
from lance_nb.file.sidecars import PACK_BYTES, Sidecars
from lance_nb.file.sink import FileSink
from lance_nb.file.v2_0_writer import ArrayColumnWriter, check_fields
from lance_nb.file.versions import DEFAULT_VERSION, WRITABLE_VERSIONS, version_name
from lance_nb.format.arrow_schema import field_to_arrow
from lance_nb.format.blob_fields import (
    descriptor_fields,
    holds_blobs,
    input_type,
    is_blob_v1,
    is_blob_v2,
)
from lance_nb.format.checksums import FileSum
from lance_nb.format.field import fields_to_pb
from lance_nb.format.logical_types import STRUCT, leaf_to_arrow
from lance_nb.format.schema import Field, Schema
from lance_nb.storage.base import Store
from lance_nb.storage.summed_writer import SummedWriter
from lance_nb.value_classes import dataclass

PAGE_BYTES = 8 * 1024 * 1024
_PAGE_BYTES_MIN = 64 * 1024


@dataclass(frozen=True, slots=True)
class FileOptions:
    """``page_bytes``: size at which a page ends. ``waiting_bytes_max``: of all columns together.

    Blobs may refer to places below ``blob_bases`` and, if ``allows_external_blobs``, to any others,
    whose URIs ``accepted_uris`` gets;
    ``ingests``: what they refer to is read and stored. ``blob_pack_bytes``: of a shared blob file.
    ``stored``: the objects that blobs are copied from, where rows are written again.
    ``checksums``: sums of the file and its blob files are taken while they are written.
    """

    page_bytes: int = PAGE_BYTES
    waiting_bytes_max: int = 512 * 1024 * 1024
    allows_external_blobs: bool = False
    accepted_uris: dict[str, None] | None = dataclasses.field(default=None, compare=False)
    blob_bases: BlobBases = NO_BASES
    ingests: ExternalBlobs | None = None
    blob_pack_bytes: int = PACK_BYTES
    stored: StoredPayloads | None = None
    checksums: bool = False

    def __post_init__(self) -> None:
        for name in ("page_bytes", "waiting_bytes_max", "blob_pack_bytes"):
            if getattr(self, name) < 1:
                raise InvalidInputError(f"{name} must be positive, not {getattr(self, name)}")


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A finished data file, as a fragment's metadata needs it; ``sidecars`` are its blob files.

    ``sums`` are checksums of all of them, if they were asked for.
    """

    path: str
    size_bytes: int
    num_rows: int
    fields: tuple[int, ...]
    column_indices: tuple[int, ...]
    file_version: tuple[int, int]
    sidecars: tuple[str, ...] = ()
    sums: tuple[FileSum, ...] = ()


class _Column(Protocol):
    """A top-level field under construction."""

    def write(self, array: pa.Array) -> None: ...

    def finish(self) -> None: ...

    def owners(self) -> list[tuple[int, int]]: ...


class FileWriter:
    """A data file under construction. Used by one thread; as a context, an error aborts it."""

    def __init__(
        self,
        store: Store,
        path: str,
        schema: Schema,
        *,
        file_version: tuple[int, int] = DEFAULT_VERSION,
        options: FileOptions = FileOptions(),
        learned: dict[int, Learned] | None = None,
    ) -> None:
        """Begin the file. ``schema`` has its field ids; ``learned`` goes from file to file.

        Raises NotSupportedError for types that the version cannot hold, InvalidInputError for
        encoding keys without meaning, StorageError.
        """
        if file_version not in WRITABLE_VERSIONS:
            name = version_name(file_version)
            raise NotSupportedError(f"data files of version {name} cannot be written")
        self.path = path
        self._schema = schema
        self._file_version = file_version
        self._metadata = dict(schema.metadata)
        self._plans = [_plan(field, file_version) for field in schema]
        pairs = list(zip(schema, self._plans, strict=True))
        is_structural = file_version >= (2, 1)
        self._types = [
            _input_type(field, is_plain_leaf=is_structural and plan is None)
            for field, plan in pairs
        ]
        self._names = schema.names
        self._checked = [
            number
            for number, (field, plan) in enumerate(pairs)
            if plan is not None or not field.nullable or has_text(self._types[number])
        ]
        num_leaves = sum(1 for field in schema for _ in (field.leaves() if field.children else "1"))
        share = options.waiting_bytes_max // max(num_leaves, 1)
        self._page_bytes = min(options.page_bytes, max(share, _PAGE_BYTES_MIN))
        self._sidecars = Sidecars(
            store,
            path,
            allows_external=options.allows_external_blobs,
            accepted_uris=options.accepted_uris,
            bases=options.blob_bases,
            ingests=options.ingests,
            pack_bytes=options.blob_pack_bytes,
            stored=options.stored,
            checksums=options.checksums,
        )
        upload = store.create(path)
        self._summed = SummedWriter(upload, path) if options.checksums else None
        self._sink = FileSink(self._summed or upload, self._sidecars, learned)
        self._may_wait = (
            is_structural
            and self._page_bytes >= _PAGE_BYTES_MIN
            # Payloads are written when they come.
            and not any(holds_blobs(field) for field, plan in pairs if plan is not None)
        )
        self._columns: list[_Column] | None = None
        self._few_rows: list[pa.Array] | None = None
        self.num_rows = 0
        self._is_whole = True

    @property
    def size_bytes(self) -> int:
        """Bytes written so far, without what waits for the end of its page."""
        return self._sink.size_bytes

    def write(self, *batches: pa.RecordBatch) -> None:
        """Append rows; columns are found by name, others are left out.

        Raises SchemaMismatchError, which leaves the file as it was; after any other error the file
        can only be aborted.
        """
        self._check_whole()
        fitted = []
        num_rows = self.num_rows
        for batch in batches:
            if batch.num_rows:
                fitted.append(self._fitted(batch, num_rows))
                num_rows += batch.num_rows
        self._is_whole = False
        for arrays in fitted:
            if self._columns is None and self._few_rows is None and self._are_few(arrays):
                self._few_rows = arrays
                continue
            for column, array in zip(self._begun_columns(), arrays, strict=True):
                column.write(array)
        self.num_rows = num_rows
        self._is_whole = True

    def _are_few(self, arrays: list[pa.Array]) -> bool:
        """Tell whether rows may wait until the file is finished: no column fills a page."""
        if not self._may_wait or not arrays or len(arrays[0]) > ROWS_MAX:
            return False
        return all(arrays[number].nbytes < self._page_bytes for number in self._checked)

    def _begun_columns(self) -> list[_Column]:
        """Return the columns, begun when their first rows are not the only ones, or are many."""
        if self._columns is None:
            pairs = zip(self._schema, self._plans, strict=True)
            self._columns = [self._begin(field, plan) for field, plan in pairs]
            few_rows, self._few_rows = self._few_rows, None
            for column, array in zip(self._columns, few_rows or (), strict=False):
                column.write(array)
        return self._columns

    def _begin(self, field: Field, plan: ColumnPlan | None) -> _Column:
        if self._file_version < (2, 1):
            return ArrayColumnWriter(field, self._sink, self._page_bytes)
        return self._begin_structural(plan or plan_column(field, self._file_version))

    def _begin_structural(self, plan: ColumnPlan) -> ColumnWriter:
        leaves = [leaf_writer(leaf, self._sink, self._page_bytes) for leaf in plan.leaves]
        return ColumnWriter(plan, leaves, self._page_bytes)

    def _fitted(self, batch: pa.RecordBatch, first_row: int) -> list[pa.Array]:
        """Return the columns of a batch in the form that is stored."""
        numbers: Iterable[int] = self._checked
        if batch.schema.names == self._names:
            arrays: list[pa.Array] = batch.columns
            if batch.schema.types != self._types:
                numbers = range(len(arrays))
        else:
            arrays = [self._column_of(batch, name) for name in self._names]
            numbers = range(len(arrays))
        for number in numbers:
            field, type_ = self._schema.fields[number], self._types[number]
            arrays[number] = fit(arrays[number], field, type_, first_row)
        return arrays

    def _column_of(self, batch: pa.RecordBatch, name: str) -> pa.Array:
        positions = batch.schema.get_all_field_indices(name)
        if len(positions) != 1:
            how_many = f"{len(positions)} columns" if positions else "no column"
            raise SchemaMismatchError(f"the batch has {how_many} {name!r}")
        return batch.column(positions[0])

    def add_schema_metadata(self, metadata: Mapping[str, bytes]) -> None:
        """Add keys to the metadata of the file's schema."""
        self._metadata.update(metadata)

    def add_global_buffer(self, data: bytes) -> int:
        """Write a buffer of the caller's own; returns its number, 1 for the first."""
        return self._sink.add_global_buffer(data)

    def finish(self) -> WrittenFile:
        """Write what waits and the tail; the file is durable when this returns."""
        self._check_whole()
        owners = self._finish_columns()
        fields = fields_to_pb(descriptor_fields(self._schema.fields))
        descriptor = descriptor_bytes(fields, self._metadata, self.num_rows)
        self._sink.finish(descriptor, self._file_version)
        return WrittenFile(
            path=self.path,
            size_bytes=self._sink.size_bytes,
            num_rows=self.num_rows,
            fields=tuple(field_id for field_id, _ in owners),
            column_indices=tuple(column for _, column in owners),
            file_version=self._file_version,
            sidecars=tuple(self._sidecars.paths),
            sums=self._sums(),
        )

    def _finish_columns(self) -> list[tuple[int, int]]:
        """Write what waits; return (field id, column number) of every column."""
        if self._few_rows is not None:
            columns = list(zip(self._schema, self._plans, self._few_rows, strict=True))
            options = EncodingOptions.from_metadata({}, self._file_version)
            return write_columns(self._sink, columns, options, begin=self._begin_structural)
        begun = self._begun_columns()
        for column in begun:
            column.finish()
        return [owner for column in begun for owner in column.owners()]

    def _sums(self) -> tuple[FileSum, ...]:
        if self._summed is None:
            return ()
        written = [self._summed, *self._sidecars.summed]
        return tuple(FileSum(file.path, file.digest, file.size_bytes) for file in written)

    def _check_whole(self) -> None:
        if not self._is_whole:
            raise InvalidInputError(f"{self.path}: a write failed half-way, so it must be aborted")

    def abort(self) -> None:
        """Drop the file; nothing of it remains. Does nothing when it is finished."""
        self._sink.abort()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.abort()


def _plan(field: Field, file_version: tuple[int, int]) -> ColumnPlan | None:
    """Plan the columns of a field, None for a plain one; refuse what the version cannot hold."""
    if file_version < (2, 1):
        check_fields(field)
        return None
    return None if is_plain(field) else plan_column(field, file_version)


def _input_type(field: Field, *, is_plain_leaf: bool) -> pa.DataType:
    if is_plain_leaf:
        return leaf_to_arrow(field.logical_type)
    return input_type(field, field_to_arrow(field, storage=True).type)


def leaf_writer(plan: LeafPlan, sink: FileSink, page_bytes: int) -> LeafWriter:
    """Begin the column of a leaf."""
    if is_blob_v2(plan.field):
        return BlobV2LeafWriter(plan, sink, page_bytes)
    if plan.field.logical_type == STRUCT and not plan.field.children:
        return EmptyStructWriter(plan, sink, page_bytes)
    if is_blob_v1(plan.field):
        return BlobLeafWriter(plan, sink, page_bytes)
    return LeafWriter(plan, sink, page_bytes)
