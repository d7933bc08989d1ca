"""Where rows went in compactions: addresses followed through the fragment-reuse index.

The n-th row of the map of a group is the n-th row of its new fragments; a row of an old fragment
that is not in the map is gone. Rewrites are followed one after the other, oldest first.

Limits: memory holds the addresses of a group at a time. A map that names fewer rows than the new
fragments hold, or more, is damage.
Source: format/fragment_reuse.py; ``LanceDataset.remap_row_addrs`` of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap64

from lance_nb.errors import CorruptFileError, InvalidInputError
from lance_nb.format.fragment_reuse import REUSE_INDEX, MovedRows, inline_details, moved_rows
from lance_nb.table.indices import read_indices
from lance_nb.table.snapshot import Snapshot

Addresses = npt.NDArray[np.uint64]


def remap_row_addrs(snapshot: Snapshot, addresses: pa.Array) -> pa.Array | None:
    """Return the addresses as they are now, null for rows that are gone; None without the index.

    Raises InvalidInputError, CorruptFileError, NotSupportedError.
    """
    reuse = [one for one in read_indices(snapshot) if one.name == REUSE_INDEX]
    if not reuse:
        return None
    try:
        given = pa.array(addresses, pa.uint64())
    except (pa.ArrowException, TypeError) as error:
        raise InvalidInputError(
            f"row addresses are an array of uint64, as scans return with_row_address=True: {error}"
        ) from error
    gone = given.is_null().to_numpy(zero_copy_only=False)
    found = given.fill_null(0).to_numpy(zero_copy_only=False).copy()
    for group in moved_rows(inline_details(reuse[0])):
        _follow(found, gone, group, snapshot.manifest.path)
    return pa.array(found, mask=gone)


def _follow(addresses: Addresses, gone: npt.NDArray[np.bool_], group: MovedRows, path: str) -> None:
    """Move the addresses that a group moved, in place."""
    mine = _inside(addresses, group.old_fragments) & ~gone
    if not mine.any():
        return
    try:
        before = np.array(BitMap64.deserialize(group.row_addrs), np.uint64)
    except (ValueError, IndexError) as error:  # the latter for no bytes at all
        raise CorruptFileError(path, None, "a map of row addresses", str(error)) from error
    rows = sum(count for _, count in group.new_fragments)
    if len(before) != rows:
        raise CorruptFileError(path, None, f"a map of {rows} rows", f"{len(before)} rows")
    after = [np.arange(size, dtype=np.uint64) + (one << 32) for one, size in group.new_fragments]
    moved = np.concatenate(after) if after else before
    where = np.searchsorted(before, addresses[mine])
    is_there = where < len(before)
    is_there[is_there] = before[where[is_there]] == addresses[mine][is_there]
    places = np.flatnonzero(mine)
    addresses[places[is_there]] = moved[where[is_there]]
    gone[places[~is_there]] = True


def _inside(addresses: Addresses, fragments: Sequence[tuple[int, int]]) -> npt.NDArray[np.bool_]:
    """Tell which addresses are of rows that the fragments have."""
    known = np.array(sorted(fragments), np.uint64).reshape(-1, 2)
    number, offset = addresses >> 32, addresses & 0xFFFFFFFF
    at = np.minimum(np.searchsorted(known[:, 0], number), max(len(known) - 1, 0))
    if not len(known):
        return np.zeros(len(addresses), np.bool_)
    inside: npt.NDArray[np.bool_] = (known[at, 0] == number) & (offset < known[at, 1])
    return inside
