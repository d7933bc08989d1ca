"""Where a write goes: the dataset behind a URI, which need not exist, or one that is open."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lance_nb.dataset.opened import OpenedVersion
from lance_nb.dataset.session import Session, open_session
from lance_nb.dataset.version_opening import check_session
from lance_nb.errors import DatasetNotFoundError, InvalidInputError
from lance_nb.storage.registry import StorageOptions
from lance_nb.table.refs import Target
from lance_nb.table.snapshot import Snapshot

if TYPE_CHECKING:
    from lance_nb.dataset.cache_session import CacheSession
    from lance_nb.transactions.commit_options import CommitLock

Destination = str | os.PathLike[str] | OpenedVersion


def destination(
    place: Destination,
    storage_options: StorageOptions | None,
    allow_bases: Sequence[str] = (),
    *,
    session: CacheSession | None = None,
    commit_lock: CommitLock | None = None,
) -> tuple[Session, Snapshot | None]:
    """Return where to write, and the version that is there (None: no dataset).

    An open dataset is written to where it stands: its branch, and its version as the one read; a
    ``session`` must then be its own. Raises InvalidInputError, StorageError, CorruptFileError.
    """
    check_session(session)
    if isinstance(place, OpenedVersion):
        if session is not None and session.files is not place.opened[0].files:
            raise InvalidInputError(
                "the session is not that of the dataset which is written to: pass ds.session(), or "
                "leave it out"
            )
        return place.opened
    opened = open_session(
        place, storage_options, allow_bases, caches=session, commit_lock=commit_lock
    )
    try:
        return opened, opened.load(Target(None, None))
    except DatasetNotFoundError:
        return opened, None
