"""Serialized fragments: count, append and change them in bulk without building ``Fragment`` values.

``count_fragments`` walks all fragments in parallel, because parsing 100,000 messages one by one
costs more than opening the manifest: round ``n`` reads the ``n``-th field of every fragment with a
few numpy operations. Anything unusual (a field number above 15, a broken length, more than
``ROUNDS_MAX`` fields) is left to the protobuf parser, which interprets it or reports the damage. A
scalar that occurs twice takes its last value, as in protobuf.

``FragmentWire`` keeps the serialized field ``Manifest.fragments`` in one piece, so that appending
to 100,000 fragments copies none of them. The piece is the bytes between the schema and the version
in the manifest that was read. To find it, the message is parsed once more as ``ManifestFrame``,
which has every field but the fragments: the slice is used only if the serialized frame equals,
byte for byte, the message without it. A message in another order is serialized anew.

``with_bases`` replaces base ids, so that fragments of a branch and of its parent, which name the
same folder differently, can be compared as bytes.

Source: messages DataFragment, DataFile and DeletionFile of lance.table; ``FragmentCounts`` and
``ManifestFrame`` are our own views of DataFragment and Manifest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, overload

import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError

from lance_nb._pb import table as pb
from lance_nb.errors import CorruptFileError, describe_bytes
from lance_nb.format.wire import parse
from lance_nb.value_classes import dataclass

FEW_FRAGMENTS = 64  # below this, parsing one by one is quicker than a round of numpy calls
ROUNDS_MAX = 48
REUSED_FRAGMENTS_MIN = 64  # below this, serializing them again is quicker

Ints = npt.NDArray[np.int64]
_Mask = npt.NDArray[np.bool_]
NUM_COLUMNS = 6
ID, ROWS, DELETED, FILES, DELETIONS, BYTES = range(NUM_COLUMNS)

_VARINT_BYTES_MAX = 9  # 63 bits; longer ones are left to protobuf
_PADDING = bytes(16)  # reading one varint past the end stays inside the buffer
_INT32_MAX = 2**31 - 1  # negative ids, of columns that were dropped, are larger as varints
_FRAGMENTS_TAG = b"\x12"  # field 2 of Manifest, length-delimited

# --- counting -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Fields:
    """One field of each of some messages: index of the message, number, wire type, and value.

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


def count_fragments(raw: Sequence[bytes], path: str) -> Ints:
    """Return an array of shape (6, n): id, rows, deleted rows, data files, deletion files, bytes.

    Raises CorruptFileError for bytes that are no fragment, or a number of 2**63 and above.
    """
    counts = np.zeros((NUM_COLUMNS, len(raw)), np.int64)
    if len(raw) < FEW_FRAGMENTS:
        for column, fragment in enumerate(raw):
            counts[:, column] = count_fragment(fragment, path)
        return counts
    raw = list(raw)  # a protobuf container creates a new object at each access
    lengths = np.fromiter(map(len, raw), np.int64, len(raw))
    data = np.frombuffer(b"".join([*raw, _PADDING]), np.uint8)
    stops = np.cumsum(lengths)
    odd = np.zeros(len(raw), np.bool_)
    files: list[tuple[Ints, Ints, Ints]] = []
    deletions: list[tuple[Ints, Ints, Ints]] = []
    for fields in _walk(data, np.arange(len(raw)), stops - lengths, stop=stops, odd=odd):
        for number, row in ((1, ID), (4, ROWS)):
            owner, value, _ = fields.pick(number, 0)
            counts[row, owner] = value
        files.append(fields.pick(2, 2))
        deletions.append(fields.pick(3, 2))
    _count_files(data, files, counts, odd)
    _count_deletions(data, deletions, counts, odd)
    for position in np.flatnonzero(odd):
        counts[:, position] = count_fragment(raw[position], path)
    return counts


