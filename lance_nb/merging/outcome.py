"""The outcome of a merge: the next version of the target, and the operation recorded for it.

The version is built from the outcome itself. What is recorded beside it is what other writers see
when they check whether their change can follow: the operation of the format that says the same, or
else one that claims more, so that nothing is let through that should not be.

==========================================  =========================================
outcome                                     recorded as
==========================================  =========================================
new fragments only                          Append
rows deleted only                           Delete
rows added, deleted, updated, compacted     Update
config and metadata only                    UpdateConfig
columns dropped, renamed, reordered only    Project
columns with data, rows, settings           Merge
indices only                                CreateIndex
indices or values written in place, and     Overwrite
anything else
==========================================  =========================================

An index of the source is added when every fragment it covers has the same number and the same data
in the outcome; else it would point at other rows, and is left out: the rows are there, not indexed.
An index that the source dropped is dropped if the target did not change it. Fragments whose indexed
values changed leave the coverage. So do fragments with rows that live again, unless the index was
built while these rows lived.

Columns that must not be null are checked: whether every row of the outcome has a value.

Limits: a recorded Merge does not name settings that change with it: a writer that sets the same key
at the same time is committed after it. What one side alone has checked is trusted; whether rows of
the other have nulls is not read, only whether they may. Coverage of indices that the source's
writers extended is followed only where numbers stay the same.
Source: messages of ``Transaction`` and IndexMetadata; conflict_rules.py, manifest_building.py.
Lance has no merge of branches.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace

import pyarrow as pa
from pyroaring import BitMap

from lance_nb.errors import InternalError
from lance_nb.file.versions import file_version_of
from lance_nb.file.writer import FileOptions
from lance_nb.format import layout
from lance_nb.format.checksums import wants_checksums
from lance_nb.format.fragment import DataFile, Fragment
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.format.manifest import BasePath, Manifest
from lance_nb.format.schema import Schema
from lance_nb.merging.conflicts import COLUMNS, Findings
from lance_nb.merging.file_locations import FileCopy, FileLocations
from lance_nb.merging.merge_base import Ends, Side
from lance_nb.merging.schemas import MergedSchema
from lance_nb.storage.base import Store
from lance_nb.table.snapshot import Snapshot, storage_version
from lance_nb.transactions.deletion_files import PendingDeletions
from lance_nb.transactions.manifest_building import Draft, check_changeable, retain_useful
from lance_nb.transactions.new_version import build
from lance_nb.transactions.operation import ApplyContext, Built, Operation, Snapshotted
from lance_nb.transactions.operations.append import Append
from lance_nb.transactions.operations.create_index import CreateIndex
from lance_nb.transactions.operations.delete import Delete
from lance_nb.transactions.operations.merge import Merge
from lance_nb.transactions.operations.overwrite import Overwrite
from lance_nb.transactions.operations.project import Project
from lance_nb.transactions.operations.update import Update, UpdateMode
from lance_nb.transactions.operations.update_config import UpdateConfig, UpdateMap
from lance_nb.transactions.transaction import Transaction
from lance_nb.value_classes import dataclass
from lance_nb.writing.fragment_writer import FragmentWriter, WriteOptions

Indices = tuple[IndexMetadata, ...]


@dataclass(frozen=True, slots=True)
class IndexFacts:
    """What happened to fragments and fields.

    ``fragments``: fragments of the source that stand in the outcome with the data that the source
    has, and their ids there. ``fields``: ids of the source -> ids of the outcome. ``rewritten``:
    fields that changed in place, by fragment of the outcome. ``revived``: fragments of the outcome
    with rows that live again. ``keeps_row_ids``: no row of the source got another id.
    """

    fragments: Mapping[int, int]
    fields: Mapping[int, int]
    rewritten: Mapping[int, set[int]]
    revived: frozenset[int]
    keeps_row_ids: bool


def merge_indices(
    ends: Ends, facts: IndexFacts, places: FileLocations, findings: Findings
) -> Indices:
    """Return the indices of the outcome."""
    base = {index.uuid for index in ends.base.indices}
    target_uuids = {index.uuid for index in ends.target.indices}
    source_indices = {index.uuid: index for index in ends.source.indices}
    added = _added(ends, facts, places, findings=findings, known_uuids=(base, target_uuids))
    replaced = {index.name for index in added}
    dropped = {index.name for index in ends.base.indices} - {
        index.name for index in ends.source.indices
    }
    remaining = []
    for index in ends.target.indices:
        is_old = index.uuid in base
        if is_old and index.uuid not in source_indices and index.name in dropped | replaced:
            continue
        remaining.append(_pruned(index, source_indices.get(index.uuid), facts))
    return (*remaining, *added)


def _added(
    ends: Ends,
    facts: IndexFacts,
    places: FileLocations,
    findings: Findings,
    known_uuids: tuple[set[str], set[str]],
) -> list[IndexMetadata]:
    base, target_uuids = known_uuids
    live = BitMap(ends.source.fragments)
    taken = {index.name for index in ends.target.indices if index.uuid not in base}
    new = [index for index in ends.source.indices if index.uuid not in base | target_uuids]
    names = dict.fromkeys(index.name for index in new)
    added = []
    for name in names:
        parts = [index for index in new if index.name == name]
        if name in taken:
            findings.note(f"index {name!r} was built on both sides: the one here stays")
        elif all(_is_right(part, live, facts) for part in parts):
            added += [_moved(part, facts, places) for part in parts]
        else:
            findings.note(
                f"index {name!r} of the source is left out: fragments that it covers have other "
                "numbers or other data here; build it again"
            )
    return added


def _is_right(index: IndexMetadata, live: BitMap, facts: IndexFacts) -> bool:
    covered = index.fragment_ids()
    fields = (*index.fields, *index.covering_fields)
    if covered is None or index.is_system or not facts.keeps_row_ids:
        return False
    if any(facts.fields.get(field) != field for field in fields):
        return False
    return all(facts.fragments.get(number) == number for number in covered & live)


def _moved(index: IndexMetadata, facts: IndexFacts, places: FileLocations) -> IndexMetadata:
    base_id = places.folder(layout.index_folder(index.uuid), index.base_id)
    return _without(replace(index, base_id=base_id), _stale(index, facts))


def _pruned(
    index: IndexMetadata, source_index: IndexMetadata | None, facts: IndexFacts
) -> IndexMetadata:
    stale = _stale(index, facts)
    was_covered = BitMap() if source_index is None else source_index.fragment_ids() or BitMap()
    stale |= BitMap(facts.revived) - was_covered
    return _without(index, stale)


def _stale(index: IndexMetadata, facts: IndexFacts) -> BitMap:
    """Return the fragments in which values of the index's fields have changed."""
    fields = {*index.fields, *index.covering_fields}
    return BitMap(number for number, changed in facts.rewritten.items() if changed & fields)


