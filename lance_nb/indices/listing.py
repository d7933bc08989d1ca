"""List the indices of one version, and report those that cannot be used.

An index is all segments of one name. It is searched where its segments are alike and on one
top-level column; each segment speaks for the live fragments in its own bitmap.

A damaged index is no reason to fail: what it would have answered is computed from the data, and a
warning says so, once for each index and handle of the dataset.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Sequence
from typing import TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from lance_nb.code_lines import Python
from lance_nb.errors import CorruptFileError, LanceError, NotSupportedError
from lance_nb.format.fragment_reuse import REUSE_INDEX
from lance_nb.indices.registry import builder_of
from lance_nb.indices.row_places import RowPlaces
from lance_nb.indices.segment import Segment, segment_of
from lance_nb.table.file_cache import FileCache
from lance_nb.table.index_search import Ids, different
from lance_nb.table.indices import read_indices
from lance_nb.table.snapshot import Snapshot
from lance_nb.value_classes import dataclass

Search = TypeVar("Search")
_DATASET = Python("ds")
# What was reported of each handle: names of indices, or texts of errors.
_reported: WeakKeyDictionary[FileCache, set[str]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class ListedIndex:
    """One index: its segments, all of one kind, and the fragments that they cover together."""

    name: str
    kind: str
    column: str
    segments: tuple[Segment, ...]
    covered: Ids

    @property
    def words(self) -> str:
        """The index in words, for plans."""
        return f"{self.name!r} ({self.kind}) of column {self.column!r}"


def list_indices(
    snapshot: Snapshot, kinds: Collection[str], *, with_empty: bool = False
) -> list[ListedIndex]:
    """Return the indices of some kinds, by name.

    ``with_empty``: also segments, and indices, that cover no live fragment. Raises
    CorruptFileError for an index section that cannot be read.
    """
    indices = read_indices(snapshot)
    ids = np.asarray(snapshot.manifest.fragments.counts().ids, np.int64)
    if different(ids).size != ids.size:
        return []
    reuse = next((index for index in indices if index.name == REUSE_INDEX), None)
    columns = {field.id: field.name for field in snapshot.manifest.schema.fields}
    places = RowPlaces(snapshot)
    listed = []
    for name in sorted({index.name for index in indices if index.kind in kinds}):
        segments = [index for index in indices if index.name == name]
        kind, fields = segments[0].kind, segments[0].fields
        is_alike = all((segment.kind, segment.fields) == (kind, fields) for segment in segments)
        if not is_alike or len(fields) != 1 or fields[0] not in columns:
            continue
        mine = [
            segment_of(snapshot, segment, ids, reuse=reuse, places=places) for segment in segments
        ]
        mine = [segment for segment in mine if with_empty or segment.covered.size]
        if mine:
            covered = different(np.concatenate([segment.covered for segment in mine]))
            listed.append(
                ListedIndex(name, kind, columns[fields[0]], segments=tuple(mine), covered=covered)
            )
    return listed


def listed_once(
    snapshot: Snapshot, kind: type[Search], make: Callable[[Snapshot], Search], instead: str
) -> Search | None:
    """Return what searches the indices of a version, None if it has none; made once per version.

    A version whose list of indices cannot be read is used without them, with a warning: ``instead``
    says what is done.
    """
    if snapshot.manifest.index_section is None:
        return None
    search = next((search for search in snapshot.searches if isinstance(search, kind)), None)
    if search is None:
        try:
            search = make(snapshot)
        except LanceError as error:
            problem = f"the list of indices cannot be read, and {instead}: {str(error)!r}"
            _warn_once(snapshot, "", problem)
            return None
        snapshot.searches.append(search)
    return search


def report_unusable(
    snapshot: Snapshot, indices: Sequence[ListedIndex], error: LanceError, instead: str
) -> None:
    """Warn of an index that cannot be used: which, why, what is done instead, and what helps.

    The index is the one of ``indices`` whose files the error names.
    """
    text = str(error)
    index = next(
        (index for index in indices if any(part.index.uuid in text for part in index.segments)),
        None,
    )
    if index is None:
        _warn_once(snapshot, text, f"an index cannot be used, and {instead}: {text!r}")
        return
    problem = error.problem if isinstance(error, CorruptFileError) else text
    warning = f"index {index.name!r} cannot be used, and {instead}: {problem!r}"
    _warn_once(snapshot, index.name, f"{warning}; {how_to_mend(snapshot, index)}")


def how_to_mend(snapshot: Snapshot, index: ListedIndex) -> str:
    """Say how to mend a damaged index: build it again, with its settings if they can be read."""
    first = index.segments[0].index
    try:
        kind, builder = builder_of(first)
    except NotSupportedError:
        return f"drop it with {_DATASET.attribute('drop_index').call(index.name).code}"
    try:
        builder.parameters_of(snapshot, first)
        line = _DATASET.attribute("optimize.optimize_indices")
        line = line.call(index_names=[index.name], retrain=True)
    except LanceError:
        line = _DATASET.attribute("create_scalar_index").call(index.column, kind, index.name)
    return f"build it again with {line.code}"


def _warn_once(snapshot: Snapshot, key: str, warning: str) -> None:
    reported = _reported.setdefault(snapshot.files, set())
    if key not in reported:
        reported.add(key)
        warnings.warn(warning, stacklevel=5)
