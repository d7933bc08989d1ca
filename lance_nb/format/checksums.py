"""Checksum records of files, an addition of lance_nb to the format.

The format has no checksums. A dataset whose configuration has ``lance_nb.checksums = xxh128`` gets
a record for each set of files that this library writes, in the folder ``_checksums`` of the store
that the files are in; other writers neither read nor delete it.

Layout of ``_checksums/<xxh128 of the record, 32 hex digits>.sums``, UTF-8, lines ended by a line
feed::

    lance_nb checksums 1 xxh128
    <xxh128 of a file, 32 hex digits> <its size in bytes> <its path below the store>
    ...

Paths in a record are unique. The name is the checksum of the content, so a changed record is
detected, and equal records have one file. Files never change and their names are never reused, so
any record that has a file is valid for it.

Limits: records are at most ``RECORD_BYTES_MAX`` bytes. Records are not signed: they detect damage,
not forgery.
Source: xxHash 0.8 specification (XXH3, 128 bits, seed 0, canonical big-endian digits).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from lance_nb.errors import CorruptFileError, InvalidInputError, NotSupportedError
from lance_nb.format.layout import check_relative_path

CONFIG_KEY = "lance_nb.checksums"
ALGORITHM = "xxh128"
FOLDER = "_checksums"
RECORD_BYTES_MAX = 64 * 1024 * 1024
_SUFFIX = ".sums"
_HEADER = b"lance_nb checksums 1 xxh128\n"
_LINE = re.compile(r"([0-9a-f]{32}) (0|[1-9][0-9]{0,18}) (.+)", re.DOTALL)
_NAME = re.compile(r"([0-9a-f]{32})\.sums", re.ASCII)
_ADVICE = (
    "delete the record: its files then count as files without a checksum; "
    "ds.add_checksums() computes their checksums again, once they have been verified"
)


class FileSum(NamedTuple):
    """The checksum of a file: path below its store, xxHash-128 in hex digits, size in bytes."""

    path: str
    digest: str
    size_bytes: int


def wants_checksums(config: Mapping[str, str]) -> bool:
    """Return whether a table's configuration asks writers for checksums.

    Raises NotSupportedError for a kind of checksum that this release does not know.
    """
    kind = config.get(CONFIG_KEY, "")
    if kind in ("", ALGORITHM):
        return bool(kind)
    raise NotSupportedError(
        f"this dataset asks for checksums of the kind {kind!r:.40} ({CONFIG_KEY}); this release "
        f"writes {ALGORITHM!r}: write with a newer lance_nb, or change that key of the table's "
        "configuration"
    )


def digest_of(data: bytes | memoryview) -> str:
    """Return the xxHash-128 of bytes, as hex digits."""
    import xxhash

    return xxhash.xxh3_128_hexdigest(data)


def record_path(content: bytes) -> str:
    """Return the path of a record below its store."""
    return f"{FOLDER}/{digest_of(content)}{_SUFFIX}"


def is_record_name(name: str) -> bool:
    """Return whether a name in the folder is one of a record."""
    return _NAME.fullmatch(name) is not None


def record_bytes(sums: Iterable[FileSum]) -> bytes:
    """Serialize a record. Raises InvalidInputError for a path that a line cannot hold."""
    lines = []
    for file_sum in sorted(sums):
        if "\n" in file_sum.path:
            raise InvalidInputError(f"the path {file_sum.path!r} of a file holds a line break")
        lines.append(f"{file_sum.digest} {file_sum.size_bytes} {file_sum.path}\n".encode())
    return _HEADER + b"".join(lines)


def parse_record(data: bytes | memoryview, path: str, name: str) -> list[FileSum]:
    """Read a record. ``path`` is for messages. Raises CorruptFileError, NotSupportedError."""
    digest = digest_of(data)
    if name != f"{digest}{_SUFFIX}":
        raise CorruptFileError(
            path, None, "a record whose xxh128 is its name", f"{digest}", advice=_ADVICE
        )
    head = bytes(data[: len(_HEADER)])
    if head != _HEADER:
        raise NotSupportedError(f"{path} is no record of checksums that this release knows")
    try:
        lines = bytes(data[len(_HEADER) :]).decode().split("\n")[:-1]
    except UnicodeDecodeError as error:
        raise CorruptFileError(path, None, "UTF-8", str(error), advice=_ADVICE) from error
    return [_parsed(line, path) for line in lines]


def _parsed(line: str, path: str) -> FileSum:
    match = _LINE.fullmatch(line)
    if match is None:
        raise CorruptFileError(
            path, None, "lines of sum, size and path", f"{line!r:.80}", advice=_ADVICE
        )
    digest, size, name = match.groups()
    return FileSum(check_relative_path(name, path), digest, int(size))
