"""Count the rows and files of many serialized fragments at once.

Parsing 100,000 messages one by one costs more than opening the manifest. Here all fragments are
walked in step: round ``n`` reads the ``n``-th field of every fragment with a few numpy operations.
Whatever is unusual (a field number above 15, a broken length, more than ``ROUNDS_MAX`` fields) is
left to the protobuf parser, which decides what it means or that it is damaged.

Layout: see message ``FragmentCounts``. A scalar that occurs twice takes its last value, as in
protobuf.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError

from lance_nb._pb import table as pb
from lance_nb.errors import CorruptFileError

FEW_FRAGMENTS = 64  # below this, parsing one by one is quicker than a round of numpy calls
ROUNDS_MAX = 48
_VARINT_BYTES_MAX = 9  # 63 bits; longer ones are left to protobuf
_PADDING = bytes(16)  # reading one varint past the end stays inside the buffer

Ints = npt.NDArray[np.int64]
_Mask = npt.NDArray[np.bool_]
NUM_COLUMNS = 6
ID, ROWS, DELETED, FILES, DELETIONS, BYTES = range(NUM_COLUMNS)


@dataclass(frozen=True, slots=True)
class _Fields:
    """One field of each of some messages: whose, number, wire type, and value.

    The value of a length-delimited field is its length; ``start`` is where its bytes begin.
    """

    owner: Ints
    number: npt.NDArray[np.integer[Any]]
    wire: npt.NDArray[np.integer[Any]]
    value: Ints
    start: Ints

    def pick(self, number: int, wire: int) -> tuple[Ints, Ints, Ints]:
        """Return (owner, value, start) of the fields with that number and wire type."""
        chosen = np.flatnonzero((self.number == number) & (self.wire == wire))
        return self.owner[chosen], self.value[chosen], self.start[chosen]


def count_all(raw: Sequence[bytes], path: str) -> Ints:
    """Return an array of shape (6, n): id, rows, deleted rows, data files, deletion files, bytes.

    Raises CorruptFileError for bytes that are no fragment, or a number of 2**63 and above.
    """
    counts = np.zeros((NUM_COLUMNS, len(raw)), np.int64)
    if len(raw) < FEW_FRAGMENTS:
        for column, one in enumerate(raw):
            counts[:, column] = count_one(one, path)
        return counts
    raw = list(raw)  # a protobuf container makes a new object at each look
    lengths = np.fromiter(map(len, raw), np.int64, len(raw))
    data = np.frombuffer(b"".join([*raw, _PADDING]), np.uint8)
    stops = np.cumsum(lengths)
    odd = np.zeros(len(raw), np.bool_)
    files: list[tuple[Ints, Ints, Ints]] = []
    deletions: list[tuple[Ints, Ints, Ints]] = []
    for fields in _walk(data, np.arange(len(raw)), stops - lengths, stops, odd):
        for number, row in ((1, ID), (4, ROWS)):
            owner, value, _ = fields.pick(number, 0)
            counts[row, owner] = value
        files.append(fields.pick(2, 2))
        deletions.append(fields.pick(3, 2))
    _count_files(data, files, counts, odd)
    _count_deletions(data, deletions, counts, odd)
    for position in np.flatnonzero(odd):
        counts[:, position] = count_one(raw[position], path)
    return counts


def _count_files(
    data: npt.NDArray[np.uint8], found: list[tuple[Ints, Ints, Ints]], counts: Ints, odd: _Mask
) -> None:
    owner, size, start = _joined(found)
    np.add.at(counts[FILES], owner, 1)
    size_bytes = np.zeros(len(owner), np.int64)
    odd_files = np.zeros(len(owner), np.bool_)
    for fields in _walk(data, np.arange(len(owner)), start, start + size, odd_files):
        which, value, _ = fields.pick(6, 0)
        size_bytes[which] = value
    # A sum may wrap around: sizes that large are left to Python's integers.
    odd_files |= size_bytes >= 1 << 48
    odd[owner[odd_files]] = True
    np.add.at(counts[BYTES], owner, size_bytes)


def _count_deletions(
    data: npt.NDArray[np.uint8], found: list[tuple[Ints, Ints, Ints]], counts: Ints, odd: _Mask
) -> None:
    owner, size, start = _joined(found)
    counts[DELETIONS, owner] = 1
    odd_files = np.zeros(len(owner), np.bool_)
    for fields in _walk(data, np.arange(len(owner)), start, start + size, odd_files):
        which, value, _ = fields.pick(4, 0)
        counts[DELETED, owner[which]] = value
    odd[owner[odd_files]] = True


def _joined(found: list[tuple[Ints, Ints, Ints]]) -> tuple[Ints, Ints, Ints]:
    owner, size, start = (np.concatenate(one) for one in zip(*found, strict=True))
    return owner, size, start


def _walk(
    data: npt.NDArray[np.uint8], owner: Ints, cursor: Ints, stop: Ints, odd: _Mask
) -> Iterator[_Fields]:
    """Yield the first field of every message, then the second of every message that has one...

    Sets ``odd[owner]`` for messages it gives up on.
    """
    for _ in range(ROUNDS_MAX):
        going = np.flatnonzero(cursor < stop)
        if len(going) < len(owner):
            owner, cursor, stop = owner[going], cursor[going], stop[going]
        if not len(owner):
            break
        tag = data[cursor]
        wire = tag & 7
        value, after = varints(data, cursor + 1)
        following = np.where(wire == 2, after + value, after)
        fine = (tag < 0x80) & ((wire == 0) | (wire == 2)) & (value >= 0) & (following <= stop)
        if not fine.all():
            odd[owner[~fine]] = True
            kept = np.flatnonzero(fine)
            owner, stop, tag, wire = owner[kept], stop[kept], tag[kept], wire[kept]
            value, after, following = value[kept], after[kept], following[kept]
        yield _Fields(owner, tag >> 3, wire, value, after)
        cursor = following
    else:
        odd[owner[cursor < stop]] = True


def varints(data: npt.NDArray[np.uint8], start: Ints) -> tuple[Ints, Ints]:
    """Return (value, position behind) of the varint at each position; -1 for one too long."""
    byte = data[start]  # padded: a varint that starts inside is never past the end
    value = (byte & 0x7F).astype(np.int64)
    after = start + 1
    more = np.flatnonzero(byte & 0x80)
    for index in range(1, _VARINT_BYTES_MAX):
        if not len(more):
            return value, after
        byte = data[after[more]]
        value[more] |= (byte & 0x7F).astype(np.int64) << (7 * index)
        after[more] += 1
        more = more[(byte & 0x80) != 0]
    value[more] = -1
    return value, after


def count_one(raw: bytes, path: str) -> list[int]:
    """Count one fragment by the protobuf parser; the numbers in the order of the rows."""
    try:
        message = pb.FragmentCounts.FromString(raw)
    except DecodeError as error:
        raise CorruptFileError(path, None, "a DataFragment message", "other bytes") from error
    counts = [
        message.id,
        message.physical_rows,
        message.deletion_file.num_deleted_rows,
        len(message.files),
        int(message.HasField("deletion_file")),
        sum(one.file_size_bytes for one in message.files),
    ]
    if max(counts) >= 1 << 63:
        raise CorruptFileError(path, None, "numbers below 2**63 in a fragment", f"{max(counts)}")
    return counts
