"""Where a write goes: the dataset behind a URI, which need not exist, or one that is open."""

from __future__ import annotations

import os
from collections.abc import Sequence

from lance_nb.dataset.opened import OpenedVersion
from lance_nb.dataset.session import Session, open_session
from lance_nb.errors import DatasetNotFoundError
from lance_nb.storage.registry import StorageOptions
from lance_nb.table.refs import Target
from lance_nb.table.snapshot import Snapshot

Destination = str | os.PathLike[str] | OpenedVersion


def destination(
    place: Destination,
    storage_options: StorageOptions | None,
    allow_bases: Sequence[str] = (),
) -> tuple[Session, Snapshot | None]:
    """Return where to write, and the version that is there (None: no dataset).

    An open dataset is written to where it stands: its branch, and its version as the one read.
    Raises StorageError, CorruptFileError.
    """
    if isinstance(place, OpenedVersion):
        return place.opened
    session = open_session(place, storage_options, allow_bases)
    try:
        return session, session.load(Target(None, None))
    except DatasetNotFoundError:
        return session, None
