"""Take the checksums of files that are there already.

Source: format/checksums.py; pylance has none.
"""

from __future__ import annotations

from collections.abc import Callable

from lance_nb.dataset.session import Session
from lance_nb.format.checksums import ALGORITHM, CONFIG_KEY, wants_checksums
from lance_nb.storage.registry import relative_uri
from lance_nb.table.indices import read_indices
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.checksum_records import AddedChecksums, record_existing
from lance_nb.transactions.cloning import files_of

Progress = Callable[[int, int], object]
SETTING = {CONFIG_KEY: ALGORITHM}


def are_wanted(snapshot: Snapshot) -> bool:
    """Tell whether a version asks for checksums. Raises NotSupportedError for an unknown kind."""
    return wants_checksums(snapshot.manifest.config)


def add(session: Session, snapshot: Snapshot, progress: Progress | None) -> AddedChecksums:
    """Record the sums of the files of a version that have none. Raises StorageError."""
    indices = tuple(read_indices(snapshot))
    files = [
        (one.store, one.path)
        for one in files_of(snapshot.locations, snapshot.manifest, indices)
        if relative_uri(one.store.uri, session.root.uri) is not None
    ]

    def report(done: int) -> None:
        if progress is not None:
            progress(done, len(files))

    return record_existing(files, report)
