"""Build the manifest of a new version from the current one.

``Draft`` holds the next version while it is built: operations change its fragments, schema, indices
and maps and then ``finish`` it.

Rules: version numbers are consecutive. New fragments get the ids after the highest ever used, and
with stable row ids their row ids and versions; fragments are in the order of their ids. Fragments
that are not changed stay bytes. Every manifest carries all indices again.

The two words of feature flags are computed from what the version holds. Deletion files, stable row
ids and base paths are announced to readers and writers, a config and inline-only transactions to
writers. Some bits stay once they are set (``STICKY``), because what they announce cannot be seen in
the manifest.

An index covers the fragments in its bitmap. A fragment whose indexed field changed leaves it. With
stable row ids, a fragment of moved rows is added and a rewritten group is replaced by its
successors, if the index knows rows by id; without, only a remapped copy of the index covers those.
Ids of removed fragments stay in: readers intersect with the live ones. An index without a bitmap is
carried as it is; system indices are never dropped here.

Limits: a manifest with fields of a newer writer is not changed: the change might make them wrong.
Source: lance-table, also ``feature_flags`` and ``transaction``; pylance 14.0.2 measured version by
version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from pyroaring import BitMap

from lance_nb.errors import DatasetNotFoundError, InvalidInputError, NotSupportedError
from lance_nb.file.versions import recorded_version
from lance_nb.format.feature_flags import (
    BASE_PATHS,
    COVERING_INDEX_METADATA,
    DELETION_FILES,
    FIELD_IDS_NOT_REUSED,
    MANAGED_BLOBS,
    MIXED_FILE_VERSIONS,
    NO_TRANSACTION_FILES,
    STABLE_ROW_IDS,
    TABLE_CONFIG,
    TAGGED_FRAGMENT_REUSE,
    check_writable,
)
from lance_nb.format.fragment import TOMBSTONE, Fragment
from lance_nb.format.fragment_list import FragmentList
from lance_nb.format.fragment_reuse import follow
from lance_nb.format.index_metadata import IndexFile, IndexMetadata
from lance_nb.format.manifest import DataStorageFormat, Manifest, WriterVersion
from lance_nb.format.merged_logs import WAL_INDEX, MergedLog, with_merged_logs
from lance_nb.format.schema import Schema, check_primary_key
from lance_nb.format.wire import U32_MAX
from lance_nb.table.snapshot import storage_version
from lance_nb.transactions.old_manifests import may_need_repair
from lance_nb.transactions.operation import ApplyContext, Built, Operation, operation_name
from lance_nb.transactions.row_lineage import assign_row_ids, stamp_new_rows
from lance_nb.version import __version__

STICKY = MIXED_FILE_VERSIONS | TAGGED_FRAGMENT_REUSE | MANAGED_BLOBS | FIELD_IDS_NOT_REUSED


def flag_words(
    manifest: Manifest,
    indices: list[IndexMetadata],
    *,
    row_ids: bool,
    deletions: bool,
    mixed_versions: bool,
    no_transaction_file: bool,
) -> tuple[int, int]:
    """Return (reader word, writer word). ``manifest`` still has the words of the version before."""
    flags = 0
    if mixed_versions:
        flags |= MIXED_FILE_VERSIONS
    if deletions:
        flags |= DELETION_FILES
    if row_ids:
        flags |= STABLE_ROW_IDS
    if manifest.base_paths:
        flags |= BASE_PATHS
    if any(index.covering_fields for index in indices):
        flags |= COVERING_INDEX_METADATA
    reader = flags | manifest.reader_feature_flags & STICKY
    writer = flags | manifest.writer_feature_flags & STICKY
    if manifest.config:
        writer |= TABLE_CONFIG
    if no_transaction_file:
        writer |= NO_TRANSACTION_FILES
    return reader, writer


WRITER = WriterVersion("lance_nb", __version__)
"""What manifests say about who wrote them; the version is that of the package."""


class Draft:
    """The next version of a dataset while it is being built.

    ``manifest`` and ``indices`` may be replaced by operations; ``finish`` sets everything that
    follows from them.
    """

    def __init__(self, ctx: ApplyContext, current: Manifest) -> None:
        self.ctx = ctx
        self.current = current
        self.manifest = current
        self.indices: list[IndexMetadata] = follow(ctx.indices)
        self.version = ctx.options.detached_version or current.version + 1
        self.begins_row_ids = False
        self._only_appended = True
        self._fresh: dict[int, Fragment] = {}
        self._max_fragment_id = current.max_fragment_id
        if self._max_fragment_id is None or may_need_repair(current.writer_version):
            self.use_fragment_ids(current.fragments.counts().ids.tolist())

    @classmethod
    def of(cls, ctx: ApplyContext, operation: Operation) -> Draft:
        """Start from the current version. Raises DatasetNotFoundError, NotSupportedError."""
        if ctx.current is None:
            name = operation_name(operation.arm)
            raise DatasetNotFoundError("", f"{name} changes a dataset that exists")
        check_changeable(ctx.current)
        return cls(ctx, ctx.current)

    @property
    def has_row_ids(self) -> bool:
        """Whether rows have stable ids in this dataset, or from this version on."""
        if self.begins_row_ids:
            return True
        if self.current.version == 0:
            return self.ctx.options.stable_row_ids
        return bool(self.current.reader_feature_flags & STABLE_ROW_IDS)

    def set_schema(self, schema: Schema) -> None:
        """Make this the schema. Raises InvalidInputError for a primary key that is none."""
        check_primary_key(schema)
        allocated = self.manifest.max_allocated_field_id
        if allocated is not None:
            allocated = max(allocated, schema.max_field_id)
        self.manifest = replace(self.manifest, schema=schema, max_allocated_field_id=allocated)

    # --- fragments --------------------------------------------------------------------------------

    @property
    def max_fragment_id(self) -> int:
        """The highest fragment id ever used; -1 if there never was one."""
        return -1 if self._max_fragment_id is None else self._max_fragment_id

    def number(
        self, fragments: Iterable[Fragment], *, keep_reserved: bool = False
    ) -> list[Fragment]:
        """Give new ids to fragments; with ``keep_reserved`` only to those that come with id 0."""
        next_id = self.max_fragment_id + 1
        numbered = []
        for fragment in fragments:
            is_reserved = keep_reserved and fragment.id != 0
            numbered.append(fragment if is_reserved else replace(fragment, id=next_id))
            next_id += not is_reserved
        self.use_fragment_ids(fragment.id for fragment in numbered)
        return numbered

    def use_fragment_ids(self, fragment_ids: Iterable[int]) -> None:
        """Note that these ids are taken. Raises InvalidInputError beyond 32 bits."""
        highest = max(fragment_ids, default=-1)
        if highest > U32_MAX:
            raise InvalidInputError(f"fragment id {highest} does not fit 32 bits")
        if highest > self.max_fragment_id:
            self._max_fragment_id = highest

    def assign_row_ids(self, fragments: list[Fragment]) -> list[Fragment]:
        """Give row ids to rows that have none, if this dataset has row ids."""
        if not self.has_row_ids:
            return fragments
        assigned, next_row_id = assign_row_ids(fragments, self.manifest.next_row_id)
        self.manifest = replace(self.manifest, next_row_id=next_row_id)
        return assigned

    def add(self, fragments: Iterable[Fragment]) -> None:
        """Put fragments of new rows behind the others."""
        numbered = self.assign_row_ids(self.number(fragments))
        if self.has_row_ids:
            numbered = stamp_new_rows(numbered, self.version)
        self.append(numbered)

    def append(self, fragments: Iterable[Fragment]) -> None:
        """Put finished fragments behind the others."""
        fragments = [self._with_live_files(fragment) for fragment in fragments]
        self._fresh.update((fragment.id, fragment) for fragment in fragments)
        added = self.manifest.fragments.appended(fragments)
        self.manifest = replace(self.manifest, fragments=added)

    def change(self, changes: Mapping[int, Fragment | None]) -> None:
        """Replace fragments by id, in their places; None removes one. Unknown ids are ignored."""
        changes = {
            key: None if fragment is None else self._with_live_files(fragment)
            for key, fragment in changes.items()
        }
        fresh = [fragment for fragment in changes.values() if fragment is not None]
        self.set_fragments(self.manifest.fragments.replaced(changes), fresh)

    def change_known(self, updated: Iterable[Fragment], removed: Iterable[int]) -> None:
        """Replace and remove fragments that must be there. Raises InvalidInputError."""
        changes: dict[int, Fragment | None] = {fragment.id: fragment for fragment in updated}
        changes.update(dict.fromkeys(removed))
        num_known = len(self.manifest.fragments.positions_of(changes))
        if num_known < len(changes):
            known_fragments = self.manifest.fragments.with_ids(changes)
            missing = min(changes.keys() - known_fragments.keys())
            raise InvalidInputError(
                f"fragment {missing} is to be changed, but version {self.current.version} has no "
                "such fragment"
            )
        if changes:
            self.change(changes)

    def set_all(self, fragments: Iterable[Fragment]) -> None:
        """Make these the fragments, all of them new or possibly changed."""
        fragments = [self._with_live_files(fragment) for fragment in fragments]
        self.set_fragments(FragmentList.of(fragments), fragments)

    def set_fragments(self, fragments: FragmentList, fresh: Iterable[Fragment] = ()) -> None:
        """Make these the fragments; ``fresh`` are those among them that no version had before."""
        self._fresh.update((fragment.id, fragment) for fragment in fresh)
        self._only_appended = False
        self.manifest = replace(self.manifest, fragments=fragments)

    def drop_dead_files(self) -> None:
        """Leave out files that hold no column of the schema any more, of all fragments.

        Raises InvalidInputError for a fragment that could not be read.
        """
        changes = {}
        for fragment in self.manifest.fragments:
            remaining = self._with_live_files(fragment)
            if remaining is not fragment:
                changes[fragment.id] = remaining
        if changes:
            self.change(changes)

    def _with_live_files(self, fragment: Fragment) -> Fragment:
        """Leave out files that hold no column of the schema, which pylance would call damage.

        Replaced columns leave such files behind; so does a column dropped by somebody else while
        this fragment was being changed. Of a fragment that holds no column of the schema the files
        stay: only they say how many rows there are, all of whose values are null. A file of which
        every column was replaced cannot stand for them, as nobody reads such a fragment.

        Raises InvalidInputError for a fragment without any other file.
        """
        field_by_id = self.manifest.schema.field_by_id
        files = tuple(
            file
            for file in fragment.files
            if any(field < TOMBSTONE or field_by_id(field) is not None for field in file.fields)
        ) or tuple(
            file for file in fragment.files if any(field != TOMBSTONE for field in file.fields)
        )
        if not files:
            dead = [file.path for file in fragment.files]
            reason = f"every column in {dead} has been replaced" if dead else "it has no data file"
            raise InvalidInputError(
                f"fragment {fragment.id} of version {self.version} could not be read: {reason}, "
                "and a fragment needs a data file that holds at least one column. Nothing was "
                "committed; leave the fragment out, or give its files with the fields that they "
                "hold"
            )
        return fragment if len(files) == len(fragment.files) else replace(fragment, files=files)

    def _data_format(self) -> DataStorageFormat | None:
        """Return the format of new data: as it is said, or (before 0.16) that of the data files.

        Where 0.1 is said of later files, they are right.
        """
        data_format = self.manifest.data_format
        if data_format is not None:
            version = storage_version(self.manifest)
            return (
                data_format
                if version == data_format.version
                else replace(data_format, version=version)
            )
        if not self.current.version:
            return None
        source = self.manifest if len(self.manifest.fragments) else self.current
        return DataStorageFormat("lance", storage_version(source))

    def _writers(self) -> tuple[WriterVersion | None, ...]:
        """Return who wrote the versions that this one is made of."""
        if not self.current.version:
            return ()
        return self.current.writer_version, self.manifest.writer_version

    def _has_deletions(self) -> bool:
        if self._only_appended:  # the others have not changed: do not look at 100,000 of them
            before = bool(self.current.reader_feature_flags & DELETION_FILES)
            return before or any(fragment.deletion_file for fragment in self._fresh.values())
        return bool(self.manifest.fragments.counts().num_deletion_files.any())

    def _has_other_versions(self, data_format: DataStorageFormat | None) -> bool:
        """Return whether new data files are of another version than the dataset.

        pylance reads these only where it is announced; once it is, it stays so (``STICKY``).
        """
        return data_format is not None and any(
            recorded_version(file.file_version) != data_format.version
            for fragment in self._fresh.values()
            for file in fragment.files
        )

    # --- the end ----------------------------------------------------------------------------------

    def finish(self) -> Built:
        """Return the version. Raises CommitConflictError if it holds the marked batch already."""
        if self.ctx.options.mark is not None:
            config = self.ctx.options.mark.set_in(self.manifest.config)
            self.manifest = replace(self.manifest, config=config)
        if not self._only_appended:  # as pylance does: a rewrite puts reserved ids anywhere
            in_order = self.manifest.fragments.in_order()
            self.manifest = replace(self.manifest, fragments=in_order)
        writers = self._writers()
        if any(map(may_need_repair, writers)):  # a restored version may not say which ids it has
            self.use_fragment_ids(self.manifest.fragments.counts().ids.tolist())
        data_format = self._data_format()
        reader, writer = flag_words(
            self.manifest,
            self.indices,
            row_ids=self.has_row_ids,
            deletions=self._has_deletions(),
            mixed_versions=self._has_other_versions(data_format),
            no_transaction_file=self.ctx.options.no_transaction_file,
        )
        manifest = replace(
            self.manifest,
            data_format=data_format,
            version=self.version,
            timestamp_ns=self.ctx.timestamp_ns,
            max_fragment_id=self._max_fragment_id,
            tag=self.ctx.tag,
            transaction_file=self.ctx.transaction_file,
            writer_version=WRITER,
            reader_feature_flags=reader,
            writer_feature_flags=writer,
            index_section=None,
            transaction_section=None,
            version_aux_data=0,  # it belongs to one version, as in pylance
            size_bytes=0,
            path="",
            raw=b"",
        )
        fresh = tuple(self._fresh.values())
        return Built(
            manifest, tuple(self.indices), fresh, only_appended=self._only_appended, writers=writers
        )


def check_changeable(current: Manifest) -> None:
    """Refuse to write on a manifest that we would change wrongly. Raises NotSupportedError."""
    check_writable(current)
    if current.has_unknown_fields:
        raise NotSupportedError(
            f"{current.path or 'the manifest'} (version {current.version}) holds fields that this "
            "release does not know; writing could lose what they mean. Use a newer lance_nb."
        )


ROW_ID_KINDS = frozenset({"Bitmap", "LabelList", "Inverted", "NGram", "Vector"})
"""Indices that know rows by stable id where there is one. Others know them by address."""
Move = tuple[AbstractSet[int], AbstractSet[int]]
"""The ids of fragments that were rewritten together, before and after."""


def prune_fields(draft: Draft, fragment_ids: AbstractSet[int], fields: AbstractSet[int]) -> None:
    """Take fragments out of the coverage of indices on one of the ``fields``."""

    def prune(index: IndexMetadata, covered: BitMap) -> BitMap:
        return covered - BitMap(fragment_ids) if _depends_on(index, fields) else covered

    if fields and fragment_ids:
        _change_coverage(draft, prune)


def cover_moved(
    draft: Draft,
    new_ids: AbstractSet[int],
    source_ids: AbstractSet[int],
    changed_fields: AbstractSet[int],
) -> None:
    """Let indices cover fragments of moved rows, if they covered all sources and no value changed.

    Only right with stable row ids, and for indices that know rows by them.
    """

    def cover(index: IndexMetadata, covered: BitMap) -> BitMap:
        if index.kind not in ROW_ID_KINDS or _depends_on(index, changed_fields):
            return covered
        if not BitMap(source_ids) <= covered:
            return covered
        return covered | BitMap(new_ids)

    if new_ids:
        _change_coverage(draft, cover)


def cover_rewritten(draft: Draft, moves: Sequence[Move], remapped: AbstractSet[str]) -> None:
    """Let indices cover the successors of what they covered (datasets with stable row ids).

    An index that knows rows by address covers neither, unless its uuid is in ``remapped``. Raises
    InvalidInputError.
    """
    rewritten = BitMap(fragment for old, _ in moves for fragment in old)

    def cover(index: IndexMetadata, covered: BitMap) -> BitMap:
        if index.uuid in remapped or index.is_system:
            return covered
        return _moved(index, covered, moves) if index.kind in ROW_ID_KINDS else covered - rewritten

    _change_coverage(draft, cover)


def remap(
    draft: Draft, moves: Sequence[Move], old_id: str, new_id: str, files: tuple[IndexFile, ...]
) -> None:
    """Put the remapped copy of an index in its place; an index that is gone is passed over.

    Raises InvalidInputError if the index does not say what it covers.
    """
    for position, index in enumerate(draft.indices):
        if index.uuid != old_id:
            continue
        covered = index.fragment_ids()
        if covered is None:
            raise InvalidInputError(
                f"index {index.name!r} does not say what it covers: no remapping"
            )
        bitmap = _moved(index, covered, moves).serialize()
        draft.indices[position] = replace(index, uuid=new_id, files=files, fragment_bitmap=bitmap)


def retain_useful(draft: Draft) -> None:
    """Drop indices on fields that are gone, and those that cover nothing any more.

    Of several indices of one name, those that cover something stay; if none does, the oldest stays
    unless it is a vector index (which must not be empty).
    """
    schema = draft.manifest.schema
    indices = [
        index
        for index in draft.indices
        if index.is_system or all(schema.field_by_id(field) is not None for field in index.fields)
    ]
    if not indices:
        draft.indices = indices
        return
    live = BitMap(draft.manifest.fragments.counts().ids.tolist())
    by_name: dict[str, list[IndexMetadata]] = {}
    for index in indices:
        by_name.setdefault(index.name, []).append(index)
    useful = {index.uuid for same in by_name.values() for index in _useful(same, live)}
    draft.indices = [index for index in indices if index.is_system or index.uuid in useful]


def record_merged_logs(draft: Draft, logs: Iterable[MergedLog]) -> None:
    """Record the logs. Raises InvalidInputError if the dataset keeps no state of logs."""
    for position, index in enumerate(draft.indices):
        if index.name == WAL_INDEX:
            details = with_merged_logs(index.details, logs)
            draft.indices[position] = replace(index, details=details, dataset_version=draft.version)
            return
    raise InvalidInputError(
        f"the dataset has no index {WAL_INDEX!r}: there is no state of write-ahead logs to change"
    )


def _useful(same_name: list[IndexMetadata], live: BitMap) -> list[IndexMetadata]:
    covering = [
        index for index in same_name if (covered := index.fragment_ids()) and covered & live
    ]
    if covering:
        return covering
    oldest = min(same_name, key=lambda index: index.dataset_version)
    return [] if oldest.kind == "Vector" else [oldest]


def _depends_on(index: IndexMetadata, fields: AbstractSet[int]) -> bool:
    return not fields.isdisjoint((*index.fields, *index.covering_fields))


def _moved(index: IndexMetadata, covered: BitMap, moves: Sequence[Move]) -> BitMap:
    after = BitMap(covered)
    for old, new in moves:
        inside = BitMap(old) & covered
        if not inside:
            continue
        if len(inside) < len(old):
            raise InvalidInputError(
                f"fragments {sorted(old)} were rewritten together, but index {index.name!r} covers "
                f"only {sorted(inside)} of them"
            )
        after = (after - BitMap(old)) | BitMap(new)
    return after


def _change_coverage(draft: Draft, change: Callable[[IndexMetadata, BitMap], BitMap]) -> None:
    changed = []
    for index in draft.indices:
        covered = index.fragment_ids()
        after = None if covered is None else change(index, covered)
        if after is None or after == covered:
            changed.append(index)
        else:
            changed.append(replace(index, fragment_bitmap=after.serialize()))
    draft.indices = changed


def coverage(fragment_ids: Iterable[int]) -> bytes:
    """Return the bitmap of an index that covers these fragments."""
    return bytes(BitMap(fragment_ids).serialize())
