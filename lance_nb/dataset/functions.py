"""The functions of the module ``lance_nb``: dataset, diff, write_dataset, write_fragments.

Source: ``lance.dataset``, ``lance.write_dataset`` and ``lance.fragment.write_fragments`` of pylance
14.0.2; ``diff`` is our own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from lance_nb.dataset.dataset import LanceDataset
from lance_nb.session.base_paths import DatasetBasePath
from lance_nb.session.opened import OpenedVersion
from lance_nb.session.opening import (
    Destination,
    check_refused,
    open_version,
    warn_deprecated_cache_size,
)
from lance_nb.storage.registry import StorageOptions
from lance_nb.table.refs import Ref

if TYPE_CHECKING:
    from lance_nb.format.fragment import Fragment
    from lance_nb.session.session import CacheSession
    from lance_nb.table.diff import Diff
    from lance_nb.transactions.transaction import Transaction
    from lance_nb.transactions.version_slots import CommitLock
    from lance_nb.writing.fragment_writer import Progress


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
    """Open the Lance dataset at ``uri``, at its latest version by default.

    Args:
        uri: a path, or a URI that its store's fsspec driver knows.
        version: a number, a tag, a branch, ``"branch:number"``, ``"HEAD~2"``, a date or time, or
            ``(branch, version)`` with None for main and for the latest. In pylance a text is a tag.
        asof: the newest version committed at or before that time (naive times are local, a date is
            its midnight as in pylance); ignored when ``version`` is given.
        commit_lock: a function of a version that returns a context manager, held while a commit
            writes that version.
        storage_options: for the store, as fsspec users write them; ``manifest_store`` is the URL of
            an external manifest store (see ``lance_nb.transactions.external``).
        default_scan_options: options of every scan that does not name them, by the methods of
            ScannerBuilder; ``schema`` is then that of such a scan. ``take``, ``sample``,
            ``count_rows`` and the fragments know nothing of them.
        session: caches to share with other datasets.
        allow_bases: other roots that the dataset may keep files under, beside those that the
            environment variable ``LANCE_NB_ALLOW_BASES`` lists and those that this process added
            (see lance_nb.session.base_paths). Not in pylance.
        check: compare every data, blob and deletion file with its checksum (see ``add_checksums``)
            before a row of it is returned, which reads all of the file once per process. Files
            without a checksum are not checked; caches are shared with datasets that check only.
            Not in pylance.
        block_size, index_cache_size, metadata_cache_size_bytes, index_cache_size_bytes,
            read_params: tune pylance's reads and have no effect.
        base_store_params, namespace_client, table_id: refused.

    Raises DatasetNotFoundError, VersionNotFoundError, RefNotFoundError, CorruptFileError,
    InvalidInputError, NotSupportedError, StorageError.

    Examples:
        >>> lance_nb.dataset(uri, default_scan_options={"with_row_id": True}).schema.names
        ['id', 'label', 'vector', '_rowid']
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


def diff(
    uri: str | os.PathLike[str],
    a: Ref | OpenedVersion,
    b: Ref | OpenedVersion | None = None,
    *,
    key: Sequence[str] | str | None = None,
    storage_options: StorageOptions | None = None,
    allow_bases: Sequence[str] = (),
) -> Diff:
    """Compare two versions of a dataset; as ``LanceDataset.diff``. Not in pylance.

    Args:
        uri: the dataset.
        a: the version compared from.
        b: the version compared to; the newest of main by default.
        key: columns that tell rows apart.
        storage_options, allow_bases: as for ``lance_nb.dataset``.

    Raises as ``LanceDataset.diff`` and ``lance_nb.dataset``.

    Examples:
        >>> ds.delete("id = 5")["num_deleted_rows"]
        1
        >>> lance_nb.diff(uri, 1, 2).counts.rows_deleted
        1
    """
    opened = dataset(uri, storage_options=storage_options, allow_bases=allow_bases)
    return opened.diff(a, b, key=key)


