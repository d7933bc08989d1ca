"""The join of an upsert: which live rows of the target have which partners in the source.

The target's key columns are read in windows, fragment by fragment; nothing else of it is. Windows
of small fragments are looked up together, because a look-up costs the size of the source as well.

Limits: memory holds one window, the keys of the source, and two numbers per match.
Source: ``MergeInsertBuilder`` of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import pyarrow as pa

from lance_nb.encodings.base import Ints
from lance_nb.format.fragment import Fragment
from lance_nb.table.filtered_scan import RowChoice, Selected, quoted, select_rows, selected_table
from lance_nb.table.projection import project
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.merge_insert_keys import KeyNumbers

_TOGETHER_ROWS = 1 << 17


@dataclass(frozen=True, slots=True)
class Matches:
    """Rows of one fragment and their partners.

    ``physical``: offsets of matched rows, ascending, once per partner; ``source``: the partner's
    row number. ``lonely``: offsets of live rows without a partner, ascending.
    """

    fragment: Fragment
    physical: Ints
    source: Ints
    lonely: Ints

    def only(self, keep: np.ndarray) -> Matches:
        """Return some of the matches, with all the lonely rows."""
        return Matches(self.fragment, self.physical[keep], self.source[keep], self.lonely)


Progress = Callable[[int], None]


def join(
    snapshot: Snapshot, keys: KeyNumbers, names: Sequence[str], seen: Progress | None = None
) -> Iterator[Matches]:
    """Yield the matches of every fragment, in the order of the scan; ``seen`` counts rows read.

    Raises CorruptFileError, StorageError.
    """
    parts = _looked_up(snapshot, keys, names, seen)
    for _, found in groupby(parts, key=lambda one: one.fragment.id):
        windows = list(found)
        if len(windows) == 1:
            yield windows[0]
            continue
        yield Matches(
            windows[0].fragment,
            np.concatenate([one.physical for one in windows]),
            np.concatenate([one.source for one in windows]),
            np.concatenate([one.lonely for one in windows]),
        )


def _looked_up(
    snapshot: Snapshot, keys: KeyNumbers, names: Sequence[str], seen: Progress | None
) -> Iterator[Matches]:
    projection = project(snapshot.manifest.schema, [quoted([name]) for name in names])
    waiting: list[tuple[Selected, pa.Table]] = []
    num_rows = 0
    for window in select_rows(snapshot, RowChoice(), projection):
        table = selected_table(snapshot, projection, window).rename_columns(list(names))
        waiting.append((window, table.replace_schema_metadata(None)))
        num_rows += window.num_rows
        if num_rows >= max(_TOGETHER_ROWS, keys.num_rows):
            yield from _split(keys, waiting)
            if seen is not None:
                seen(num_rows)
            waiting, num_rows = [], 0
    yield from _split(keys, waiting)
    if seen is not None and num_rows:
        seen(num_rows)


def _split(keys: KeyNumbers, waiting: Iterable[tuple[Selected, pa.Table]]) -> Iterator[Matches]:
    windows = list(waiting)
    if not windows:
        return
    numbers = keys.find(pa.concat_tables(table for _, table in windows))
    start = 0
    for window, _ in windows:
        mine = numbers[start : start + window.num_rows]
        start += window.num_rows
        places, source = keys.pairs(mine)
        lonely = window.physical[mine < 0]
        yield Matches(window.fragment, window.physical[places], source, lonely)
