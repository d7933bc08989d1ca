"""Copy a dataset: a shallow clone refers to the files of its source, a deep clone copies them.

The first version of a clone has the number of the version it is a copy of. A shallow clone names
the source's folder as a base path, so that it cannot be read without it; reading it needs leave to
(``allow_bases``), because the files lie under another root. A deep clone stands alone: data files,
blob files beside them, deletion files and index files are copied first, then the manifest is
committed.

Limits: files are copied through this process, in pieces of ``PIECE_BYTES``. A deep clone that fails
leaves the files that it copied, in a folder that is no dataset yet; repeating it replaces them.
Source: message ``Transaction.Clone`` of lance.table; pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from lance_nb.errors import DatasetAlreadyExistsError, LanceError
from lance_nb.format import layout
from lance_nb.format.checksums import wants_checksums
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.format.manifest import Manifest
from lance_nb.storage.base import ByteRange, Store
from lance_nb.storage.summed_writer import SummedWriter
from lance_nb.storage.threads import run_side_by_side
from lance_nb.table.locations import Locations
from lance_nb.transactions.checksum_records import CopiedSums
from lance_nb.transactions.commit import commit
from lance_nb.transactions.commit_options import CommitOptions, CommitPlace, Committed
from lance_nb.transactions.operations.clone import Clone
from lance_nb.transactions.transaction import Transaction
from lance_nb.value_classes import dataclass
from lance_nb.writing.branch_writer import clone_source

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


def shallow_clone(
    source: CommitPlace, version: int, target: CommitPlace, options: CommitOptions
) -> Committed:
    """Make a dataset at ``target`` that refers to the files of a version of ``source``.

    Raises DatasetAlreadyExistsError, VersionNotFoundError.
    """
    return commit_clone(source, version, target, options, is_shallow=True)


def deep_clone(
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
    sums = CopiedSums() if _wants_checksums(source, version) else None
    tasks = [partial(_copy, file_copy, target.home, sums) for file_copy in copies]
    for size_bytes in run_side_by_side(tasks, _COPIERS):
        copied = [copied[0] + 1, copied[1] + size_bytes]
        if progress is not None:
            progress(CopyProgress(len(copies), copied[0], copied[1]))
    if sums is not None:
        sums.write(target.home)
    return commit_clone(source, version, target, options, is_shallow=False)


def _wants_checksums(source: CommitPlace, version: int) -> bool:
    return wants_checksums(clone_source(source, version).load(version).manifest.config)


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
        yield from _below(store, path, inside)


class _Beside:
    """The blob files that lie in a folder named like their data file; one listing per folder."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], dict[str, list[str]]] = {}

    def of(self, store: Store, path: str) -> list[str]:
        """Return the paths of a data file's blob files, relative to its folder."""
        folder = _folder(path)
        key = (store.uri, folder)
        if key not in self._known:
            names = [entry.name for entry in store.list_recursive(folder) if "/" in entry.name]
            self._known[key] = {}
            for name in names:
                self._known[key].setdefault(name.partition("/")[0], []).append(name)
        stem = path.removeprefix(folder).removesuffix(".lance")
        if stem not in self._known[key] and store.scheme == "file":
            # It may be a link to a folder, which a listing of all does not follow.
            inside = store.list_recursive(f"{folder}{stem}")
            self._known[key][stem] = [f"{stem}/{entry.name}" for entry in inside]
        return self._known[key].get(stem, [])


def _folder(path: str) -> str:
    return path[: path.rfind("/") + 1]


def _below(store: Store, folder: str, target: str) -> Iterator[tuple[Store, str, str]]:
    for entry in store.list_recursive(folder):
        yield store, f"{folder}/{entry.name}", f"{target}/{entry.name}"


def _copy(file_copy: FileCopy, home: Store, sums: CopiedSums | None) -> int:
    return copy_file(file_copy.store, file_copy.path, home, file_copy.target, sums)


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
