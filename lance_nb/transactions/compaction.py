"""Compaction: small fragments become one, deleted rows are dropped. The plan.

A plan is a list of tasks; a task is a run of neighbouring fragments that are rewritten together, in
order. Fragments with fewer rows than the target join their neighbours; those with many deletions
are rewritten by themselves if need be. Fragments are joined only when the same indices cover them,
so that an index covers a new fragment wholly or not at all. Fragments with deleted rows that an
HNSW index covers stay as they are: without those rows its graph could not be read any more
(reuse_entry.py). With ``defer_index_remap=False`` the index loses them instead.

Limits: of the tasks, those count that fit ``max_source_...`` one after the other, oldest first.
Source: ``lance.optimize`` of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pyroaring import BitMap

from lance_nb.errors import NotSupportedError
from lance_nb.file.versions import file_version_of
from lance_nb.format.feature_flags import STABLE_ROW_IDS
from lance_nb.format.fragment import Fragment
from lance_nb.format.index_details import index_type
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.table.snapshot import Snapshot
from lance_nb.table.storage_version import storage_version
from lance_nb.transactions.compaction_options import CompactionOptions


@dataclass(frozen=True, slots=True)
class CompactionTask:
    """Fragments that are rewritten together. ``read_version`` is the version they are from."""

    read_version: int
    fragments: tuple[Fragment, ...]

    @property
    def num_rows(self) -> int:
        """Live rows."""
        return sum(one.num_rows for one in self.fragments)

    @property
    def size_bytes(self) -> int:
        """Bytes of the data files that are rewritten, as far as the manifest knows."""
        return sum(file.size_bytes for one in self.fragments for file in one.files)


def plan_compaction(
    snapshot: Snapshot, indices: Iterable[IndexMetadata], options: CompactionOptions
) -> list[CompactionTask]:
    """Find the fragments that are worth rewriting.

    ``indices`` cover what they cover now (table.indices.read_indices). Raises NotSupportedError.
    """
    _check_file_version(snapshot, options)
    on_columns = [one for one in indices if not one.is_system]
    covers = [one.fragment_ids() for one in on_columns]
    fixed = BitMap() if options.defer_index_remap is False else covered_by_graphs(on_columns)
    has_row_ids = bool(snapshot.manifest.reader_feature_flags & STABLE_ROW_IDS)
    runs: list[list[tuple[Fragment, bool]]] = [[]]
    last: tuple[bool, ...] | None = None
    for fragment in snapshot.manifest.fragments:
        coverage = tuple(one is None or fragment.id in one for one in covers)
        alone, joins = _reasons(fragment, options)
        if fragment.num_deleted_rows and fragment.id in fixed and not has_row_ids:
            alone = joins = False
        if not (alone or joins) or coverage != last:
            runs.append([])
        if alone or joins:
            runs[-1].append((fragment, alone))
        last = coverage
    parts = (part for run in runs for part in _split(run, options.target_rows_per_fragment))
    tasks = (
        CompactionTask(snapshot.version, tuple(fragment for fragment, _ in part))
        for part in parts
        if len(part) > 1 or (part and part[0][1])
    )
    return list(_within(tasks, options))


def covered_by_graphs(indices: Iterable[IndexMetadata]) -> BitMap:
    """Return the fragments that vector indices with a graph (HNSW) cover."""
    found = BitMap()
    for one in indices:
        if is_graph(one):
            found |= one.fragment_ids() or BitMap()
    return found


def is_graph(index: IndexMetadata) -> bool:
    """Tell whether an index holds a graph of vectors; old ones do not say, so they may."""
    kind = index_type(index)
    return "HNSW" in kind or kind == "Vector"


def _check_file_version(snapshot: Snapshot, options: CompactionOptions) -> None:
    wanted, is_written = options.data_storage_version, storage_version(snapshot.manifest)
    if wanted is not None and file_version_of(wanted) != file_version_of(is_written):
        raise NotSupportedError(
            f"data_storage_version={wanted!r}: this dataset's files are of version {is_written}, "
            "and a compaction keeps that; overwrite the dataset to change it"
        )


def _reasons(fragment: Fragment, options: CompactionOptions) -> tuple[bool, bool]:
    """Tell whether a fragment is rewritten by itself, and whether it joins neighbours."""
    if fragment.id in options.excluded_fragment_ids:
        return False, False
    share = fragment.num_deleted_rows / max(fragment.physical_rows, 1)
    alone = options.materialize_deletions and share > options.materialize_deletions_threshold
    return alone, fragment.num_rows < options.target_rows_per_fragment


def _split(
    run: Sequence[tuple[Fragment, bool]], target: int
) -> Iterator[list[tuple[Fragment, bool]]]:
    """Cut a run into parts of at least ``target`` rows; what is left over stays with the last."""
    left = sum(fragment.num_rows for fragment, _ in run)
    part: list[tuple[Fragment, bool]] = []
    rows = 0
    for one in run:
        part.append(one)
        rows += one[0].num_rows
        left -= one[0].num_rows
        if rows >= target and left >= target:
            yield part
            part, rows = [], 0
    if part:
        yield part


def _within(
    tasks: Iterable[CompactionTask], options: CompactionOptions
) -> Iterator[CompactionTask]:
    """Yield tasks until one would exceed a limit on what is read."""
    limits = (options.max_source_fragments, options.max_source_rows, options.max_source_bytes)
    used = [0, 0, 0]
    for task in tasks:
        used[0] += len(task.fragments)
        used[1] += task.num_rows
        used[2] += task.size_bytes
        if any(most is not None and one > most for one, most in zip(used, limits, strict=True)):
            return
        yield task
