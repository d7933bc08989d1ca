"""Columns of a small file whose only page is one constant: the value, straight from the metadata.

A file of one row has nothing else. Its pages need no buffer, so nothing is opened or decoded; a
scan of many such files puts the values together. What is not of this kind, or odd in any way, is
left to ``FileReader``, which reads it or tells what is wrong with it.

Source: messages ColumnMetadata and ConstantLayout; file version 2.2 only, as pylance 14.0.2 writes.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from lance_nb.errors import CorruptFileError, NotSupportedError
from lance_nb.file.footer import TABLE_ENTRY_BYTES, parse_footer
from lance_nb.file.metadata import constant_page

FILE_VERSION = (2, 2)
_ENTRY = struct.Struct("<QQ")


def constant_columns(data: memoryview, columns: Sequence[int], num_rows: int) -> list[bytes] | None:
    """Return the value of each of these columns of a whole file, None unless all are constant.

    Every column must have ``num_rows`` rows.
    """
    size = len(data)
    try:
        footer = parse_footer(data, size, "")
    except (CorruptFileError, NotSupportedError):
        return None
    if footer.file_version != FILE_VERSION:
        return None
    values = []
    for column in columns:
        if not 0 <= column < footer.num_columns:
            return None
        entry = footer.column_table_start + column * TABLE_ENTRY_BYTES
        position, length = _ENTRY.unpack_from(data, entry)
        if position + length > size:
            return None
        value = constant_page(data[position : position + length], num_rows)
        if value is None:
            return None
        values.append(value)
    return values