def write_dataset(
    data_obj: Any,
    uri: Destination | None = None,
    schema: pa.Schema | None = None,
    mode: str = "create",
    *,
    max_rows_per_file: int | None = 1024 * 1024,
    max_rows_per_group: int = 1024,
    max_bytes_per_file: int | None = 90 * 1024**3,
    data_cache_bytes: int | None = None,
    max_page_bytes: int | None = None,
    commit_lock: CommitLock | None = None,
    progress: Progress | None = None,
    storage_options: StorageOptions | None = None,
    data_storage_version: str | None = None,
    use_legacy_format: bool | None = None,
    enable_v2_manifest_paths: bool = True,
    enable_stable_row_ids: bool = False,
    auto_cleanup_options: Mapping[str, int] | None = None,
    checksums: bool = False,
    commit_message: str | None = None,
    transaction_properties: Mapping[str, str] | None = None,
    initial_bases: Sequence[DatasetBasePath] | None = None,
    target_bases: Sequence[str] | None = None,
    target_all_bases: bool | None = None,
    base_store_params: Mapping[str, Mapping[str, str]] | None = None,
    external_blob_mode: Literal["reference", "ingest"] = "reference",
    allow_external_blob_outside_bases: bool = False,
    blob_pack_file_size_threshold: int | None = None,
    namespace_client: object = None,
    table_id: Sequence[str] | None = None,
    session: CacheSession | None = None,
    allow_bases: Sequence[str] = (),
) -> LanceDataset:
    """Write rows as a new version of the dataset at ``uri`` and return it, opened there.

    Args:
        data_obj: anything that Arrow can stream: tables, batches, readers, DataFrames, iterators of
            batches.
        uri: a path or URI; or a LanceDataset, which is written to where it stands: its branch, and
            its version as the one that was read.
        schema: of the rows, where they do not say.
        mode: "create" refuses an existing dataset, "append" adds to one (or creates it),
            "overwrite" puts rows and schema in the place of what is there, as a new version.
        max_rows_per_file, max_bytes_per_file: where a new file begins.
        max_page_bytes: about the size of a page.
        commit_lock, session: see ``lance_nb.dataset``; the handle that is returned keeps both.
        progress: called with a WriteProgress now and then, or a FragmentWriteProgress.
        storage_options: see ``lance_nb.dataset``.
        data_storage_version: "2.0", "2.1", "2.2" (default) or "stable".
        use_legacy_format: deprecated.
        enable_v2_manifest_paths, enable_stable_row_ids: matter for a new dataset.
        auto_cleanup_options: for a new dataset; see ``optimize.enable_auto_cleanup``.
        checksums: for a new dataset: this and every later write of this library records checksums
            of its files, which ``ds.verify`` compares; ``ds.add_checksums`` begins with it later.
            Not in pylance.
        commit_message, transaction_properties: recorded with the commit.
        initial_bases: further places for files, registered with a new dataset.
        target_bases: spread the files over these places, by name or path. One outside of the
            dataset must be trusted: named by its path, by ``allow_bases`` or in the environment
                (see
            lance_nb.session.base_paths).
        target_all_bases: spread the files over all of them.
        external_blob_mode: "reference" keeps the URIs of external blobs, "ingest" reads them and
            stores their bytes with the dataset.
        allow_external_blob_outside_bases: allow URIs that are under no base path. This process
            reads these blobs, each by its whole URI; another one must name their places in
            ``allow_bases``.
        blob_pack_file_size_threshold: bytes after which a file of several blobs ends.
        allow_bases: see ``lance_nb.dataset``.
        max_rows_per_group, data_cache_bytes: tune pylance's writer and have no effect.
        base_store_params, namespace_client, table_id: refused.

    Raises DatasetAlreadyExistsError, SchemaMismatchError, InvalidInputError, NotSupportedError,
    CommitConflictError, CommitStateUnknownError, StorageError.

    Examples:
        >>> ds = lance_nb.write_dataset(pa.table({"id": [1, 2]}), "new.lance")
        >>> ds = lance_nb.write_dataset(pa.table({"id": [3]}), "new.lance", mode="append")
        >>> ds.version, ds.count_rows()
        (2, 3)
    """
    arguments = locals()
    from lance_nb.dataset.write_arguments import write_rows

    return LanceDataset.from_opened(*write_rows(data_obj, uri, mode, arguments))


def write_fragments(
    data: Any,
    dataset_uri: Destination,
    schema: pa.Schema | None = None,
    *,
    return_transaction: bool = False,
    mode: str = "append",
    max_rows_per_file: int | None = 1024 * 1024,
    max_rows_per_group: int | None = 1024,
    max_bytes_per_file: int | None = 90 * 1024**3,
    data_cache_bytes: int | None = None,
    max_page_bytes: int | None = None,
    progress: Progress | None = None,
    data_storage_version: str | None = None,
    use_legacy_format: bool | None = None,
    storage_options: StorageOptions | None = None,
    enable_stable_row_ids: bool = False,
    target_bases: Sequence[str] | None = None,
    target_all_bases: bool | None = None,
    initial_bases: Sequence[DatasetBasePath] | None = None,
    base_store_params: Mapping[str, Mapping[str, str]] | None = None,
    external_blob_mode: Literal["reference", "ingest"] = "reference",
    allow_external_blob_outside_bases: bool = False,
    namespace_client: object = None,
    table_id: Sequence[str] | None = None,
    session: CacheSession | None = None,
    allow_bases: Sequence[str] = (),
) -> list[Fragment] | Transaction:
    """Write rows as fragments without committing them; commit them with LanceOperation.

    Args:
        data: the rows: ``data_obj`` of ``write_dataset``.
        dataset_uri: the dataset, or its URI.
        return_transaction: return the transaction that would add the fragments.
        mode: with "append" fields get the ids of the dataset, else new ones.

    The other arguments and the errors are those of ``write_dataset``.

    Examples:
        >>> fragments = lance_nb.write_fragments(rows, ds)
        >>> append = lance_nb.LanceOperation.Append(fragments)
        >>> lance_nb.LanceDataset.commit(ds, append, ds.version).count_rows()
        12
    """
    arguments = locals()
    from lance_nb.dataset.write_arguments import opened_request
    from lance_nb.writing import fragments

    place, current, request, _ = opened_request(dataset_uri, mode, arguments)
    transaction = fragments.write_fragments(place, current, data, request, mode=mode, schema=schema)
    return transaction if return_transaction else fragments.fragments_of(transaction)
