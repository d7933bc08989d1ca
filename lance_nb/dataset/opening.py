"""dataset(): URI and ref in, LanceDataset out."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from lance_nb.dataset.dataset import LanceDataset
from lance_nb.dataset.version_opening import (
    check_refused,
    open_version,
    warn_deprecated_cache_size,
)
from lance_nb.storage.registry import StorageOptions
from lance_nb.table.refs import Ref

if TYPE_CHECKING:
    from lance_nb.dataset.cache_session import CacheSession
    from lance_nb.transactions.commit_options import CommitLock


def dataset(
    uri: str | os.PathLike[str] | None = None,
    version: Ref | None = None,
    asof: datetime | date | str | None = None,
    block_size: int | None = None,
    commit_lock: CommitLock | None = None,
    index_cache_size: int | None = None,
    storage_options: StorageOptions | None = None,
    default_scan_options: Mapping[str, Any] | None = None,
    metadata_cache_size_bytes: int | None = None,
    index_cache_size_bytes: int | None = None,
    read_params: Mapping[str, Any] | None = None,
    session: CacheSession | None = None,
    namespace_client: object = None,
    table_id: Sequence[str] | None = None,
    base_store_params: Mapping[str, Mapping[str, str]] | None = None,
    *,
    allow_bases: Sequence[str] = (),
    check: bool = False,
) -> LanceDataset:
    """Open the Lance dataset at ``uri``, at its latest version unless told otherwise.

    ``version`` is a number, a tag, or ``(branch, version)`` with None for main and for the latest.
    ``asof`` picks the newest version committed at or before that time (naive times are local); it
    is ignored when ``version`` is given.

    ``default_scan_options``: options of every scan that does not name them, by the methods of
    ScannerBuilder; ``schema`` is then that of such a scan. ``take``, ``sample``, ``count_rows`` and
    the fragments know nothing of them. ``commit_lock``: a function of a version that returns a
    context manager, held while a commit writes that version.

    ``storage_options`` go to the store as fsspec users write them; the option ``manifest_store`` is
    the URL of an external manifest store (see ``lance_nb.transactions.external``). ``allow_bases``,
    our own argument, names other roots that the dataset may keep files under, beside those that the
    environment variable ``LANCE_NB_ALLOW_BASES`` lists and those that this process added to the
    dataset (see lance_nb.dataset.base_trust). ``session`` shares caches with other datasets.

    ``check``, our own argument: every data, blob and deletion file that is read through this
    dataset, and through what it returns, is compared with its checksum first (see
    ``add_checksums``); a difference raises CorruptFileError, before a row of that file is returned.
    The first read of a file then pays for reading all of it, once per process; files without a
    checksum are read without a check; caches are not shared with datasets that do not check.

    ``block_size``, ``read_params`` and the sizes of caches tune pylance's reads and have no effect;
    ``base_store_params``, ``namespace_client`` and ``table_id`` are refused. Unlike pylance, a
    branch can be opened directly.

    Raises DatasetNotFoundError, VersionNotFoundError, RefNotFoundError, CorruptFileError,
    InvalidInputError, NotSupportedError, StorageError. Example::

        ds = lance_nb.dataset(uri, default_scan_options={"with_row_id": True})
    """
    warn_deprecated_cache_size(index_cache_size)
    check_refused(
        {
            "namespace_client": namespace_client,
            "table_id": table_id,
            "base_store_params": base_store_params,
        }
    )
    opened = open_version(
        uri,
        version,
        asof,
        storage_options=storage_options,
        allow_bases=allow_bases,
        session=session,
        commit_lock=commit_lock,
        check=check,
    )
    return LanceDataset.from_opened(*opened, default_scan_options)
