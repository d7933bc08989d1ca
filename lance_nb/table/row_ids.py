"""Row ids, row addresses and row versions: those of each row, and the rows that have them.

A dataset with stable row ids keeps three sequences per fragment, one item per physical row, in one
of three places: in the manifest, in a file of its own (old writers), or as a hidden column of the
fragment's data files. Without them a row's id is its address and both versions are 1.

Ids and addresses are resolved to positions: which live row of the scan order has each. Without
stable row ids no index is needed. With them, an id may occur in several fragments (an updated row
leaves its deleted predecessor there): only live rows count.

Limits: the index is built for one version on first use; memory is proportional to the live rows.
Source: messages DataFragment, RowIdSegments and RowDatasetVersionSequence of lance.table; spec page
"row id and row address".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb.encodings.base import Ints, Rows
from lance_nb.errors import CorruptFileError, InvalidInputError
from lance_nb.file.columns import Leaf
from lance_nb.format.fragment import (
    ColumnSequence,
    ExternalSequence,
    Fragment,
    InlineSequence,
)
from lance_nb.format.fragment import Sequence as Location
from lance_nb.format.layout import check_relative_path
from lance_nb.format.row_sequences import RowIdSegments, RowVersionSequence
from lance_nb.storage.base import ByteRange
from lance_nb.table.fragment_reader import columns_of, confirmed_rows, open_file
from lance_nb.table.live_rows import wanted_rows
from lance_nb.table.scan_tasks import num_live_rows, row_ends
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


def _versions(snapshot: Snapshot, fragment: Fragment, source: Location | None) -> U64s:
    versions = _read(snapshot, fragment, source, _parse_versions)
    if versions is None:
        return np.full(confirmed_rows(snapshot, fragment), _FIRST_VERSION, np.uint64)
    return versions


def _parse_ids(data: bytes, path: str, num_rows: int) -> U64s:
    return RowIdSegments.from_bytes(data, path, physical_rows=num_rows).to_numpy()


def _parse_versions(data: bytes, path: str, num_rows: int) -> U64s:
    return RowVersionSequence.from_bytes(data, path, physical_rows=num_rows).to_numpy()


def _read(
    snapshot: Snapshot, fragment: Fragment, source: Location | None, parse: Parse
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
            numbers: U64s = values.to_numpy()
            return numbers
    raise CorruptFileError(
        snapshot.manifest.path,
        None,
        f"a hidden column {field_id} without nulls in fragment {fragment.id}",
        "none",
    )


_ADDRESS_SHIFT = np.uint64(32)
_SHOWN = 5  # missing rows in a message
# The manifest alone may claim up to this many rows before a data file must confirm them.
_UNCONFIRMED_ROWS_MAX = 1 << 24
_OFFSET_MASK = np.uint64(0xFFFFFFFF)


def positions_of_ids(snapshot: Snapshot, row_ids: Sequence[int] | pa.Array | np.ndarray) -> Ints:
    """Return the positions (live rows in scan order) of row ids; ids that are gone are left out."""
    positions = _of_ids(snapshot, as_u64(row_ids, "row ids"))
    return positions[positions >= 0]


def _of_ids(snapshot: Snapshot, row_ids: U64s) -> Ints:
    """Return the position of each row id, -1 for one that no live row has."""
    if not any(fragment.row_ids is not None for fragment in snapshot.manifest.fragments):
        return _of_addresses(snapshot, row_ids)
    ids = live_ids(snapshot)
    if not ids.size:
        return np.full(row_ids.size, -1, np.int64)
    order = np.argsort(ids, kind="stable")
    place = np.searchsorted(ids, row_ids, sorter=order)
    places = order[np.minimum(place, ids.size - 1)]
    positions: Ints = np.where(ids[places] == row_ids, places, -1).astype(np.int64)
    return positions


def _of_addresses(snapshot: Snapshot, addresses: U64s) -> Ints:
    """Return the position of each row address, -1 for one of a row that is not there."""
    owners = (addresses >> _ADDRESS_SHIFT).astype(np.int64)
    offsets = (addresses & _OFFSET_MASK).astype(np.int64)
    ends = row_ends(snapshot)
    positions = np.full(addresses.size, -1, np.int64)
    for fragment_id in np.unique(owners).tolist():
        number = snapshot.manifest.fragments.position_of(fragment_id)
        if number is None:
            raise InvalidInputError(
                f"row address {int(addresses[owners == fragment_id][0])} is in fragment "
                f"{fragment_id}, which version {snapshot.version} does not have"
            )
        mine = np.flatnonzero(owners == fragment_id)
        begin = int(ends[number - 1]) if number else 0
        fragment = snapshot.manifest.fragments[number]
        place = offsets[mine]
        if fragment.deletion_file is None:
            hit = place < int(ends[number]) - begin
        else:
            live = live_offsets(snapshot, fragment)
            place = np.searchsorted(live, offsets[mine])
            hit = place < live.size
            hit[hit] = live[place[hit]] == offsets[mine][hit]
        positions[mine[hit]] = place[hit] + begin
    return positions


def choose_positions(
    snapshot: Snapshot,
    ids: Sequence[int] | pa.Array | None,
    addresses: Sequence[int] | pa.Array | None,
    indices: Sequence[int] | pa.Array | np.ndarray | None,
) -> Sequence[int] | pa.Array | np.ndarray:
    """Return the positions of rows that are given in one of three ways, in their order.

    Raises InvalidInputError when it is not exactly one, and for a row id or an address that no live
    row has.
    """
    match (ids, addresses, indices):
        case (ids, None, None) if ids is not None:
            numbers = as_u64(ids, "row ids")
            return _existing(snapshot, numbers, _of_ids(snapshot, numbers), "row id")
        case (None, addresses, None) if addresses is not None:
            numbers = as_u64(addresses, "row addresses")
            return _existing(snapshot, numbers, _of_addresses(snapshot, numbers), "row address")
        case (None, None, indices) if indices is not None:
            return indices
    raise InvalidInputError("name the rows by exactly one of ids, addresses and indices")


def _existing(snapshot: Snapshot, numbers: U64s, positions: Ints, subject: str) -> Ints:
    """Return the positions if every row exists. Raises InvalidInputError."""
    missing = numbers[positions < 0]
    if missing.size:
        listed = ", ".join(str(number) for number in missing[:_SHOWN].tolist())
        more = f" and {missing.size - _SHOWN:,} more" if missing.size > _SHOWN else ""
        raise InvalidInputError(
            f"no row of version {snapshot.version} has {subject} {listed}{more} ({missing.size:,} "
            f"of {numbers.size:,} requested); deleted rows cannot be read"
        )
    return positions


def live_ids(snapshot: Snapshot) -> U64s:
    """Return the row id of every live row, in scan order."""
    parts = []
    for fragment in snapshot.manifest.fragments:
        live = live_offsets(snapshot, fragment)
        ids = fragment_row_ids(snapshot, fragment)
        parts.append(
            live.astype(np.uint64) | np.uint64(fragment.id << 32) if ids is None else ids[live]
        )
    return np.concatenate(parts) if parts else np.zeros(0, np.uint64)


def live_offsets(snapshot: Snapshot, fragment: Fragment) -> Ints:
    """List the physical offsets of the live rows of a fragment."""
    count = num_live_rows(snapshot, fragment)
    if not count:
        return np.zeros(0, np.int64)
    if count > _UNCONFIRMED_ROWS_MAX:
        confirmed_rows(snapshot, fragment)
    return wanted_rows(snapshot, fragment, 0, count).physical


def as_u64(values: Sequence[int] | pa.Array | np.ndarray, subject: str) -> U64s:
    """Read row ids or addresses as uint64. Raises InvalidInputError."""
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        values = values.to_numpy(zero_copy_only=False)
    try:
        numbers = np.asarray(values, np.uint64)
    except (OverflowError, ValueError, TypeError) as exc:
        raise InvalidInputError(f"{subject} are whole numbers from 0 to 2**64 - 1: {exc}") from exc
    if numbers.ndim != 1:
        raise InvalidInputError(f"{subject} are a flat list, not an array of {numbers.ndim} axes")
    return numbers
