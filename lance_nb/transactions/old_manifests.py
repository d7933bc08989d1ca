"""Repair what old releases left wrong in a manifest, in the version that is written next.

What is looked for, and what happens to it, as in pylance 14.0.2:

* **Row counts** that were never recorded (before 0.7) or can be wrong (manifests that name no
  writer: 0.8.0 appending to a dataset of 0.7.5) are counted in the files. Fragments that turn out
  to have no live row leave the version.
* **Sizes of data files** (not recorded before 2025) are looked up.
* **Fragments out of order** (compactions up to 0.8) are sorted by their ids.
* **A field id in two data files of a fragment** (up to 0.10.5: columns added after others were
  dropped took over their ids). The last file has the values that were meant for the column: the
  column gets a new id there. Readers of the damaged version see the first file.
* **Sizes of index files** (not recorded before 2026) are looked up. What an index covers is left
  out where a release below 0.8.15 wrote it: it could name fragments that the index does not know.
* **A fragment id that occurs twice** (``Merge`` commits up to 0.16) is refused: row addresses and
  deletion files of the two cannot be told apart. Overwriting, or restoring a version without it,
  is possible; so are tags, branches and clones, which change no fragment.

Limits: manifests of lance_nb, and of pylance from 14.0 on, are not looked at: their writers have
repaired them. An index on a column that gets a new id is dropped: it was built on other values.
Not supported: telling from the files of an index what it covers. Where that is missing, or two
segments (of 0.21 and before) overlap, it stays so, and pylance repairs it with its next commit.
Source: measured against pylance 14.0.2, manifest by manifest (tests/golden/old_states.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from lance_nb.errors import InvalidInputError
from lance_nb.format import layout
from lance_nb.format.feature_flags import DELETION_FILES
from lance_nb.format.fragment import DataFile, Fragment
from lance_nb.format.fragment_list import FragmentList, without_counts
from lance_nb.format.index_metadata import IndexFile, IndexMetadata
from lance_nb.format.manifest import Manifest, WriterVersion
from lance_nb.format.schema import Field, Schema
from lance_nb.storage.threads import run_all
from lance_nb.table.deletions import read_deletions
from lance_nb.table.fragment_reader import confirmed_rows, num_physical_rows
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.operation import Built
from lance_nb.transactions.schema_change import next_field_id

OpenSnapshot = Callable[[Manifest], Snapshot]

_REPAIRING_RELEASE = 14  # of pylance: its manifests have been repaired
_COVERAGE_RELEASE = (0, 8, 15)  # the first that records the coverage of indices rightly


def may_need_repair(writer: WriterVersion | None) -> bool:
    """Return whether a manifest of this writer may hold what is repaired here."""
    if writer is None:
        return True
    major = writer.version.partition(".")[0]
    if writer.library == "lance_nb":
        return False
    return writer.library != "lance" or not major.isdigit() or int(major) < _REPAIRING_RELEASE


def repaired(built: Built, open_snapshot: OpenSnapshot | None, *, is_clone: bool = False) -> Built:
    """Return a version that is about to be written with everything repaired.

    Without ``open_snapshot`` nothing is counted: counts that cannot be trusted are left out. Raises
    InvalidInputError for a fragment id that occurs twice, CorruptFileError, ObjectNotFoundError.
    """
    repeated = built.manifest.fragments.repeated_id()
    if repeated is not None and not is_clone:
        raise InvalidInputError(
            f"the new version would have two fragments with id {repeated}, as releases of 2024 "
            "could leave them: they can be read but not changed. Rewrite the dataset "
            "(write_dataset(ds, ds.uri, mode='overwrite')), or restore a version without them"
        )
    fresh = {} if repeated is not None else {fragment.id: fragment for fragment in built.fresh}
    measured = _measured(built.manifest, fresh, open_snapshot)
    manifest = built.manifest
    if repeated is None:
        manifest = replace(manifest, fragments=manifest.fragments.in_order())
    if measured is not None:
        manifest = _flagged(replace(manifest, fragments=measured))
    renamed = _with_distinct_fields(manifest)
    indices = [_completed(index, built, open_snapshot) for index in built.indices]
    if renamed.schema is not manifest.schema:
        known_ids = {field.id for field in renamed.schema.walk()}
        indices = [
            index for index in indices if index.is_system or known_ids.issuperset(index.fields)
        ]
    changed = () if repeated is not None else tuple(renamed.fragments.with_ids(fresh).values())
    return Built(renamed, tuple(indices), changed, only_appended=False, writers=built.writers)


def _completed(
    index: IndexMetadata, built: Built, open_snapshot: OpenSnapshot | None
) -> IndexMetadata:
    """Return an index with the sizes of its files, and without a coverage that may be wrong."""
    if index.is_system:
        return index
    is_new = index.dataset_version > built.manifest.version - 2
    if index.fragment_bitmap and not is_new and any(map(_covers_wrongly, built.writers)):
        index = replace(index, fragment_bitmap=b"")
    if index.files or open_snapshot is None:
        return index
    path = layout.index_folder(index.uuid, built.manifest.path)
    store, path = open_snapshot(built.manifest).locations.locate(path, index.base_id)
    entries = sorted(store.list_recursive(path), key=lambda entry: entry.name)
    return replace(index, files=tuple(IndexFile(entry.name, entry.size_bytes) for entry in entries))


def _covers_wrongly(writer: WriterVersion | None) -> bool:
    """Return whether the coverage of indices in manifests of this writer cannot be trusted."""
    if writer is None:
        return True
    parts = writer.version.split(".")[:3]
    if writer.library != "lance" or not all(part.isdigit() for part in parts):
        return False
    return tuple(map(int, parts)) < _COVERAGE_RELEASE


# --- counts and sizes -----------------------------------------------------------------------------


def _measured(
    manifest: Manifest, fresh: dict[int, Fragment], open_snapshot: OpenSnapshot | None
) -> FragmentList | None:
    """Return the fragments with counts and sizes, None if none is missing."""
    fragments = manifest.fragments
    if fragments.has_counts and not _incomplete(fragments).size:
        return None
    # What this version adds has been counted by its writer, whatever was counted before.
    every = [fresh.get(fragment.id, fragment) for fragment in fragments]
    if open_snapshot is None:
        return FragmentList.of(every).in_order()
    snapshot = open_snapshot(manifest)
    measured = run_all([_Measure(snapshot, fragment) for fragment in every])
    return FragmentList.of(fragment for fragment in measured if fragment.num_rows).in_order()


def _flagged(manifest: Manifest) -> Manifest:
    """Say whether there are deletion files: fragments without a live row took theirs with them."""
    bit = DELETION_FILES if manifest.fragments.counts().num_deletion_files.any() else 0
    return replace(
        manifest,
        reader_feature_flags=manifest.reader_feature_flags & ~DELETION_FILES | bit,
        writer_feature_flags=manifest.writer_feature_flags & ~DELETION_FILES | bit,
    )


def _incomplete(fragments: FragmentList) -> np.ndarray:
    """Return the positions of fragments that lack a count or a size, or have no row left."""
    counts = fragments.counts()
    lacking = counts.num_rows <= 0
    lacking |= (counts.num_deletion_files > 0) & (counts.num_deleted_rows == 0)
    lacking |= counts.size_bytes == 0
    for position in np.flatnonzero((counts.num_data_files > 1) & ~lacking).tolist():
        lacking[position] = not all(file.size_bytes for file in fragments[position].files)
    return np.flatnonzero(lacking)


class _Measure:
    """Complete one fragment from its files; a call, so that many run side by side."""

    def __init__(self, snapshot: Snapshot, fragment: Fragment) -> None:
        self._snapshot = snapshot
        self._fragment = fragment

    def __call__(self) -> Fragment:
        fragment = self._fragment
        files = tuple(file if file.size_bytes else self._sized(file) for file in fragment.files)
        fragment = replace(fragment, files=files)
        rows = num_physical_rows(self._snapshot, fragment)
        fragment = replace(fragment, physical_rows=rows)
        deletions = fragment.deletion_file
        if deletions is None or 0 < deletions.num_deleted_rows < rows:
            return fragment
        return self._with_deletions_counted(without_counts(fragment))

    def _sized(self, file: DataFile) -> DataFile:
        place = self._snapshot.locations
        path = file.location(self._snapshot.manifest.path)
        store, path = place.locate(path, file.base_id)
        return replace(file, file_size_bytes=store.size(path))

    def _with_deletions_counted(self, fragment: Fragment) -> Fragment:
        snapshot = self._snapshot
        rows = confirmed_rows(snapshot, fragment)
        vector = read_deletions(snapshot.locations, snapshot.deletions, fragment, rows)
        deletions = fragment.deletion_file
        if vector is None or deletions is None:
            return replace(fragment, physical_rows=rows)
        counted = replace(deletions, num_deleted_rows=len(vector))
        return replace(fragment, physical_rows=rows, deletion_file=counted)


# --- field ids ------------------------------------------------------------------------------------


def _with_distinct_fields(manifest: Manifest) -> Manifest:
    """Give a new id to every field that two files of a fragment hold. Raises InvalidInputError."""
    several = np.flatnonzero(manifest.fragments.counts().num_data_files > 1).tolist()
    repeated = {
        field for position in several for field in repeated_fields(manifest.fragments[position])
    }
    repeated &= {field.id for field in manifest.schema.walk()}
    if not repeated:
        return manifest
    fragments = list(manifest.fragments)
    ids = _new_ids(manifest, fragments, repeated)
    fields = tuple(_renumbered(field, ids) for field in manifest.schema)
    schema = Schema(fields, manifest.schema.metadata)
    live = {field.id for field in schema.walk()}
    renamed = [_with_fields(fragment, ids) for fragment in fragments]
    with_live_files = [replace(fragment, files=_live_files(fragment, live)) for fragment in renamed]
    allocated = manifest.max_allocated_field_id
    if allocated is not None:
        allocated = max(allocated, schema.max_field_id)
    return replace(
        manifest,
        schema=schema,
        fragments=FragmentList.of(with_live_files),
        max_allocated_field_id=allocated,
    )


def _new_ids(
    manifest: Manifest, fragments: Sequence[Fragment], repeated: set[int]
) -> dict[int, int]:
    """Choose new ids with which every 0.1 file can still be read.

    pylance finds the pages of a 0.1 file by the distance of an id from the smallest of the file, so
    distances must stay. If the repeated ids alone cannot change, all ids of their files do.
    """
    first = next_field_id(manifest)
    field_ids = set(repeated)
    while True:
        ids = {field_id: first + field_id - min(field_ids) for field_id in field_ids}
        if all(_keeps_distances(fragment, _with_fields(fragment, ids)) for fragment in fragments):
            return ids
        before = len(field_ids)
        field_ids |= {field for fragment in fragments for field in _beside(fragment, field_ids)}
        if len(field_ids) == before:
            break
    where = next(
        fragment
        for fragment in fragments
        if not _keeps_distances(fragment, _with_fields(fragment, ids))
    )
    raise InvalidInputError(
        f"field {min(repeated)} is in two data files of a fragment, as releases up to 0.10.5 left "
        f"it, and no new id fits the files of fragment {where.id}: such a dataset can be read but "
        "not changed. Rewrite it, which keeps the values that are read now: "
        "write_dataset(ds, ds.uri, mode='overwrite')"
    )


def _keeps_distances(before: Fragment, after: Fragment) -> bool:
    """Return whether the ids of each 0.1 file are as far from each other as they were."""
    return all(
        len({new - old for old, new in zip(file.fields, renamed.fields, strict=True)}) <= 1
        for file, renamed in zip(before.files, after.files, strict=True)
        if file.is_legacy
    )


def _beside(fragment: Fragment, field_ids: set[int]) -> set[int]:
    """Return the fields of the 0.1 files that are the last ones to hold one of ``field_ids``."""
    left = set(field_ids)
    beside: set[int] = set()
    for file in reversed(fragment.files):
        if file.is_legacy and not left.isdisjoint(file.fields):
            beside.update(field for field in file.fields if field >= 0)
        left.difference_update(file.fields)
    return beside


def repeated_fields(fragment: Fragment) -> list[int]:
    """Return the field ids that several data files of a fragment hold, ascending."""
    counts = Counter(field for file in fragment.files for field in file.fields if field >= 0)
    return sorted(field for field, count in counts.items() if count > 1)


def _renumbered(field: Field, ids: dict[int, int]) -> Field:
    return replace(
        field,
        id=ids.get(field.id, field.id),
        parent_id=ids.get(field.parent_id, field.parent_id),
        children=tuple(_renumbered(child, ids) for child in field.children),
    )


def _with_fields(fragment: Fragment, ids: dict[int, int]) -> Fragment:
    """Give the new ids to the last file that holds each field."""
    left = dict(ids)
    files: list[DataFile] = []
    for file in reversed(fragment.files):
        fields = tuple(left.pop(field, field) for field in file.fields)
        files.append(replace(file, fields=fields))
    return replace(fragment, files=tuple(reversed(files)))


def _live_files(fragment: Fragment, live: set[int]) -> tuple[DataFile, ...]:
    files = tuple(file for file in fragment.files if not live.isdisjoint(file.fields))
    return files or fragment.files  # without a file its rows could not be read
