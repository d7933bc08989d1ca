"""What is cheaper for rows that change: writing them anew, or writing some columns of all rows.

Whole rows cost the width of a row for every row that changes, columns their own width for every row
of the fragments; both are read and written. Widths are those of the stored columns of one fragment,
payloads of blobs included.

Limits: an estimate from one fragment. Moved rows also cost later reads (deletions, small fragments,
rows that no index covers): that is not counted, nor is it the other way round.
"""

from __future__ import annotations

from collections.abc import Sequence

from lance_nb.format.fragment import Fragment
from lance_nb.format.schema import Schema
from lance_nb.table.data_statistics import payload_bytes
from lance_nb.table.fragment_reader import columns_of, open_file
from lance_nb.table.snapshot import Snapshot

SAVED_BYTES_MIN = 4 * 1024 * 1024
"""What columns must save: below, rows are rewritten, as pylance does."""


def columns_are_cheaper(
    snapshot: Snapshot, touched: Sequence[tuple[Fragment, int]], part: Schema
) -> bool:
    """Compare, for the number of rows that change in each fragment and the columns that do."""
    changing = sum(count for _, count in touched)
    if not changing:
        return False
    stored = sum(max(one.physical_rows, 1) for one, _ in touched)
    whole, some = _widths(snapshot, touched[0][0], part)
    return changing * whole > stored * some + SAVED_BYTES_MIN / 2


def _widths(snapshot: Snapshot, fragment: Fragment, part: Schema) -> tuple[float, float]:
    """Return the stored bytes per row of the fragment, and of the columns of ``part`` in it."""
    wanted = {one.id for one in part.walk()}
    whole = some = 0
    for file in fragment.files:
        live = {column: field for field, column in columns_of(fragment, file).items()}
        for page in open_file(snapshot, fragment, file).list_pages():
            field = live.get(page.column)
            if field is not None:
                size = page.size_bytes or 0
                whole += size
                some += size if field in wanted else 0
    for blob, size in payload_bytes(snapshot, fragment).items():
        whole += size
        some += size if blob in wanted else 0
    rows = max(fragment.physical_rows, 1)
    return whole / rows, some / rows
