"""What a data file says about its columns and pages: protobuf in, plain values out, and back.

Layout: global buffer 0 is a FileDescriptor; each column has a ColumnMetadata message whose pages
carry an ``Any`` with the page's layout (2.1, 2.2) or array encoding (2.0).

Limits: every buffer must lie inside the file, page rows must add up.
Not supported: encodings stored outside the message (``indirect``): no release writes them.
Source: messages FileDescriptor, ColumnMetadata, Page of lance.file and lance.file.v2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from lance_nb._pb import encodings, encodings21, file, file2
from lance_nb.encodings.base import Ints
from lance_nb.errors import CorruptFileError, NotSupportedError, describe_bytes
from lance_nb.value_classes import dataclass

PAGE_LAYOUT_URL = "/lance.encodings21.PageLayout"
ARRAY_ENCODING_URL = "/lance.encodings.ArrayEncoding"
COLUMN_ENCODING_URL = "/lance.encodings.ColumnEncoding"
ROWS_MAX = 2**48
VALUES_ENCODING = encodings.ColumnEncoding(
    values=encodings.ColumnEncoding.Values()
).SerializeToString()


@dataclass(frozen=True, slots=True)
class PageMetadata:
    """One page of one column: where its buffers lie (bytes from file start) and how it reads."""

    buffer_offsets: tuple[int, ...]
    buffer_sizes: tuple[int, ...]
    num_rows: int
    encoding_url: str
    encoding: bytes

    def layout(self) -> encodings21.PageLayout:
        """Parse the page layout. Raises NotSupportedError for another kind of encoding."""
        if self.encoding_url != PAGE_LAYOUT_URL:
            raise NotSupportedError(f"page encoding {self.encoding_url!r} is not supported")
        return encodings21.PageLayout.FromString(self.encoding)

    def array_encoding(self) -> encodings.ArrayEncoding:
        """Parse the array encoding. Raises NotSupportedError for another kind, CorruptFileError."""
        if self.encoding_url != ARRAY_ENCODING_URL:
            raise NotSupportedError(f"page encoding {self.encoding_url[:80]!r} is not supported")
        try:
            return encodings.ArrayEncoding.FromString(self.encoding)
        except DecodeError as exc:
            actual = describe_bytes(self.encoding)
            raise CorruptFileError("", None, "an ArrayEncoding message", actual) from exc


@dataclass(frozen=True, slots=True)
class ColumnMetadata:
    """One column: its pages in order, and ``page_ends``, the cumulative rows (int64).

    ``encoding`` is a serialized ColumnEncoding; ``buffers`` are the column's own buffers, as ranges
    of the file.
    """

    pages: tuple[PageMetadata, ...]
    page_ends: Ints
    encoding: bytes = b""
    buffers: tuple[tuple[int, int], ...] = ()

    @property
    def num_rows(self) -> int:
        """Rows of all pages together."""
        return int(self.page_ends[-1]) if self.page_ends.size else 0


def parse_column(
    raw: memoryview, file_version: tuple[int, int], file_size_bytes: int
) -> ColumnMetadata:
    """Read one ColumnMetadata message. Raises CorruptFileError without a path."""
    message = file2.ColumnMetadata()
    try:
        message.ParseFromString(bytes(raw))
    except DecodeError as exc:
        actual = describe_bytes(raw)
        raise CorruptFileError("", None, "a ColumnMetadata message", actual) from exc
    if file_version >= (2, 1) and not message.encoding.HasField("direct"):
        raise CorruptFileError("", None, "a column encoding", "none")
    pages = tuple(_page(page, file_version, file_size_bytes) for page in message.pages)
    num_rows = sum(page.num_rows for page in pages)
    if num_rows > ROWS_MAX:
        raise CorruptFileError("", None, f"at most {ROWS_MAX} rows in a column", str(num_rows))
    lengths = np.array([page.num_rows for page in pages], np.int64)
    encoding = _encoding(message.encoding)[1] if message.encoding.HasField("direct") else b""
    sizes = zip(message.buffer_offsets, message.buffer_sizes, strict=False)
    buffers = tuple((offset, offset + size) for offset, size in sizes)
    return ColumnMetadata(pages, np.cumsum(lengths), encoding, buffers)


def page_messages(raw: memoryview) -> Sequence[file2.Page] | None:
    """Return the page messages of a column, unchecked; None if it has no encoding of its own.

    For many files at once; ``parse_column`` checks what they say. Raises DecodeError.
    """
    column = file2.ColumnMetadata.FromString(raw)  # type: ignore[arg-type]
    return column.pages if column.encoding.HasField("direct") else None


def page_layout(encoding: bytes) -> tuple[str, Any] | None:
    """Parse the description of a page: the arm of its layout and the message of the arm.

    None for another description than a layout, or for no arm that is known. Raises DecodeError.
    """
    wrapped = encodings.Any.FromString(encoding)
    return layout_arm(wrapped.value) if wrapped.type_url == PAGE_LAYOUT_URL else None


def layout_arm(layout: bytes) -> tuple[str, Any] | None:
    """Parse a layout: its arm and the message of the arm, None for no arm that is known."""
    message = encodings21.PageLayout.FromString(layout)
    arm = message.WhichOneof("layout")
    return None if arm is None else (arm, getattr(message, arm))


def _page(page: file2.Page, file_version: tuple[int, int], file_size_bytes: int) -> PageMetadata:
    offsets, sizes = tuple(page.buffer_offsets), tuple(page.buffer_sizes)
    if len(offsets) != len(sizes):
        raise CorruptFileError("", None, f"{len(offsets)} buffer sizes", str(len(sizes)))
    for offset, size in zip(offsets, sizes, strict=True):
        if offset + size > file_size_bytes:
            raise CorruptFileError(
                "", offset, f"a page buffer inside {file_size_bytes} bytes", f"{size} bytes"
            )
    if page.length > ROWS_MAX:
        raise CorruptFileError("", None, f"at most {ROWS_MAX} rows in a page", str(page.length))
    url, encoding = _encoding(page.encoding)
    if file_version >= (2, 1) and url == ARRAY_ENCODING_URL:
        raise CorruptFileError("", None, "a page layout", "a 2.0 array encoding")
    return PageMetadata(offsets, sizes, page.length, encoding_url=url, encoding=encoding)


def _encoding(message: file2.Encoding) -> tuple[str, bytes]:
    if message.WhichOneof("location") != "direct":
        raise NotSupportedError("a page encoding that is not stored in the page's own message")
    try:
        wrapped = encodings.Any.FromString(message.direct.encoding)
    except DecodeError as exc:
        actual = describe_bytes(message.direct.encoding)
        raise CorruptFileError("", None, "an Any message", actual) from exc
    return wrapped.type_url, wrapped.value


def parse_descriptor(raw: memoryview) -> tuple[file.Schema, int]:
    """Read global buffer 0: the file's own fields and its number of rows."""
    try:
        descriptor = file.FileDescriptor.FromString(bytes(raw))
    except DecodeError as exc:
        actual = describe_bytes(raw)
        raise CorruptFileError("", None, "a FileDescriptor message", actual) from exc
    if descriptor.length > ROWS_MAX:
        raise CorruptFileError("", None, f"at most {ROWS_MAX} rows", str(descriptor.length))
    return descriptor.schema, descriptor.length


