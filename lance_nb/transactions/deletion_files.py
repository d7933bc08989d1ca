"""Read and write the deletion files of fragments, for commits.

Layout: format/deletion_vector.py (the two forms), format/layout.py (the name). A file always holds
all deleted rows of its fragment, also those of an older file.

Limits: the file of a merged (rebased) deletion is a bitmap whatever its size, as pylance does.
Source: message ``DeletionFile`` of lance.table.
"""

from __future__ import annotations

from collections.abc import Callable

from lance_nb.format.deletion_vector import BITMAP_THRESHOLD, DeletionVector
from lance_nb.format.fragment import DeletionFile, DeletionFileType, Fragment
from lance_nb.storage.base import Store
from lance_nb.table.deletions import read_deletions
from lance_nb.table.file_cache import DeletionCache
from lance_nb.table.locations import Locations
from lance_nb.transactions.checksum_records import sum_of, write_record
from lance_nb.transactions.environment import Environment

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
    found = name_deletion_file(read_version, vector, environment.new_uuid, file_type)
    path, data = found.location(fragment_id), vector.to_bytes(found.file_type)
    home.write(path, data)
    if checksums:
        write_record(home, [sum_of(path, data)])
    return found


def read_deletion_file(locations: Locations, fragment: Fragment) -> DeletionVector:
    """Return the deleted rows of a fragment, an empty vector if there are none."""
    rows = fragment.physical_rows or _ROWS_MAX  # old writers left the count to the data files
    return read_deletions(locations, DeletionCache(), fragment, rows) or DeletionVector.of(())
