"""Check that the transaction of a version exists, and that the version is its result.

A version keeps its transaction twice: in the manifest file and as ``_transactions/<name>``. One of
the two is enough for readers and for concurrent commits.

From one version to the next, fragments may only be added, removed and changed as the transaction
says: a missing fragment, deleted rows that have come back, or another description of the same data
file is damage that no single version shows. The same goes for settings and columns: those that the
transaction sets exist afterwards, and the others stay.

Limits: only consecutive versions are compared; of settings the configuration and the table's
metadata, of columns the names at the top level.
Source: messages Manifest and Transaction of lance.table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lance_nb.errors import CorruptFileError, LanceError, ObjectNotFoundError
from lance_nb.format.fragment import TOMBSTONE, DataFile, Fragment
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.format.layout import STREAM_MARK_PREFIX, transaction_path
from lance_nb.format.merge_record import MARK_PREFIX, marks_in
from lance_nb.format.transaction_effects import TransactionEffects
from lance_nb.format.wire import FILE_BYTES_MAX
from lance_nb.table.indices import read_indices
from lance_nb.table.snapshot import Snapshot
from lance_nb.table.verification.findings import Finding
from lance_nb.table.versions import read_section
from lance_nb.value_classes import dataclass

_MERGE = "merge"
_DIGITS_MAX = 19  # of the number of a batch
_SETTING = frozenset({"update_config", "overwrite", "restore", "clone"})
_KEEPS_COLUMNS = frozenset(
    {"append", "delete", "update", "create_index", "rewrite", "update_config", "reserve_fragments"}
)
Fragments = dict[int, bytes]


@dataclass(frozen=True, slots=True)
class Step:
    """A version as it is compared: fragments by id, segments by uuid, settings, columns."""

    version: int
    fragments: Fragments
    indices: dict[str, IndexMetadata]
    config: Mapping[str, str]
    columns: tuple[str, ...]

    @classmethod
    def of(cls, snapshot: Snapshot) -> Step | None:
        """Take the fragments of a version; None if ids repeat. Raises CorruptFileError."""
        fragments = snapshot.manifest.fragments
        if not fragments.has_counts or fragments.repeated_id() is not None:
            return None
        ids = fragments.counts().ids.tolist()
        indices = {index.uuid: index for index in read_indices(snapshot) if not index.is_system}
        by_id = dict(zip(ids, fragments.raw, strict=True))
        manifest = snapshot.manifest
        return cls(
            snapshot.version,
            by_id,
            indices,
            config=manifest.config,
            columns=tuple(manifest.schema.names),
        )


# --- the transaction itself -----------------------------------------------------------------------


def transaction_findings(snapshot: Snapshot) -> tuple[TransactionEffects | None, list[Finding]]:
    """Read both copies of the transaction; return what it does, None if there is none to read."""
    findings: list[Finding] = []
    manifest = snapshot.manifest
    inline, stored = None, None
    section = manifest.transaction_section
    name = manifest.transaction_file

    def add(code: str, text: str, path: str, error: LanceError | None = None) -> None:
        findings.append(Finding(code, text, path, snapshot.branch, snapshot.version, error=error))

    place = manifest.path.removeprefix(f"{snapshot.locations.home.uri}/")
    try:
        if section is not None:
            inline = read_section(snapshot.locations.home, manifest.path, section)
        effects = None if inline is None else TransactionEffects.from_bytes(inline, manifest.path)
    except LanceError as error:
        effects = None
        add("transaction-unreadable", f"the copy in the manifest: {error}", place, error)
    try:
        stored = _stored(snapshot, name) if name else None
        stored_effects = None if stored is None else TransactionEffects.from_bytes(stored, name)
    except ObjectNotFoundError as error:
        stored_effects = None
        path = f"_transactions/{name}"
        if inline is None:
            text = "the manifest names it, it is not there, and the manifest holds no copy"
            add("transaction-missing", text, path, error)
        else:
            add("transaction-file-missing", "the manifest names it, and holds a copy", path)
    except LanceError as error:
        stored_effects = None
        add("transaction-unreadable", str(error), f"_transactions/{name}", error)
    for change, path in ((effects, place), (stored_effects, f"_transactions/{name}")):
        if change is not None and name and name != f"{change.read_version}-{change.uuid}.txn":
            text = f"it is the transaction {change.uuid!r}, and the manifest names {name!r}"
            add("transaction-mismatch", text, path)
    if effects is not None and stored_effects is not None and effects != stored_effects:
        text = "it differs from the copy that the manifest holds"
        add("transaction-mismatch", text, f"_transactions/{name}")
    return effects if effects is not None else stored_effects, findings


def _stored(snapshot: Snapshot, name: str) -> memoryview:
    path = transaction_path(name, snapshot.manifest.path)
    home = snapshot.locations.home
    size = home.size(path)
    if size > FILE_BYTES_MAX:
        expected = f"a transaction of at most {FILE_BYTES_MAX} bytes"
        raise CorruptFileError(f"{home.uri}/{path}", None, expected, f"{size} bytes")
    return home.read(path)


# --- settings and columns -------------------------------------------------------------------------


def _is_next_batch(key: str, before: str, now: str | None) -> bool:
    """Tell whether a key is the mark of a stream whose next batch a version has brought.

    The operation of such a version does not mention the mark.
    """
    if not key.startswith(STREAM_MARK_PREFIX) or now is None:
        return False
    if not all(number.isdecimal() and len(number) <= _DIGITS_MAX for number in (before, now)):
        return False
    return int(now) > int(before)


def _is_next_merge(key: str, before: str, now: str | None) -> bool:
    """Tell whether a key names the latest merge of a branch, and a version has merged it again.

    The operation of such a version does not mention the key either.
    """
    if not key.startswith(MARK_PREFIX) or now is None:
        return False
    earlier, later = (marks_in({key: text}) for text in (before, now))
    return bool(later) and all(mark.source_version <= later[0].source_version for mark in earlier)


def change_findings(
    before: Step | None, snapshot: Snapshot, effects: TransactionEffects | None
) -> Iterator[Finding]:
    """Find settings and columns that the version lacks although its transaction made or kept them.

    ``before`` is the version before, where it is there and can be read.
    """
    if effects is None or effects.arm is None:
        return
    manifest = snapshot.manifest
    path = manifest.path.removeprefix(f"{snapshot.locations.home.uri}/")

    def finding(code: str, text: str) -> Finding:
        return Finding(code, text, path, snapshot.branch, snapshot.version)

    names = set(manifest.schema.names)
    for part, change, current in (
        ("configuration", effects.config, manifest.config),
        ("table's metadata", effects.table_metadata, manifest.table_metadata),
    ):
        unmet = change.unmet(current)
        if unmet:
            text = (
                f"its transaction changes the key {unmet[0]!r} of the {part}; it has not the change"
            )
            yield finding("config-lost", text)
    if effects.columns is not None and set(effects.columns) != names:
        other = min(set(effects.columns) ^ names)
        text = f"its transaction ({effects.arm}) leaves other columns: they differ in {other!r}"
        yield finding("columns-lost", text)
    if before is None:
        return
    if effects.arm not in _SETTING:
        lost = [
            key
            for key, value in before.config.items()
            if manifest.config.get(key) != value
            and not _is_next_batch(key, value, manifest.config.get(key))
            and not _is_next_merge(key, value, manifest.config.get(key))
        ]
        if lost:
            text = (
                f"version {before.version} sets the key {min(lost)!r} of the configuration, this "
                f"one does not, and its transaction ({effects.arm}) does not change it"
            )
            yield finding("config-lost", text)
    missing = sorted(set(before.columns) - names)
    if effects.arm in _KEEPS_COLUMNS and missing:
        text = (
            f"version {before.version} has the column {missing[0]!r}, this one has not, and its "
            f"transaction ({effects.arm}) does not drop it"
        )
        yield finding("columns-lost", text)


# --- from one version to the next -----------------------------------------------------------------


def step_findings(
    before: Step, after: Step, snapshot: Snapshot, effects: TransactionEffects | None
) -> Iterator[Finding]:
    """Compare a version (``after``, ``snapshot``) with the one before it.

    Raises CorruptFileError.
    """
    if effects is None or effects.is_whole:
        return

    def finding(code: str, text: str, number: int | None) -> Finding:
        path = snapshot.manifest.path.removeprefix(f"{snapshot.locations.home.uri}/")
        return Finding(code, text, path, snapshot.branch, snapshot.version, number)

    for number, raw in before.fragments.items():
        now = after.fragments.get(number)
        if now == raw:
            continue
        if now is None:
            is_named = number in effects.removed
            if not is_named and (effects.arm != _MERGE or number in effects.deletions):
                text = (
                    f"version {before.version} has the fragment, version {snapshot.version} has "
                    f"not, and its transaction ({effects.arm}) does not remove it"
                )
                yield finding("fragment-lost", text, number)
            continue
        old = Fragment.from_bytes(raw, snapshot.manifest.path)
        new = Fragment.from_bytes(now, snapshot.manifest.path)
        if _loses_deletions(old, new) and effects.deletions.get(number, "") != _deletion(new):
            text = (
                f"version {before.version} deletes {old.num_deleted_rows} of its rows, version "
                f"{snapshot.version} {new.num_deleted_rows}, and its transaction ({effects.arm}) "
                "does not say so"
            )
            yield finding("deletions-lost", text, number)
        text = "" if effects.arm == _MERGE else _changed_entry(old, new)
        if text:
            yield finding("file-entry-changed", text, number)

    for uuid, segment in after.indices.items():
        difference = _index_difference(before.indices.get(uuid, segment), segment)
        if difference:
            text = f"index {segment.name!r} ({uuid}) has {difference}"
            yield finding("index-entry-changed", text, None)


def _index_difference(old: IndexMetadata, new: IndexMetadata) -> str:
    """Return what differs in the same segment, of which only the coverage may change."""
    for attribute in ("name", "fields", "kind", "index_version", "files"):
        was, now = getattr(old, attribute), getattr(new, attribute)
        if was != now and was not in ((), None, ""):  # what an old writer left out may be added
            return f"another {attribute}: {now!r} instead of {was!r}"
    return ""


def _loses_deletions(old: Fragment, new: Fragment) -> bool:
    if _deletion(old) == _deletion(new):
        return False
    return new.deletion_file is None or new.num_deleted_rows < old.num_deleted_rows


def _deletion(fragment: Fragment) -> str | None:
    file = fragment.deletion_file
    return None if file is None else f"{file.read_version}-{file.id}"


def _changed_entry(old: Fragment, new: Fragment) -> str:
    """Return what differs in the entries of the same data file, "" if nothing."""
    stored = [field_id for file in old.files for field_id in file.fields if field_id != TOMBSTONE]
    if len(set(stored)) < len(stored):
        return ""  # releases up to 0.10.5: the next version renumbers these fields
    new_files: dict[tuple[str, int | None], list[DataFile]] = {}
    for file in new.files:  # a file that was removed and added again may occur twice
        new_files.setdefault((file.path, file.base_id), []).append(file)
    for file in old.files:
        now = new_files.get((file.path, file.base_id), [])
        differences = [_difference(file, current) for current in now]
        if differences and None not in differences:
            return f"data file {file.path!r} has other {differences[0]} than in the version before"
    if old.files == new.files and old.row_id_meta != new.row_id_meta:
        return "it has other row ids than in the version before, in the same files"
    if old.physical_rows not in (0, new.physical_rows) and old.files == new.files:
        return f"it has {new.physical_rows} rows instead of {old.physical_rows}, in the same files"
    return ""


def _difference(old: DataFile, new: DataFile) -> str | None:
    if len(old.fields) != len(new.fields) or any(
        now not in (was, TOMBSTONE) for was, now in zip(old.fields, new.fields, strict=True)
    ):
        return "fields"
    if list(old.column_indices) != list(new.column_indices):
        return "columns"
    if old.size_bytes not in (0, new.size_bytes):
        return "sizes"
    return "versions" if old.file_version != new.file_version else None