# --- writing ------------------------------------------------------------------------------------


def column_bytes(
    encoding: bytes, pages: Sequence[PageMetadata], first_rows: Sequence[int]
) -> bytes:
    """Return the message of a column. ``first_rows`` has the top-level row each page starts at."""
    message = file2.ColumnMetadata(encoding=_wrapped(COLUMN_ENCODING_URL, encoding))
    for page, first_row in zip(pages, first_rows, strict=True):
        message.pages.add(
            buffer_offsets=page.buffer_offsets,
            buffer_sizes=page.buffer_sizes,
            length=page.num_rows,
            encoding=_wrapped(page.encoding_url, page.encoding),
            priority=first_row,
        )
    return message.SerializeToString()


def stacked_column_bytes(
    layout: bytes, num_rows: int, buffer_offsets: Ints, buffer_sizes: Ints
) -> Iterator[bytes]:
    """Yield the messages of columns of one page each, which differ in the places of buffers.

    ``buffer_offsets`` and ``buffer_sizes`` have a row for each column.
    """
    message = file2.ColumnMetadata(encoding=_wrapped(COLUMN_ENCODING_URL, VALUES_ENCODING))
    page = message.pages.add(length=num_rows, encoding=_wrapped(PAGE_LAYOUT_URL, layout))
    for offsets, sizes in zip(buffer_offsets.tolist(), buffer_sizes.tolist(), strict=True):
        page.buffer_offsets[:] = offsets
        page.buffer_sizes[:] = sizes
        yield message.SerializeToString()


def descriptor_bytes(
    fields: Sequence[file.Field], metadata: Mapping[str, bytes], num_rows: int
) -> bytes:
    """Return global buffer 0."""
    descriptor = file.FileDescriptor(length=num_rows)
    descriptor.schema.fields.extend(fields)
    if metadata:
        descriptor.schema.metadata.update(metadata)
    descriptor.schema.SetInParent()
    return descriptor.SerializeToString()


def _wrapped(type_url: str, message: bytes) -> file2.Encoding:
    inner = encodings.Any(type_url=type_url, value=message).SerializeToString()
    return file2.Encoding(direct=file2.Encoding.Direct(encoding=inner))


@dataclass(frozen=True, slots=True)
class PageListing:
    """A page: where it is, how big, how encoded; what is known of its values.

    ``column`` is a column number, in 0.1 files a field id. ``size_bytes`` and what follows
    ``encoding`` are None where the file does not say.
    """

    column: int
    page: int
    num_rows: int
    size_bytes: int | None
    offset_bytes: int | None
    encoding: str
    null_count: int | None = None
    min_value: str | None = None
    max_value: str | None = None


def describe_page(page: PageMetadata) -> str:
    """Spell out how a 2.x page is encoded; "?" and the type url where that is not known."""
    from lance_nb.encodings.describe import describe_array_encoding, describe_layout  # inspection

    try:
        if page.encoding_url == ARRAY_ENCODING_URL:
            return describe_array_encoding(page.array_encoding())
        return describe_layout(page.layout())
    except (NotSupportedError, CorruptFileError, DecodeError):
        return f"? ({page.encoding_url[:80]})"
