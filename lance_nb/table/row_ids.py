"""Row ids and row versions: the id of each row, and the versions that made and changed it.

A dataset with stable row ids keeps three sequences per fragment, one item per physical row, in one
of three places: in the manifest, in a file of its own (old writers), or as a hidden column of the
fragment's data files. Without them a row's id is its address and both versions are 1.

Source: messages DataFragment, RowIdSegments and RowDatasetVersionSequence of lance.table.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb.encodings.base import Rows
from lance_nb.errors import CorruptFileError
from lance_nb.file.columns import Leaf
from lance_nb.format.fragment import (
    ColumnSequence,
    ExternalSequence,
    Fragment,
    InlineSequence,
    Sequence,
)
from lance_nb.format.layout import check_relative_path
from lance_nb.format.row_sequences import RowIdSegments, RowVersionSequence
from lance_nb.storage.base import ByteRange
from lance_nb.table.fragment_reader import columns_of, confirmed_rows, open_file
from lance_nb.table.snapshot import Snapshot

U64s = npt.NDArray[np.uint64]
Parse = Callable[[bytes, str, int], U64s]

_FIRST_VERSION = 1


def fragment_row_ids(snapshot: Snapshot, fragment: Fragment) -> U64s | None:
    """Return the id of every physical row, None without stable row ids. Raises CorruptFileError."""
    return _read(snapshot, fragment, fragment.row_ids, _parse_ids)


def created_at_versions(snapshot: Snapshot, fragment: Fragment) -> U64s:
    """Return the version that created each physical row. Raises CorruptFileError."""
    return _versions(snapshot, fragment, fragment.created_at_versions)


def last_updated_at_versions(snapshot: Snapshot, fragment: Fragment) -> U64s:
    """Return the version that changed each physical row last. Raises CorruptFileError."""
    return _versions(snapshot, fragment, fragment.last_updated_at_versions)


def _versions(snapshot: Snapshot, fragment: Fragment, source: Sequence | None) -> U64s:
    found = _read(snapshot, fragment, source, _parse_versions)
    if found is None:
        return np.full(confirmed_rows(snapshot, fragment), _FIRST_VERSION, np.uint64)
    return found


def _parse_ids(data: bytes, path: str, num_rows: int) -> U64s:
    return RowIdSegments.from_bytes(data, path, physical_rows=num_rows).to_numpy()


def _parse_versions(data: bytes, path: str, num_rows: int) -> U64s:
    return RowVersionSequence.from_bytes(data, path, physical_rows=num_rows).to_numpy()


def _read(
    snapshot: Snapshot, fragment: Fragment, source: Sequence | None, parse: Parse
) -> U64s | None:
    num_rows = confirmed_rows(snapshot, fragment)
    match source:
        case None:
            return None
        case InlineSequence(data):
            return parse(data, f"{snapshot.manifest.path}, fragment {fragment.id}", num_rows)
        case ExternalSequence(path, offset, size):
            store, place = snapshot.locations.locate(check_relative_path(path), None)
            data = bytes(store.read_range(place, ByteRange(offset, offset + size)))
            return parse(data, f"{store.uri}/{place}", num_rows)
        case ColumnSequence(field_id):
            return _hidden_column(snapshot, fragment, field_id, num_rows)


def _hidden_column(snapshot: Snapshot, fragment: Fragment, field_id: int, num_rows: int) -> U64s:
    leaf = Leaf(field_id, f"hidden field {field_id}", pa.uint64(), 1)
    rows = Rows(np.zeros(1, np.int64), np.array([num_rows], np.int64))
    for file in fragment.files:
        owners = columns_of(fragment, file)
        if field_id in owners:
            reader = open_file(snapshot, fragment, file)
            parts = reader.read_leaves([leaf], owners, rows, num_rows)[field_id]
            values = pa.chunked_array([part.values for part in parts], pa.uint64())
            if values.null_count:
                break
            found: U64s = values.to_numpy()
            return found
    raise CorruptFileError(
        snapshot.manifest.path,
        None,
        f"a hidden column {field_id} without nulls in fragment {fragment.id}",
        "none",
    )
