"""Values, arrays and columns of blobs to write, under pylance's names.

A column of type ``lance.blob.v2`` is written by ``write_dataset(..., data_storage_version="2.2")``;
its payloads are stored beside the data files. Reading returns descriptors, or files with
``take_blobs``.

Layout: a struct of ``data`` (large_binary), ``uri`` (string) and, for a part of the object at the
URI, ``position`` and ``size`` (uint64); each value sets either ``data`` or ``uri``.
Source: ``lance.blob`` of pylance 14.0.2.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from typing import IO, Any

import pyarrow as pa

from lance_nb.errors import ArgumentError, InvalidInputError
from lance_nb.format.arrow_schema import register_extension_type
from lance_nb.format.blob_fields import BLOB_INPUT, BLOB_V2_EXTENSION
from lance_nb.value_classes import dataclass

_INLINE_KEY = "lance-encoding:blob-inline-size-threshold"
_DEDICATED_KEY = "lance-encoding:blob-dedicated-size-threshold"
_PACK_KEY = "lance-encoding:blob-pack-file-size-threshold"
_U64 = 1 << 64


@dataclass(frozen=True, slots=True)
class Blob:
    """One blob to write: its bytes, or the URI where they are, with a part of it if wanted.

    Write ``None`` for null and ``Blob.empty()`` for a blob of no bytes.
    Raises InvalidInputError when neither or both are set, or a part is not complete.

    >>> from lance_nb import Blob
    >>> Blob.from_bytes(b"abc").data, Blob.from_uri("s3://bucket/x", 10, 5).size
    (b'abc', 5)
    """

    data: bytes | None = None
    uri: str | None = None
    position: int | None = None
    size: int | None = None

    def __post_init__(self) -> None:
        if (self.data is None) == (self.uri is None):
            raise InvalidInputError("a Blob has either data or a uri; write None for a null blob")
        if self.uri == "":
            raise InvalidInputError("the uri of a Blob cannot be empty")
        if (self.position is None) != (self.size is None):
            raise InvalidInputError("a part of a Blob has both a position and a size")
        if self.position is None or self.size is None:
            return
        if self.uri is None:
            raise InvalidInputError("only a Blob with a uri can be a part of something")
        if self.size == 0 or not (0 <= self.position < _U64 and 0 < self.size < _U64):
            raise InvalidInputError(
                f"a part of a Blob has a position from 0 and a size from 1, not "
                f"{self.position} and {self.size}"
            )

    @staticmethod
    def from_bytes(data: bytes | bytearray | memoryview) -> Blob:
        """Return a blob of these bytes."""
        return Blob(data=bytes(data))

    @staticmethod
    def from_uri(uri: str, position: int | None = None, size: int | None = None) -> Blob:
        """Return a blob of the object at a URI, or of a part of it.

        Args:
            uri: the object.
            position: the first byte.
            size: how many bytes.
        """
        return Blob(uri=uri, position=position, size=size)

    @staticmethod
    def empty() -> Blob:
        """Return a blob of no bytes."""
        return Blob(data=b"")


class BlobType(pa.ExtensionType):  # type: ignore[misc]
    """The Arrow type of columns of blobs to write; see ``blob_field``.

    Examples:
        >>> lance_nb.blob_field("image").type == lance_nb.BlobType()
        True
    """

    def __init__(self) -> None:
        super().__init__(BLOB_INPUT, BLOB_V2_EXTENSION)

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, _: bytes) -> BlobType:
        short = pa.struct(list(BLOB_INPUT)[:2])
        if storage_type not in (BLOB_INPUT, short):
            raise InvalidInputError(f"blobs are written as {BLOB_INPUT}, not as {storage_type}")
        type_ = cls.__new__(cls)
        pa.ExtensionType.__init__(type_, storage_type, BLOB_V2_EXTENSION)
        return type_

    def __arrow_ext_class__(self) -> type[pa.ExtensionArray]:
        return BlobArray

    def __reduce__(self) -> tuple[Any, tuple[pa.DataType, bytes]]:
        return BlobType.__arrow_ext_deserialize__, (self.storage_type, b"")


class BlobArray(pa.ExtensionArray):  # type: ignore[misc]
    """A column of blobs to write; ``blob_array`` makes one of Python values.

    Examples:
        >>> len(lance_nb.BlobArray.from_pylist([b"abc", None]))
        2
    """

    @classmethod
    def from_pylist(cls, values: Iterable[Any]) -> BlobArray:
        """Return values as an array.

        Args:
            values: bytes, URIs as text, Blob or None.

        Raises ArgumentError for other values, InvalidInputError for an empty URI.
        """
        blobs = [_blob(value) for value in values]
        columns = [
            pa.array([None if blob is None else getattr(blob, field.name) for blob in blobs],
                     field.type)
            for field in BLOB_INPUT
        ]  # fmt: skip
        mask = pa.array([blob is None for blob in blobs], pa.bool_())
        storage = pa.StructArray.from_arrays(columns, fields=list(BLOB_INPUT), mask=mask)
        return pa.ExtensionArray.from_storage(BlobType(), storage)  # type: ignore[no-any-return]


register_extension_type(BlobType())


def blob_array(values: Iterable[Any]) -> BlobArray:
    """Return values (bytes, URIs as text, Blob, None) as a column of blobs to write.

    Raises ArgumentError for other values, InvalidInputError for an empty URI.

    >>> from lance_nb import Blob, blob_array
    >>> len(blob_array([b"abc", "s3://bucket/x", Blob.empty(), None]))
    4
    """
    return BlobArray.from_pylist(values)


def blob_field(
    name: str,
    *,
    nullable: bool = True,
    inline_size_threshold: int | None = None,
    dedicated_size_threshold: int | None = None,
    pack_file_size_threshold: int | None = None,
) -> pa.Field:
    """Return the Arrow field of a column of blobs.

    Args:
        name: of the column.
        nullable: whether a blob may be null.
        inline_size_threshold: payloads up to so many bytes stay in the data file.
        dedicated_size_threshold: those up to so many bytes share a file; larger ones have a file
            each.
        pack_file_size_threshold: bytes after which a shared file ends.

    Raises InvalidInputError, ArgumentError.

    Examples:
        >>> schema = pa.schema([lance_nb.blob_field("image", inline_size_threshold=1024)])
        >>> pa.table([lance_nb.blob_array([b"abc"])], schema=schema).num_rows
        1
    """
    metadata = {}
    for key, option, value, least in (
        (_INLINE_KEY, "inline_size_threshold", inline_size_threshold, 0),
        (_DEDICATED_KEY, "dedicated_size_threshold", dedicated_size_threshold, 1),
        (_PACK_KEY, "pack_file_size_threshold", pack_file_size_threshold, 1),
    ):
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, int):
            raise ArgumentError(f"{option} is a number of bytes, not {type(value).__name__}")
        if value < least:
            raise InvalidInputError(f"{option} must be at least {least}, not {value}")
        if value >= _U64:
            raise ArgumentError(f"{option} does not fit 64 bits: {value}")
        metadata[key] = str(value)
    return pa.field(name, BlobType(), nullable, metadata or None)


def _blob(value: Any) -> Blob | None:
    match value:
        case None | Blob():
            return value
        case str():
            return Blob(uri=value)
        case bytes() | bytearray() | memoryview():
            return Blob(data=bytes(value))
    raise ArgumentError(
        f"a blob is bytes, a URI as text, a Blob or None, not {type(value).__name__}"
    )


class BlobIterator:
    """The values of a binary column as files, one after the other; see ``BlobColumn``.

    Examples:
        >>> files = lance_nb.BlobIterator(iter(pa.array([b"abc", b"de"])))
        >>> next(files).read(), next(files).read()
        (b'abc', b'de')
    """

    def __init__(self, binary_iter: Iterator[pa.Scalar]) -> None:
        """Take the scalars of a column."""
        self.binary_iter = binary_iter

    def __iter__(self) -> BlobIterator:
        return self

    def __next__(self) -> IO[bytes] | None:
        value = next(self.binary_iter).as_py()
        return None if value is None else io.BytesIO(value)


class BlobColumn:
    """A binary column whose values are read as files, for APIs that take a file.

    For values of some megabytes and more, write a column of blobs and use ``take_blobs``.
    Raises InvalidInputError for a column that is not binary.

    >>> import pyarrow as pa
    >>> from lance_nb import BlobColumn
    >>> [file.read() for file in BlobColumn(pa.array([b"abc", b"de"]))]
    [b'abc', b'de']
    """

    def __init__(self, blob_column: pa.Array | pa.ChunkedArray) -> None:
        if not isinstance(blob_column, pa.Array | pa.ChunkedArray):
            raise InvalidInputError(
                f"expected an Arrow array or chunked array, not {type(blob_column).__name__}"
            )
        kinds = pa.types
        if not (kinds.is_binary(blob_column.type) or kinds.is_large_binary(blob_column.type)):
            raise InvalidInputError(f"expected a binary column, not {blob_column.type}")
        self.blob_column = blob_column

    def __iter__(self) -> BlobIterator:
        return BlobIterator(iter(self.blob_column))
