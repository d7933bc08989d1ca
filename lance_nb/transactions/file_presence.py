"""Check before a commit that a new version can be read: its schema, its files, what they hold.

A schema that a caller put together names columns of data files by field id. Where an id stands for
another type, another parent or two fields, or a name cannot be selected, the version cannot be read
any more, or values are read wrongly. pylance refuses most of this in a Merge and nothing of it in a
Project or an Overwrite. Of an Overwrite, whose field ids start anew, types are compared with the
new data files only. Extension types and dictionaries are compared by their names.

Files of Spark tasks and of changes that are committed by hand were written by another process,
maybe on another machine. A worker that sees another folder at the same path reports success, and a
clean-up may remove files between the work and the commit. A version that names such files cannot be
read, and neither can any version that is made of it, so it is not committed.

Checked are the files that the version before does not have: data files and index files with their
sizes, if recorded, and deletion files. Verbs whose files this process has written do not ask on a
far store: it would cost a round trip, and only a clean-up with ``delete_unverified=True``, whose
caller promised that nobody writes, can have removed one.

For an operation that a caller put together, the contents are checked as well: the manifest entry of
a data file gives field ids, the file itself names and types. ``check_contents`` opens every new
data file and compares its number of rows, its columns and their types with the fragment and the
schema, and reads new deletion files: one small read a file. A function that made other columns for
one fragment of a ``Merge`` would mix the values of two columns, so there the names are compared,
too; elsewhere columns may have been renamed since.

Limits: files under other base paths, and indices that do not list their files, are not checked. A
file that is removed between the check and the commit is not noticed. Files of 0.1 do not describe
themselves. Of extension types and dictionaries only the names are compared. Values are read of
columns only that cannot be null and that the file describes as nullable.
Source: pylance 14.0.2, which commits fragments that it cannot read (tests/interop/
test_odd_fragments.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from lance_nb.errors import (
    CorruptFileError,
    InvalidInputError,
    NotSupportedError,
    ObjectNotFoundError,
    SchemaMismatchError,
)
from lance_nb.file.fitting import has_required
from lance_nb.file.reader import FileReader
from lance_nb.file.versions import KNOWN_VERSIONS, LEGACY_VERSION, recorded_version
from lance_nb.format import layout
from lance_nb.format.blob_fields import is_blob
from lance_nb.format.field import TOP, Field
from lance_nb.format.fragment import DataFile, Fragment
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.format.logical_types import LARGE_LISTS, LISTS
from lance_nb.format.manifest import Manifest
from lance_nb.format.schema import Schema
from lance_nb.storage.base import Store, is_far
from lance_nb.storage.threads import THREADS_MAX, run_all
from lance_nb.table.deletions import read_deletions
from lance_nb.table.fragment_reader import confirmed_rows, open_file
from lance_nb.table.snapshot import Snapshot, storage_version
from lance_nb.table.verification.fragments import (
    READ_AS,
    check_columns,
    check_rows,
    check_stored,
    check_values,
    is_described_as,
)
from lance_nb.transactions.operation import Built, Operation
from lance_nb.transactions.operations.merge import Merge
from lance_nb.transactions.operations.overwrite import Overwrite
from lance_nb.transactions.schema_change import check_name
from lance_nb.value_classes import dataclass

_ADVICE = "Nothing was committed; derive the schema from lance_schema of the dataset"


def check_schema(snapshot: Snapshot, operation: Operation, current: Manifest | None) -> None:
    """Check the schema of the version ``snapshot``, which an operation of a caller makes.

    Raises InvalidInputError for a schema by which rows could not be read, or be read wrongly,
    SchemaMismatchError for a name.
    """
    schema = snapshot.manifest.schema
    before = None if current is None else current.schema
    if schema == before:
        return
    problem = next(_problems(schema), None)
    if before is not None and problem is None and not isinstance(operation, Overwrite):
        problem = next(_changes(before, schema), None)
    if problem is not None:
        raise InvalidInputError(f"{problem}. {_ADVICE}")
    for field in schema.walk():
        field_before = None if before is None else before.field_by_id(field.id)
        if field_before is None or field_before.name != field.name:
            check_name(field.name, field)
    if before is not None and not isinstance(operation, Overwrite):
        _check_no_nulls(snapshot, before)


def _problems(schema: Schema) -> Iterator[str]:
    ids = Counter(field.id for field in schema.walk() if field.id >= 0)
    for field_id, count in ids.items():
        if count > 1:
            yield f"{count} fields of the schema have the id {field_id}"
    yield from _level_problems(schema.fields, TOP, is_below_blob=False)
    try:
        schema.to_arrow()
    except (NotSupportedError, CorruptFileError) as error:
        yield f"the schema cannot be read: {error}"


def _level_problems(fields: Sequence[Field], parent: int, *, is_below_blob: bool) -> Iterator[str]:
    names = Counter(field.name for field in fields)
    for name, count in names.items():
        if count > 1:
            yield f"{count} fields beside each other are named {name!r}"
    for field in fields:
        if field.id < 0 and not is_below_blob:  # fields of a description have no identity
            yield f"field {field.name!r} has the id {field.id}"
        if field.parent_id != parent and not is_below_blob:
            yield f"field {field.name!r} names {field.parent_id} as its parent, not {parent}"
        below = is_below_blob or is_blob(field)
        yield from _level_problems(field.children, field.id, is_below_blob=below)


def _changes(before: Schema, after: Schema) -> Iterator[str]:
    for field in after.walk():
        field_before = before.field_by_id(field.id)
        if field_before is None:
            continue
        if field_before.parent_id != field.parent_id:
            places = f"{field_before.parent_id} to {field.parent_id}"
            yield f"field {field.id} ({field.name!r}) moves from {places}"
        types = field_before.logical_type, field.logical_type
        if field_before.extension_name != field.extension_name or not _is_readable_as(*types):
            yield f"field {field.id} ({field.name!r}) changes from {types[0]} to {types[1]}"


def _is_readable_as(stored: str, logical_type: str) -> bool:
    are_lists = any(stored in names and logical_type in names for names in (LISTS, LARGE_LISTS))
    return stored == logical_type or are_lists or logical_type in READ_AS.get(stored, ())


def _check_no_nulls(snapshot: Snapshot, before: Schema) -> None:
    """Look for nulls where the schema allows none any more: pylance could not read the column."""
    for top in snapshot.manifest.schema:
        if not any(_is_stricter(before.field_by_id(field.id), field) for field in top.walk()):
            continue
        for fragment in snapshot.manifest.fragments:
            try:
                check_stored(snapshot, fragment)
                check_values(snapshot, fragment, top.name)
            except CorruptFileError as error:
                raise InvalidInputError(
                    f"column {top.name!r} has nulls, and the schema allows none: {error.path}: "
                    f"expected {error.expected}, found {error.found}. {_ADVICE}"
                ) from error


def _is_stricter(before: Field | None, field: Field) -> bool:
    return not field.nullable and (before is None or before.nullable)


T = TypeVar("T")
_PAGE_OBJECTS = 1000  # in one answer of an object store to a listing
_LISTED_MIN = 4 * THREADS_MAX  # fewer files are asked for one by one
ADVICE = (
    "Nothing was committed. Either a worker has another disk at this path (use a folder or an "
    "object store that this process and all workers share), or a clean-up removed the file (do the "
    "change again)"
)


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file that a new version names; ``size_bytes`` 0: not recorded."""

    path: str
    size_bytes: int
    owner: str


