"""Records of checksums, written beside data files before a commit names those.

Each set of files that is written together (a write of rows, a task of Spark, the deletion files of
a commit, an index) gets one record, so writers on many machines need not agree on anything. A
record of files that no version ever named is harmless; ``merge_records`` leaves them out.

Layout: format/checksums.py.
Limits: a process that ends between its data files and its record leaves files without a checksum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from lance_nb.errors import LanceError
from lance_nb.format.checksums import (
    FOLDER,
    FileSum,
    digest_of,
    is_record_name,
    parse_record,
    record_bytes,
    record_path,
)
from lance_nb.storage.base import Store, write_new
from lance_nb.storage.summed_writer import SummedWriter, stored_digest
from lance_nb.table.checksums import Checksums, check_sum

_RECORD_FILES = 50_000  # in one record: about 6 MB
_MERGED_MIN = 16  # records; fewer are read at once


def write_record(store: Store, sums: Iterable[FileSum]) -> str:
    """Write a record of files in a store; return its path, "" if there are none.

    Durable like the files themselves, see ``write_new``. Raises StorageError.
    """
    all_sums = list(sums)
    if not all_sums:
        return ""
    content = record_bytes(all_sums)
    path = record_path(content)
    write_new(store, path, content)
    return path


def sum_of(path: str, data: bytes) -> FileSum:
    """Return what a record says of a file that is written in one piece."""
    return FileSum(path, digest_of(data), len(data))


class CopiedSums:
    """The checksums of copies. A copy of a damaged file is refused: its sum would hide the damage.

    Several threads may add sums.
    """

    def __init__(self) -> None:
        self._checksums = Checksums()
        self._copied: list[FileSum] = []

    def add(self, store: Store, path: str, copy: SummedWriter) -> None:
        """Take the sum of a copy of the file at ``path``. Raises CorruptFileError."""
        file_sum = FileSum(copy.path, copy.digest, copy.size_bytes)
        check_sum(self._checksums.of(store, path), f"{store.uri}/{path}", file_sum)
        self._copied.append(file_sum)

    def write(self, home: Store) -> None:
        """Write the record of all copies. Raises StorageError."""
        write_record(home, self._copied)


class AddedChecksums(NamedTuple):
    """What ``add_checksums`` did: files that it read, and their bytes; files that had a sum."""

    num_files: int
    size_bytes: int
    num_known: int


def record_existing(
    files: Iterable[tuple[Store, str]], progress: Callable[[int], object] = lambda _: None
) -> AddedChecksums:
    """Read files that are there, each once and in blocks, and record sums of those without one.

    ``progress`` is called with the number of files that are done. Raises StorageError; what has
    been recorded until then stays.
    """
    checksums = Checksums()
    waiting: dict[str, list[FileSum]] = {}
    stores: dict[str, Store] = {}
    num_files = size_bytes = num_known = 0
    for store, path in files:
        if checksums.of(store, path):
            num_known += 1
        else:
            size = store.size(path)
            stores[store.uri] = store
            mine = waiting.setdefault(store.uri, [])
            mine.append(FileSum(path, stored_digest(store, path, size), size))
            num_files, size_bytes = num_files + 1, size_bytes + size
            if len(mine) >= _RECORD_FILES:
                write_record(store, waiting.pop(store.uri))
        progress(num_files + num_known)
    for uri, sums in waiting.items():
        write_record(stores[uri], sums)
    return AddedChecksums(num_files, size_bytes, num_known)


def merge_records(store: Store) -> int:
    """Make one record of many, without files that are gone; return how many were deleted.

    Writers may be at work: a file is there before its record is, so of the records that are read
    here no file that is still to be named can be missing. Raises StorageError.
    """
    names = sorted(entry.name for entry in store.list(FOLDER) if is_record_name(entry.name))
    if len(names) < _MERGED_MIN:
        return 0
    sums: set[FileSum] = set()
    read = []
    for name in names:
        path = f"{FOLDER}/{name}"
        try:
            sums.update(parse_record(store.read(path), f"{store.uri}/{path}", name))
        except LanceError:
            continue  # verify reports it
        read.append(path)
    present = {entry.name for entry in store.list_recursive("")}
    left = sorted(file_sum for file_sum in sums if file_sum.path in present)
    written = {
        write_record(store, left[start : start + _RECORD_FILES])
        for start in range(0, len(left), _RECORD_FILES)
    }
    merged_paths = [path for path in read if path not in written]
    for path in merged_paths:
        store.delete(path)
    return len(merged_paths)
