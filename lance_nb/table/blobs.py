"""Blob payloads as files: opened lazily, read by range, never larger in memory than asked for.

An external payload is stored wherever its description says; it is opened only when that place is
inside the dataset, below a base path, or allowed by the caller, because reading it uses the
caller's own credentials.

Source: spec page "blob"; file-like interface as pylance's BlobFile.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, SupportsIndex

import numpy as np

from lance_nb.encodings.base import Ints
from lance_nb.errors import (
    ArgumentError,
    CorruptFileError,
    InternalError,
    InvalidInputError,
    NotSupportedError,
)
from lance_nb.format.blob_fields import is_blob
from lance_nb.format.field import Field
from lance_nb.format.fragment import DataFile, Fragment
from lance_nb.storage.base import ByteRange, Store
from lance_nb.table.blob_columns import BlobPlace, place_of
from lance_nb.table.projection import ROW_ADDRESS, project
from lance_nb.table.row_ids import choose_positions
from lance_nb.table.snapshot import Snapshot
from lance_nb.table.take import take_rows

DEFAULT_BLOB_BUFFER_SIZE = 512 * 1024
ADDRESS_SHIFT = 32


class BlobFile(io.BufferedIOBase):
    """One payload, opened for reading: a binary file, as ``open(path, "rb")`` returns.

    ``read``, ``read1`` and ``readinto`` read ``buffer_size`` bytes ahead, so that many small reads
    are few requests; 0 reads exactly what is asked for. ``read_range`` and ``read_ranges`` use
    neither the buffer nor the position.

    Args:
        store, path, start, size_bytes: where the payload lies: bytes of an object of a store.
        buffer_size: bytes that are read ahead; 512 KiB by default.

    Examples:
        >>> file = photos.take_blobs("image", indices=[0])[0]
        >>> file.read(5), file.tell(), file.size()
        (b'first', 5, 11)
        >>> file.seek(6), file.read1(2), file.readall()
        (6, b'ph', b'oto')
        >>> file.read_range(0, 5), file.read_ranges([(0, 2), (6, 2)])
        (b'first', [b'fi', b'ph'])
        >>> file.seek(0), file.readinto(bytearray(5)), file.readable(), file.seekable()
        (0, 5, True, True)
        >>> file.path.startswith("data/"), file.start >= 0, file.store.uri == photos.uri
        (True, True, True)
    """

    def __init__(
        self,
        store: Store,
        path: str,
        start: int,
        size_bytes: int,
        buffer_size: int = DEFAULT_BLOB_BUFFER_SIZE,
    ) -> None:
        """Describe the payload: ``size_bytes`` bytes at ``start`` of an object."""
        super().__init__()
        self._store = store
        self._path = path
        self._start = start
        self._size = size_bytes
        self._position = 0
        self.buffer_size = buffer_size
        self._ahead = b""  # what was read ahead, from this position of the payload on
        self._ahead_start = 0

    def __reduce__(self) -> NoReturn:
        raise NotSupportedError(
            "a BlobFile is an open file and is not copied or pickled: pickle the dataset and call "
            "take_blobs there, or send the bytes"
        )

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        self.__reduce__()

    @property
    def store(self) -> Store:
        """Where the object lies that holds the payload."""
        return self._store

    @property
    def path(self) -> str:
        """Path of that object in the store."""
        return self._path

    @property
    def start(self) -> int:
        """Byte of the object where the payload begins."""
        return self._start

    def size(self) -> int:
        """Size of the payload in bytes."""
        return self._size

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position in the payload."""
        self._check_open()
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a position in the payload; past its end is allowed, before its start is not.

        Args:
            offset: bytes.
            whence: from the start, the position or the end; as for ``io.IOBase.seek``.
        """
        self._check_open()
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}.get(whence)
        if base is None or base + offset < 0:
            raise InvalidInputError(f"cannot seek to {offset} from {whence}")
        self._position = base + offset
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        """Read bytes from the position on, fewer at the end.

        Args:
            size: how many; all of them if negative or None.

        Raises CorruptFileError, StorageError.
        """
        if size is None or size < 0:
            return self.readall()
        self._check_open()
        data = self._read_ahead(size)
        self._position += len(data)
        return data

    def read1(self, size: int = -1) -> bytes:
        """Read bytes with at most one request.

        Args:
            size: the most; 8 KiB if negative.
        """
        return self.read(io.DEFAULT_BUFFER_SIZE if size < 0 else size)

    def readinto(self, b: Any) -> int:
        """Fill a buffer from the position on; return how many bytes there were.

        Args:
            b: the buffer.

        Raises ArgumentError (a TypeError) for a buffer that cannot be written to.
        """
        view = memoryview(b).cast("B")
        if view.readonly:
            raise ArgumentError(f"a buffer to read into must be writable, not {type(b).__name__}")
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)

    def readall(self) -> bytes:
        """Read from the position to the end."""
        self._check_open()
        data = self.read_range(self._position, self._size - self._position)
        self._position += len(data)
        return data

    def _read_ahead(self, length: int) -> bytes:
        """Return ``length`` bytes at the position, from what was read ahead if they are there."""
        stop = min(self._position + length, self._size)
        ahead_stop = self._ahead_start + len(self._ahead)
        if not self._ahead_start <= self._position <= stop <= ahead_stop:
            if length >= self.buffer_size:
                return self.read_range(self._position, length)
            self._ahead = self.read_range(self._position, self.buffer_size)
            self._ahead_start = self._position
        start = self._position - self._ahead_start
        return self._ahead[start : start + length]

    def read_range(self, offset: int, length: int) -> bytes:
        """Read a part of the payload (fewer bytes at the end), without moving.

        Args:
            offset: the first byte.
            length: how many bytes.
        """
        self._check_open()
        if offset < 0:
            raise InvalidInputError(f"a range of a blob cannot start at {offset}")
        stop = min(offset + max(length, 0), self._size)
        if stop <= offset:
            return b""
        byte_range = ByteRange(self._start + offset, self._start + stop)
        return bytes(self._store.read_range(self._path, byte_range))

    def read_ranges(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Read several parts of the payload at once, without moving.

        Args:
            ranges: ``(offset, length)`` in bytes.
        """
        return [self.read_range(offset, length) for offset, length in ranges]

    def _check_open(self) -> None:
        if self.closed:
            raise InvalidInputError("the blob file is closed")

    def __repr__(self) -> str:
        return f"<lance_nb.BlobFile {self._size} bytes of {self._path!r}>"


