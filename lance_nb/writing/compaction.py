"""Compaction: small fragments become one, deleted rows are dropped.

In one call, or step by step: options make a plan, a plan has tasks, each task is run by itself,
anywhere, and a commit takes the results of the tasks of one plan, all or some. What others have
committed since is no obstacle unless they changed one of the fragments: then nothing is committed.

A plan is a list of tasks; a task is a run of neighbouring fragments that are rewritten together, in
order. Fragments with fewer rows than the target join their neighbours; those with many deletions
are rewritten by themselves if need be. Fragments are joined only when the same indices cover them,
so that an index covers a new fragment wholly or not at all. Fragments with deleted rows that an
HNSW index covers stay as they are: without those rows its graph could not be read any more. With
``defer_index_remap=False`` the index loses them instead.

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

Where row ids are not stable, files of indices name rows by address. If the moves of a rewrite are
recorded in the fragment-reuse index, readers go on using those files; if not, the rows leave the
coverage of indices. Each group of fragments is recorded, or not, as a whole. A recorded rewrite
makes two versions, because the record names the ids of the new fragments: one sets them aside, one
puts them in.

Not supported: ``compaction_mode="force_binary_copy"`` (``"try_binary_copy"`` re-encodes, as it
may), data files of another version than the dataset's.
Limits: of the tasks, those count that fit ``max_source_...`` one after the other, oldest first.
Memory holds a batch of rows and what does not fill a page yet. ``row_addrs`` is None with stable
row ids, and when the fragments are not in the order of their ids. A result is of the dataset and
branch it was made for. A group with deleted rows that an HNSW index covers is not recorded: its
graph would name vectors that no longer exist, and pylance 14.0.2 cannot read such an index any
more. With stable row ids nothing can be recorded (a feature flag that pylance 14.0.2 refuses).
Source: ``lance.optimize`` and ``LanceDataset.optimize`` of pylance 14.0.2, with the documentation
of ``CompactionOptions``; ``defer_index_remap``, measured with every kind of index.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, fields, replace
from typing import Any, Self

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lance_nb.errors import (
    InvalidInputError,
    NotSupportedError,
    RetryableCommitConflictError,
    TooMuchWriteContentionError,
)
from lance_nb.file.versions import file_version_of
from lance_nb.file.writer import FileOptions
from lance_nb.format.checksums import wants_checksums
from lance_nb.format.feature_flags import STABLE_ROW_IDS
from lance_nb.format.fragment import DataFile, DeletionFileType, Fragment, RowDatasetVersionMeta
from lance_nb.format.fragment_reuse import (
    DETAILS_URL,
    REUSE_INDEX,
    MovedGroup,
    address_map,
    inline_details,
    new_fragment_ids,
    with_entry,
)
from lance_nb.format.index_metadata import IndexMetadata, index_type
from lance_nb.format.row_sequences import RowVersionSequence
from lance_nb.session.session import Session
from lance_nb.table.blob_copies import BlobCopies
from lance_nb.table.deletions import read_deletions
from lance_nb.table.indices import read_indices
from lance_nb.table.projection import CREATED_AT, LAST_UPDATED_AT, ROW_ADDRESS, ROW_ID, project
from lance_nb.table.refs import Target
from lance_nb.table.scan import cut, scan_windows
from lance_nb.table.scan_tasks import plan_tasks
from lance_nb.table.snapshot import Snapshot, added_version
from lance_nb.transactions.commit_options import CommitOptions
from lance_nb.transactions.environment import Environment
from lance_nb.transactions.manifest_building import coverage
from lance_nb.transactions.operations.reserve_fragments import ReserveFragments
from lance_nb.transactions.operations.rewrite import Rewrite, RewriteGroup
from lance_nb.value_classes import dataclass
from lance_nb.writing.committing import (
    DEFAULTS,
    NO_PROPERTIES,
    commit_operation,
    commit_staged,
    replanned,
)
from lance_nb.writing.fragment_writer import FragmentWriter, UncommittedFiles, WriteOptions, copying
from lance_nb.writing.progress import Progress, ProgressCounter
from lance_nb.writing.rewriting import with_row_ids
from lance_nb.writing.staged import Replacement, StagedWrite

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


def recorded_groups(
    indices: Sequence[IndexMetadata],
    groups: Sequence[Rewritten],
    *,
    defer: bool | None,
    has_row_ids: bool,
) -> list[int]:
    """Return the positions of the groups to record, none if no index would profit.

    ``indices`` cover what they cover now. Raises NotSupportedError when recording is asked for and
    rows have stable ids, RetryableCommitConflictError when an index covers a part of a group.
    """
    if has_row_ids and defer:
        raise NotSupportedError(
            "defer_index_remap=True: rows of this dataset have stable ids, so that indices on them "
            "need no remapping; leave the argument out"
        )
    if has_row_ids or defer is False:
        return []
    on_columns = [index for index in indices if not index.is_system]
    covered = [_covering(on_columns, group) for group in groups]
    positions = [
        number
        for number, group in enumerate(groups)
        if group.row_addrs is not None
        and not (group.num_deleted_rows and any(map(is_graph, covered[number])))
    ]
    return positions if any(covered[position] for position in positions) else []


def with_record(
    indices: Sequence[IndexMetadata],
    version: int,
    moved: Sequence[MovedGroup],
    *,
    uuid: str,
    created_at_ms: int,
) -> IndexMetadata:
    """Return the fragment-reuse index (the one in ``indices``, or a new one) with one more entry.

    ``version`` is the one that the rewrite is committed on. Raises NotSupportedError.
    """
    old = next((index for index in indices if index.name == REUSE_INDEX), None)
    details = with_entry(b"" if old is None else inline_details(old), version, moved)
    return IndexMetadata(
        uuid=uuid,
        name=REUSE_INDEX,
        fields=(),
        dataset_version=version,
        fragment_bitmap=coverage(new_fragment_ids(details)),
        details_url=DETAILS_URL,
        details=details,
        index_version=0,
        created_at_ms=created_at_ms,
    )


def _covering(indices: Sequence[IndexMetadata], group: Rewritten) -> list[IndexMetadata]:
    ids = BitMap(old_fragment.id for old_fragment in group.old_fragments)
    covering = []
    for index in indices:
        covered = index.fragment_ids()
        if covered is None:
            continue
        inside = len(covered & ids)
        if 0 < inside < len(ids):
            raise RetryableCommitConflictError(
                f"fragments {list(ids)} were compacted together, but index {index.name!r} covers "
                f"only {list(covered & ids)} of them by now: plan the compaction again"
            )
        if inside:
            covering.append(index)
    return covering


_COMMITS_MAX = 10


def plan(snapshot: Snapshot, options: CompactionOptions) -> list[CompactionTask]:
    """Find the tasks. Raises NotSupportedError."""
    return plan_compaction(snapshot, read_indices(snapshot), options)


def execute(
    session: Session,
    snapshot: Snapshot,
    task: CompactionTask,
    options: CompactionOptions,
    progress: Progress | None = None,
) -> Rewritten:
    """Run one task on the version it was planned on; nothing is committed.

    Raises InvalidInputError for a task of another dataset or branch.
    """
    if snapshot.version != task.read_version:
        snapshot = session.load(Target(snapshot.branch, task.read_version))
    ids = [fragment.id for fragment in task.fragments]
    fragments_by_id = snapshot.manifest.fragments.with_ids(ids)
    for fragment in task.fragments:
        if fragments_by_id.get(fragment.id) != fragment:
            raise InvalidInputError(
                f"this task does not belong to {session.uri!r}: fragment {fragment.id} of version "
                f"{task.read_version} is different there"
            )
    counter = ProgressCounter(task.num_rows, progress)
    version = file_version_of(added_version(snapshot.manifest, options.data_storage_version))
    return run_task(snapshot, task, options, file_version=version, progress=counter.add)


def compact(
    session: Session,
    snapshot: Snapshot,
    options: CompactionOptions,
    progress: Progress | None = None,
) -> tuple[Snapshot, CompactionMetrics]:
    """Compact and commit; nothing to do makes no version.

    Raises NotSupportedError, CommitConflictError, TooMuchWriteContentionError.
    """

    def attempt(base: Snapshot) -> tuple[Snapshot, CompactionMetrics]:
        with UncommittedFiles(base.locations.home) as files:
            results = run(base, options, progress)
            if not results:
                return base, CompactionMetrics()
            files.add(_files(results))
            return commit(session, base.branch, results, options=options, offered=files.offer)

    return replanned(session, snapshot, attempt)


def run(
    snapshot: Snapshot, options: CompactionOptions, progress: Progress | None = None
) -> list[Rewritten]:
    """Plan and run all tasks; nothing is committed. After an error no new file remains."""
    tasks = plan(snapshot, options)
    if not tasks:
        return []
    version = file_version_of(added_version(snapshot.manifest, options.data_storage_version))
    counter = ProgressCounter(sum(task.num_rows for task in tasks), progress)
    results: list[Rewritten] = []
    with UncommittedFiles(snapshot.locations.home) as files:
        for task in tasks:
            results.append(
                run_task(snapshot, task, options, file_version=version, progress=counter.add)
            )
            files.add(_files(results[-1:]))
    return results


def _files(results: Iterable[Rewritten]) -> Iterator[DataFile]:
    return (file for result in results for part in result.new_fragments for file in part.files)


def commit(
    session: Session,
    branch: str | None,
    results: Sequence[Rewritten],
    options: CompactionOptions,
    offered: Callable[[], None] = lambda: None,
    *,
    commit_options: CommitOptions = DEFAULTS,
    properties: Mapping[str, str] = NO_PROPERTIES,
) -> tuple[Snapshot, CompactionMetrics]:
    """Put the new fragments in the place of the old ones, on the newest version.

    ``offered`` is called before the new files are offered to a commit. Raises InvalidInputError,
    RetryableCommitConflictError when others changed what was rewritten (plan again),
    TooMuchWriteContentionError.
    """
    base = session.load(Target(branch, None))
    if not results:
        return base, CompactionMetrics()
    numbered: Sequence[RewriteGroup] | None = None
    conflict: RetryableCommitConflictError | None = None
    for _ in range(_COMMITS_MAX):
        _check_unchanged(base, results)
        recorded = recorded_groups(
            read_indices(base), results, defer=options.defer_index_remap,
            has_row_ids=bool(base.manifest.reader_feature_flags & STABLE_ROW_IDS),
        )  # fmt: skip
        if recorded and numbered is None:
            base, numbered = _reserve(session, base, results)
            continue  # others may have come in between
        operation = _operation(base, results, numbered, recorded)
        offered()
        try:
            staged = StagedWrite(base.version, operation)
            snapshot = commit_staged(
                session, branch, staged, options=commit_options, properties=properties
            )
        except RetryableCommitConflictError as error:
            conflict, base = error, session.load(Target(branch, None))
            continue
        return snapshot, sum((result.metrics for result in results), CompactionMetrics())
    raise TooMuchWriteContentionError(
        f"gave up committing a compaction after {_COMMITS_MAX} attempts; the last conflict was: "
        f"{conflict}"
    )


def _operation(
    base: Snapshot,
    results: Sequence[Rewritten],
    numbered: Sequence[RewriteGroup] | None,
    recorded: Sequence[int],
) -> Rewrite:
    if numbered is None:
        groups = tuple(
            RewriteGroup(result.old_fragments, result.new_fragments) for result in results
        )
        return Rewrite(groups)
    moved = [
        MovedGroup(rows, numbered[position].old_fragments, numbered[position].new_fragments)
        for position in recorded
        if (rows := results[position].row_addrs) is not None
    ]
    if not moved:
        return Rewrite(tuple(numbered))
    environment = Environment()
    index = with_record(
        read_indices(base),
        base.version,
        moved,
        uuid=environment.new_uuid(),
        created_at_ms=environment.clock() // 1_000_000,
    )
    return Rewrite(tuple(numbered), frag_reuse_index=index)


def _reserve(
    session: Session, base: Snapshot, results: Sequence[Rewritten]
) -> tuple[Snapshot, list[RewriteGroup]]:
    """Set ids aside for the new fragments, as a version of its own, and give them out."""
    count = sum(len(result.new_fragments) for result in results)
    base = commit_operation(session, base, ReserveFragments(count))
    next_id = (base.manifest.max_fragment_id or 0) - count + 1
    groups = []
    for result in results:
        new = tuple(
            replace(part, id=next_id + position)
            for position, part in enumerate(result.new_fragments)
        )
        groups.append(RewriteGroup(result.old_fragments, new))
        next_id += len(new)
    return base, groups


def _check_unchanged(base: Snapshot, results: Iterable[Rewritten]) -> None:
    """Refuse results whose old fragments are not in the newest version as they were read.

    A column that a restore or a revert brought back makes no other fragment: its values are in the
    old files, but were not read.
    """
    seen: set[int] = set()
    leaves = {field.id: field.name for field in base.manifest.schema.walk() if not field.children}
    for result in results:
        fragments_by_id = base.manifest.fragments.with_ids(
            old_fragment.id for old_fragment in result.old_fragments
        )
        for old_fragment in result.old_fragments:
            if old_fragment.id in seen:
                raise InvalidInputError(
                    f"fragment {old_fragment.id} appears in two of the results to commit"
                )
            seen.add(old_fragment.id)
            if fragments_by_id.get(old_fragment.id) != old_fragment:
                change = "changed" if old_fragment.id in fragments_by_id else "removed"
                raise RetryableCommitConflictError(
                    f"fragment {old_fragment.id} was compacted as it was in version "
                    f"{result.read_version}, "
                    f"but it has been {change} since (the newest version is {base.version}); "
                    "nothing was committed. Plan the compaction again"
                )
        left_out = _fields(result.old_fragments) - _fields(result.new_fragments)
        for number in sorted(left_out & leaves.keys()) if result.new_fragments else ():
            raise RetryableCommitConflictError(
                f"column {leaves[number]!r} of version {base.version} was not there in version "
                f"{result.read_version}, in which fragments were compacted; nothing was committed. "
                "Plan the compaction again"
            )


def _fields(fragments: Iterable[Fragment]) -> set[int]:
    return {number for fragment in fragments for file in fragment.files for number in file.fields}


@dataclass(frozen=True, slots=True)
class StagedCompaction(Replacement):
    """A compaction that is run and not committed; its commit may take two versions."""

    results: tuple[Rewritten, ...] = ()
    options: CompactionOptions = field(default_factory=CompactionOptions)

    def commit(
        self,
        session: Session,
        branch: str | None,
        commit_options: CommitOptions,
        properties: Mapping[str, str],
    ) -> Snapshot:
        """Commit it, as ``Compaction.commit`` does."""
        committed, _ = commit(
            session,
            branch,
            self.results,
            self.options,
            commit_options=commit_options,
            properties=properties,
        )
        return committed


def stage(
    snapshot: Snapshot, options: CompactionOptions, progress: Progress | None
) -> StagedCompaction:
    """Plan and run a compaction. Raises InvalidInputError when there is nothing to do."""
    results = run(snapshot, options, progress)
    if not results:
        raise InvalidInputError("no fragments need compaction with these options")
    return staged(results, options)


def staged(results: Sequence[Rewritten], options: CompactionOptions) -> StagedCompaction:
    """Return what tasks have rewritten as an edit that is not committed."""
    new = tuple(part for result in results for part in result.new_fragments)
    groups = tuple(RewriteGroup(result.old_fragments, result.new_fragments) for result in results)
    return StagedCompaction(Rewrite(groups), new, tuple(results), options)
