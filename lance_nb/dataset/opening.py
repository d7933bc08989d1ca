"""Open a dataset: URI and ref in, LanceDataset out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

from lance_nb.dataset.dataset import LanceDataset
from lance_nb.dataset.session import open_session
from lance_nb.errors import InvalidInputError, NotSupportedError
from lance_nb.storage.registry import StorageOptions
from lance_nb.table.refs import Ref, Target, resolve
from lance_nb.table.versions import version_asof

# Arguments of pylance's that tune its caches and reads and cannot change what is read.
_WITHOUT_EFFECT = frozenset({
    "block_size", "index_cache_size", "index_cache_size_bytes", "metadata_cache_size_bytes",
    "read_params", "session",
})  # fmt: skip
# Those that would change what is opened, and what to do instead.
_REFUSED = {
    "base_store_params": "all stores are opened with storage_options",
    "commit_lock": "give it to the call that commits",
    "default_scan_options": "give the options to each scan",
    "namespace_client": "open the dataset by its URI",
    "table_id": "open the dataset by its URI",
}


def dataset(
    uri: str | os.PathLike[str],
    version: Ref | None = None,
    asof: datetime | date | str | None = None,
    *,
    storage_options: StorageOptions | None = None,
    allow_bases: Sequence[str] = (),
    **unused: Any,
) -> LanceDataset:
    """Open the Lance dataset at ``uri``, at its latest version unless told otherwise.

    ``version`` is a number, a tag, or ``(branch, version)`` with None for main and for the latest.
    ``asof`` picks the newest version committed at or before that time (naive times are local); it
    is ignored when ``version`` is given. ``storage_options`` go to the store as fsspec users write
    them; the option ``manifest_store`` is the URL of an external manifest store (see
    ``lance_nb.transactions.external``). ``allow_bases`` names other roots that the dataset may
    keep files under, beside those that the environment variable ``LANCE_NB_ALLOW_BASES`` lists
    and those that this process added to the dataset (see lance_nb.dataset.base_trust). Arguments of
    pylance's that tune its caches are accepted; others are refused.

    Unlike pylance, a branch can be opened directly. Raises DatasetNotFoundError,
    VersionNotFoundError, RefNotFoundError, CorruptFileError, NotSupportedError, StorageError.
    """
    for argument, value in unused.items():
        if argument in _REFUSED and value is not None:
            raise NotSupportedError(f"{argument} is not supported: {_REFUSED[argument]}")
        if argument not in _REFUSED and argument not in _WITHOUT_EFFECT:
            raise InvalidInputError(f"dataset() takes no argument {argument!r}")
    session = open_session(uri, storage_options, allow_bases)
    root = session.root
    target = resolve(root, version, None)
    if version is None and asof is not None:
        name = version_asof(session.home(None), _moment(asof))
        target = Target(None, name.version)
    return LanceDataset(session, session.load(target))


def _moment(asof: datetime | date | str) -> datetime:
    if isinstance(asof, str):
        try:
            asof = datetime.fromisoformat(asof)
        except ValueError as exc:
            raise InvalidInputError(
                f"asof {asof!r} is not an ISO 8601 time such as 2026-08-01T12:00:00"
            ) from exc
    if isinstance(asof, datetime):
        return asof.astimezone()
    if isinstance(asof, date):
        return datetime(asof.year, asof.month, asof.day).astimezone()
    raise InvalidInputError(f"asof is a datetime, a date or text, not {type(asof).__name__}")
