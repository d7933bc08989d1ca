"""Rows of a version by their places, in any order: what sorts, searches and comparisons hand on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lance_nb.encodings.base import Ints
from lance_nb.format.fragment import Fragment
from lance_nb.table.filtered_scan import Selected
from lance_nb.value_classes import dataclass

Mask = npt.NDArray[np.bool_]
_NO_ROWS: tuple[Ints, Ints, Ints, Mask] = (
    np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.bool_),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Addresses:
    """Rows of a version in any order.

    ``fragment`` numbers ``fragments``, ``physical`` is the offset in it, ``position`` the place in
    the dataset. ``deleted`` marks deleted rows.
    """

    fragments: tuple[Fragment, ...]
    fragment: Ints
    physical: Ints
    position: Ints
    deleted: Mask

    @property
    def num_rows(self) -> int:
        """Rows listed."""
        return int(self.physical.size)

    def take(self, places: Ints) -> Addresses:
        """Return some of the rows, fragments without any left out."""
        used, fragment = np.unique(self.fragment[places], return_inverse=True)
        return Addresses(
            tuple(self.fragments[number] for number in used.tolist()),
            fragment.astype(np.int64),
            self.physical[places],
            position=self.position[places],
            deleted=self.deleted[places],
        )


def addresses_of(selections: Sequence[Selected | Addresses]) -> Addresses:
    """List the rows of windows and of other lists, in order."""
    fragments: list[Fragment] = []
    parts: list[tuple[Ints, Ints, Ints, Mask]] = [_NO_ROWS]
    for selection in selections:
        first = len(fragments)
        if isinstance(selection, Addresses):
            fragments += selection.fragments
            parts.append(
                (
                    selection.fragment + first,
                    selection.physical,
                    selection.position,
                    selection.deleted,
                )
            )
            continue
        fragments.append(selection.fragment)
        number = np.full(selection.num_rows, first, np.int64)
        deleted = (
            np.zeros(selection.num_rows, np.bool_)
            if selection.deleted is None
            else selection.deleted
        )
        parts.append((number, selection.physical, selection.positions, deleted))
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return Addresses(
        tuple(fragments), columns[0], columns[1], position=columns[2], deleted=columns[3]
    )
