"""Check before a commit that the files which a new version names are there.

Files of Spark tasks and of changes that are committed by hand were written by another process,
maybe on another machine. A worker that sees another folder at the same path reports success, and a
clean-up may remove files between the work and the commit. A version that names such files cannot be
read, and neither can any version that is made of it, so it is not committed.

Checked are the files that the version before does not have: data files and index files with their
sizes, if recorded, and deletion files. Verbs whose files this process has just written do not ask.

Limits: files under other base paths, and indices that do not list their files, are not checked. A
file that is removed between the check and the commit is not noticed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from lance_nb.errors import CorruptFileError, ObjectNotFoundError
from lance_nb.format import layout
from lance_nb.format.fragment import Fragment
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.format.manifest import Manifest
from lance_nb.storage.base import Store, is_far
from lance_nb.storage.threads import THREADS_MAX, run_all
from lance_nb.transactions.operation import Built
from lance_nb.value_classes import dataclass

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
    before = {} if current is None else current.fragments.with_ids(one.id for one in built.fresh)
    files = [
        file
        for fragment in built.fresh
        for file in _fragment_files(fragment, before.get(fragment.id))
    ]
    uuids = {index.uuid for index in indices}
    files += [
        file for index in built.indices if index.uuid not in uuids for file in _index_files(index)
    ]
    num_stored = len(files) + (0 if current is None else len(current.fragments))
    sizes = _listed_sizes(home, files, num_stored)
    unlisted = [file.path for file in files if file.path not in sizes]
    step = max(-(-len(unlisted) // (4 * THREADS_MAX)), 1)
    starts = range(0, len(unlisted), step)
    tasks = [partial(_read_sizes, home, unlisted[start : start + step]) for start in starts]
    for part in run_all(tasks):
        sizes |= part
    _check_sizes(home, files, sizes)


def _fragment_files(fragment: Fragment, before: Fragment | None) -> Iterator[NamedFile]:
    owner = f"fragment {fragment.id}"
    stored = set() if before is None else {file.path for file in before.files}
    for file in fragment.files:
        if file.base_id is None and file.path not in stored:
            yield NamedFile(file.location(), file.size_bytes, owner)
    deletion = fragment.deletion_file
    is_new = before is None or deletion != before.deletion_file
    if deletion is not None and deletion.base_id is None and is_new:
        yield NamedFile(deletion.location(fragment.id), 0, owner)


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
