"""Resolve a URI and a reference to a session and a version, to read it or to write to it.

A write may go to a URI without a dataset, or to a dataset that is open.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from lance_nb.errors import (
    ArgumentError,
    DatasetNotFoundError,
    InvalidInputError,
    NotSupportedError,
)
from lance_nb.session.opened import OpenedVersion
from lance_nb.session.session import CacheSession, Session, open_session
from lance_nb.storage.registry import StorageOptions
from lance_nb.table.ref_grammar import moment_of, resolve
from lance_nb.table.refs import Ref, Target
from lance_nb.table.snapshot import Snapshot
from lance_nb.table.versions import version_asof

if TYPE_CHECKING:
    from lance_nb.transactions.version_slots import CommitLock

NO_URI = "expected the URI of a dataset, for example 'data/images.lance'"

# Arguments of pylance's that would change what is opened or written, and what to do instead.
_REFUSED = {
    "base_store_params": "pass storage_options",
    "namespace_client": "open and write the dataset by its URI",
    "table_id": "open and write the dataset by its URI",
    "namespace_client_managed_versioning": "open and write the dataset by its URI",
}


def open_version(
    uri: str | os.PathLike[str] | None,
    version: Ref | None,
    asof: datetime | date | str | None = None,
    *,
    storage_options: StorageOptions | None = None,
    allow_bases: Sequence[str] = (),
    session: CacheSession | None = None,
    commit_lock: Callable[[int], AbstractContextManager[Any]] | None = None,
    check: bool = False,
) -> tuple[Session, Snapshot]:
    """Open the version that ``version`` names, else that of the time ``asof``, else the newest.

    Raises DatasetNotFoundError, VersionNotFoundError, RefNotFoundError, InvalidInputError.
    """
    if uri is None:
        raise InvalidInputError(NO_URI)
    check_session(session)
    check_lock(commit_lock)
    opened = open_session(
        uri, storage_options, allow_bases, caches=session, commit_lock=commit_lock, check=check
    )
    target = resolve(opened.root, version, None)
    if version is None and asof is not None:
        name = version_asof(opened.home(None), _moment(asof))
        target = Target(None, name.version)
    return opened, opened.load(target)


def check_session(session: object) -> None:
    """Raise ArgumentError (a TypeError) for what is no ``lance_nb.Session``."""
    if session is not None and not isinstance(session, CacheSession):
        raise ArgumentError(f"session must be a lance_nb.Session, not {type(session).__name__}")


def check_lock(commit_lock: object) -> None:
    """Raise ArgumentError (a TypeError) for a commit lock that cannot be called."""
    if commit_lock is not None and not callable(commit_lock):
        raise ArgumentError(
            f"commit_lock must be a function, got {type(commit_lock)}: it is called with a version "
            "and returns a context manager"
        )


def check_refused(arguments: Mapping[str, object]) -> None:
    """Raise NotSupportedError for arguments of pylance's that are given and cannot be honoured."""
    for name, value in arguments.items():
        if value:
            raise NotSupportedError(f"{name} is not supported: {_REFUSED[name]}")


def storage_version_of(version: str | None, use_legacy_format: bool | None) -> str | None:
    """Return the file version to write, given the argument that pylance has deprecated."""
    if use_legacy_format is None:
        return version
    warnings.warn(
        "use_legacy_format is deprecated, use data_storage_version instead",
        DeprecationWarning,
        stacklevel=3,
    )
    return "legacy" if use_legacy_format else "stable"


def warn_deprecated_cache_size(index_cache_size: int | None) -> None:
    """Warn, as pylance does, that the argument has another name now."""
    if index_cache_size is not None:
        warnings.warn(
            "index_cache_size is deprecated, use index_cache_size_bytes; neither has an effect, "
            "as open segments are counted, not their bytes",
            DeprecationWarning,
            stacklevel=4,
        )


def _moment(asof: datetime | date | str) -> datetime:
    """Return a time; of a date its midnight, as pylance takes it."""
    if isinstance(asof, str):
        try:
            asof = datetime.fromisoformat(asof)
        except ValueError as exc:
            raise InvalidInputError(
                f"asof {asof!r} is not an ISO 8601 timestamp such as 2026-08-01T12:00:00"
            ) from exc
    if not isinstance(asof, date):
        raise InvalidInputError(
            f"asof must be a datetime, a date or text, not {type(asof).__name__}"
        )
    return moment_of(asof, end_of_day=False)


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
                "the session does not belong to the dataset that is written to: pass its "
                "ds.session(), or leave session out"
            )
        return place.opened
    opened = open_session(
        place, storage_options, allow_bases, caches=session, commit_lock=commit_lock
    )
    try:
        return opened, opened.load(Target(None, None))
    except DatasetNotFoundError:
        return opened, None