def check_new_files(
    home: Store, built: Built, current: Manifest | None, indices: Sequence[IndexMetadata]
) -> None:
    """Check the files in ``home`` that a version names and the current version does not.

    Raises ObjectNotFoundError for a file that is not there, CorruptFileError for one of another
    size, StorageError.
    """
    before = _stored_fragments(current, built.fresh)
    files = [
        file
        for fragment in built.fresh
        for file in _fragment_files(fragment, before.get(fragment.id))
    ]
    uuids = {index.uuid for index in indices}
    files += [
        file for index in built.indices if index.uuid not in uuids for file in _index_files(index)
    ]
    _check(home, files, len(files) + (0 if current is None else len(current.fragments)))


def check_data_files(home: Store, files: Iterable[DataFile]) -> None:
    """Check data files in ``home`` before anything that belongs to them is written.

    Raises as ``check_new_files``.
    """
    named = [_named(file, "the new rows") for file in files if file.base_id is None]
    _check(home, named, len(named))


def _check(home: Store, files: Sequence[NamedFile], num_stored: int) -> None:
    """Ask for the sizes of files, of ``num_stored`` in the data folder, and compare them."""
    sizes = _listed_sizes(home, files, num_stored)
    unlisted = [file.path for file in files if file.path not in sizes]
    tasks = [partial(_read_sizes, home, paths) for paths in _task_shares(unlisted)]
    for part in run_all(tasks):
        sizes |= part
    _check_sizes(home, files, sizes)


def _stored_fragments(current: Manifest | None, fresh: Sequence[Fragment]) -> dict[int, Fragment]:
    """Return the fragments of the current version with the same ids, by id."""
    if current is None:
        return {}
    highest = current.max_fragment_id
    ids = [fragment.id for fragment in fresh if highest is None or fragment.id <= highest]
    return current.fragments.with_ids(ids) if ids else {}  # an append looks at no other fragment