def _without(index: IndexMetadata, removed: Iterable[int]) -> IndexMetadata:
    covered = index.fragment_ids()
    left = None if covered is None else covered - BitMap(removed)
    if left is None or left == covered:
        return index
    return replace(index, fragment_bitmap=left.serialize())


@dataclass(frozen=True, slots=True)
class PendingRows:
    """Rows that a commit writes as the fragment ``fragment_id``."""

    fragment_id: int
    table: pa.Table

    def write(self, home: Store, schema: Schema, manifest: Manifest) -> Fragment:
        """Write the rows as one data file. Raises StorageError."""
        options = WriteOptions(
            max_rows_per_file=max(self.table.num_rows, 1),
            file_version=file_version_of(storage_version(manifest)),
            file=FileOptions(checksums=wants_checksums(manifest.config)),
        )
        with FragmentWriter(schema, home, options) as writer:
            for batch in self.table.to_batches():
                writer.write(batch)
            (fragment,) = writer.finish()
        return fragment

    def expected(self, schema: Schema, manifest: Manifest) -> DataFile:
        """Return the file before it is written: its name and size are not known yet."""
        major, minor = file_version_of(storage_version(manifest))
        fields = tuple(field.id for field in schema.walk())
        columns = tuple(range(len(fields)))
        return DataFile(
            "not written yet.lance",
            fields,
            columns,
            file_major_version=major,
            file_minor_version=minor,
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """The next version of ``target``.

    ``changed`` and ``removed`` are fragments of the target, ``added`` new ones with their ids.
    ``rewritten``: fields whose values changed in place, by fragment. ``revived``: fragments with
    rows that live again. ``pending``: deletion vectors to be written, ``copies``: files to be
    copied, before it is committed. ``new_rows``: rows of one of ``added``, to be written, too.
    ``foreign_bases``: base paths in folders of other branches. ``marks``: see merge_record.py.
    """

    target: Side
    schema: Schema
    config: Mapping[str, str]
    table_metadata: Mapping[str, str]
    bases: tuple[BasePath, ...]
    changed: Mapping[int, Fragment]
    removed: frozenset[int]
    added: tuple[Fragment, ...]
    indices: Indices
    next_row_id: int
    rewritten: Mapping[int, set[int]] = field(default_factory=dict)
    revived: frozenset[int] = frozenset()
    pending: PendingDeletions = field(default_factory=PendingDeletions, repr=False)
    copies: tuple[FileCopy, ...] = ()
    foreign_bases: frozenset[int] = frozenset()
    new_rows: PendingRows | None = None
    marks: Mapping[str, str] = field(default_factory=dict)

    def written(self, home: Store) -> Outcome:
        """Write the rows that wait in memory; return the outcome with their files.

        Raises StorageError; no file remains then.
        """
        rows = self.new_rows
        if rows is None:
            return self
        return self._with_files(rows, rows.write(home, self.schema, self.target.manifest).files)

    def _with_files(self, rows: PendingRows, files: tuple[DataFile, ...]) -> Outcome:
        added = tuple(
            replace(fragment, files=files) if fragment.id == rows.fragment_id else fragment
            for fragment in self.added
        )
        return replace(self, added=added, new_rows=None)

    @property
    def foreign_files(self) -> tuple[DataFile, ...]:
        """Data files that the target did not read before, in another's folder."""
        before = {file for fragment in self.target.fragments.values() for file in fragment.files}
        files = {
            file for fragment in (*self.added, *self.changed.values()) for file in fragment.files
        }
        return tuple(file for file in files - before if file.base_id in self.foreign_bases)

    @property
    def refers_to_source(self) -> bool:
        """Whether the target will read files that it did not read before, in another's folder."""
        target_uuids = {index.uuid for index in self.target.indices}
        bases = {index.base_id for index in self.indices if index.uuid not in target_uuids}
        return bool(self.foreign_files) or not self.foreign_bases.isdisjoint(bases)

    @property
    def changes_nothing(self) -> bool:
        """Whether the target is like that already."""
        return not (
            self.changes_fragments
            or self.changes_schema
            or self.changes_settings
            or self.changes_indices
        )

    @property
    def changes_fragments(self) -> bool:
        """Whether fragments come, go or change."""
        return bool(self.changed or self.removed or self.added)

    @property
    def changes_schema(self) -> bool:
        """Whether columns or their metadata change."""
        return self.schema != self.target.manifest.schema

    @property
    def changes_settings(self) -> bool:
        """Whether the configuration or the table metadata changes."""
        now = self.target.manifest
        return (self.config, self.table_metadata) != (now.config, now.table_metadata)

    @property
    def changes_indices(self) -> bool:
        """Whether there are other indices."""
        return {index.uuid for index in self.indices} != {
            index.uuid for index in self.target.indices
        }

    def preview(self) -> Snapshot:
        """Return the version that a commit would make now; its new files are not there yet."""
        target, rows = self.target, self.new_rows
        if rows is not None:
            file = rows.expected(self.schema, target.manifest)
            return self._with_files(rows, (file,)).preview()
        context = ApplyContext(
            target.manifest,
            target.indices,
            _no_version,
            target.manifest.timestamp_ns or 0,
            open_snapshot=lambda manifest: replace(target.snapshot, manifest=manifest),
        )
        transaction = Transaction(target.version, self.operation(), "preview")
        built = build(transaction, context, self.apply)
        self.pending.remember(target.snapshot.locations.home, target.snapshot.deletions)
        where = replace(
            target.snapshot.locations,
            bases=built.manifest.base_paths,
            opened={},
            present={},
        )
        return replace(target.snapshot, manifest=built.manifest, locations=where, projections={})

    def apply(self, ctx: ApplyContext) -> Built:
        """Return the version. ``ctx.current`` is the target."""
        current = self.target.manifest if ctx.current is None else ctx.current
        check_changeable(current)
        draft = Draft(ctx, current)
        draft.manifest = replace(
            current,
            config={**self.config, **self.marks},
            table_metadata=self.table_metadata,
            base_paths=self.bases,
            next_row_id=max(self.next_row_id, current.next_row_id),
        )
        draft.set_schema(self.schema)
        removals: dict[int, Fragment | None] = dict.fromkeys(self.removed)
        if removals or self.changed:
            draft.change({**self.changed, **removals})
        if self.changes_schema:
            draft.drop_dead_files()
        if self.added:
            draft.append(self.added)
            draft.use_fragment_ids(fragment.id for fragment in self.added)
            if any(fragment.id <= self.target.max_fragment_id for fragment in self.added):
                draft.set_fragments(draft.manifest.fragments, self.added)  # not only appended
        draft.indices = list(self.indices)
        retain_useful(draft)
        return draft.finish()

    # --- what is recorded -------------------------------------------------------------------------

    def operation(self) -> Operation:
        """Return the operation that is recorded."""
        rows, settings = self.changes_fragments, self.changes_settings
        if self.changes_indices and not (rows or settings or self.changes_schema):
            return self._create_index()
        in_place = bool(self.rewritten)
        if self.changes_indices or (in_place and (self.changes_schema or settings)):
            return Overwrite(self.schema, self._all_fragments())
        if self.changes_schema:
            return self._schema_operation(rows, settings)
        if not rows:
            return self._update_config()
        if settings:
            return Merge(self._all_fragments(), self.schema)
        return self._row_operation(in_place)

    def _schema_operation(self, rows: bool, settings: bool) -> Operation:
        now = self.target.manifest.schema
        same_metadata = self.schema.metadata == now.metadata
        if not same_metadata and not (_is_text(now.metadata) and _is_text(self.schema.metadata)):
            return Merge(self._all_fragments(), self.schema)  # an UpdateConfig holds text only
        if not rows and not settings and same_metadata:
            return Project(Schema(self.schema.fields))
        if not rows and self.schema.fields == now.fields:
            return self._update_config()
        return Merge(self._all_fragments(), self.schema)

    def _row_operation(self, in_place: bool) -> Operation:
        changed, removed = tuple(self.changed.values()), tuple(sorted(self.removed))
        if not changed and not removed:
            return Append(self.added)
        if not self.added and not in_place and not self.revived:
            return Delete(changed, removed)
        fields = {field_id for fields in self.rewritten.values() for field_id in fields}
        alone = in_place and not self.added and not removed and not self.pending.vectors
        return Update(
            removed_fragment_ids=removed,
            updated_fragments=changed,
            new_fragments=self.added,
            fields_modified=tuple(sorted(fields)),
            update_mode=UpdateMode.REWRITE_COLUMNS if alone else UpdateMode.REWRITE_ROWS,
        )

    def _create_index(self) -> CreateIndex:
        target_uuids = {index.uuid for index in self.target.indices}
        after = {index.uuid for index in self.indices}
        return CreateIndex(
            tuple(index for index in self.indices if index.uuid not in target_uuids),
            tuple(index for index in self.target.indices if index.uuid not in after),
        )

    def _update_config(self) -> UpdateConfig:
        now = self.target.manifest
        now_texts, new_texts = _texts(now.schema.metadata), _texts(self.schema.metadata)
        return UpdateConfig(
            _changes(now.config, self.config),
            _changes(now.table_metadata, self.table_metadata),
            _changes(now_texts, new_texts),
        )

    def _all_fragments(self) -> tuple[Fragment, ...]:
        fragments = (
            self.changed.get(fragment.id, fragment)
            for fragment in self.target.fragments.values()
            if fragment.id not in self.removed
        )
        return (*fragments, *self.added)


def _no_version(version: int) -> Snapshotted:
    raise InternalError(f"a merge looks at no other version, and not at {version}")


def _changes(before: Mapping[str, str], after: Mapping[str, str]) -> UpdateMap | None:
    changed: dict[str, str | None] = {
        key: after.get(key) for key in {**before, **after} if before.get(key) != after.get(key)
    }
    return UpdateMap(changed) if changed else None


def _is_text(metadata: Mapping[str, bytes]) -> bool:
    try:
        _texts(metadata)
    except UnicodeDecodeError:
        return False
    return True


def _texts(metadata: Mapping[str, bytes]) -> dict[str, str]:
    return {key: value.decode() for key, value in metadata.items()}


def check_nulls(
    outcome: Outcome, schema: MergedSchema, shared_fragments: Iterable[int], findings: Findings
) -> None:
    """Report columns without nulls that have no value in some row.

    ``shared_fragments``: those of the target that the source has as well; what it forbids there
    holds.
    """
    leaves = [leaf for leaf in schema.schema.leaves() if not leaf.nullable]
    added = {leaf.id for leaf in leaves if leaf.id in schema.added}
    tightened = {leaf.id for leaf in leaves if leaf.id in schema.tightened}
    if not added and not tightened:
        return
    checked = set(shared_fragments)
    num_rows = 0
    for fragment in outcome.target.fragments.values():
        now = outcome.changed.get(fragment.id, fragment)
        held = {field for file in now.files for field in file.fields}
        may_be_null = not added <= held or (tightened and fragment.id not in checked)
        if fragment.id not in outcome.removed and may_be_null:
            num_rows += now.num_rows
    if num_rows:
        names = ", ".join(
            repr(schema.schema.path_of(field_id)) for field_id in sorted(added | tightened)
        )
        findings.report(
            COLUMNS,
            f"column {names} takes no nulls on the source; {num_rows:,} rows here may have some",
            choices=(),
            remedy="Allow nulls on the source first, or fill them here",
            fields=added | tightened,
            num_rows=num_rows,
        )
