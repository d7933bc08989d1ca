"""Copy a dataset: a shallow clone refers to the files of its source, a deep clone copies them.

The first version of a clone has the number of the version it is a copy of. A shallow clone names
the source's folder as a base path, so that it cannot be read without it; reading it needs leave to
(``allow_bases``), because the files lie under another root. A deep clone stands alone: data files,
blob files beside them, deletion files and index files are copied first, then the manifest is
committed.

Limits: files are copied through this process, in pieces of ``PIECE_BYTES``. A deep clone that fails
leaves the files that it copied, in a folder that is no dataset yet; repeating it replaces them.

A dataset that was moved or copied by other means: we find its files at its present place
(table/locations.py). pylance follows the path that a manifest records, so it cannot read the
branches, and main where it has merged one. A repair makes one version of each such branch that is
the one before with other base paths; ids, rows and fragments stay as they are. From it on pylance
reads the branch. The transaction is an UpdateBases that adds none: it conflicts with nothing that
others do, and what they commit meanwhile is repaired with it. Older versions keep what they record,
and so do tags on them: we read them, pylance does not. Clones elsewhere that refer to the former
place are not known.
Source: messages ``Transaction.Clone`` and ``BasePath`` of lance.table; pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from lance_nb.errors import DatasetAlreadyExistsError, InvalidInputError, LanceError
from lance_nb.format import layout
from lance_nb.format.checksums import wants_checksums
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.format.manifest import BasePath, Manifest
from lance_nb.session.base_paths import inherit_blobs, remember_created
from lance_nb.session.session import Session, open_session
from lance_nb.storage.base import ByteRange, Store
from lance_nb.storage.registry import StorageOptions
from lance_nb.storage.summed_writer import SummedWriter
from lance_nb.storage.threads import run_side_by_side
from lance_nb.table import refs
from lance_nb.table.locations import Locations
from lance_nb.table.refs import Target
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.checksum_records import CopiedSums
from lance_nb.transactions.commit import DEFAULTS, commit
from lance_nb.transactions.commit_options import CommitOptions, CommitPlace, Committed
from lance_nb.transactions.manifest_building import Draft
from lance_nb.transactions.operation import ApplyContext, Built
from lance_nb.transactions.operations.clone import Clone
from lance_nb.transactions.operations.update_bases import UpdateBases
from lance_nb.transactions.ref_writer import PlaceOf, locate
from lance_nb.transactions.transaction import Transaction
from lance_nb.transactions.version_slots import VersionSource
from lance_nb.value_classes import dataclass
from lance_nb.writing.branching import clone_source

PIECE_BYTES = 16 * 1024 * 1024
_COPIERS = 4
CloneProgress = Callable[["CopyProgress"], None]


@dataclass(frozen=True, slots=True)
class CopyProgress:
    """How far a deep clone is."""

    num_files: int
    num_files_copied: int
    bytes_copied: int


@dataclass(frozen=True, slots=True)
class FileCopy:
    """One file: where it is, and its path below the clone's root (the same as in a dataset)."""

    store: Store
    path: str
    target: str


def copy_version(
    source: CommitPlace,
    version: int,
    target: CommitPlace,
    options: CommitOptions,
    progress: CloneProgress | None = None,
) -> Committed:
    """Copy a version of ``source``, with all files it needs, into a dataset at ``target``.

    Raises DatasetAlreadyExistsError, VersionNotFoundError, StorageError.
    """
    copies = files_to_copy(source, version, target)
    copied = [0, 0]
    config = clone_source(source, version).load(version).manifest.config
    sums = CopiedSums() if wants_checksums(config) else None
    tasks = [
        partial(copy_file, copy.store, copy.path, target.home, copy.target, sums) for copy in copies
    ]
    for size_bytes in run_side_by_side(tasks, _COPIERS):
        copied = [copied[0] + 1, copied[1] + size_bytes]
        if progress is not None:
            progress(CopyProgress(len(copies), copied[0], copied[1]))
    if sums is not None:
        sums.write(target.home)
    return commit_clone(source, version, target, options, is_shallow=False)


def files_to_copy(source: CommitPlace, version: int, target: CommitPlace) -> list[FileCopy]:
    """List the files of a deep clone. Raises DatasetAlreadyExistsError, VersionNotFoundError."""
    if target.slots.latest() is not None:
        raise DatasetAlreadyExistsError(f"a dataset is at {target.home.uri!r} already")
    loaded = clone_source(source, version).load(version)
    return list(files_of(source.locations(loaded.manifest), loaded.manifest, loaded.indices))