def _task_shares(items: Sequence[T]) -> list[Sequence[T]]:
    """Split items into a few tasks for each thread."""
    step = max(-(-len(items) // (4 * THREADS_MAX)), 1)
    return [items[start : start + step] for start in range(0, len(items), step)]


def _fragment_files(fragment: Fragment, before: Fragment | None) -> Iterator[NamedFile]:
    owner = f"fragment {fragment.id}"
    stored = set() if before is None else {file.path for file in before.files}
    for file in fragment.files:
        if file.base_id is None and file.path not in stored:
            yield _named(file, owner)
    deletion = fragment.deletion_file
    if deletion is not None and _has_new_deletions(fragment, before):
        yield NamedFile(deletion.location(fragment.id), 0, owner)


def _named(file: DataFile, owner: str) -> NamedFile:
    # The sizes that some releases recorded of 0.1 files are wrong, and no reader uses them.
    return NamedFile(file.location(), 0 if file.is_legacy else file.size_bytes, owner)


def _has_new_deletions(fragment: Fragment, before: Fragment | None) -> bool:
    deletion = fragment.deletion_file
    is_new = before is None or deletion != before.deletion_file
    return deletion is not None and deletion.base_id is None and is_new


def _index_files(index: IndexMetadata) -> Iterator[NamedFile]:
    if index.base_id is None:
        folder = layout.index_folder(index.uuid)
        for file in index.files:
            yield NamedFile(f"{folder}/{file.path}", file.size_bytes, f"index {index.name!r}")


def _listed_sizes(home: Store, files: Sequence[NamedFile], num_stored: int) -> dict[str, int]:
    """List the data folder of a far store where that takes fewer round trips than single requests.

    A listing may be older than a file: what it lacks is asked for by name.
    """
    num_requests = len(files) // THREADS_MAX
    if len(files) < _LISTED_MIN or not is_far(home) or num_stored // _PAGE_OBJECTS > num_requests:
        return {}
    return {layout.data_path(info.name): info.size_bytes for info in home.list(layout.DATA)}


def _read_sizes(home: Store, paths: Sequence[str]) -> dict[str, int]:
    """Return the sizes of the files that are there."""
    sizes = {}
    for path in paths:
        try:
            sizes[path] = home.size(path)
        except ObjectNotFoundError:
            continue
    return sizes


def _check_sizes(home: Store, files: Sequence[NamedFile], sizes: dict[str, int]) -> None:
    missing = [file for file in files if file.path not in sizes]
    if missing:
        count = f"{len(missing)} of {len(files)} new files are missing"
        raise ObjectNotFoundError(
            f"{home.uri}/{missing[0].path}",
            f"{missing[0].owner} of this commit ({count}). {ADVICE}",
        )
    for file in files:
        size = sizes[file.path]
        if file.size_bytes and size != file.size_bytes:
            raise CorruptFileError(
                f"{home.uri}/{file.path}",
                None,
                f"{file.size_bytes} bytes, as {file.owner} of this commit records",
                f"{size} bytes",
                advice=ADVICE,
            )


# --- what the files hold --------------------------------------------------------------------------


def check_contents(
    snapshot: Snapshot, operation: Operation, fresh: Sequence[Fragment], current: Manifest | None
) -> None:
    """Check that new files hold what the fragments of the version ``snapshot`` say.

    ``fresh`` are the fragments that an operation of a caller adds or changes. Raises
    InvalidInputError for a fragment that could not be read, or read wrongly, SchemaMismatchError
    for a column of another name in a Merge, StorageError.
    """
    before = _stored_fragments(current, fresh)
    by_name = isinstance(operation, Merge)
    pairs = [(fragment, before.get(fragment.id)) for fragment in fresh]
    run_all([partial(_check_all, snapshot, share, by_name) for share in _task_shares(pairs)])


def _check_all(
    snapshot: Snapshot, pairs: Sequence[tuple[Fragment, Fragment | None]], by_name: bool
) -> None:
    for fragment, before in pairs:
        stored = () if before is None else before.files
        paths = {file.path for file in stored}
        try:
            for file in fragment.files:
                if file.base_id is not None or file in stored:
                    continue
                _check_version(snapshot, fragment, file)
                if by_name and file.path not in paths:
                    _check_names(snapshot, fragment, file)
                check_rows(snapshot, fragment, file)
                check_columns(snapshot, fragment, file)
                _check_distances(snapshot, fragment, file)
                _check_required(snapshot, fragment, file)
            check_stored(snapshot, fragment)
            if _has_new_deletions(fragment, before):
                _check_deletions(snapshot, fragment)
        except CorruptFileError as error:
            place = f"{error.path}: {error.place}" if error.place else error.path
            raise InvalidInputError(
                f"fragment {fragment.id} of this commit could not be read: {place}: expected "
                f"{error.expected}, found {error.found}. Nothing was committed; give the fragment "
                "as write_fragments returned it"
            ) from error


def _check_version(snapshot: Snapshot, fragment: Fragment, file: DataFile) -> None:
    """Refuse versions that no reader knows, and 0.1 beside others."""
    version, expected = recorded_version(file.file_version), storage_version(snapshot.manifest)
    if version not in KNOWN_VERSIONS or file.is_legacy != (expected == LEGACY_VERSION):
        raise InvalidInputError(
            f"fragment {fragment.id} of this commit could not be read: {file.path!r} is of file "
            f"version {version}, in a dataset of version {expected}. Nothing was committed"
        )


def _check_required(snapshot: Snapshot, fragment: Fragment, file: DataFile) -> None:
    """Look for nulls in the columns that cannot be null, unless the file excludes them."""
    required = [field for field in snapshot.manifest.schema if has_required(field)]
    if not required:
        return
    reader = open_file(snapshot, fragment, file)
    described = reader.schema.fields if isinstance(reader, FileReader) else ()
    by_name = {field.name: field for field in described}
    for field in required:
        is_held = any(nested.id in file.fields for nested in field.walk())
        if is_held and not _excludes_nulls(by_name.get(field.name), field):
            check_values(snapshot, fragment, field.name)


def _excludes_nulls(stored: Field | None, field: Field) -> bool:
    """Return whether a file describes no part of a field as nullable that must not be null."""
    if stored is None or (stored.nullable and not field.nullable):
        return False
    return all(_excludes_nulls(stored.child(child.name), child) for child in field.children)


def _check_deletions(snapshot: Snapshot, fragment: Fragment) -> None:
    """Check that a deletion file names rows, as many as recorded; 0 is not recorded.

    Reading compares the number, too, but not where the file is cached already.
    """
    num_rows = confirmed_rows(snapshot, fragment)
    vector = read_deletions(snapshot.locations, snapshot.deletions, fragment, num_rows)
    deletion = fragment.deletion_file
    if vector is None or deletion is None:
        return
    if deletion.num_deleted_rows not in (0, len(vector)):
        expected = f"{deletion.num_deleted_rows} deleted rows below {num_rows}"
        raise CorruptFileError(deletion.location(fragment.id), None, expected, str(len(vector)))


def _check_distances(snapshot: Snapshot, fragment: Fragment, file: DataFile) -> None:
    """Check that pylance finds the columns of a 0.1 file: by the distance from its smallest id."""
    if not file.is_legacy:
        return
    from lance_nb.file.v0_1_reader import LegacyReader

    reader = open_file(snapshot, fragment, file)
    if not isinstance(reader, LegacyReader):
        return
    own_ids = reader.own_ids(file.fields)
    shift = min(file.fields) - min(field.id for field in reader.schema.walk())
    for field_id in file.fields:
        field = snapshot.manifest.schema.field_by_id(field_id)
        if field is not None and field_id - own_ids[field_id] != shift:
            expected = f"field ids as far from each other as {sorted(own_ids.values())}"
            raise CorruptFileError(reader.path, None, expected, str(sorted(file.fields)))


def _check_names(snapshot: Snapshot, fragment: Fragment, file: DataFile) -> None:
    reader = open_file(snapshot, fragment, file)
    if not isinstance(reader, FileReader):
        return
    expected = snapshot.manifest.schema.project_by_ids(file.fields)
    differences = _differences(expected.fields, reader.schema.fields, "", reader.file_version)
    problem = next(differences, None)
    if problem is not None:
        raise SchemaMismatchError(
            f"fragment {fragment.id}: {problem} in its new file {file.path!r}; add the same "
            "columns to every fragment, and commit the schema that this call returned"
        )


def _differences(
    expected: Sequence[Field], stored: Sequence[Field], above: str, file_version: tuple[int, int]
) -> Iterator[str]:
    by_name = {field.name: field for field in stored}
    for field in expected:
        path = above + field.name
        other = by_name.get(field.name)
        if other is None:
            names = ", ".join(repr(above + field.name) for field in stored) or "none"
            yield f"column {path!r} of the schema is not among the columns ({names})"
        elif not is_described_as(field, other, file_version):
            yield f"column {path!r} is {field.logical_type} in the schema, but {other.logical_type}"
        elif field.children and other.children:
            yield from _differences(field.children, other.children, f"{path}.", file_version)
