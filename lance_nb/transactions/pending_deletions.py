"""Deletion vectors that have a name and are not written yet.

A plan names its deletion files before anybody has agreed to the change. The vectors wait here: a
preview reads them through the cache of open deletion files, a commit writes them first.

Layout: ``_deletions/{fragment}-{read version}-{random u64}.{arrow|bin}`` (format/layout.py).
Limits: memory holds the vectors, compressed.
Source: message DeletionFile of lance.table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from lance_nb.format.deletion_vector import DeletionVector
from lance_nb.format.fragment import DeletionFile, DeletionFileType
from lance_nb.storage.base import Store, write_new
from lance_nb.storage.sync_later import synced_together
from lance_nb.table.file_cache import DeletionCache
from lance_nb.transactions.checksum_records import sum_of, write_record
from lance_nb.transactions.deletion_files import name_deletion_file
from lance_nb.transactions.environment import new_uuid


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
        """Write every vector, durably; return the paths. Raises StorageError."""
        sums = []
        with synced_together():
            for path, vector in self.vectors.items():
                is_array = path.endswith(f".{DeletionFileType.ARROW.suffix}")
                kind = DeletionFileType.ARROW if is_array else DeletionFileType.BITMAP
                data = vector.to_bytes(kind)
                write_new(home, path, data)
                if self.checksums:
                    sums.append(sum_of(path, data))
            write_record(home, sums)
        return list(self.vectors)
