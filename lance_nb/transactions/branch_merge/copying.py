"""Copy files into the folder of a branch, in pieces, each under the name it has.

Limits: what was copied stays when a later copy fails; it is in no version, and cleaning removes it.
Source: cloning.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from lance_nb.storage.base import Store
from lance_nb.transactions.branch_merge.places import FileCopy
from lance_nb.transactions.checksum_records import CopiedSums
from lance_nb.transactions.cloning import copy_file

Progress = Callable[[int, int], object]


def copy_files(
    copies: Sequence[FileCopy],
    home: Store,
    progress: Progress | None = None,
    *,
    checksums: bool = False,
) -> int:
    """Copy; return the number of bytes. ``progress`` is told files done and files in all.

    ``checksums``: sums of the copies are recorded. Raises StorageError, CorruptFileError.
    """
    files = [one for copy in copies for one in _files(copy)]
    size_bytes = 0
    sums = CopiedSums() if checksums else None
    for number, (store, source, target) in enumerate(files, 1):
        size_bytes += copy_file(store, source, home, target, sums)
        if progress is not None:
            progress(number, len(files))
    if sums is not None:
        sums.write(home)
    return size_bytes


def _files(copy: FileCopy) -> Iterator[tuple[Store, str, str]]:
    """List the files: one and, of a data file, the folder of blobs beside it; or a whole folder."""
    folder, target = copy.source_path, copy.path
    if not copy.is_folder:
        yield copy.store, copy.source_path, copy.path
        folder, target = folder.removesuffix(".lance"), target.removesuffix(".lance")
    for one in copy.store.list_recursive(folder):
        yield copy.store, f"{folder}/{one.name}", f"{target}/{one.name}"
