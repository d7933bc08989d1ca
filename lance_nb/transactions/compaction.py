"""Compaction: small fragments become one, deleted rows are dropped. Plan, run, commit.

A plan is a list of tasks; a task is a run of neighbouring fragments that are rewritten together, in
order. Fragments with fewer rows than the target join their neighbours; those with many deletions
are rewritten by themselves if need be. Fragments are joined only when the same indices cover them,
so that an index covers a new fragment wholly or not at all.

With stable row ids rows keep their ids and the versions they were created and updated in. Without,
row addresses change and the fragments leave the coverage of indices, because index files are not
rewritten here: searches still see the rows, by scanning them.

Limits: memory holds a batch of rows and what does not fill a page yet. Blob columns are refused.
Source: message ``Transaction.Rewrite`` of lance.table; ``optimize.compact_files`` of pylance
14.0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from lance_nb.errors import InvalidInputError
from lance_nb.format.feature_flags import STABLE_ROW_IDS
from lance_nb.format.fragment import Fragment, InlineSequence
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.format.row_versions import RowVersionSequence
from lance_nb.table.scan_options import ScanOptions
from lance_nb.table.scan_request import plan_request
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.fragment_writer import FragmentWriter, WriteOptions
from lance_nb.transactions.operations.rewrite import Rewrite, RewriteGroup
from lance_nb.transactions.row_rewrite import check_rewritable, with_row_ids

CREATED_AT, UPDATED_AT = "_row_created_at_version", "_row_last_updated_at_version"
_ROW_ID = "_rowid"


@dataclass(frozen=True, slots=True)
class CompactionOptions:
    """Which fragments are rewritten, and into how large ones."""

    target_rows_per_fragment: int = 1024 * 1024
    max_bytes_per_file: int = 90 * 1024**3
    materialize_deletions: bool = True
    materialize_deletions_threshold: float = 0.1
    excluded_fragment_ids: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        if self.target_rows_per_fragment < 1 or self.max_bytes_per_file < 1:
            raise InvalidInputError("target_rows_per_fragment and max_bytes_per_file are positive")
        if not 0 <= self.materialize_deletions_threshold <= 1:
            raise InvalidInputError(
                "materialize_deletions_threshold is a share between 0 and 1, not "
                f"{self.materialize_deletions_threshold}"
            )


@dataclass(frozen=True, slots=True)
class CompactionTask:
    """Fragments that are rewritten together. ``read_version`` is the version they are from."""

    read_version: int
    fragments: tuple[Fragment, ...]

    @property
    def num_rows(self) -> int:
        """Live rows."""
        return sum(one.num_rows for one in self.fragments)


@dataclass(frozen=True, slots=True)
class CompactionMetrics:
    """What a compaction replaced. Files are data files and deletion files."""

    fragments_removed: int = 0
    fragments_added: int = 0
    files_removed: int = 0
    files_added: int = 0


def plan_compaction(
    snapshot: Snapshot, indices: Iterable[IndexMetadata], options: CompactionOptions
) -> list[CompactionTask]:
    """Find the fragments that are worth rewriting. Raises NotSupportedError for blob columns."""
    for field in snapshot.manifest.schema.walk():
        check_rewritable(field)
    covers = [one.fragment_ids() for one in indices if not one.is_system]
    runs: list[list[tuple[Fragment, bool]]] = [[]]
    last: tuple[bool, ...] | None = None
    for fragment in snapshot.manifest.fragments:
        coverage = tuple(one is None or fragment.id in one for one in covers)
        alone, joins = _reasons(fragment, options)
        if not (alone or joins) or coverage != last:
            runs.append([])
        if alone or joins:
            runs[-1].append((fragment, alone))
        last = coverage
    parts = (part for run in runs for part in _split(run, options.target_rows_per_fragment))
    return [
        CompactionTask(snapshot.version, tuple(fragment for fragment, _ in part))
        for part in parts
        if len(part) > 1 or (part and part[0][1])
    ]


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


def run_task(
    snapshot: Snapshot,
    task: CompactionTask,
    options: CompactionOptions,
    file_version: tuple[int, int],
    progress: Callable[[int], None] | None = None,
) -> RewriteGroup:
    """Write the live rows of a task's fragments to new files; nothing is committed.

    ``progress`` is called with the number of rows written since the last call. Raises StorageError,
    CorruptFileError; no new file remains then.
    """
    written = WriteOptions(
        options.target_rows_per_fragment, options.max_bytes_per_file, file_version
    )
    has_ids = bool(snapshot.manifest.reader_feature_flags & STABLE_ROW_IDS)
    lineage: dict[str, list[np.ndarray]] = {_ROW_ID: [], CREATED_AT: [], UPDATED_AT: []}
    with FragmentWriter(snapshot.manifest.schema, snapshot.locations.home, written) as writer:
        for batch in _rows(snapshot, task.fragments, [*lineage] if has_ids else []):
            for name, known in lineage.items() if has_ids else ():
                known.append(batch.column(name).to_numpy(zero_copy_only=False))
            writer.write(batch.drop_columns([*lineage]) if has_ids else batch)
            if progress is not None:
                progress(batch.num_rows)
        fragments = writer.finish()
    if has_ids:
        fragments = list(with_row_ids(fragments, lineage[_ROW_ID]))
        fragments = _with_versions(fragments, lineage)
    return RewriteGroup(task.fragments, tuple(fragments))


def rewrite_of(groups: Sequence[RewriteGroup]) -> Rewrite:
    """Return the operation that puts the new fragments in the place of the old ones."""
    return Rewrite(tuple(groups))


def metrics_of(groups: Sequence[RewriteGroup]) -> CompactionMetrics:
    """Count what the groups replace."""
    old = [one for group in groups for one in group.old_fragments]
    new = [one for group in groups for one in group.new_fragments]
    return CompactionMetrics(len(old), len(new), _num_files(old), _num_files(new))


def _num_files(fragments: Sequence[Fragment]) -> int:
    deletions = sum(one.deletion_file is not None for one in fragments)
    return deletions + sum(len(one.files) for one in fragments)


def _rows(
    snapshot: Snapshot, fragments: tuple[Fragment, ...], extras: list[str]
) -> Iterator[pa.RecordBatch]:
    columns = [_quoted(name) for name in snapshot.manifest.schema.names]
    options = ScanOptions([*columns, *extras], fragments=fragments)
    return plan_request(snapshot, options).batches()


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`" if not name.isidentifier() else name


def _with_versions(
    fragments: Sequence[Fragment], lineage: dict[str, list[np.ndarray]]
) -> list[Fragment]:
    """Give the new fragments the versions in which their rows were created and updated."""
    created, updated = (_joined(lineage[name]) for name in (CREATED_AT, UPDATED_AT))
    made, start = [], 0
    for one in fragments:
        stop = start + one.physical_rows
        made.append(
            replace(
                one,
                created_at_versions=_sequence(created[start:stop]),
                last_updated_at_versions=_sequence(updated[start:stop]),
            )
        )
        start = stop
    return made


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(parts) if parts else np.zeros(0, np.uint64)


def _sequence(versions: np.ndarray) -> InlineSequence:
    return InlineSequence(RowVersionSequence.from_numpy(versions.astype(np.uint64)).to_bytes())
