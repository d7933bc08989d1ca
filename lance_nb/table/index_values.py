"""Compare what an index says of values with the column: zones, and rows by their keys.

A zone speaks for the rows ``start`` to ``start + length`` of a fragment, and every value of these
lies between its ``min`` and ``max``. A key's set holds the rows that have the value, in a list
anywhere.

Limits: of columns at the top, by the fragments that the index speaks for. Zones of other values
than numbers, dates and times, and NaN and null, are not compared.
Source: files that pylance 14.0.2 writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb.format.fragment import Fragment
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.table.filtered_scan import quoted
from lance_nb.table.projection import ROW_ADDRESS, ROW_ID
from lance_nb.table.scan_options import ScanOptions
from lance_nb.table.scan_request import plan_request
from lance_nb.table.snapshot import Snapshot

_SHIFT = np.uint64(32)
U64s = npt.NDArray[np.uint64]
Values = tuple[pa.Array, U64s]


class Zones(NamedTuple):
    """Zones in the order of their rows: addresses of the first row and behind the last, values."""

    starts: U64s
    ends: U64s
    lowest: pa.Array | None = None
    highest: pa.Array | None = None

    @classmethod
    def of(cls, columns: Mapping[str, pa.Array]) -> Zones:
        """Take the columns of the index's file; ``min`` and ``max`` may be missing."""
        numbers, firsts, lengths = (
            columns[name].to_numpy(zero_copy_only=False).astype(np.uint64)
            for name in ("fragment_id", "zone_start", "zone_length")
        )
        starts = (numbers << _SHIFT) + firsts
        order = np.argsort(starts)
        bounds = [columns[name].take(pa.array(order)) for name in ("min", "max") if name in columns]
        return cls(starts[order], (starts + lengths)[order], *bounds)

    def at(self, rows: U64s) -> npt.NDArray[np.int64]:
        """Return the position of the zone of each row, -1 for a row in none."""
        at = np.searchsorted(self.starts, rows, "right") - 1
        inside = at >= 0
        inside[inside] = rows[inside] < self.ends[at[inside]]
        return np.where(inside, at, -1)

    def compares(self, kind: pa.DataType) -> bool:
        """Tell whether values of a type can be compared with these zones."""
        is_number = pa.types.is_primitive(kind) and not pa.types.is_boolean(kind)
        return self.lowest is not None and is_number and self.lowest.type == kind

    def row_outside(self, values: pa.Array, rows: U64s) -> int | None:
        """Return a row whose value is not between the bounds of its zone, None if there is none."""
        import pyarrow.compute as pc

        at = self.at(rows)
        known = at >= 0
        values, rows = values.filter(pa.array(known)), rows[known]
        zones = pa.array(at[known])
        low, high = self.lowest.take(zones), self.highest.take(zones)  # type: ignore[union-attr]
        outside = pc.or_(pc.less(values, low), pc.greater(values, high))
        found = rows[pc.fill_null(outside, fill_value=False).to_numpy(zero_copy_only=False)]
        return int(found[0]) if found.size else None


def row_under_other_key(keys: Mapping[Any, U64s], values: pa.Array, rows: U64s) -> int | None:
    """Return a row that is not in the set of its value, None if each is; ``keys`` sorted sets."""
    import pyarrow.compute as pc

    if pa.types.is_list(values.type) or pa.types.is_large_list(values.type):
        rows = rows[pc.list_parent_indices(values).to_numpy(zero_copy_only=False)]
        values = pc.list_flatten(values)
    encoded = values.dictionary_encode()
    indices = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    nothing = np.empty(0, np.uint64)
    for number, key in enumerate(encoded.dictionary.to_pylist()):
        mine = rows[indices == number]
        lost = mine[~np.isin(mine, keys.get(key, nothing))]
        if lost.size and key == key:  # noqa: PLR0124 (NaN is not equal to itself)
            return int(lost[0])
    return None


def column_of(snapshot: Snapshot, index: IndexMetadata) -> str | None:
    """Return the name of the indexed column if it is one, and not part of another."""
    names = [one.name for one in snapshot.manifest.schema.fields if (one.id,) == index.fields]
    return names[0] if names else None


def column_values(
    snapshot: Snapshot, fragments: Sequence[Fragment], name: str, *, by_address: bool
) -> Iterator[Values]:
    """Yield a column of some fragments with the address (or id) of each row, deleted ones left out.

    Raises LanceError for what cannot be read.
    """
    row = ROW_ADDRESS if by_address else ROW_ID
    options = ScanOptions([quoted([name]), row], fragments=tuple(fragments))
    for batch in plan_request(snapshot, options).batches():
        yield batch.column(name), batch.column(row).to_numpy()