def open_blobs(
    snapshot: Snapshot,
    column: str,
    positions: Sequence[int] | np.ndarray,
    buffer_size: int = DEFAULT_BLOB_BUFFER_SIZE,
) -> list[BlobFile | None]:
    """Open the payloads of the rows at ``positions``; None for a null blob.

    ``column`` may be inside structs. ``buffer_size``: see BlobFile. Raises InvalidInputError for a
    column that holds no blobs or a row that does not exist.
    """
    check_buffer_size(buffer_size)
    files = [file for _, file in addressed_blobs(snapshot, column, positions)]
    for file in files:
        if file is not None:
            file.buffer_size = buffer_size
    return files


def check_buffer_size(buffer_size: int) -> None:
    """Raise ArgumentError (a TypeError) or InvalidInputError for what is no number of bytes."""
    if isinstance(buffer_size, bool) or not isinstance(buffer_size, int):
        raise ArgumentError(f"buffer_size must be an int, got {type(buffer_size).__name__}")
    if buffer_size < 0:
        raise InvalidInputError(f"buffer_size must not be negative, got {buffer_size}")


def addressed_blobs(
    snapshot: Snapshot, column: str, positions: Sequence[int] | np.ndarray
) -> list[tuple[int, BlobFile | None]]:
    """Open payloads as ``open_blobs`` does, each with the address of its row."""
    schema = snapshot.manifest.schema
    field = schema.field(column)
    if not is_blob(field):
        raise InvalidInputError(f"column {column!r} is {field.logical_type}, it holds no blobs")
    table = take_rows(snapshot, project(schema, [column], [ROW_ADDRESS]), positions)
    addresses = table.column(1).to_pylist()
    files = described_blobs(snapshot, field, table.column(0).to_pylist(), addresses)
    return list(zip(addresses, files, strict=True))


