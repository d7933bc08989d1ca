"""LanceFileSession: read, write and list the files below one place, as pylance's class.

Paths are relative to the place, with ``/`` between their parts; they cannot leave it.

Not supported: the writers of packed and dedicated blob files; ``write_dataset`` writes blobs.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from lance_nb.dataset.file_reader import LanceFileReader
from lance_nb.dataset.file_writer import LanceFileWriter
from lance_nb.errors import InvalidInputError, ObjectNotFoundError, StorageError
from lance_nb.session.base_paths import trusted_bases
from lance_nb.session.opening import check_refused
from lance_nb.storage.base import ByteRange, check_path, check_prefix, join_uri
from lance_nb.storage.registry import StorageOptions, open_store
from lance_nb.value_classes import dataclass

_COPY_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ListResult:
    """The folders and the files directly in a folder; both are paths below the session's place.

    Examples:
        >>> "data" in ds.new_file_session().list_with_delimiter().common_prefixes
        True
    """

    common_prefixes: list[str]
    objects: list[str]


class LanceFileSession:
    """Reads, writes and lists the files below one place.

    Args:
        base_path: a folder, or a URI with the ``storage_options`` of its store.
        namespace_client, table_id: refused.

    Examples:
        >>> session = ds.new_file_session()
        >>> with session.open_writer("notes/rows.lance") as writer:
        ...     writer.write_batch(rows)
        >>> session.list("notes"), session.contains("notes/rows.lance")
        (['notes/rows.lance'], True)
        >>> session.open_reader("notes/rows.lance", ["id"]).read_all().to_table().to_pydict()
        {'id': [10, 11]}
        >>> len(session.read_range("notes/rows.lance", 0, 16))
        16
        >>> session.download_file("notes/rows.lance", "rows.lance")
        >>> session.upload_file("rows.lance", "notes/copy.lance")
        >>> session.delete_file("notes/rows.lance")
        >>> session.list_with_delimiter("notes").objects
        ['notes/copy.lance']
    """

    def __init__(
        self,
        base_path: str | os.PathLike[str],
        storage_options: StorageOptions | None = None,
        namespace_client: object = None,
        table_id: Sequence[str] | None = None,
    ) -> None:
        """Open a place: a folder, or a URI with the options of its store.

        ``namespace_client`` and ``table_id`` are refused. Raises InvalidInputError,
        NotSupportedError.
        """
        check_refused({"namespace_client": namespace_client, "table_id": table_id})
        self._base = os.fspath(base_path)
        self._options = storage_options
        self._store = open_store(base_path, storage_options, trusted_bases(()))

    def open_reader(self, path: str, columns: Sequence[str] | None = None) -> LanceFileReader:
        """Open a data file; errors as of ``LanceFileReader``.

        Args:
            path: below the session's place.
            columns: what is read, nested ones by dots; all by default.
        """
        return LanceFileReader(self._full(path), self._options, columns)

    def open_writer(
        self,
        path: str,
        *,
        schema: pa.Schema | None = None,
        data_cache_bytes: int | None = None,
        version: str | None = None,
        keep_original_array: bool | None = None,
        max_page_bytes: int | None = None,
    ) -> LanceFileWriter:
        """Begin a data file; errors as of ``LanceFileWriter``.

        Args:
            path: below the session's place.
            schema, data_cache_bytes, version, max_page_bytes: as for ``LanceFileWriter``.
            keep_original_array: tunes pylance's writer and has no effect.
        """
        return LanceFileWriter(
            self._full(path),
            schema,
            data_cache_bytes=data_cache_bytes,
            version=version,
            storage_options=self._options,
            max_page_bytes=max_page_bytes,
        )

    def contains(self, path: str) -> bool:
        """Tell whether there is a file; of a path that leaves the place, False.

        Args:
            path: below the session's place.
        """
        try:
            checked = check_path(path)
        except InvalidInputError:
            return False
        return self._store.exists(checked)

    def list(self, path: str | None = None) -> list[str]:
        """List the files below a folder at any depth; none if there is no folder.

        Args:
            path: the folder; the session's place by default.
        """
        prefix = check_prefix(path or "")
        return [join_uri(prefix, entry.name) if prefix else entry.name
                for entry in self._store.list_recursive(prefix)]  # fmt: skip

    def list_with_delimiter(self, path: str | None = None) -> ListResult:
        """List what is directly in a folder, folders and files apart.

        Args:
            path: the folder; the session's place by default.
        """
        prefix = check_prefix(path or "")
        depth = len(prefix) + 1 if prefix else 0
        folders: set[str] = set()
        objects = []
        for name in self.list(prefix):
            folder, slash, _ = name[depth:].partition("/")
            if slash:
                folders.add(name[:depth] + folder)
            else:
                objects.append(name)
        return ListResult(sorted(folders), sorted(objects))

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Read a part of a file.

        Args:
            path: below the session's place.
            offset: the first byte.
            length: how many bytes.

        Raises ObjectNotFoundError, CorruptFileError where the file is shorter, StorageError.
        """
        if offset < 0 or length < 0:
            raise InvalidInputError(f"offset {offset} and length {length} must not be negative")
        return bytes(self._store.read_range(check_path(path), ByteRange(offset, offset + length)))

    def delete_file(self, path: str) -> None:
        """Delete a file.

        Args:
            path: below the session's place.

        Raises ObjectNotFoundError if there is none.
        """
        if not self._store.exists(check_path(path)):
            raise ObjectNotFoundError(join_uri(self._store.uri, path))
        self._store.delete(path)

    def upload_file(self, local_path: str | Path, remote_path: str) -> None:
        """Copy a local file to the session's place.

        Args:
            local_path: the local file.
            remote_path: below the session's place.

        Raises StorageError.
        """
        path = check_path(remote_path)
        try:
            with Path(local_path).open("rb") as source:
                writer = self._store.create(path)
                while piece := source.read(_COPY_BYTES):
                    writer.write([piece])
                writer.finish()
        except StorageError:
            raise
        except OSError as exc:
            raise StorageError(str(local_path), str(exc)) from exc

    def download_file(self, remote_path: str, local_path: str | Path) -> None:
        """Copy a file to a local path, replacing what is there.

        Args:
            remote_path: below the session's place.
            local_path: the local file.

        Raises ObjectNotFoundError, StorageError.
        """
        size = self._store.size(check_path(remote_path))
        try:
            with Path(local_path).open("wb") as target:
                for start in range(0, size, _COPY_BYTES):
                    byte_range = ByteRange(start, min(start + _COPY_BYTES, size))
                    target.write(self._store.read_range(remote_path, byte_range))
        except StorageError:
            raise
        except OSError as exc:
            raise StorageError(str(local_path), str(exc)) from exc

    def _full(self, path: str) -> str:
        return join_uri(self._base, check_path(path))
