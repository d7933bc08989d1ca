"""Compaction: small fragments become one, deleted rows are dropped.

Options make a plan, a plan has tasks, each task is run by itself.

A plan is a list of tasks; a task is a run of neighbouring fragments that are rewritten together, in
order. Fragments with fewer rows than the target join their neighbours; those with many deletions
are rewritten by themselves if need be. Fragments are joined only when the same indices cover them,
so that an index covers a new fragment wholly or not at all. Fragments with deleted rows that an
HNSW index covers stay as they are: without those rows its graph could not be read any more
(fragment_reuse.py). With ``defer_index_remap=False`` the index loses them instead.

An option that is not given comes from the dataset's configuration (key ``lance.compaction.`` and
the name), else from here. ``max_rows_per_group``, ``num_threads``, ``io_buffer_size`` and
``binary_copy_read_batch_bytes`` tune how pylance works; they are accepted and change nothing.

``defer_index_remap``: whether the rewrite is recorded in the fragment-reuse index, so that indices
on row addresses stay in use. None, the default, records it where an index needs it (pylance's
default rewrites the files of indices instead, which is not supported here). False does not: the
rows leave the coverage of indices.

A task reads live rows in order and writes them to new files. With stable row ids rows keep their
ids and the versions they were created and updated in. Without, row addresses change: the result
says which rows moved (``row_addrs``, format/fragment_reuse), and whoever commits it decides whether
that is recorded. Payloads of blobs are copied from file to file, without being part of a batch.

Not supported: ``compaction_mode="force_binary_copy"`` (``"try_binary_copy"`` re-encodes, as it
may), data files of another version than the dataset's.
Limits: of the tasks, those count that fit ``max_source_...`` one after the other, oldest first.
Memory holds a batch of rows and what does not fill a page yet. ``row_addrs`` is None with stable
row ids, and when the fragments are not in the order of their ids.
Source: ``lance.optimize`` of pylance 14.0.2: ``CompactionOptions`` with its documentation,
``CompactionTask.execute`` and ``RewriteResult``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Self

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lance_nb.errors import InvalidInputError, NotSupportedError
from lance_nb.file.versions import file_version_of
from lance_nb.file.writer import FileOptions
from lance_nb.format.checksums import wants_checksums
from lance_nb.format.feature_flags import STABLE_ROW_IDS
from lance_nb.format.fragment import DeletionFileType, Fragment, RowDatasetVersionMeta
from lance_nb.format.fragment_reuse import address_map
from lance_nb.format.index_metadata import IndexMetadata, index_type
from lance_nb.format.row_sequences import RowVersionSequence
from lance_nb.table.blob_copies import BlobCopies
from lance_nb.table.deletions import read_deletions
from lance_nb.table.projection import CREATED_AT, LAST_UPDATED_AT, ROW_ADDRESS, ROW_ID, project
from lance_nb.table.scan import cut, scan_windows
from lance_nb.table.scan_tasks import plan_tasks
from lance_nb.table.snapshot import Snapshot, added_version
from lance_nb.value_classes import dataclass
from lance_nb.writing.fragment_writer import FragmentWriter, WriteOptions, copying
from lance_nb.writing.row_rewrite import with_row_ids

CONFIG_PREFIX = "lance.compaction."
MODES = ("reencode", "try_binary_copy", "force_binary_copy")


@dataclass(frozen=True, slots=True)
class CompactionOptions:
    """Which fragments are rewritten, and into how large ones; see ``ds.optimize.compact_files``.

    Examples:
        >>> lance_nb.CompactionOptions().target_rows_per_fragment
        1048576
    """

    target_rows_per_fragment: int = 1024 * 1024
    max_rows_per_group: int = 1024
    max_bytes_per_file: int | None = None
    materialize_deletions: bool = True
    materialize_deletions_threshold: float = 0.1
    num_threads: int | None = None
    batch_size: int | None = None
    io_buffer_size: int | None = None
    defer_index_remap: bool | None = None
    compaction_mode: str | None = None
    binary_copy_read_batch_bytes: int = 16 * 1024 * 1024
    max_source_fragments: int | None = None
    max_source_rows: int | None = None
    max_source_bytes: int | None = None
    excluded_fragment_ids: frozenset[int] = frozenset()
    data_storage_version: str | None = None

    def __post_init__(self) -> None:
        for name in (
            "target_rows_per_fragment", "max_bytes_per_file", "max_source_fragments",
            "max_source_rows", "max_source_bytes", "batch_size",
        ):  # fmt: skip
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InvalidInputError(f"{name} is positive, not {value}")
        if not 0 <= self.materialize_deletions_threshold <= 1:
            raise InvalidInputError(
                "materialize_deletions_threshold is a share between 0 and 1, not "
                f"{self.materialize_deletions_threshold}"
            )
        if self.compaction_mode not in (None, *MODES):
            raise InvalidInputError(
                f"Invalid compaction mode {self.compaction_mode!r}. Valid values: "
                + ", ".join(map(repr, MODES))
            )
        if self.compaction_mode == "force_binary_copy":
            raise NotSupportedError(
                "compaction_mode='force_binary_copy' is not supported: rows are read and written "
                "again; use 'reencode' or 'try_binary_copy'"
            )

    @classmethod
    def of(cls, given_options: Mapping[str, Any], config: Mapping[str, str]) -> Self:
        """Read options; None means the default, which the configuration may set.

        Raises InvalidInputError, NotSupportedError.
        """
        readers = {field.name: _READERS[str(field.type)] for field in fields(cls)}
        values = {}
        for name, value in given_options.items():
            if name not in readers:
                raise InvalidInputError(
                    f"Invalid compaction option: {name}. Options: {', '.join(readers)}"
                )
            if value is not None:
                values[name] = readers[name](name, value)
        for key, text in config.items():
            name = key.removeprefix(CONFIG_PREFIX)
            if name != key and name in readers and name not in values:
                values[name] = readers[name](key, _from_text(text))
        return cls(**values)


def _from_text(text: str) -> Any:
    """Return what a value of the configuration means."""
    lowered = text.strip().lower()
    if lowered in ("true", "false"):
        return lowered == "true"
    for kind in (int, float):
        try:
            return kind(lowered)
        except ValueError:
            continue
    return text


def _number(name: str, value: Any) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InvalidInputError(
            f"Invalid value for {name}: {value!r} (expected a non-negative integer)"
        )
    return int(value)


def _share(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInputError(f"Invalid value for {name}: {value!r} (expected a number)")
    return float(value)


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidInputError(f"Invalid value for {name}: {value!r} (expected true or false)")
    return value


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str | float | int):
        raise InvalidInputError(f"Invalid value for {name}: {value!r} (expected a text)")
    return str(value)


def _ids(name: str, value: Any) -> frozenset[int]:
    return frozenset(_number(name, number) for number in value)


_READERS: Mapping[str, Callable[[str, Any], Any]] = {
    "int": _number,
    "int | None": _number,
    "float": _share,
    "bool": _flag,
    "bool | None": _flag,
    "str | None": _text,
    "frozenset[int]": _ids,
}


@dataclass(frozen=True, slots=True)
class CompactionTask:
    """Fragments that are rewritten together. ``read_version`` is the version they are from."""

    read_version: int
    fragments: tuple[Fragment, ...]

    @property
    def num_rows(self) -> int:
        """Live rows."""
        return sum(fragment.num_rows for fragment in self.fragments)

    @property
    def size_bytes(self) -> int:
        """Bytes of the data files that are rewritten, as far as the manifest knows."""
        return sum(file.size_bytes for fragment in self.fragments for file in fragment.files)


def plan_compaction(
    snapshot: Snapshot, indices: Iterable[IndexMetadata], options: CompactionOptions
) -> list[CompactionTask]:
    """Find the fragments that are worth rewriting.

    ``indices`` cover what they cover now (table.indices.read_indices). Raises NotSupportedError.
    """
    file_version_of(added_version(snapshot.manifest, options.data_storage_version))  # refuses
    on_columns = [index for index in indices if not index.is_system]
    covers = [index.fragment_ids() for index in on_columns]
    fixed = BitMap() if options.defer_index_remap is False else covered_by_graphs(on_columns)
    has_row_ids = bool(snapshot.manifest.reader_feature_flags & STABLE_ROW_IDS)
    runs: list[list[tuple[Fragment, bool]]] = [[]]
    last: tuple[bool, ...] | None = None
    for fragment in snapshot.manifest.fragments:
        coverage = tuple(covered is None or fragment.id in covered for covered in covers)
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
    covered = BitMap()
    for index in indices:
        if is_graph(index):
            covered |= index.fragment_ids() or BitMap()
    return covered


def is_graph(index: IndexMetadata) -> bool:
    """Return whether an index holds a graph of vectors; old ones do not say, so they may."""
    kind = index_type(index)
    return "HNSW" in kind or kind == "Vector"


def _reasons(fragment: Fragment, options: CompactionOptions) -> tuple[bool, bool]:
    """Return whether a fragment is rewritten by itself, and whether it joins neighbours."""
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
    for entry in run:
        part.append(entry)
        rows += entry[0].num_rows
        left -= entry[0].num_rows
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
        if any(
            most is not None and used_size > most
            for used_size, most in zip(used, limits, strict=True)
        ):
            return
        yield task


_BYTES_PER_FILE = WriteOptions().max_bytes_per_file


@dataclass(frozen=True, slots=True)
class CompactionMetrics:
    """What a compaction replaced. Files are data files and deletion files.

    Examples:
        >>> ds.optimize.compact_files()
        CompactionMetrics(fragments_removed=2, fragments_added=1, files_removed=2, files_added=1)
    """

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
        return sum(new_fragment.physical_rows for new_fragment in self.new_fragments)

    @property
    def num_deleted_rows(self) -> int:
        """Rows that are gone now."""
        return sum(old_fragment.num_deleted_rows for old_fragment in self.old_fragments)


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
            for name, arrays in lineage.items() if has_ids else ():
                arrays.append(batch.column(name).to_numpy(zero_copy_only=False))
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
    deletions = sum(fragment.deletion_file is not None for fragment in fragments)
    return deletions + sum(len(fragment.files) for fragment in fragments)


def _rows(
    snapshot: Snapshot, task: CompactionTask, options: CompactionOptions, extras: list[str]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task, in large batches unless a size is given; they span fragments."""
    columns = [_quoted(name) for name in snapshot.manifest.schema.names]
    projection = project(snapshot.manifest.schema, [*columns, *extras])
    tasks = plan_tasks(snapshot, fragments=task.fragments)
    for batch, _ in scan_windows(snapshot, projection, tasks, once=True):
        yield from cut(batch, options.batch_size or max(batch.num_rows, 1))
        del batch
        pa.default_memory_pool().release_unused()  # what decoding took: the next group may differ


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`" if not name.isidentifier() else name


# --- where rows were, what they are ---------------------------------------------------------------


def _row_addrs(snapshot: Snapshot, fragments: Sequence[Fragment]) -> bytes | None:
    ids = [fragment.id for fragment in fragments]
    if ids != sorted(ids):
        return None
    return address_map(
        (fragment.id, _live(snapshot, fragment)) for fragment in fragments if fragment.num_rows
    )


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
    stamped, start = [], 0
    for fragment in fragments:
        stop = start + fragment.physical_rows
        stamped.append(
            replace(
                fragment,
                created_at_version_meta=_recorded(created[start:stop]),
                last_updated_at_version_meta=_recorded(updated[start:stop]),
            )
        )
        start = stop
    return stamped


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(parts) if parts else np.zeros(0, np.uint64)


def _recorded(versions: np.ndarray) -> RowDatasetVersionMeta:
    sequence = RowVersionSequence.from_numpy(versions.astype(np.uint64))
    return RowDatasetVersionMeta.inline(sequence.to_bytes())
