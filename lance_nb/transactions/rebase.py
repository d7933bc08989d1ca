"""Rebase: make our transaction fit what others have committed since it was made.

Every transaction since our read version is checked (conflict_grid.py). Then

* deletions in the same fragment are merged, if the fragment still has the same data files, we know
  which rows we delete, and nobody else deleted one of them. The union of both becomes a new
  deletion file; a fragment without a row left is removed;
* an index whose field was rewritten in place leaves the fragments concerned;
* the fragment-reuse index and the index of write-ahead logs exist once: whoever commits second
  includes what the other added.

A rebased Delete or Update carries the version it was rebased onto as its read version, as in
pylance.

Where versions have been cleaned up, nothing says what changed in them. Some changes depend on
little, and the two versions around the gap say whether that is as it was: an append needs the
columns that it fills, a settings change the keys that it sets, an overwrite nothing. Everything
else has to be planned again on the newest version. pylance does not look at cleaned-up versions, so
that there a settings change silently wins over one of the same key.

Limits: a transaction that was committed unchanged over others keeps the read version it had. The
message of a Rewrite does not hold its fragment-reuse index; it is read from the versions before and
after. An update of every column may be taken for an upsert, which costs a retry. Across a gap, an
overwrite with the same columns cannot be told from a compaction: rows are appended after either.
Source: specification of transactions, section "Rebase Mechanism"; ``update_config``, ``insert`` and
``commit`` of pylance 14.0.2, also on handles whose successor versions were cleaned up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyroaring import BitMap

from lance_nb.errors import VersionNotFoundError
from lance_nb.format.deletion_vector import DeletionVector
from lance_nb.format.feature_flags import STABLE_ROW_IDS
from lance_nb.format.fragment import DeletionFile, Fragment, InlineSequence
from lance_nb.format.fragment_reuse import (
    REUSE_INDEX,
    inline_details,
    new_fragment_ids,
    with_newest_entries,
    without_cleaned_entries,
)
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.format.manifest import Manifest
from lance_nb.format.merged_logs import WAL_INDEX, with_merged_logs
from lance_nb.format.schema import Field
from lance_nb.table.snapshot import storage_version
from lance_nb.transactions.conflict_grid import check, conflict_error
from lance_nb.transactions.conflict_rules import Circumstances, Conflict, Verdict, enumerate_ids
from lance_nb.transactions.operation import (
    CONFIG,
    FIELD_METADATA,
    SCHEMA_METADATA,
    TABLE_METADATA,
    Operation,
    Settings,
    Snapshotted,
)
from lance_nb.transactions.operations.append import Append
from lance_nb.transactions.operations.create_index import CreateIndex
from lance_nb.transactions.operations.delete import Delete
from lance_nb.transactions.operations.overwrite import Overwrite
from lance_nb.transactions.operations.rewrite import Rewrite
from lance_nb.transactions.operations.update import Update, UpdateMode
from lance_nb.transactions.operations.update_config import UpdateConfig
from lance_nb.transactions.operations.update_mem_wal_state import UpdateMemWalState
from lance_nb.transactions.row_lineage import row_ids_of
from lance_nb.transactions.transaction import Transaction
from lance_nb.value_classes import dataclass

Theirs = Sequence[tuple[int, Operation]]
_NOT_KNOWN = "it was removed in the meantime"


@dataclass(frozen=True, slots=True)
class RebaseContext:
    """What rebasing may look at, and the one thing it writes.

    ``current`` is the newest version, which the rebased transaction will follow. ``load_version``
    gives any version of this branch. ``read_deletions`` gives the deletion vector of a fragment
    (of ``current`` or older), empty if nothing is deleted. ``write_deletions`` writes a vector as a
    new durable deletion file: arguments are fragment id, read version and vector.
    ``affected_rows``: row offsets by fragment id that our operation deletes, None if not known.
    """

    current: Manifest
    indices: tuple[IndexMetadata, ...]
    load_version: Callable[[int], tuple[Manifest, tuple[IndexMetadata, ...]]]
    read_deletions: Callable[[Fragment], DeletionVector]
    write_deletions: Callable[[int, int, DeletionVector], DeletionFile]
    affected_rows: Mapping[int, DeletionVector] | None = None


def rebase(
    transaction: Transaction, theirs: Sequence[tuple[int, Transaction]], ctx: RebaseContext
) -> Transaction:
    """Return the transaction made to fit ``ctx.current``; unchanged if ``theirs`` is empty.

    ``theirs`` holds (version, transaction) of every version that our transaction has not been made
    to fit yet, oldest first. Raises CommitConflictError, RetryableCommitConflictError.
    """
    if not theirs:
        return transaction
    seen: list[tuple[int, Operation]] = []
    for version, other in theirs:
        operation = other.operation
        if isinstance(operation, Rewrite) and _depends_on_reuse_index(transaction.operation):
            operation = with_reuse_index(operation, version, ctx.load_version)
        conflict = check(
            transaction.operation, operation, _circumstances(transaction, version, operation, ctx)
        )
        if conflict.verdict >= Verdict.RETRYABLE:
            raise conflict_error(conflict, transaction.operation, operation, version)
        seen.append((version, operation))
    return _rebased(transaction, seen, ctx)


def _depends_on_reuse_index(ours: Operation) -> bool:
    """Return whether it matters what their rewrite did to the fragment-reuse index."""
    return ours.arm == "create_index" or (
        isinstance(ours, Rewrite) and ours.frag_reuse_index is not None
    )


def _rebased(transaction: Transaction, theirs: Theirs, ctx: RebaseContext) -> Transaction:
    ours = transaction.operation
    if isinstance(ours, Delete | Update):
        touched = _touched_by(theirs)
        mine = {updated_fragment.id for updated_fragment in ours.updated_fragments}
        operation, problem = merge_deletions(ours, mine & touched.keys(), ctx)
        if problem is not None:
            version, other = touched[problem.fragment_id]
            conflict = Conflict(Verdict.RETRYABLE, problem.text)
            raise conflict_error(conflict, ours, other, version)
        return replace(transaction, operation=operation, read_version=ctx.current.version)
    if isinstance(ours, CreateIndex):
        return replace(transaction, operation=rebase_index(ours, theirs, ctx.indices))
    if isinstance(ours, Rewrite):
        return replace(transaction, operation=rebase_rewrite(ours, theirs))
    return transaction


def _touched_by(theirs: Theirs) -> dict[int, tuple[int, Operation]]:
    """Return for each fragment that was touched the last version and operation that did."""
    return {
        fragment: (version, other)
        for version, other in theirs
        for fragment in other.footprint().touched
    }


def _circumstances(
    transaction: Transaction, version: int, theirs: Operation, ctx: RebaseContext
) -> Circumstances:
    return Circumstances(
        knows_rows=ctx.affected_rows is not None,
        both_insert=both_insert(
            transaction.operation,
            transaction.read_version,
            theirs,
            version=version,
            load=ctx.load_version,
        ),
    )


# --- deletions in the same fragment ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class UnmergeableDeletions:
    """Why the deletions of a fragment cannot be merged."""

    fragment_id: int
    text: str


def merge_deletions(
    ours: Delete | Update, fragment_ids: Iterable[int], ctx: RebaseContext
) -> tuple[Delete | Update, UnmergeableDeletions | None]:
    """Return our operation with merged deletions in the given fragments, or the first problem.

    No file is written unless all of them can be merged.
    """
    wanted_ids = sorted(fragment_ids)
    now = ctx.current.fragments.with_ids(wanted_ids)
    mine = {updated_fragment.id: updated_fragment for updated_fragment in ours.updated_fragments}
    vectors = {}
    for fragment_id in wanted_ids:
        vector = _merged_vector(ours, mine[fragment_id], now.get(fragment_id), ctx)
        if isinstance(vector, str):
            return ours, UnmergeableDeletions(fragment_id, f"fragment {fragment_id}: {vector}")
        vectors[fragment_id] = vector
    emptied = [
        fragment_id
        for fragment_id in wanted_ids
        if len(vectors[fragment_id]) == now[fragment_id].physical_rows
    ]
    for fragment_id in wanted_ids:
        if fragment_id not in emptied:
            version = ctx.current.version
            file = ctx.write_deletions(fragment_id, version, vectors[fragment_id])
            mine[fragment_id] = replace(now[fragment_id], deletion_file=file)
    remaining = tuple(fragment for key, fragment in mine.items() if key not in emptied)
    if isinstance(ours, Delete):
        removed = (*ours.deleted_fragment_ids, *emptied)
        return replace(ours, updated_fragments=remaining, deleted_fragment_ids=removed), None
    removed = (*ours.removed_fragment_ids, *emptied)
    return replace(ours, updated_fragments=remaining, removed_fragment_ids=removed), None


def _merged_vector(
    ours: Delete | Update, mine: Fragment, now: Fragment | None, ctx: RebaseContext
) -> DeletionVector | str:
    """Return all deleted rows of the fragment, or why they cannot be merged."""
    if now is None:
        return "it no longer exists"
    if isinstance(ours, Update) and ours.update_mode is UpdateMode.REWRITE_COLUMNS:
        return "ours rewrites its columns, and rows in it were changed"
    if _files(mine) != _files(now):
        return "its data files have changed"
    rows = (ctx.affected_rows or {}).get(mine.id)
    if rows is None:
        return "which of its rows ours changes is not known"
    deleted = ctx.read_deletions(now)
    offsets = rows.offsets()
    shared = offsets[deleted.contains(offsets)]
    if len(shared):
        return f"both change {enumerate_ids('row', shared.tolist())}"
    return deleted | rows


def _files(fragment: Fragment) -> list[tuple[object, ...]]:
    return [(file.path, file.fields, file.column_indices, file.base_id) for file in fragment.files]


# --- indices --------------------------------------------------------------------------------------


def rebase_index(
    ours: CreateIndex, theirs: Theirs, current: tuple[IndexMetadata, ...]
) -> CreateIndex:
    """Return our indices as they have to be after ``theirs``."""
    indices: list[IndexMetadata] = []
    for new_index in ours.added:
        index = new_index
        for _, other in theirs:
            if isinstance(other, Update):
                index = _without_updated(index, other)
            elif isinstance(other, UpdateMemWalState) and index.name == WAL_INDEX:
                details = with_merged_logs(index.details, other.compacted_sstables)
                index = replace(index, details=details)
            elif isinstance(other, Rewrite) and index.name == REUSE_INDEX:
                index = _with_their_rewrite(index, other)
        indices.append(index)
    removed = (*ours.removed, *_replaced_singletons(ours, current))
    return CreateIndex(indices, removed, ours.unknown)


def rebase_rewrite(ours: Rewrite, theirs: Theirs) -> Rewrite:
    """Return our rewrite with its fragment-reuse index as cleaned up by ``theirs``."""
    mine = ours.frag_reuse_index
    cleaned = [
        inline_details(index)
        for _, other in theirs
        if isinstance(other, CreateIndex)
        for index in other.added
        if index.name == REUSE_INDEX
    ]
    if mine is None or not cleaned:
        return ours
    details = without_cleaned_entries(inline_details(mine), cleaned)
    return replace(ours, frag_reuse_index=_with_details(mine, details))


def with_reuse_index(
    rewrite: Rewrite, version: int, load_version: Callable[[int], Snapshotted]
) -> Rewrite:
    """Return a rewrite committed as ``version`` with the fragment-reuse index that came with it."""
    if rewrite.frag_reuse_index is not None:
        return rewrite
    _, after = load_version(version)
    reuse_index = next((index for index in after if index.name == REUSE_INDEX), None)
    if reuse_index is None:
        return rewrite
    _, before = load_version(version - 1)
    is_known = any(index.uuid == reuse_index.uuid for index in before)
    return rewrite if is_known else replace(rewrite, frag_reuse_index=reuse_index)


def _without_updated(index: IndexMetadata, update: Update) -> IndexMetadata:
    covered = index.fragment_ids()
    depends = not set(update.fields_modified).isdisjoint((*index.fields, *index.covering_fields))
    if covered is None or not depends:
        return index
    left = covered - BitMap(updated_fragment.id for updated_fragment in update.updated_fragments)
    return replace(index, fragment_bitmap=left.serialize())


def _with_their_rewrite(index: IndexMetadata, rewrite: Rewrite) -> IndexMetadata:
    added = rewrite.frag_reuse_index
    if added is None:
        return index
    details = with_newest_entries(inline_details(index), [inline_details(added)])
    return _with_details(index, details)


def _with_details(index: IndexMetadata, details: bytes) -> IndexMetadata:
    bitmap = BitMap(new_fragment_ids(details)).serialize()
    return replace(index, details=details, content=b"", fragment_bitmap=bitmap)


def _replaced_singletons(
    ours: CreateIndex, current: tuple[IndexMetadata, ...]
) -> list[IndexMetadata]:
    """Return the singleton indices that are there now and that ours replaces without saying so."""
    names = {index.name for index in ours.added} & {REUSE_INDEX, WAL_INDEX}
    named_uuids = {index.uuid for index in (*ours.removed, *ours.added)}
    return [index for index in current if index.name in names and index.uuid not in named_uuids]


LoadVersion = Callable[[int], tuple[Manifest, Any]]


# --- inserted rows --------------------------------------------------------------------------------


def inserts_rows(update: Update, before: Manifest) -> bool:
    """Return whether ``update``, made for the version ``before``, may add rows (an upsert).

    A plain update writes as many rows anew as it deletes; what it writes beyond that is new. With
    stable row ids, new rows are those without an id. Without, an upsert that also deletes rows is
    known by the fields that it names: all of them, as upserts of pylance and ours do.
    """
    written = sum(new_fragment.physical_rows for new_fragment in update.new_fragments)
    if not written or update.update_mode is UpdateMode.REWRITE_COLUMNS:
        return written > 0
    if before.reader_feature_flags & STABLE_ROW_IDS:
        return any(_has_new_rows(new_fragment) for new_fragment in update.new_fragments)
    if {field.id for field in before.schema.walk()} <= set(
        update.fields_for_preserving_frag_bitmap
    ):
        return True
    fragments = before.fragments.with_ids(
        {
            *update.removed_fragment_ids,
            *(updated_fragment.id for updated_fragment in update.updated_fragments),
        }
    )
    moved = sum(
        fragments[fragment_id].num_rows
        for fragment_id in update.removed_fragment_ids
        if fragment_id in fragments
    )
    moved += sum(
        _num_deleted(updated_fragment) - _num_deleted(fragments[updated_fragment.id])
        for updated_fragment in update.updated_fragments
        if updated_fragment.id in fragments
        and updated_fragment.id not in update.removed_fragment_ids
    )
    return written > moved


def _has_new_rows(fragment: Fragment) -> bool:
    if fragment.row_ids is None:
        return True
    if not isinstance(fragment.row_ids, InlineSequence):
        return False
    return row_ids_of(fragment).num_rows < fragment.physical_rows


def both_insert(
    ours: Operation, read_version: int, theirs: Operation, version: int, load: LoadVersion
) -> bool:
    """Return whether both are upserts that added rows, ours without saying with which keys.

    Ours was made for ``read_version``, theirs became ``version``.
    """
    if not (isinstance(ours, Update) and isinstance(theirs, Update)):
        return False
    if ours.inserted_rows is not None or not (ours.new_fragments and theirs.new_fragments):
        return False
    try:
        before_ours, _ = load(read_version)
        before_theirs, _ = load(version - 1)
    except VersionNotFoundError:  # cleaned up meanwhile: nothing proves that they do not
        return True
    return inserts_rows(ours, before_ours) and inserts_rows(theirs, before_theirs)


def _num_deleted(fragment: Fragment) -> int:
    return 0 if fragment.deletion_file is None else fragment.deletion_file.num_deleted_rows


# --- versions that have been cleaned up -----------------------------------------------------------


def gap_problem(operation: Operation, before: Manifest | None, current: Manifest) -> str | None:
    """Return why a change may not fit ``current`` over a gap, None if it does.

    ``before`` is the version that the change was made for, None if it is gone too.
    """
    if isinstance(operation, Overwrite):
        return None
    if isinstance(operation, UpdateConfig):
        return next(_settings_problems(operation.footprint().settings, before, current), None)
    if isinstance(operation, Append) and before is not None:
        return next(_append_problems(operation, before, current), None)
    return _NOT_KNOWN


def _settings_problems(
    settings: Settings, before: Manifest | None, current: Manifest
) -> Iterator[str]:
    for kind, field_id in sorted(settings.maps):
        if kind == FIELD_METADATA:
            yield from _field_problems(field_id, before, current)
    for kind, field_id in sorted(settings.replaced):
        was: Mapping[str, object] = {} if before is None else _map(before, kind, field_id)
        if _map(current, kind, field_id) != was:
            yield f"the {kind}, which would be replaced, is not what it was"
    for kind, field_id, key in sorted(settings.keys):
        value = None if before is None else _map(before, kind, field_id).get(key)
        if _map(current, kind, field_id).get(key) != value:
            yield f"{kind} key {key!r} is not what it was"


def _field_problems(field_id: int, before: Manifest | None, current: Manifest) -> Iterator[str]:
    if before is None:
        yield _NOT_KNOWN
        return
    was, now = before.schema.field_by_id(field_id), current.schema.field_by_id(field_id)
    if was is None or now is None or (was.name, was.logical_type) != (now.name, now.logical_type):
        yield f"field {field_id} is not the column that it was"


def _map(manifest: Manifest, kind: str, field_id: int) -> Mapping[str, object]:
    if kind == CONFIG:
        return manifest.config
    if kind == TABLE_METADATA:
        return manifest.table_metadata
    if kind == SCHEMA_METADATA:
        return manifest.schema.metadata
    field = manifest.schema.field_by_id(field_id)
    return {} if field is None else field.metadata


def _append_problems(operation: Append, before: Manifest, current: Manifest) -> Iterator[str]:
    if storage_version(before) != storage_version(current):
        yield "the version of the data files is not what it was"
    for field in before.schema.walk():
        now = current.schema.field_by_id(field.id)
        if now is None or _kind(field) != _kind(now) or now.nullable < field.nullable:
            yield f"column {before.schema.path_of(field.id)!r} is not what it was"
    for field in current.schema.walk():
        if before.schema.field_by_id(field.id) is None and not field.nullable:
            yield f"column {field.name!r} was added, which must not be null"
    new = operation.fragments
    if _paths(new) & _paths(current.fragments[-len(new) :] if new else ()):
        yield "the files of this change are in the dataset already"


def _kind(field: Field) -> tuple[str, str, int]:
    return field.name, field.logical_type, field.parent_id


def _paths(fragments: Iterable[Fragment]) -> set[str]:
    return {file.path for fragment in fragments for file in fragment.files}
