"""Some of the rows that both sides changed, to look at.

Source: rows.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb.encodings.base import Ints
from lance_nb.format.fragment import Fragment
from lance_nb.transactions.branch_merge.ends import Ends, Side
from lance_nb.transactions.branch_merge.rows import NOWHERE, key_table


@dataclass(frozen=True, slots=True)
class ConflictingRows:
    """Some rows that both sides changed: base address, and where each side has them now.

    ``source`` and ``target`` are (fragment id, offset), NOWHERE if the side deleted the row.
    """

    base: npt.NDArray[np.int64]
    source: npt.NDArray[np.int64]
    target: npt.NDArray[np.int64]


NO_CONFLICTS = ConflictingRows(*(np.empty((0, 2), np.int64) for _ in range(3)))


def rows_by_fragment(side: Side, addresses: npt.NDArray[np.int64]) -> zip[tuple[Fragment, Ints]]:
    """Return the offsets of some rows, (fragment id, offset) each, by fragment."""
    numbers = list(dict.fromkeys(addresses[:, 0].tolist()))
    offsets = [addresses[addresses[:, 0] == one, 1] for one in numbers]
    return zip((side.fragments[one] for one in numbers), offsets, strict=True)


def conflict_table(ends: Ends, rows: ConflictingRows, num_rows: int) -> pa.Table:
    """Show some conflicting rows: as the base, the source and the target have them.

    One struct column each, null where a side has no such row, and ``_rowaddr``, the address of the
    row in the base.
    """
    parts = [
        _structs(side, places[:num_rows])
        for side, places in (
            (ends.base, rows.base),
            (ends.source, rows.source),
            (ends.target, rows.target),
        )
    ]
    base = rows.base[:num_rows]
    address = (base[:, 0] << 32) | base[:, 1]
    shown = pa.array(address.astype(np.uint64), pa.uint64(), mask=base[:, 0] == NOWHERE)
    names = ["_rowaddr", "base", "source", "target"]
    return pa.Table.from_arrays([shown, *parts], names=names)


def _structs(side: Side, places: npt.NDArray[np.int64]) -> pa.Array:
    """Read rows as structs, in the order given, null where there is none."""
    known = np.flatnonzero(places[:, 0] != NOWHERE)
    order = known[np.lexsort((places[known, 1], places[known, 0]))]
    schema = side.manifest.schema
    table = key_table(side, rows_by_fragment(side, places[order]), schema.names)
    positions = np.full(len(places), NOWHERE, np.int64)
    positions[order] = np.arange(order.size)
    structs = table.to_struct_array()
    if isinstance(structs, pa.ChunkedArray):
        structs = structs.combine_chunks()
    return structs.take(pa.array(positions, pa.int64(), mask=positions == NOWHERE))