def commit_clone(
    source: CommitPlace,
    version: int,
    target: CommitPlace,
    options: CommitOptions,
    *,
    is_shallow: bool,
) -> Committed:
    """Make the first version of a clone, whose files are there."""
    operation = Clone(
        is_shallow=is_shallow,
        ref_version=version,
        ref_path=source.home.uri,
        ref_name=source.branch,
    )
    transaction = Transaction(version, operation, options.environment.new_uuid())
    load = clone_source(source, version).snapshotted
    return commit(target, transaction, replace(options, clone_source=load))


def files_of(
    locations: Locations, manifest: Manifest, indices: tuple[IndexMetadata, ...]
) -> Iterator[FileCopy]:
    """List every file that a version needs, each once."""
    seen: set[tuple[str, str]] = set()
    for store, path, target in _all_files(locations, manifest, indices):
        if (store.uri, path) not in seen:
            seen.add((store.uri, path))
            yield FileCopy(store, path, target)


def _all_files(
    locations: Locations, manifest: Manifest, indices: tuple[IndexMetadata, ...]
) -> Iterator[tuple[Store, str, str]]:
    beside = _Beside()
    for fragment in manifest.fragments:
        for file in fragment.files:
            inside = file.location(manifest.path)
            store, path = locations.locate(inside, file.base_id)
            yield store, path, inside
            for name in beside.of(store, path):
                yield store, f"{_folder(path)}{name}", f"{_folder(inside)}{name}"
        deletion = fragment.deletion_file
        if deletion is not None:
            inside = deletion.location(fragment.id)
            store, path = locations.locate(inside, deletion.base_id)
            yield store, path, inside
    for index in indices:
        inside = layout.index_folder(index.uuid, manifest.path)
        store, path = locations.locate(inside, index.base_id)
        for entry in store.list_recursive(path):
            yield store, f"{path}/{entry.name}", f"{inside}/{entry.name}"


class _Beside:
    """The blob files that lie in a folder named like their data file; one listing per folder."""

    def __init__(self) -> None:
        self._listings: dict[tuple[str, str], dict[str, list[str]]] = {}

    def of(self, store: Store, path: str) -> list[str]:
        """Return the paths of a data file's blob files, relative to its folder."""
        folder = _folder(path)
        key = (store.uri, folder)
        if key not in self._listings:
            names = [entry.name for entry in store.list_recursive(folder) if "/" in entry.name]
            self._listings[key] = {}
            for name in names:
                self._listings[key].setdefault(name.partition("/")[0], []).append(name)
        stem = path.removeprefix(folder).removesuffix(".lance")
        if stem not in self._listings[key] and store.scheme == "file":
            # It may be a link to a folder, which a listing of all does not follow.
            inside = store.list_recursive(f"{folder}{stem}")
            self._listings[key][stem] = [f"{stem}/{entry.name}" for entry in inside]
        return self._listings[key].get(stem, [])


def _folder(path: str) -> str:
    return path[: path.rfind("/") + 1]


def copy_file(
    store: Store, path: str, home: Store, target: str, sums: CopiedSums | None = None
) -> int:
    """Copy one file, in pieces; return its size. ``sums`` gets its checksum.

    Raises StorageError, and CorruptFileError if it is not what its own checksum says; then there is
    no copy.
    """
    size_bytes = store.size(path)
    upload = home.create(target)
    writer = upload if sums is None else SummedWriter(upload, target)
    try:
        for start in range(0, size_bytes, PIECE_BYTES):
            stop = min(start + PIECE_BYTES, size_bytes)
            writer.write([store.read_range(path, ByteRange(start, stop))])
        if sums is not None and isinstance(writer, SummedWriter):
            sums.add(store, path, writer)
        writer.finish()
    except LanceError:
        writer.abort()
        raise
    return size_bytes


def shallow_clone(
    session: Session, target: Target, uri: Any, options: StorageOptions | None
) -> tuple[Session, Snapshot]:
    """Make a dataset that refers to the files of this one."""
    source, version, place, clone_session = clone_places(session, target, uri, options)
    committed = commit_clone(source, version, place, CommitOptions(), is_shallow=True)
    remember_created(clone_session.root.uri, clone_session.allow_bases)
    inherit_blobs(clone_session.root.uri, session.root.uri)
    return clone_session, clone_session.snapshot(committed.manifest, None)