def largest_field_id(raw: Sequence[bytes], path: str) -> int:
    """Return the largest field id that a data file of some fragments names, -1 without any.

    Most files name the same fields, so each different list of ids is parsed once. Raises
    CorruptFileError for bytes that are no fragment.
    """
    lengths = np.fromiter(map(len, raw), np.int64, len(raw))
    joined = b"".join([*raw, _PADDING])
    data = np.frombuffer(joined, np.uint8)
    stops = np.cumsum(lengths)
    odd = np.zeros(len(raw), np.bool_)
    walked = _walk(data, np.arange(len(raw)), stops - lengths, stop=stops, odd=odd)
    owner, size, start = _joined([_NO_FIELDS, *(fields.pick(2, 2) for fields in walked)])
    odd_files = np.zeros(len(owner), np.bool_)
    packed = [_NO_FIELDS]
    largest = -1
    for fields in _walk(data, np.arange(len(owner)), start, stop=start + size, odd=odd_files):
        packed.append(fields.pick(2, 2))
        _, single, _ = fields.pick(2, 0)
        largest = max(largest, int(single[single <= _INT32_MAX].max(initial=-1)))
    odd[owner[odd_files]] = True
    _, size, start = _joined(packed)
    ends = (start + size).tolist()
    lists = {joined[first:end] for first, end in zip(start.tolist(), ends, strict=True)}
    for ids in lists:
        message = parse(pb.DataFile, field_entry(ids), path)  # its fields have number 2, too
        largest = max(largest, max(message.fields, default=-1))
    for position in np.flatnonzero(odd).tolist():
        for file in parse(pb.DataFragment, raw[position], path).files:
            largest = max(largest, max(file.fields, default=-1))
    return largest


def _count_files(
    data: npt.NDArray[np.uint8], parts: list[tuple[Ints, Ints, Ints]], counts: Ints, odd: _Mask
) -> None:
    owner, size, start = _joined(parts)
    np.add.at(counts[FILES], owner, 1)
    size_bytes = np.zeros(len(owner), np.int64)
    odd_files = np.zeros(len(owner), np.bool_)
    for fields in _walk(data, np.arange(len(owner)), start, stop=start + size, odd=odd_files):
        file_numbers, value, _ = fields.pick(6, 0)
        size_bytes[file_numbers] = value
    # A sum may wrap around: sizes that large are left to Python's integers.
    odd_files |= size_bytes >= 1 << 48
    odd[owner[odd_files]] = True
    np.add.at(counts[BYTES], owner, size_bytes)


def _count_deletions(
    data: npt.NDArray[np.uint8], parts: list[tuple[Ints, Ints, Ints]], counts: Ints, odd: _Mask
) -> None:
    owner, size, start = _joined(parts)
    counts[DELETIONS, owner] = 1
    odd_files = np.zeros(len(owner), np.bool_)
    for fields in _walk(data, np.arange(len(owner)), start, stop=start + size, odd=odd_files):
        file_numbers, value, _ = fields.pick(4, 0)
        counts[DELETED, owner[file_numbers]] = value
    odd[owner[odd_files]] = True


_NO_FIELDS = (np.zeros(0, np.int64),) * 3


def _joined(fields: list[tuple[Ints, Ints, Ints]]) -> tuple[Ints, Ints, Ints]:
    owner, size, start = (np.concatenate(arrays) for arrays in zip(*fields, strict=True))
    return owner, size, start


def _walk(
    data: npt.NDArray[np.uint8], owner: Ints, cursor: Ints, stop: Ints, odd: _Mask
) -> Iterator[_Fields]:
    """Yield the first field of every message, then the second of every message that has one...

    Sets ``odd[owner]`` for messages that are left to the protobuf parser.
    """
    for _ in range(ROUNDS_MAX):
        going = np.flatnonzero(cursor < stop)
        if len(going) < len(owner):
            owner, cursor, stop = owner[going], cursor[going], stop[going]
        if not len(owner):
            break
        tag = data[cursor]
        wire = tag & 7
        value, after = decode_varints(data, cursor + 1)
        following = np.where(wire == 2, after + value, after)
        fine = (tag < 0x80) & ((wire == 0) | (wire == 2)) & (value >= 0) & (following <= stop)
        if not fine.all():
            odd[owner[~fine]] = True
            intact = np.flatnonzero(fine)
            owner, stop, tag, wire = owner[intact], stop[intact], tag[intact], wire[intact]
            value, after, following = value[intact], after[intact], following[intact]
        yield _Fields(owner, tag >> 3, wire, value=value, start=after)
        cursor = following
    else:
        odd[owner[cursor < stop]] = True


def decode_varints(data: npt.NDArray[np.uint8], start: Ints) -> tuple[Ints, Ints]:
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


