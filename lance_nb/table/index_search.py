"""What a scan asks of indices, and what they answer.

The files of indices are read on a floor above this one (``lance_nb.indices``). Whoever plans a scan
with indices hands an ``IndexSearch`` to ``plan_scan``; a scan without one reads the columns of its
filter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb.encodings.kernels.memory import to_integers
from lance_nb.errors import CorruptFileError
from lance_nb.value_classes import dataclass

if TYPE_CHECKING:
    from lance_nb.table.filtered_scan import RowChoice
    from lance_nb.table.nearest import NearestQuery, Neighbours
    from lance_nb.table.predicate import Filter

U64s = npt.NDArray[np.uint64]
Ids = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float32]


# numpy's own ``unique`` and ``isin`` import numpy.ma, which takes longer than a search.


def different(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the different values, ascending."""
    if values.size < 2 or bool((values[1:] > values[:-1]).all()):
        return values
    ordered = values if bool((values[1:] >= values[:-1]).all()) else np.sort(values)
    return ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))]


def among(values: npt.NDArray[Any], members: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Tell which values are among ``members``, which are ascending."""
    if not members.size:
        return np.zeros(values.size, np.bool_)
    positions = np.minimum(np.searchsorted(members, values), members.size - 1)
    is_member: npt.NDArray[np.bool_] = members[positions] == values
    return is_member


def numbers(array: pa.Array, path: str, dtype: Any = np.uint64) -> Any:
    """Return a column of whole numbers without nulls. Raises CorruptFileError."""
    if not pa.types.is_integer(array.type):
        raise CorruptFileError(path, None, "whole numbers", str(array.type))
    if array.null_count:
        actual = f"null in {array.null_count} of {len(array)} values"
        raise CorruptFileError(path, None, "numbers without nulls", actual)
    return to_integers(array).astype(dtype, copy=False)


@dataclass(frozen=True, slots=True)
class IndexAnswer:
    """Which rows of some fragments may pass a filter.

    ``rows`` are addresses of live rows, ascending and different, all in the ``covered`` fragments
    (their ids, ascending); nothing is said of other fragments. ``is_exact``: every one of the rows
    passes; otherwise the filter is computed for them. ``words`` name the indices that were used.
    """

    rows: U64s
    covered: Ids
    is_exact: bool
    words: tuple[str, ...] = ()

    @property
    def fragment_ids(self) -> Ids:
        """The covered fragments with rows, ascending."""
        starts = self.covered.astype(np.uint64) << np.uint64(32)
        places = np.searchsorted(self.rows, starts)
        ends = np.searchsorted(self.rows, starts + np.uint64(1 << 32))
        return self.covered[places < ends]

    def of_fragment(self, fragment_id: int) -> Ids:
        """Return the offsets of the rows of a fragment, ascending."""
        low, high = (
            int(np.searchsorted(self.rows, np.uint64(number << 32)))
            for number in (fragment_id, fragment_id + 1)
        )
        offsets: Ids = (self.rows[low:high] & np.uint64(0xFFFFFFFF)).astype(np.int64)
        return offsets


class TextMatches(Protocol):
    """A full-text query that is planned on one version."""

    @property
    def columns(self) -> list[str]:
        """The columns that are searched."""
        ...

    def find(self, choice: RowChoice, most: int | None) -> tuple[U64s, Scores]:
        """Return the addresses of rows that match and pass the filter of the choice, best first.

        At most ``most`` of them, None for all; of equal scores the lower address comes first.
        """
        ...

    def explain(self) -> list[str]:
        """Say in words what will be searched for, and where."""
        ...

    def costs(self) -> list[str]:
        """Say in words what the last search has read."""
        ...

    def places(self, column: str, text: str) -> list[tuple[int, int]]:
        """Return where words of the query stand in a text of a column, in order: start and stop.

        Words that a fuzzy query has found count too, once it has been run.
        """
        ...


class IndexSearch(Protocol):
    """The indices of one version."""

    def answer(self, condition: Filter) -> IndexAnswer | None:
        """Search the indices; None when none helps, or when one is damaged (with a warning)."""
        ...

    def count(self, condition: Filter) -> tuple[int, Ids] | None:
        """Count the rows that pass, in the fragments of these ids; None where no index can.

        Cheaper than ``answer`` where an index has sets of rows for the values of a column.
        """
        ...

    def explain(self, condition: Filter) -> list[str]:
        """Say in words which indices will be searched for what, reading none of them."""
        ...


class NearestSearch(Protocol):
    """The vector indices of one version."""

    def find(
        self, choice: RowChoice, query: NearestQuery, *, indexed_only: bool
    ) -> Neighbours | None:
        """Return the nearest of the chosen rows; None when no index helps, or one is damaged.

        Rows that no index covers are compared exactly, unless ``indexed_only``.
        """
        ...

    def explain(self, query: NearestQuery, *, indexed_only: bool) -> list[str]:
        """Say in words which index will be searched, and how."""
        ...

    def describe_search(
        self, choice: RowChoice, query: NearestQuery, *, indexed_only: bool
    ) -> list[str]:
        """Search, and say in words how many partitions and vectors were looked at."""
        ...
