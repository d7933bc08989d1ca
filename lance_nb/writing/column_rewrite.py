"""Write columns of fragments anew: one more data file per fragment, rows stay where they are.

The file has a row for every physical row of the fragment, deleted ones included: of an updated
column, the values are read, the new ones put in their places, and all written. Columns that the
file replaces become tombstones (field id -2) in the files that hold them now; a file of tombstones
only is no longer listed. Row addresses and deletions stay, so that indices on other columns stay
whole; indices on these columns no longer cover the fragments.

Limits: all rows of a file come from one stream, in physical order. An update costs the columns of
whole fragments, however few rows change. Memory holds one window.
Source: messages ``DataFile``, ``DataFragment`` and ``Transaction.Update`` (mode REWRITE_COLUMNS) of
lance.table; ``merge_columns``, ``update_columns`` and ``write_mode`` of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lance_nb.arrow_casts import cast_array
from lance_nb.encodings.arrow_parts import taken_rows
from lance_nb.encodings.base import Ints
from lance_nb.encodings.kernels.memory import from_integers
from lance_nb.errors import InvalidInputError, LanceError
from lance_nb.file.fitting import fit
from lance_nb.format.blob_fields import holds_blobs
from lance_nb.format.feature_flags import STABLE_ROW_IDS
from lance_nb.format.field import Field
from lance_nb.format.fragment import DataFile, Fragment
from lance_nb.format.schema import Schema
from lance_nb.storage.base import Store
from lance_nb.table.blob_copies import BlobCopies
from lance_nb.table.filtered_scan import Selected, quoted, selected_table
from lance_nb.table.fragment_reader import confirmed_rows
from lance_nb.table.projection import Projection, project
from lance_nb.table.scan import row_addresses, window_rows
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.operations.data_replacement import with_columns_in
from lance_nb.transactions.operations.update import Update, UpdateMode
from lance_nb.value_classes import dataclass
from lance_nb.writing.fragment_writer import FragmentWriter, WriteOptions, copying

_ONE_FILE = 1 << 62


def write_columns(
    home: Store,
    fragment: Fragment,
    part: Schema,
    batches: Iterable[pa.RecordBatch],
    options: WriteOptions,
) -> Fragment:
    """Write columns for all physical rows of a fragment; return the fragment with the new file.

    ``part`` are the columns with their field ids: new ones, or ones that are replaced. Raises
    InvalidInputError when the rows are not as many as the fragment has; nothing remains then.
    """
    alone = replace(options, max_rows_per_file=_ONE_FILE, max_bytes_per_file=_ONE_FILE, places=())
    with FragmentWriter(part, home, alone) as writer:
        count = 0
        for batch in batches:
            count += batch.num_rows
            if count > fragment.physical_rows:
                break
            writer.write(batch)
        if count != fragment.physical_rows:
            raise InvalidInputError(
                f"fragment {fragment.id} has {fragment.physical_rows} physical rows: the new "
                f"columns have {'more' if count > fragment.physical_rows else count}"
            )
        written = writer.finish()
    new_file = written[0].files[0] if written else None
    return with_file(fragment, new_file, part.fields)


def with_file(fragment: Fragment, new_file: DataFile | None, fields: Iterable[Field]) -> Fragment:
    """Return the fragment with one more file, which holds ``fields`` from now on."""
    if new_file is None:
        return fragment
    return with_columns_in(
        fragment, new_file, (nested.id for top in fields for nested in top.walk())
    )


Touched = tuple[Fragment, Ints]
"""A fragment and the physical offsets of the rows that change in it, ascending."""

NewValues = Callable[[Fragment, int, int], pa.Table]
"""Gives the new values of some of a fragment's changing rows, counted from its first one."""


