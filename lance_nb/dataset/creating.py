"""write_dataset: rows in, dataset out."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lance_nb.dataset import verbs
from lance_nb.dataset.dataset import LanceDataset
from lance_nb.dataset.session import Session
from lance_nb.errors import DatasetNotFoundError, InvalidInputError, NotSupportedError
from lance_nb.storage.registry import StorageOptions, open_store
from lance_nb.table.refs import Target
from lance_nb.table.snapshot import Snapshot

if TYPE_CHECKING:
    from lance_nb.transactions.commit_options import CommitLock
    from lance_nb.transactions.fragment_writer import WriteProgress

# Arguments of pylance's that tune how it works and cannot change what is written.
_WITHOUT_EFFECT = frozenset({"max_rows_per_group", "data_cache_bytes", "session"})
# Arguments that would change what is written, and why they cannot.
_REFUSED = {
    "initial_bases": "data is written below the dataset's own root",
    "target_bases": "data is written below the dataset's own root",
    "target_all_bases": "data is written below the dataset's own root",
    "base_store_params": "data is written below the dataset's own root",
    "namespace_client": "give the URI of the dataset",
    "table_id": "give the URI of the dataset",
    "auto_cleanup_options": "clean up when you choose to",
    "use_legacy_format": "files of version 0.1 are read, not written; leave it out",
    "allow_external_blob_outside_bases": "external blobs are read, not written",
    "blob_pack_file_size_threshold": "pack files have the usual size",
}


def write_dataset(
    data_obj: Any,
    uri: str | os.PathLike[str] | LanceDataset,
    schema: pa.Schema | None = None,
    mode: str = "create",
    *,
    max_rows_per_file: int = 1024 * 1024,
    max_bytes_per_file: int = 90 * 1024**3,
    max_page_bytes: int | None = None,
    data_storage_version: str | None = None,
    enable_v2_manifest_paths: bool = True,
    enable_stable_row_ids: bool = False,
    storage_options: StorageOptions | None = None,
    commit_lock: CommitLock | None = None,
    commit_message: str | None = None,
    transaction_properties: Mapping[str, str] | None = None,
    progress: Callable[[WriteProgress], None] | None = None,
    **others: Any,
) -> LanceDataset:
    """Write rows as a new version of the dataset at ``uri`` and return it, opened there.

    ``data_obj``: anything that Arrow can stream (tables, batches, readers, DataFrames, iterators of
    batches). ``mode``: "create" refuses an existing dataset, "append" adds to one (or creates it),
    "overwrite" puts rows and schema in the place of what is there, as a new version. A LanceDataset
    as ``uri`` is written to where it stands: its branch, and its version as the one that was read.
    ``progress`` is called with a WriteProgress now and then.

    Arguments of pylance's that cannot change the result are accepted; others are refused. Raises
    DatasetAlreadyExistsError, SchemaMismatchError, InvalidInputError, NotSupportedError,
    CommitConflictError, CommitStateUnknownError, StorageError.
    """
    _check_unused(others)
    verbs.writing.check_mode(mode)
    session, current = _destination(uri, storage_options)
    request = verbs.writing.WriteRequest(
        max_rows_per_file=max_rows_per_file,
        max_bytes_per_file=max_bytes_per_file,
        max_page_bytes=max_page_bytes,
        data_storage_version=data_storage_version,
        enable_v2_manifest_paths=enable_v2_manifest_paths,
        enable_stable_row_ids=enable_stable_row_ids,
        commit_lock=commit_lock,
        commit_message=commit_message,
        transaction_properties=transaction_properties or {},
        progress=progress,
    )
    made = verbs.writing.write(session, current, data_obj, request, mode=mode, schema=schema)
    return LanceDataset(session, made)


def _destination(
    uri: str | os.PathLike[str] | LanceDataset, storage_options: StorageOptions | None
) -> tuple[Session, Snapshot | None]:
    """Return where to write, and the version that is there (None: nothing is)."""
    if isinstance(uri, LanceDataset):
        return uri.opened
    root = open_store(uri, storage_options)
    session = Session(root, storage_options=storage_options)
    try:
        return session, session.load(Target(None, None))
    except DatasetNotFoundError:
        return session, None


def _check_unused(options: Mapping[str, Any]) -> None:
    for name, value in options.items():
        if name in _WITHOUT_EFFECT:
            continue
        if name == "external_blob_mode":
            if value not in ("reference", None):
                raise NotSupportedError("external_blob_mode: only 'reference' is supported")
        elif name not in _REFUSED:
            raise InvalidInputError(f"write_dataset takes no argument {name!r}")
        elif value:
            raise NotSupportedError(f"{name} is not supported: {_REFUSED[name]}")
