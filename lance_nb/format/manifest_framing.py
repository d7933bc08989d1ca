"""The frame of a manifest file: where its three sections lie.

Layout (little endian, no padding)::

    values of dictionaries          only of 0.1 datasets, at Field.dictionary.offset
    [u32 length | IndexSection]     optional, at Manifest.index_section
    [u32 length | Transaction]      optional, at Manifest.transaction_section
    u32 length | Manifest           at P
    u64 P | u16 major | u16 minor | "LANC"     the last 16 bytes

Worked example: a 434-byte file that ends in ``b6 00 .. 00 | 0000 0200 | 4c414e43`` has its manifest
at 182; the u32 there is 232 = 434 - 16 - 182 - 4.

Limits: ``FILE_BYTES_MAX``. The footer's version is 0.2; readers always ignored it, so any up to
``FOOTER_VERSION_MAX`` in both halves is accepted, and larger ones are taken for damage.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from lance_nb.errors import CorruptFileError
from lance_nb.format.wire import FILE_BYTES_MAX, U32_MAX

TAIL_BYTES = 64 * 1024  # one read of this size gets the manifest of nearly every table
FOOTER = struct.Struct("<QHH4s")
FOOTER_VERSION = (0, 2)
FOOTER_VERSION_MAX = 9
MAGIC = b"LANC"

_LENGTH = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class Section:
    """A length-prefixed section. ``data`` is None when it lies before the bytes that were read."""

    offset_bytes: int
    data: bytes | None


def message_position(tail: memoryview, file_size: int, path: str) -> int:
    """Return the offset P of the manifest's length prefix. Raises CorruptFileError.

    ``tail`` is the end of the file, at least 16 bytes unless the file is shorter.
    """
    if file_size > FILE_BYTES_MAX:
        found = f"{file_size} bytes"
        raise CorruptFileError(path, None, f"a manifest of at most {FILE_BYTES_MAX} bytes", found)
    smallest = FOOTER.size + _LENGTH.size
    if file_size < smallest or len(tail) < min(FOOTER.size, file_size):
        raise CorruptFileError(
            path, None, f"a manifest of at least {smallest} bytes", f"{file_size} bytes (truncated)"
        )
    footer_at = file_size - FOOTER.size
    position, major, minor, magic = FOOTER.unpack(tail[-FOOTER.size :])
    if magic != MAGIC:
        raise CorruptFileError(path, file_size - 4, "the magic bytes 'LANC'", repr(bytes(magic)))
    if major > FOOTER_VERSION_MAX or minor > FOOTER_VERSION_MAX:
        raise CorruptFileError(path, footer_at + 8, "footer version 0.2", f"{major}.{minor}")
    if position > footer_at - _LENGTH.size:
        found = f"position {position} in a file of {file_size} bytes"
        raise CorruptFileError(path, footer_at, "the position of the manifest", found)
    return int(position)


def message_bytes(tail: memoryview, file_size: int, position: int, path: str) -> memoryview:
    """Return the serialized Manifest; ``tail`` must reach back to ``position``."""
    start = position - (file_size - len(tail))
    (length,) = _LENGTH.unpack_from(tail, start)
    expected = file_size - FOOTER.size - position - _LENGTH.size
    if length != expected:
        raise CorruptFileError(path, position, f"a manifest of {expected} bytes", f"{length} bytes")
    begin = start + _LENGTH.size
    return tail[begin : begin + length]


def section(
    tail: memoryview, file_size: int, offset: int | None, limit: int, path: str
) -> Section | None:
    """Return the section at file offset ``offset`` (None: there is none).

    ``limit`` is where the manifest starts: sections lie before it. Raises CorruptFileError.
    """
    if offset is None:
        return None
    if offset + _LENGTH.size > limit:
        raise CorruptFileError(path, offset, f"a section before byte {limit}", "one behind it")
    start = offset - (file_size - len(tail))
    if start < 0:
        return Section(offset, None)
    (length,) = _LENGTH.unpack_from(tail, start)
    if offset + _LENGTH.size + length > limit:
        found = f"{length} bytes"
        raise CorruptFileError(path, offset, f"a section that ends before byte {limit}", found)
    begin = start + _LENGTH.size
    return Section(offset, bytes(tail[begin : begin + length]))


def section_size(data: bytes | None) -> int:
    """Return how many bytes a section takes with its length prefix."""
    return 0 if data is None else _LENGTH.size + len(data)


def build_file(
    sections: list[bytes], message: Sequence[bytes | memoryview], preamble: bytes = b""
) -> bytes:
    """Return the bytes of a manifest file with these sections in front of the manifest.

    ``message`` is the serialized Manifest, in pieces; ``preamble`` goes before the sections. Raises
    CorruptFileError.
    """
    parts: list[bytes | memoryview] = [preamble]
    for pieces in (*([data] for data in sections), message):
        size_bytes = sum(len(piece) for piece in pieces)
        if size_bytes > U32_MAX:
            raise CorruptFileError("", None, "sections of at most 4 GiB", f"{size_bytes} bytes")
        parts += [_LENGTH.pack(size_bytes), *pieces]
    position = len(preamble) + sum(section_size(data) for data in sections)
    return b"".join([*parts, FOOTER.pack(position, *FOOTER_VERSION, MAGIC)])
