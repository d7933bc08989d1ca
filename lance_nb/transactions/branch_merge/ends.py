"""The three versions of a merge, and what has happened on each side since the base.

``Shared`` says how far two versions number things alike. Versions of one line of history (a branch
and what it grew from) share every number. Versions of two branches share those that were given
before the fork; later ones were given twice, for different things.

Limits: the fragments of the three versions are decoded.
Source: message Manifest of lance.table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from lance_nb.encodings.base import Ints
from lance_nb.format.feature_flags import STABLE_ROW_IDS
from lance_nb.format.fragment import Fragment
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.format.manifest import Manifest
from lance_nb.table.deletions import read_deletions
from lance_nb.table.diff.fragments import Places
from lance_nb.table.fragment_reader import confirmed_rows
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Side:
    """One version: its fragments by id, its indices, and where its files are."""

    snapshot: Snapshot
    indices: tuple[IndexMetadata, ...]
    fragments: Mapping[int, Fragment]
    places: Places

    @classmethod
    def of(cls, snapshot: Snapshot, indices: tuple[IndexMetadata, ...]) -> Side:
        """Look at a version. Raises CorruptFileError when two fragments have one id."""
        snapshot.manifest.fragments.check_ids_differ()
        fragments = {one.id: one for one in snapshot.manifest.fragments}
        return cls(snapshot, indices, fragments, Places(snapshot.locations))

    @property
    def manifest(self) -> Manifest:
        """The manifest."""
        return self.snapshot.manifest

    @property
    def branch(self) -> str | None:
        """The branch, None on main."""
        return self.snapshot.branch

    @property
    def version(self) -> int:
        """The version number."""
        return self.snapshot.version

    @property
    def label(self) -> str:
        """Branch and version, with a colon between."""
        return f"{self.branch or 'main'}:{self.version}"

    @property
    def has_row_ids(self) -> bool:
        """Whether rows have stable ids."""
        return bool(self.manifest.reader_feature_flags & STABLE_ROW_IDS)

    def num_rows(self, fragment: Fragment) -> int:
        """Return the physical rows of a fragment, as its data file has them."""
        return confirmed_rows(self.snapshot, fragment)

    def deleted(self, fragment: Fragment) -> Ints:
        """Return the offsets of the deleted rows, ascending."""
        if fragment.deletion_file is None:
            return np.empty(0, np.int64)
        found = read_deletions(
            self.snapshot.locations, self.snapshot.deletions, fragment, self.num_rows(fragment)
        )
        return np.empty(0, np.int64) if found is None else found.offsets().astype(np.int64)

    def live(self, fragment: Fragment) -> Ints:
        """Return the offsets of the live rows, ascending."""
        every = np.arange(self.num_rows(fragment), dtype=np.int64)
        return np.delete(every, self.deleted(fragment))


@dataclass(frozen=True, slots=True)
class Shared:
    """Up to which fragment id and field id, and below which row id, two versions number alike.

    None: they always do.
    """

    fragment_id: int | None = None
    field_id: int | None = None
    row_id: int | None = None

    def has_fragment(self, fragment_id: int) -> bool:
        """Whether this fragment id means the same in both."""
        return self.fragment_id is None or fragment_id <= self.fragment_id

    def has_field(self, field_id: int) -> bool:
        """Whether this field id means the same in both."""
        return self.field_id is None or field_id <= self.field_id


ALL_SHARED = Shared()


@dataclass(frozen=True, slots=True)
class Step:
    """One version of a side since the base; ``transaction`` None: nobody knows what it did."""

    branch: str | None
    version: int
    transaction: Transaction | None

    @property
    def label(self) -> str:
        """Branch and version, with a colon between."""
        return f"{self.branch or 'main'}:{self.version}"


@dataclass(frozen=True, slots=True)
class History:
    """What happened on one side since the base, and how to look at a version of it."""

    steps: tuple[Step, ...]
    load: Callable[[str | None, int], Side]

    def arms(self) -> frozenset[str]:
        """Return the operations that happened; "unknown" for what nobody knows."""
        return frozenset(
            "unknown" if one.transaction is None else one.transaction.operation.arm
            for one in self.steps
        )


@dataclass(frozen=True, slots=True)
class Ends:
    """The versions of one three-way merge.

    ``untouched_until``: rows that the source updated in this version of its own, or before, are as
    the base has them.
    """

    base: Side
    source: Side
    target: Side
    base_source: Shared
    base_target: Shared
    source_target: Shared
    source_history: History
    target_history: History
    untouched_until: int