def deep_clone(
    session: Session,
    target: Target,
    uri: Any,
    options: StorageOptions | None,
    progress: CloneProgress | None = None,
) -> tuple[Session, Snapshot]:
    """Copy a version with all its files."""
    source, version, place, clone_session = clone_places(session, target, uri, options)
    committed = copy_version(source, version, place, options=CommitOptions(), progress=progress)
    inherit_blobs(clone_session.root.uri, session.root.uri)
    return clone_session, clone_session.snapshot(committed.manifest, None)


def clone_places(
    session: Session, target: Target, uri: Any, options: StorageOptions | None
) -> tuple[CommitPlace, int, CommitPlace, Session]:
    """Return where a clone comes from, which version of it, where it goes, and who reads that."""
    # The clone names the source as a base path: whoever made it may read it.
    bases = (*session.trusted_bases, session.root.uri)
    clone_session = open_session(
        uri, session.storage_options if options is None else options, bases
    )
    if clone_session.root.uri == session.root.uri:
        place = clone_session.root.uri
        raise InvalidInputError(f"a dataset cannot be cloned into its own folder {place!r}")
    source = session.place(target.branch)
    version, _ = locate(source, target.version, target.tag or "")
    return source, version, clone_session.place(None), clone_session


def moved_branches_of(session: Session) -> list[MovedBranch]:
    """Find the branches that name a place where the dataset was before it was moved or copied."""
    return find_moved_branches(session.root, session.place)


def repair_moved_branches(session: Session, *, dry_run: bool) -> list[MovedBranch]:
    """Let these branches name where the dataset is now; return what was found before."""
    moved = moved_branches_of(session)
    for branch in () if dry_run else moved:
        repair_moved(session.place(branch.branch))
    return moved


@dataclass(frozen=True, slots=True)
class MovedBranch:
    """The newest version of a branch (None: main) that names former places of the dataset.

    ``bases`` are pairs of a base path as recorded and as it is now.
    """

    branch: str | None
    version: int
    bases: tuple[tuple[BasePath, BasePath], ...]

    def __str__(self) -> str:
        """Say in one line from where to where."""
        places = ", ".join(f"{old.path} (now {new.path})" for old, new in self.bases)
        return f"{self.branch or refs.MAIN}:{self.version} was moved from {places}"


def find_moved_branches(root: Store, place_of: PlaceOf) -> list[MovedBranch]:
    """Find the branches whose newest version names former places of the dataset.

    ``place_of`` gives the place of a branch. A branch that is unfinished has none. Raises
    CorruptFileError for a newest version that cannot be read.
    """
    branches = (_moved(place_of(branch)) for branch in (None, *refs.branch_names(root)))
    return [branch for branch in branches if branch is not None]


def repair_moved(place: CommitPlace, options: CommitOptions = DEFAULTS) -> Committed | None:
    """Commit a version of a branch that names its bases as they are now; None if it does already.

    Raises as ``commit`` does.
    """
    moved = _moved(place)
    if moved is None:
        return None
    present = {old.id: new for old, new in moved.bases}
    former = ", ".join(old.path for old, _ in moved.bases)
    transaction = Transaction(moved.version, UpdateBases(()), options.environment.new_uuid())
    return commit(
        place,
        transaction,
        replace(
            options,
            message=options.message or f"Repair the base paths of a dataset moved from {former}",
            apply=lambda ctx: _repaired(ctx, present),
        ),
    )


def _moved(place: CommitPlace) -> MovedBranch | None:
    source = VersionSource(place.slots, place.locations)
    head = source.head(0)
    if head is None:
        return None
    manifest = source.load(head.version).manifest
    now: Sequence[BasePath] = place.locations(manifest).present_bases()
    pairs = zip(manifest.base_paths, now, strict=True)
    bases = tuple((old, new) for old, new in pairs if old != new)
    return MovedBranch(place.branch, head.version, bases) if bases else None


def _repaired(ctx: ApplyContext, present: dict[int, BasePath]) -> Built:
    draft = Draft.of(ctx, UpdateBases(()))
    manifest = draft.manifest
    bases = tuple(present.get(base_path.id, base_path) for base_path in manifest.base_paths)
    draft.manifest = replace(manifest, base_paths=bases)
    return draft.finish()
