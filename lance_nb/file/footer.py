"""The tail of a 2.x data file: version, column metadata and global buffer tables.

Layout (end of the file, integers little endian)::

    ...  column metadata messages, back to back
    ...  column metadata offset table    num_columns x (u64 position, u64 size)
    ...  global buffer offset table      num_global_buffers x (u64 position, u64 size)
    40   u64 position of the first column metadata | u64 position of the column table
         | u64 position of the global buffer table | u32 num_global_buffers | u32 num_columns
         | u16 major | u16 minor | "LANC"

Limits: tables must lie inside the file; nothing is allocated from a count before that is known.
Not supported: file versions other than the registered ones are refused by name.
Source: spec page "file format"; verified against pylance 14.0.2.
"""

from __future__ import annotations

import struct

from lance_nb.errors import CorruptFileError, NotSupportedError
from lance_nb.value_classes import dataclass

FOOTER_BYTES = 40
MAGIC = b"LANC"
TABLE_ENTRY_BYTES = 16
_FOOTER = struct.Struct("<QQQIIHH4s")
_VERSION = struct.Struct("<HH4s")

# What the footer says -> the file version it means. 2.0 files really say (0, 3).
_VERSIONS = {
    (0, 3): (2, 0),
    (2, 0): (2, 0),
    (2, 1): (2, 1),
    (2, 2): (2, 2),
    (2, 3): (2, 3),
    (0, 1): (0, 1),
    (0, 2): (0, 1),
}


@dataclass(frozen=True, slots=True)
class Footer:
    """The 40 bytes at the end. ``file_version`` is (2, 2) for a 2.2 file."""

    column_metadata_start: int
    column_table_start: int
    global_table_start: int
    num_global_buffers: int
    num_columns: int
    file_version: tuple[int, int]


def parse_footer(tail: memoryview, file_size_bytes: int, path: str) -> Footer:
    """Read the footer from the last bytes of the file and check it against the file's size.

    Raises CorruptFileError, or NotSupportedError for a version that is not known at all.
    """
    if file_size_bytes < FOOTER_BYTES or len(tail) < FOOTER_BYTES:
        raise CorruptFileError(
            path, None, f"a data file of at least {FOOTER_BYTES} bytes", f"{file_size_bytes} bytes"
        )
    version = parse_version(tail, file_size_bytes, path)
    fields = _FOOTER.unpack(tail[-FOOTER_BYTES:])
    columns, column_table, global_table, num_global, num_columns, *_ = fields
    footer = Footer(
        columns,
        column_table,
        global_table,
        num_global_buffers=num_global,
        num_columns=num_columns,
        file_version=version,
    )
    end = file_size_bytes - FOOTER_BYTES
    for name, start, count in (
        ("column metadata table", column_table, num_columns),
        ("global buffer table", global_table, num_global),
    ):
        if version >= (2, 0) and start + count * TABLE_ENTRY_BYTES > end:
            raise CorruptFileError(
                path,
                end,
                f"a {name} inside the file",
                f"{count} entries from byte {start} on",
            )
    return footer


def parse_version(tail: memoryview, file_size_bytes: int, path: str) -> tuple[int, int]:
    """Read the file version from the last 8 bytes, which files of every version share.

    Raises CorruptFileError, or NotSupportedError for a version that is not known at all.
    """
    if len(tail) < _VERSION.size:
        expected = f"a data file of at least {_VERSION.size} bytes"
        raise CorruptFileError(path, None, expected, f"{file_size_bytes} bytes")
    major, minor, magic = _VERSION.unpack(tail[-_VERSION.size :])
    if magic != MAGIC:
        raise CorruptFileError(path, file_size_bytes - 4, f"magic {MAGIC!r}", repr(magic))
    version = _VERSIONS.get((major, minor))
    if version is None:
        raise NotSupportedError(f"{path}: data file version {major}.{minor} is not known")
    return version


def parse_table(raw: memoryview, count: int) -> list[tuple[int, int]]:
    """Read ``count`` (position, size) pairs."""
    numbers = struct.unpack(f"<{2 * count}Q", raw[: count * TABLE_ENTRY_BYTES])
    return list(zip(numbers[::2], numbers[1::2], strict=True))
