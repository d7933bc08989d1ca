"""Verify a dataset by its URI, also one that cannot be opened."""

from __future__ import annotations

import os
from collections.abc import Sequence

from lance_nb.dataset import verbs
from lance_nb.dataset.session import Session, open_session
from lance_nb.dataset.verbs.space import Progress
from lance_nb.dataset.version_opening import NO_URI
from lance_nb.errors import DatasetNotFoundError, InvalidInputError
from lance_nb.storage.registry import StorageOptions
from lance_nb.table.verification_report import Verification

_FOLDERS = ("_versions", "data", "_transactions", "_refs/tags", "_refs/branches", "tree")


def verify(
    uri: str | os.PathLike[str],
    *,
    values: bool = True,
    raise_on_error: bool = False,
    progress: Progress | None = None,
    storage_options: StorageOptions | None = None,
    allow_bases: Sequence[str] = (),
) -> Verification:
    """Read everything below a URI and report what is wrong; as ``LanceDataset.verify``.

    No version needs to be whole: where the newest cannot be read, the report says which is the last
    that can (``opened_version``). Raises DatasetNotFoundError where nothing of a dataset is there,
    StorageError. Example::

        report = lance_nb.verify(uri)
        report.ok, report.findings
    """
    session = session_at(uri, storage_options, allow_bases)
    return verbs.verifying.verify(session, progress, values=values, raise_on_error=raise_on_error)


def session_at(
    uri: str | os.PathLike[str],
    storage_options: StorageOptions | None,
    allow_bases: Sequence[str],
) -> Session:
    """Return the session of a dataset of which something is there. Raises DatasetNotFoundError."""
    if uri is None:
        raise InvalidInputError(NO_URI)
    session = open_session(uri, storage_options, allow_bases)
    if not any(session.root.list_names(folder) for folder in _FOLDERS):
        raise DatasetNotFoundError(session.root.uri, "none of a dataset's folders holds a file")
    return session
