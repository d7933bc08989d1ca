"""A new version: made of the current one, checked, and serialized.

Checked is what must be true of every version; one that breaks it is never written. The version
number follows the current one; fragment ids differ and none is above the highest ever used; no
fragment has more deleted rows than rows; row ids and row versions cover the rows; no field lies in
two files of a fragment; every base that is named exists; the flags say what the version holds;
uuids of indices differ.

Layout: format/manifest.py; the sections are the indices and the transaction, both whole.
Limits: fragments that the version takes over unchanged were checked when they were written. Of
those only the numbers are checked, all at once, and nothing at all if others were only added behind
them: appending to 100,000 fragments must not look at each.
Source: lance-table; each of these, when broken, makes pylance 14.0.2 refuse or misread a dataset.
Order of sections and of writes as in pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from lance_nb.errors import CorruptFileError, InternalError, InvalidInputError, LanceError
from lance_nb.format import layout
from lance_nb.format.checksums import wants_checksums
from lance_nb.format.feature_flags import DELETION_FILES, FLAGS, STABLE_ROW_IDS
from lance_nb.format.fragment import Fragment, InlineSequence
from lance_nb.format.fragment_reuse import DETAILS_FILE, outside
from lance_nb.format.index_metadata import IndexMetadata, build_index_section
from lance_nb.format.layout import ManifestName
from lance_nb.format.manifest import Manifest, Section, section_size
from lance_nb.format.row_sequences import RowIdSegments, RowVersionSequence
from lance_nb.format.transaction_summary import MESSAGE_PROPERTY
from lance_nb.storage.base import Store, write_unsynced
from lance_nb.transactions.checksum_records import sum_of, write_record
from lance_nb.transactions.commit_options import Committed
from lance_nb.transactions.old_manifests import may_need_repair, repaired
from lance_nb.transactions.operation import ApplyContext, Built, Snapshotted
from lance_nb.transactions.transaction import Transaction
from lance_nb.value_classes import dataclass


def build(
    transaction: Transaction,
    ctx: ApplyContext,
    apply: Callable[[ApplyContext], Built] | None = None,
    *,
    is_by_hand: bool = False,
) -> Built:
    """Apply a transaction and check the outcome; ``apply`` makes it instead of the operation.

    What old releases left wrong in the version before is repaired.

    Raises what the operation raises; CorruptFileError where a version that the new one is made of
    is damaged, and for any other outcome that no dataset may have InternalError, or
    InvalidInputError if the operation was put together by a caller (``is_by_hand``): such a version
    is never written.
    """
    sources: list[Snapshotted] = []

    def load(version: int) -> Snapshotted:
        sources.append(ctx.load_version(version))
        return sources[-1]

    name = "" if ctx.options.no_transaction_file else transaction.file_name
    build_context = replace(ctx, transaction_file=name, tag=transaction.tag, load_version=load)
    built = (apply or transaction.operation.apply)(build_context)
    if built.manifest.transaction_file != name or built.manifest.tag != transaction.tag:
        manifest = replace(built.manifest, transaction_file=name, tag=transaction.tag)
        built = replace(built, manifest=manifest)
    if any(map(may_need_repair, built.writers)):
        is_clone = transaction.operation.arm == "clone"
        built = repaired(built, ctx.open_snapshot, is_clone=is_clone)
    check_invariants(built, ctx, sources, is_by_hand=is_by_hand)
    return built


# --- check ----------------------------------------------------------------------------------------


def check_invariants(
    built: Built,
    ctx: ApplyContext,
    sources: Sequence[Snapshotted] = (),
    *,
    is_by_hand: bool = False,
) -> None:
    """Check a version before it is written; ``sources`` are versions that it is made of.

    Raises CorruptFileError where the current version or a source is damaged, else InternalError, or
    InvalidInputError for an operation of a caller.
    """
    problems = [
        *_version_problems(built.manifest, ctx),
        *_list_problems(built, ctx.current),
        *_flag_problems(built.manifest, built.fresh),
        *(
            text
            for fragment in built.fresh
            for text in _fragment_problems(fragment, built.manifest)
        ),
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
    error = InvalidInputError if is_by_hand else InternalError
    raise error(
        f"version {built.manifest.version} would be broken and is not written: "
        + "; ".join(problems[:5])
    )


def _damage(manifest: Manifest, indices: tuple[IndexMetadata, ...]) -> list[str]:
    """Return what of the same is wrong with a version that is there already."""
    existing = Built(manifest, indices, tuple(manifest.fragments))
    return [
        *_list_problems(existing, manifest),
        *_flag_problems(manifest, existing.fresh),
        *(text for fragment in existing.fresh for text in _fragment_problems(fragment, manifest)),
        *(
            f"fragment {fragment.id} has no number of rows"
            for fragment in existing.fresh
            if not fragment.physical_rows
        ),
        *_index_problems(existing),
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
    ids = [fragment.id for fragment in built.fresh]
    if built.only_appended and current is not None:
        before = current.max_fragment_id
        if before is not None and any(fragment_id <= before for fragment_id in ids):
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
    if not reader & DELETION_FILES and any(
        fragment.deletion_file is not None for fragment in fresh
    ):
        yield "there are deletion files and the flags do not say so"


def _fragment_problems(fragment: Fragment, manifest: Manifest) -> Iterator[str]:
    name = f"fragment {fragment.id}"
    deleted = 0 if fragment.deletion_file is None else fragment.deletion_file.num_deleted_rows
    if deleted > fragment.physical_rows:
        yield f"{name} has {fragment.physical_rows} rows and {deleted} deleted ones"
    stable = bool(manifest.reader_feature_flags & STABLE_ROW_IDS)
    if stable != (fragment.row_ids is not None):
        yield f"{name} has {'no ' if stable else ''}row ids"
    for subject, count in _sequence_lengths(fragment):
        if count != fragment.physical_rows:
            yield f"{name} has {fragment.physical_rows} rows and {count} {subject}"
    fields = [field for file in fragment.files for field in file.fields if field >= 0]
    if len(set(fields)) < len(fields):
        yield f"{name} has a field in two files"
    if any(
        len(file.fields) != len(file.column_indices)
        for file in fragment.files
        if not file.is_legacy
    ):
        yield f"{name} has a file with fields and columns of different numbers"
    bases = {base.id for base in manifest.base_paths}
    named = {file.base_id for file in fragment.files}
    named.add(None if fragment.deletion_file is None else fragment.deletion_file.base_id)
    unknown = named - bases - {None}
    if unknown:
        yield f"{name} has files under base {min(unknown, key=str)}, which does not exist"


def _sequence_lengths(fragment: Fragment) -> Iterator[tuple[str, int]]:
    if isinstance(fragment.row_ids, InlineSequence):
        yield "row ids", RowIdSegments.from_bytes(fragment.row_ids.data).num_rows
    for subject, sequence in (
        ("creation versions", fragment.created_at_versions),
        ("update versions", fragment.last_updated_at_versions),
    ):
        if isinstance(sequence, InlineSequence):
            yield subject, RowVersionSequence.from_bytes(sequence.data).num_rows


def _index_problems(built: Built) -> Iterator[str]:
    uuids = [index.uuid for index in built.indices]
    if len(set(uuids)) < len(uuids):
        yield "two indices have the same uuid"


# --- serialize ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NewVersion:
    """A version that can be written. ``committed`` is what ``commit`` returns for it."""

    name: ManifestName
    data: bytes
    inline: bytes
    committed: Committed


def prepare(home: Store, built: Built, transaction: Transaction, name: ManifestName) -> NewVersion:
    """Serialize a version; writes at most what of its indices does not lie in the manifest."""
    inline = transaction.to_bytes()
    indices = tuple(_with_details_outside(home, index, built.manifest) for index in built.indices)
    index_section = build_index_section(indices) if indices else None
    data = built.manifest.to_bytes(index_section=index_section, transaction=inline)
    start = len(built.manifest.live_preamble)
    manifest = replace(
        built.manifest,
        index_section=None if index_section is None else Section(start, index_section),
        transaction_section=Section(start + section_size(index_section), inline),
        size_bytes=len(data),
        path=f"{home.uri}/{name.path}",
    )
    return NewVersion(name, data, inline, Committed(manifest, indices, transaction))


def _with_details_outside(home: Store, index: IndexMetadata, manifest: Manifest) -> IndexMetadata:
    """Write details that are too large for a manifest into a file, durably."""
    moved = outside(index)
    if moved is None:
        return index
    slim, content = moved
    path = f"{layout.index_folder(index.uuid)}/{DETAILS_FILE}"
    home.write(path, content)
    if wants_checksums(manifest.config):
        write_record(home, [sum_of(path, content)])
    return slim


def write_transaction_file(home: Store, version: NewVersion) -> str:
    """Write the ``.txn`` file that a version names; return its name, "" if it names none.

    The disk is not waited for: the durable copy is the one inside the manifest file.
    """
    file_name = version.committed.manifest.transaction_file
    if file_name:
        write_unsynced(home, layout.transaction_path(file_name), version.inline)
    return file_name


def write_hint(home: Store, version: int) -> None:
    """Write the hint which version is the newest; without it, readers list names."""
    try:
        write_unsynced(home, layout.HINT_PATH, b'{"version":%d}' % version)
    except LanceError:
        return


def with_message(transaction: Transaction, message: str | None) -> Transaction:
    """Return the transaction with a commit message among its properties."""
    if message is None:
        return transaction
    return replace(
        transaction, transaction_properties={**transaction.properties, MESSAGE_PROPERTY: message}
    )
