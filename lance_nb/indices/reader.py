"""What the reader of one kind of index can do; one module of ``kinds`` for each."""

from __future__ import annotations

from typing import Protocol

from lance_nb.indices.leaf import Leaf
from lance_nb.indices.row_sets import U64s
from lance_nb.value_classes import dataclass


@dataclass(frozen=True, slots=True)
class Found:
    """Rows as a file names them, ascending and different.

    ``nulls`` are the rows for which the condition is null, None where they were not asked for or
    are not known. ``is_exact``: every one of the rows passes.
    """

    rows: U64s
    nulls: U64s | None = None
    is_exact: bool = True


class IndexReader(Protocol):
    """The files of one segment, opened. All methods raise LanceError for files that are damaged."""

    def understands(self, leaf: Leaf) -> bool:
        """Tell whether the condition can be answered."""
        ...

    def estimate(self, leaf: Leaf) -> int:
        """Return about how many rows ``search`` will return, at little cost."""
        ...

    def search(self, leaf: Leaf, *, with_nulls: bool) -> Found:
        """Return the rows that may pass."""
        ...