@dataclass(frozen=True, slots=True)
class ColumnRewrite:
    """Fragments with another file for some columns, not committed.

    ``offsets`` are the rows that changed, by fragment id, as Roaring bitmaps; only datasets with
    stable row ids record them.
    """

    fragments: tuple[Fragment, ...]
    fields: tuple[int, ...]
    num_rows: int
    offsets: Mapping[int, bytes]

    @property
    def files(self) -> tuple[DataFile, ...]:
        """The files that were written."""
        return tuple(fragment.files[-1] for fragment in self.fragments)

    def operation(self) -> Update:
        """Return the operation."""
        return Update(
            updated_fragments=self.fragments,
            fields_modified=self.fields,
            update_mode=UpdateMode.REWRITE_COLUMNS,
            updated_fragment_offsets=self.offsets,
        )


def rewrite_columns(
    snapshot: Snapshot,
    part: Schema,
    touched: Iterable[Touched],
    values: NewValues,
    options: WriteOptions,
    *,
    copies: BlobCopies | None = None,
) -> ColumnRewrite:
    """Write the columns of ``part`` anew for every fragment that has rows that change.

    ``copies``: what ``values`` refer to, if there are stored blobs among them.
    Raises CorruptFileError, SchemaMismatchError, StorageError; no file remains then.
    """
    home = snapshot.locations.home
    columns = project(snapshot.manifest.schema, [quoted([field.name]) for field in part])
    copies = BlobCopies(snapshot) if copies is None else copies
    options = copying(options, copies)
    records = bool(snapshot.manifest.reader_feature_flags & STABLE_ROW_IDS)
    changed: list[Fragment] = []
    offsets: dict[int, bytes] = {}
    num_rows, is_done = 0, False
    try:
        for fragment, rows in touched:
            batches = _batches(snapshot, columns, (fragment, rows), values, copies)
            changed.append(write_columns(home, fragment, part, batches, options))
            num_rows += rows.size
            if records:
                offsets[fragment.id] = BitMap(rows.astype(np.uint32)).serialize()
        is_done = True
    finally:
        if not is_done:
            _remove(snapshot, changed)
    fields = tuple(field.id for field in part.walk())
    return ColumnRewrite(tuple(changed), fields, num_rows, offsets)


def _remove(snapshot: Snapshot, changed: Iterable[Fragment]) -> None:
    for fragment in changed:
        try:
            snapshot.locations.home.delete(fragment.files[-1].location())
        except LanceError:  # an orphan for cleanup: what went wrong before matters more
            continue


def _batches(
    snapshot: Snapshot,
    columns: Projection,
    touched: Touched,
    values: NewValues,
    copies: BlobCopies,
) -> Iterator[pa.RecordBatch]:
    fragment, rows = touched
    step = window_rows(snapshot, columns, fragment)
    for start in range(0, confirmed_rows(snapshot, fragment), step):
        stop = min(start + step, confirmed_rows(snapshot, fragment))
        first, last = (int(edge) for edge in np.searchsorted(rows, (start, stop)))
        physical = np.arange(start, stop, dtype=np.int64)
        if last - first == stop - start:
            yield from values(fragment, first, last).to_batches()
            continue
        old = selected_table(snapshot, columns, Selected(fragment, physical, physical, {}))
        old = copies.table(old, row_addresses(fragment, physical))
        if first < last:
            place = physical - start
            place[rows[first:last] - start] = np.arange(last - first) + old.num_rows
            new = _like(values(fragment, first, last), old.schema, snapshot.manifest.schema)
            old = taken_rows(pa.concat_tables([old, new]), from_integers(place))
        yield from old.to_batches()


def _like(new: pa.Table, target_schema: pa.Schema, schema: Schema) -> pa.Table:
    """Return new values in the form of the old ones: bytes of blobs beside stored payloads."""
    arrays = []
    for field in target_schema:
        values = new.column(field.name)
        stored = schema.field(quoted([field.name]))
        if holds_blobs(stored):
            arrays.append(fit(values.combine_chunks(), stored, field.type))
        else:
            arrays.append(cast_array(values, field.type))
    return pa.Table.from_arrays(arrays, schema=target_schema)
