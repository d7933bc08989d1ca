"""The join of an upsert: which live rows of the target have which partners in the source.

The target's key columns are read in windows, fragment by fragment; nothing else of it is. Windows
of small fragments are looked up together, because a look-up costs the size of the source as well.
Who looks at a part of the target only brings the windows of that part.

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
from lance_nb.table.filtered_scan import RowChoice, quoted, select_rows, selected_table
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


@dataclass(frozen=True, slots=True)
class KeyWindow:
    """Live rows of one fragment: their offsets, ascending, and their keys."""

    fragment: Fragment
    physical: Ints
    keys: pa.Table


def read_keys(
    snapshot: Snapshot, names: Sequence[str], fragments: Sequence[Fragment] | None = None
) -> Iterator[KeyWindow]:
    """Read the key columns of all fragments, or of some.

    Raises CorruptFileError, StorageError.
    """
    projection = project(snapshot.manifest.schema, [quoted([name]) for name in names])
    choice = RowChoice(fragments=None if fragments is None else tuple(fragments))
    for window in select_rows(snapshot, choice, projection):
        table = selected_table(snapshot, projection, window).rename_columns(list(names))
        yield KeyWindow(window.fragment, window.physical, table.replace_schema_metadata(None))


def join(
    windows: Iterable[KeyWindow], keys: KeyNumbers, seen: Progress | None = None
) -> Iterator[Matches]:
    """Yield the matches of every fragment, in the order given; ``seen`` counts rows read."""
    parts = _looked_up(windows, keys, seen)
    for _, found in groupby(parts, key=lambda one: one.fragment.id):
        together = list(found)
        if len(together) == 1:
            yield together[0]
            continue
        yield Matches(
            together[0].fragment,
            np.concatenate([one.physical for one in together]),
            np.concatenate([one.source for one in together]),
            np.concatenate([one.lonely for one in together]),
        )


def _looked_up(
    windows: Iterable[KeyWindow], keys: KeyNumbers, seen: Progress | None
) -> Iterator[Matches]:
    waiting: list[KeyWindow] = []
    num_rows = 0
    for window in windows:
        waiting.append(window)
        num_rows += window.keys.num_rows
        if num_rows >= max(_TOGETHER_ROWS, keys.num_rows):
            yield from _split(keys, waiting)
            if seen is not None:
                seen(num_rows)
            waiting, num_rows = [], 0
    yield from _split(keys, waiting)
    if seen is not None and num_rows:
        seen(num_rows)


def _split(keys: KeyNumbers, windows: Sequence[KeyWindow]) -> Iterator[Matches]:
    if not windows:
        return
    numbers = keys.find(pa.concat_tables(one.keys for one in windows))
    start = 0
    for window in windows:
        mine = numbers[start : start + window.keys.num_rows]
        start += window.keys.num_rows
        places, source = keys.pairs(mine)
        lonely = window.physical[mine < 0]
        yield Matches(window.fragment, window.physical[places], source, lonely)
