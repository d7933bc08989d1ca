"""Read, name and write the deletion files of fragments.

A plan names its deletion files before the change is confirmed. Until then the vectors are pending:
a preview reads them through the cache of open deletion files, a commit writes them first.

Layout: ``_deletions/{fragment}-{read version}-{random u64}.{arrow|bin}`` (format/layout.py), in one
of the two forms of format/deletion_vector.py. A file always holds all deleted rows of its fragment,
also those of an older file.

Limits: the file of a merged (rebased) deletion is a bitmap whatever its size, as in pylance.
Pending vectors are held in memory, compressed.
Source: message ``DeletionFile`` of lance.table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from functools import partial

from lance_nb.format.checksums import FileSum
from lance_nb.format.deletion_vector import BITMAP_THRESHOLD, DeletionVector
from lance_nb.format.fragment import DeletionFile, DeletionFileType, Fragment
from lance_nb.storage.base import Store, is_far, write_new
from lance_nb.storage.sync_later import synced_together
from lance_nb.storage.threads import run_all
from lance_nb.table.deletions import read_deletions
from lance_nb.table.file_cache import DeletionCache
from lance_nb.table.locations import Locations
from lance_nb.transactions.checksum_records import sum_of, write_record
from lance_nb.transactions.environment import Environment, new_uuid
from lance_nb.value_classes import dataclass

_U64 = 2**64
_ROWS_MAX = 2**32


def name_deletion_file(
    read_version: int,
    vector: DeletionVector,
    new_uuid: Callable[[], str],
    file_type: DeletionFileType | None = None,
) -> DeletionFile:
    """Describe a new file of a vector; without ``file_type``, in the form pylance would choose."""
    if file_type is None:
        few = len(vector) < BITMAP_THRESHOLD
        file_type = DeletionFileType.ARROW if few else DeletionFileType.BITMAP
    identity = int(new_uuid().replace("-", ""), 16) % _U64
    return DeletionFile(read_version, identity, file_type, len(vector))


def write_deletion_file(
    home: Store,
    fragment_id: int,
    read_version: int,
    vector: DeletionVector,
    *,
    environment: Environment,
    file_type: DeletionFileType | None = None,
    checksums: bool = False,
) -> DeletionFile:
    """Write all deleted rows of a fragment as a new, durable file; return its description.

    Without ``file_type``, the form that pylance would choose. ``checksums``: its sum is recorded.
    """
    deletion_file = name_deletion_file(read_version, vector, environment.new_uuid, file_type)
    path, data = deletion_file.location(fragment_id), vector.to_bytes(deletion_file.file_type)
    home.write(path, data)
    if checksums:
        write_record(home, [sum_of(path, data)])
    return deletion_file


def read_deletion_file(locations: Locations, fragment: Fragment) -> DeletionVector:
    """Return the deleted rows of a fragment, an empty vector if there are none."""
    rows = fragment.physical_rows or _ROWS_MAX  # old writers left the count to the data files
    return read_deletions(locations, DeletionCache(), fragment, rows) or DeletionVector.of(())


@dataclass(frozen=True, slots=True)
class PendingDeletions:
    """Deletion vectors by the path of the file that they will be, below the branch's folder.

    ``checksums``: sums of the files are recorded, see checksum_records.py.
    """

    vectors: dict[str, DeletionVector] = field(default_factory=dict)
    new_uuid: Callable[[], str] = new_uuid
    checksums: bool = False

    def add(self, fragment_id: int, read_version: int, vector: DeletionVector) -> DeletionFile:
        """Name the file of a vector, all deleted rows of the fragment included."""
        file = name_deletion_file(read_version, vector, self.new_uuid)
        self.vectors[file.location(fragment_id)] = vector
        return file

    def remember(self, home: Store, cache: DeletionCache) -> None:
        """Let readers of ``cache`` find the vectors although the files do not exist yet."""
        for path, vector in self.vectors.items():
            cache.put((home.uri, path), vector)

    def write(self, home: Store) -> list[str]:
        """Write every vector, durably; return the paths. Raises StorageError.

        To a far store several at a time: each is a request that is waited for.
        """
        tasks = [partial(self._write_one, home, path) for path in self.vectors]
        with synced_together():
            written = run_all(tasks) if is_far(home) else [task() for task in tasks]
            write_record(home, [file_sum for file_sum in written if file_sum is not None])
        return list(self.vectors)

    @property
    def size_bytes(self) -> int:
        """Bytes of all files."""
        return sum(len(self._bytes(path)) for path in self.vectors)

    def _bytes(self, path: str) -> bytes:
        is_array = path.endswith(f".{DeletionFileType.ARROW.suffix}")
        kind = DeletionFileType.ARROW if is_array else DeletionFileType.BITMAP
        return self.vectors[path].to_bytes(kind)

    def _write_one(self, home: Store, path: str) -> FileSum | None:
        data = self._bytes(path)
        write_new(home, path, data)
        return sum_of(path, data) if self.checksums else None
