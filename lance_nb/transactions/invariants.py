"""What must be true of every version we write; a version that breaks it is never written.

Checked: the version number follows the current one; fragment ids differ and none is above the
highest ever used; no fragment has more deleted rows than rows; row ids and row versions cover the
rows; no field lies in two files of a fragment; every base that is named exists; the flags say what
is in; uuids of indices differ.

Limits: fragments that the version takes over unchanged were checked when they were written. Of
them only the numbers are looked at, all at once, and nothing at all if others were only added
behind them: appending to 100,000 fragments must not look at each.
Source: lance-table; each of these, when broken, makes pylance 14.0.2 refuse or misread a dataset.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lance_nb.errors import CorruptFileError, InternalError
from lance_nb.format.feature_flags import DELETION_FILES, FLAGS, STABLE_ROW_IDS
from lance_nb.format.fragment import Fragment, InlineSequence
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.format.manifest import Manifest
from lance_nb.format.row_sequences import RowIdSegments, RowVersionSequence
from lance_nb.transactions.operation import ApplyContext, Built, Snapshotted


def check_invariants(built: Built, ctx: ApplyContext, sources: Sequence[Snapshotted] = ()) -> None:
    """Check a version before it is written; ``sources`` are versions that it is made of.

    Raises CorruptFileError where the current version or a source is damaged, else InternalError.
    """
    problems = [
        *_version_problems(built.manifest, ctx),
        *_list_problems(built, ctx.current),
        *_flag_problems(built.manifest, built.fresh),
        *(text for one in built.fresh for text in _fragment_problems(one, built.manifest)),
        *_index_problems(built),
    ]
    if not problems:
        return
    current = () if ctx.current is None else ((ctx.current, ctx.indices),)
    for manifest, indices in (*current, *sources):
        damage = _damage(manifest, indices)
        if damage:
            expected = "a version that a change can be made of"
            raise CorruptFileError(manifest.path, None, expected, "; ".join(damage[:5]))
    raise InternalError(
        f"version {built.manifest.version} would be broken and is not written: "
        + "; ".join(problems[:5])
    )


def _damage(manifest: Manifest, indices: tuple[IndexMetadata, ...]) -> list[str]:
    """Return what of the same is wrong with a version that is there already."""
    there = Built(manifest, indices, tuple(manifest.fragments))
    return [
        *_list_problems(there, manifest),
        *_flag_problems(manifest, there.fresh),
        *(text for one in there.fresh for text in _fragment_problems(one, manifest)),
        *(
            f"fragment {one.id} has no number of rows"
            for one in there.fresh
            if not one.physical_rows
        ),
        *_index_problems(there),
    ]


def _version_problems(manifest: Manifest, ctx: ApplyContext) -> Iterator[str]:
    if ctx.options.detached_version is not None:
        expected = ctx.options.detached_version
    elif ctx.current is not None:
        expected = ctx.current.version + 1
    else:
        expected = max(manifest.version, 1)  # a clone begins with the number of its source
    if manifest.version != expected:
        yield f"its number is {manifest.version} instead of {expected}"


def _list_problems(built: Built, current: Manifest | None) -> Iterator[str]:
    highest = built.manifest.max_fragment_id
    ids = [one.id for one in built.fresh]
    if built.only_appended and current is not None:
        before = current.max_fragment_id
        if before is not None and any(one <= before for one in ids):
            yield f"a new fragment has id {min(ids)}, and ids up to {before} are taken"
    else:
        try:
            ids = built.manifest.fragments.counts().ids.tolist()
        except CorruptFileError as error:
            yield f"its fragments are wrong ({error})"
    is_clone = current is None and bool(built.writers)  # it changes no fragment
    if len(set(ids)) < len(ids) and not is_clone:
        yield "two fragments have the same id"
    if ids and (highest is None or max(ids) > highest):
        yield f"there is a fragment {max(ids)}, and the highest id is said to be {highest}"


def _flag_problems(manifest: Manifest, fresh: Iterable[Fragment]) -> Iterator[str]:
    reader, writer = manifest.reader_feature_flags, manifest.writer_feature_flags
    for flag in FLAGS:
        paired = flag.both_or_none or flag.bit in (DELETION_FILES, STABLE_ROW_IDS)
        if paired and bool(reader & flag.bit) != bool(writer & flag.bit):
            yield f"feature {flag.name!r} is announced in one word only"
    if not reader & DELETION_FILES and any(one.deletion_file is not None for one in fresh):
        yield "there are deletion files and the flags do not say so"


def _fragment_problems(one: Fragment, manifest: Manifest) -> Iterator[str]:
    name = f"fragment {one.id}"
    deleted = 0 if one.deletion_file is None else one.deletion_file.num_deleted_rows
    if deleted > one.physical_rows:
        yield f"{name} has {one.physical_rows} rows and {deleted} deleted ones"
    stable = bool(manifest.reader_feature_flags & STABLE_ROW_IDS)
    if stable != (one.row_ids is not None):
        yield f"{name} has {'no ' if stable else ''}row ids"
    for what, count in _sequence_lengths(one):
        if count != one.physical_rows:
            yield f"{name} has {one.physical_rows} rows and {count} {what}"
    fields = [field for file in one.files for field in file.fields if field >= 0]
    if len(set(fields)) < len(fields):
        yield f"{name} has a field in two files"
    if any(
        len(file.fields) != len(file.column_indices) for file in one.files if not file.is_legacy
    ):
        yield f"{name} has a file with fields and columns of different numbers"
    bases = {base.id for base in manifest.base_paths}
    named = {file.base_id for file in one.files}
    named.add(None if one.deletion_file is None else one.deletion_file.base_id)
    unknown = named - bases - {None}
    if unknown:
        yield f"{name} has files under base {min(unknown, key=str)}, which does not exist"


def _sequence_lengths(one: Fragment) -> Iterator[tuple[str, int]]:
    if isinstance(one.row_ids, InlineSequence):
        yield "row ids", RowIdSegments.from_bytes(one.row_ids.data).num_rows
    for what, sequence in (
        ("creation versions", one.created_at_versions),
        ("update versions", one.last_updated_at_versions),
    ):
        if isinstance(sequence, InlineSequence):
            yield what, RowVersionSequence.from_bytes(sequence.data).num_rows


def _index_problems(built: Built) -> Iterator[str]:
    uuids = [one.uuid for one in built.indices]
    if len(set(uuids)) < len(uuids):
        yield "two indices have the same uuid"
