"""A fragment of the simplest kind, read from its bytes without building a ``Fragment``.

That is: one data file beside the manifest whose size is recorded, every row live. What is not of
this kind, or odd in any way, is left to ``Fragment.from_bytes``, which tells what is wrong with it.

Source: message DataFragment of lance.table.
"""

from __future__ import annotations

from typing import NamedTuple

from google.protobuf.message import DecodeError

from lance_nb._pb import table as pb

_FOREIGN = frozenset("/\\%:\0")  # in no name of a plain file; see layout.check_relative_path


class PlainFragment(NamedTuple):
    """Rows, and the one data file: name below ``data/``, size, column of each field.

    A tuple, because a scan makes one for each of many fragments.
    """

    num_rows: int
    name: str
    size_bytes: int
    file_version: tuple[int, int]
    fields: tuple[int, ...]
    column_indices: tuple[int, ...]


def plain_fragment(raw: bytes) -> PlainFragment | None:
    """Read a serialized fragment, None when it is not of the simplest kind."""
    try:
        message = pb.DataFragment.FromString(raw)
    except DecodeError:
        return None
    files = message.files
    if len(files) != 1 or message.HasField("deletion_file") or message.overlays:
        return None
    file = files[0]
    name, fields, columns = file.path, tuple(file.fields), tuple(file.column_indices)
    if file.HasField("base_id") or len(fields) != len(columns) or not file.file_size_bytes:
        return None
    if not name or name[0] == "." or not _FOREIGN.isdisjoint(name):
        return None
    version = (file.file_major_version, file.file_minor_version)
    return PlainFragment(
        message.physical_rows, name, file.file_size_bytes, version, fields, columns
    )