def described_blobs(
    snapshot: Snapshot,
    field: Field,
    descriptions: Sequence[Mapping[str, object] | None],
    addresses: Sequence[int],
) -> list[BlobFile | None]:
    """Open the payloads that descriptions of a blob column speak of, given their rows."""
    owners: Ints = np.array([address >> ADDRESS_SHIFT for address in addresses], np.int64)
    located: dict[int, tuple[DataFile, str]] = {}
    sizes: dict[tuple[str, str], int] = {}
    opened: list[BlobFile | None] = []
    for description, owner in zip(descriptions, owners.tolist(), strict=True):
        if description is None:  # perhaps no file of the fragment has the column
            opened.append(None)
            continue
        if owner not in located:
            file = blob_file(snapshot, owner, field.id)
            located[owner] = (file, file.location(snapshot.manifest.path))
        file, path = located[owner]
        place = place_of(description, path)
        opened.append(
            None if place is None else _open(snapshot, file, path, place=place, sizes=sizes)
        )
    return opened


def read_parts(parts: Sequence[tuple[BlobFile, int, int] | None]) -> list[bytes | None]:
    """Read ``length`` bytes at ``offset`` of many payloads, those of one object in one request."""
    parts_data: list[bytes | None] = [None] * len(parts)
    grouped: dict[tuple[int, str], list[int]] = {}
    stores: dict[int, Store] = {}
    for number, part in enumerate(parts):
        if part is None:
            continue
        file, _, length = part
        if length:
            stores[id(file.store)] = file.store
            grouped.setdefault((id(file.store), file.path), []).append(number)
        else:
            parts_data[number] = b""
    for (store, path), numbers in grouped.items():
        ranges = [_range_of(parts[number]) for number in numbers]
        for number, data in zip(numbers, stores[store].read_ranges(path, ranges), strict=True):
            parts_data[number] = bytes(data)
    return parts_data


def read_ranges(
    snapshot: Snapshot, column: str, requests: Sequence[tuple[int, int, int]], selector: str
) -> list[tuple[int, int, bytes | None]]:
    """Read ``(row, offset, length)`` parts; ``selector`` names what rows are given by.

    Raises InvalidInputError for a range outside of its blob.
    """
    rows = [row for row, _, _ in requests]
    positions = choose_positions(snapshot, **{"ids": None, "addresses": None, "indices": None}
                                 | {selector: rows})  # fmt: skip
    blobs = addressed_blobs(snapshot, column, positions)
    parts: list[tuple[BlobFile, int, int] | None] = []
    for number, ((_, offset, length), (address, file)) in enumerate(
        zip(requests, blobs, strict=True)
    ):
        if file is None:
            parts.append(None)
            continue
        if offset < 0 or length < 0 or offset + length > file.size():
            raise InvalidInputError(
                f"blob range request {number} for row address {address} is invalid: it ends at "
                f"{offset + length}, the blob at {file.size()}"
            )
        parts.append((file, offset, length))
    data = read_parts(parts)
    return [(number, blobs[number][0], data[number]) for number in range(len(requests))]


def _range_of(part: tuple[BlobFile, int, int] | None) -> ByteRange:
    if part is None:
        raise InternalError("a part without a file was grouped")
    file, offset, length = part
    return ByteRange(file.start + offset, file.start + offset + length)


def blob_file(snapshot: Snapshot, fragment_id: int, field_id: int) -> DataFile:
    """Find the data file of a fragment that holds a blob column. Raises CorruptFileError."""
    fragments = snapshot.manifest.fragments
    position = fragments.position_of(fragment_id)
    fragment: Fragment | None = None if position is None else fragments[position]
    for file in fragment.files if fragment is not None else ():
        if field_id in file.fields:
            return file
    raise CorruptFileError(
        snapshot.manifest.path,
        None,
        f"a data file with the blobs of fragment {fragment_id}",
        "none",
    )


def _open(
    snapshot: Snapshot,
    file: DataFile,
    path: str,
    place: BlobPlace,
    sizes: dict[tuple[str, str], int],
) -> BlobFile:
    """Open a payload; ``sizes`` remembers those of the objects that were looked up."""
    if place.uri is not None:
        store, name = snapshot.locations.external(place.uri, place.base_id)
    else:
        store, name = snapshot.locations.locate(place.sidecar or path, file.base_id)
    key = (store.uri, name)
    if key not in sizes:
        sizes[key] = store.size(name)
    size = sizes[key]
    length = size - place.position if place.size_bytes is None else place.size_bytes
    if length < 0 or place.position + length > size:
        raise CorruptFileError(
            f"{store.uri}/{name}", place.position, f"a blob of {length} bytes", f"{size} bytes"
        )
    return BlobFile(store, name, place.position, length)
