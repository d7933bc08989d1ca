"""Compaction: one task, run. Live rows are read in order and written to new files.

With stable row ids rows keep their ids and the versions they were created and updated in. Without,
row addresses change: the result says which rows moved (``row_addrs``, format/fragment_reuse), and
whoever commits it decides whether that is recorded.

Payloads of blobs are copied from file to file, without being part of a batch.

Limits: memory holds a batch of rows and what does not fill a page yet. ``row_addrs`` is None with
stable row ids, and when the fragments do not stand in the order of their ids.
Source: ``CompactionTask.execute`` and ``RewriteResult`` of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lance_nb.file.writer import FileOptions
from lance_nb.format.checksums import wants_checksums
from lance_nb.format.feature_flags import STABLE_ROW_IDS
from lance_nb.format.fragment import DeletionFileType, Fragment, RowDatasetVersionMeta
from lance_nb.format.fragment_reuse import address_map
from lance_nb.format.row_versions import RowVersionSequence
from lance_nb.table.blob_copies import BlobCopies
from lance_nb.table.deletions import read_deletions
from lance_nb.table.projection import CREATED_AT, LAST_UPDATED_AT, ROW_ADDRESS, ROW_ID
from lance_nb.table.scan_options import ScanOptions
from lance_nb.table.scan_request import plan_request
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.compaction import CompactionTask
from lance_nb.transactions.compaction_options import CompactionOptions
from lance_nb.transactions.fragment_writer import FragmentWriter, WriteOptions, copying
from lance_nb.transactions.row_rewrite import with_row_ids

_BYTES_PER_FILE = WriteOptions().max_bytes_per_file


@dataclass(frozen=True, slots=True)
class CompactionMetrics:
    """What a compaction replaced. Files are data files and deletion files."""

    fragments_removed: int = 0
    fragments_added: int = 0
    files_removed: int = 0
    files_added: int = 0

    def __add__(self, other: CompactionMetrics) -> CompactionMetrics:
        return CompactionMetrics(
            self.fragments_removed + other.fragments_removed,
            self.fragments_added + other.fragments_added,
            self.files_removed + other.files_removed,
            self.files_added + other.files_added,
        )


@dataclass(frozen=True, slots=True)
class Rewritten:
    """Fragments and what their rows were written to; not committed. New fragments have id 0."""

    read_version: int
    old_fragments: tuple[Fragment, ...]
    new_fragments: tuple[Fragment, ...]
    row_addrs: bytes | None = None

    @property
    def metrics(self) -> CompactionMetrics:
        """What it replaces."""
        old, new = self.old_fragments, self.new_fragments
        return CompactionMetrics(len(old), len(new), _num_files(old), _num_files(new))

    @property
    def num_rows(self) -> int:
        """Rows that were written."""
        return sum(one.physical_rows for one in self.new_fragments)

    @property
    def num_deleted_rows(self) -> int:
        """Rows that are gone now."""
        return sum(one.num_deleted_rows for one in self.old_fragments)


def run_task(
    snapshot: Snapshot,
    task: CompactionTask,
    options: CompactionOptions,
    file_version: tuple[int, int],
    progress: Callable[[int], None] | None = None,
) -> Rewritten:
    """Write the live rows of a task's fragments to new files; nothing is committed.

    ``progress`` is called with the number of rows written since the last call. Raises StorageError,
    CorruptFileError; no new file remains then, nor after an interrupt.
    """
    written = WriteOptions(
        _rows_per_file(task.num_rows, options.target_rows_per_fragment),
        options.max_bytes_per_file or _BYTES_PER_FILE,
        file_version,
        FileOptions(checksums=wants_checksums(snapshot.manifest.config)),
    )
    has_ids = bool(snapshot.manifest.reader_feature_flags & STABLE_ROW_IDS)
    lineage: dict[str, list[np.ndarray]] = {ROW_ID: [], CREATED_AT: [], LAST_UPDATED_AT: []}
    copies = BlobCopies(snapshot)
    written = copying(written, copies)
    extras = [*(lineage if has_ids else ()), *([ROW_ADDRESS] if copies else ())]
    with FragmentWriter(snapshot.manifest.schema, snapshot.locations.home, written) as writer:
        for batch in _rows(snapshot, task, options, extras):
            for name, known in lineage.items() if has_ids else ():
                known.append(batch.column(name).to_numpy(zero_copy_only=False))
            rows = batch.drop_columns(extras) if extras else batch
            if copies:
                rows = copies.batch(rows, batch.column(ROW_ADDRESS).to_numpy())
            writer.write(rows)
            if progress is not None:
                progress(batch.num_rows)
        moved = None if has_ids else _row_addrs(snapshot, task.fragments)
        fragments = writer.finish()
    if has_ids:
        fragments = list(with_row_ids(fragments, lineage[ROW_ID]))
        fragments = _with_versions(fragments, lineage)
    return Rewritten(task.read_version, task.fragments, tuple(fragments), moved)


def _rows_per_file(num_rows: int, target: int) -> int:
    """Share rows out evenly: no file has fewer than ``target``, as far as there are enough."""
    count = max(num_rows // target, 1)
    return max(-(-num_rows // count), 1)


def _num_files(fragments: Sequence[Fragment]) -> int:
    deletions = sum(one.deletion_file is not None for one in fragments)
    return deletions + sum(len(one.files) for one in fragments)


def _rows(
    snapshot: Snapshot, task: CompactionTask, options: CompactionOptions, extras: list[str]
) -> Iterator[pa.RecordBatch]:
    columns = [_quoted(name) for name in snapshot.manifest.schema.names]
    scan = ScanOptions([*columns, *extras], fragments=task.fragments, batch_size=options.batch_size)
    return plan_request(snapshot, scan).batches()


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`" if not name.isidentifier() else name


# --- where rows were, what they are ---------------------------------------------------------------


def _row_addrs(snapshot: Snapshot, fragments: Sequence[Fragment]) -> bytes | None:
    ids = [one.id for one in fragments]
    if ids != sorted(ids):
        return None
    return address_map((one.id, _live(snapshot, one)) for one in fragments if one.num_rows)


def _live(snapshot: Snapshot, fragment: Fragment) -> BitMap:
    live = BitMap(range(fragment.physical_rows))
    deleted = read_deletions(
        snapshot.locations, snapshot.deletions, fragment, fragment.physical_rows
    )
    if deleted is None:
        return live
    return live - BitMap.deserialize(deleted.to_bytes(DeletionFileType.BITMAP))


def _with_versions(
    fragments: Sequence[Fragment], lineage: dict[str, list[np.ndarray]]
) -> list[Fragment]:
    """Give the new fragments the versions in which their rows were created and updated."""
    created, updated = (_joined(lineage[name]) for name in (CREATED_AT, LAST_UPDATED_AT))
    made, start = [], 0
    for one in fragments:
        stop = start + one.physical_rows
        made.append(
            replace(
                one,
                created_at_version_meta=_recorded(created[start:stop]),
                last_updated_at_version_meta=_recorded(updated[start:stop]),
            )
        )
        start = stop
    return made


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(parts) if parts else np.zeros(0, np.uint64)


def _recorded(versions: np.ndarray) -> RowDatasetVersionMeta:
    sequence = RowVersionSequence.from_numpy(versions.astype(np.uint64))
    return RowDatasetVersionMeta.inline(sequence.to_bytes())