def count_fragment(raw: bytes, path: str) -> list[int]:
    """Return the counts of one fragment by the protobuf parser, in the order of the columns."""
    try:
        message = pb.FragmentCounts.FromString(raw)
    except DecodeError as error:
        raise CorruptFileError(path, None, "a DataFragment message", describe_bytes(raw)) from error
    counts = [
        message.id,
        message.physical_rows,
        message.deletion_file.num_deleted_rows,
        len(message.files),
        int(message.HasField("deletion_file")),
        sum(file.file_size_bytes for file in message.files),
    ]
    if max(counts) >= 1 << 63:
        raise CorruptFileError(path, None, "numbers below 2**63 in a fragment", f"{max(counts)}")
    return counts


# --- the field of a manifest ----------------------------------------------------------------------


class Joined(Sequence[bytes]):
    """Two sequences as one, without a copy."""

    def __init__(self, first: Sequence[bytes], second: Sequence[bytes]) -> None:
        self._first = first
        self._second = second

    def followed_by(self, more: Sequence[bytes]) -> Joined:
        """Return the sequence with more items at the end; the nesting does not grow."""
        return Joined(self._first, [*self._second, *more])

    def __len__(self) -> int:
        return len(self._first) + len(self._second)

    def __iter__(self) -> Iterator[bytes]:
        return chain(self._first, self._second)

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | Sequence[bytes]:
        if isinstance(index, slice):
            return list(self)[index]
        start = len(self._first)
        position = index + len(self) if index < 0 else index
        return self._first[position] if position < start else self._second[position - start]


class FragmentWire:
    """Serialized fragments: those of ``message`` (a serialized Manifest), or ``raw``; then more.

    ``tail`` is the serialized field of the fragments that were appended.
    """

    def __init__(
        self,
        raw: Sequence[bytes],
        message: bytes | memoryview | None = None,
        tail: bytes = b"",
    ) -> None:
        self._raw = raw
        self._message = message
        self._tail = tail
        self._slice: memoryview | None = None  # of the message; looked for once

    def followed_by(self, more: Sequence[bytes]) -> FragmentWire:
        """Return the fragments with more at the end."""
        longer = FragmentWire(
            self._raw, self._message, b"".join([self._tail, *map(field_entry, more)])
        )
        longer._slice = self._slice
        return longer

    def pieces(self) -> list[bytes | memoryview]:
        """Return pieces that, joined, are the serialized field."""
        if self._message is not None and len(self._raw) >= REUSED_FRAGMENTS_MIN:
            if self._slice is None:
                self._slice = fragments_slice(memoryview(self._message))
            if self._slice is not None:
                return [self._slice, self._tail]
        return [pb.Manifest(fragments=self._raw).SerializeToString(), self._tail]


def fragments_slice(message: memoryview) -> memoryview | None:
    """Return the slice of a serialized Manifest that is its fragments, None if not contiguous.

    The message must have no fields but those of ``Manifest``.
    """
    frame = parse(pb.ManifestFrame, message, "")
    frame.DiscardUnknownFields()
    around = frame.SerializeToString(deterministic=True)
    start = len(pb.ManifestFrame(fields=frame.fields).SerializeToString())
    stop = start + len(message) - len(around)
    if message[:start] != around[:start] or message[stop:] != around[start:]:
        return None
    return message[start:stop]


def field_entry(fragment: bytes) -> bytes:
    """Return one serialized fragment with its tag and length."""
    length = len(fragment)
    prefix = bytearray(_FRAGMENTS_TAG)
    while length >= 0x80:
        prefix.append(length & 0x7F | 0x80)
        length >>= 7
    prefix.append(length)
    return bytes(prefix) + fragment


# --- base paths -----------------------------------------------------------------------------------


def with_bases(
    raw: Sequence[bytes], changes: Mapping[int | None, int | None], path: str = ""
) -> list[bytes]:
    """Return the fragments with their base ids changed; None is no id. Raises CorruptFileError."""
    return [_with_bases(fragment, changes, path) for fragment in raw]


def _with_bases(raw: bytes, changes: Mapping[int | None, int | None], path: str) -> bytes:
    message = parse(pb.DataFragment, raw, path)
    holders: list[pb.DataFile | pb.DeletionFile] = list(message.files)
    if message.HasField("deletion_file"):
        holders.append(message.deletion_file)
    for file in holders:
        old = file.base_id if file.HasField("base_id") else None
        new = changes.get(old, old)
        if new is None:
            file.ClearField("base_id")
        elif new != old:
            file.base_id = new
    return message.SerializeToString()
