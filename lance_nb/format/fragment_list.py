"""The fragments of a manifest, kept as bytes and decoded when they are asked for.

A manifest of 100,000 fragments opens in a few milliseconds because nothing here is decoded then.
``counts`` decodes only the numbers, all at once, and checks them: it is what row counts, statistics
and the planning of scans start from.

Limits: ids fit 32 bits; sums of rows and bytes fit 63 bits.
Source: ``Manifest.fragments``; message ``FragmentCounts`` is our counting view of ``DataFragment``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
import numpy.typing as npt
from google.protobuf.message import DecodeError

from lance_nb._pb import table as pb
from lance_nb.errors import CorruptFileError
from lance_nb.format.fragment import Fragment
from lance_nb.format.wire import U32_MAX

Counts64 = npt.NDArray[np.int64]
_I64_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class FragmentCounts:
    """The numbers of every fragment, one array item each, in manifest order.

    ``size_bytes`` adds up the data files whose size is known.
    """

    ids: Counts64
    physical_rows: Counts64
    num_deleted_rows: Counts64
    num_data_files: Counts64
    num_deletion_files: Counts64
    size_bytes: Counts64

    @property
    def num_rows(self) -> Counts64:
        """Live rows of each fragment."""
        return self.physical_rows - self.num_deleted_rows


class FragmentList(Sequence[Fragment]):
    """An immutable sequence of fragments over their serialized form."""

    __slots__ = ("_cache", "_counts", "_path", "raw")

    def __init__(self, raw: Sequence[bytes] = (), path: str = "") -> None:
        self.raw = raw
        self._path = path
        self._cache: dict[int, Fragment] = {}
        self._counts: FragmentCounts | None = None

    @classmethod
    def of(cls, fragments: Iterable[Fragment]) -> FragmentList:
        """Build from decoded fragments."""
        fragments = list(fragments)
        found = cls([one.to_bytes() for one in fragments])
        found._cache = dict(enumerate(fragments))
        return found

    def __len__(self) -> int:
        return len(self.raw)

    @overload
    def __getitem__(self, index: int) -> Fragment: ...
    @overload
    def __getitem__(self, index: slice) -> FragmentList: ...
    def __getitem__(self, index: int | slice) -> Fragment | FragmentList:
        if isinstance(index, slice):
            return FragmentList(self.raw[index], self._path)
        position = index + len(self.raw) if index < 0 else index
        found = self._cache.get(position)
        if found is None:
            found = self._cache[position] = Fragment.from_bytes(self.raw[position], self._path)
        return found

    def __iter__(self) -> Iterator[Fragment]:
        return (self[position] for position in range(len(self.raw)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FragmentList) and list(self.raw) == list(other.raw)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"FragmentList({len(self.raw)} fragments)"

    def __reduce__(self) -> tuple[object, ...]:
        return FragmentList, (list(self.raw), self._path)

    def counts(self) -> FragmentCounts:
        """Return the numbers of every fragment, checked.

        Raises CorruptFileError for duplicate or too large ids, more deleted rows than rows, or sums
        that no dataset can have.
        """
        if self._counts is None:
            self._counts = checked_counts(count_fragments(self.raw, self._path), self._path)
        return self._counts

    def position_of(self, fragment_id: int) -> int | None:
        """Return the position of a fragment id in the list, None if there is none."""
        found = np.flatnonzero(self.counts().ids == fragment_id)
        return int(found[0]) if len(found) else None


Row = tuple[int, int, int, int, int, int]


def count_fragment(raw: bytes) -> Row:
    """Return (id, physical_rows, deleted, data files, deletion files, bytes) of one fragment."""
    message = pb.FragmentCounts.FromString(raw)
    files = message.files
    deleted = message.deletion_file.num_deleted_rows
    has_deletion = 1 if deleted or message.HasField("deletion_file") else 0
    num_files = len(files)
    if num_files == 1:
        size = files[0].file_size_bytes
    else:
        size = sum([one.file_size_bytes for one in files])
    return message.id, message.physical_rows, deleted, num_files, has_deletion, size


def count_fragments(raw: Iterable[bytes], path: str) -> list[Row]:
    """Return the numbers of some fragments. Raises CorruptFileError for bytes that are none."""
    try:
        return [count_fragment(one) for one in raw]
    except DecodeError as error:
        raise CorruptFileError(path, None, "a DataFragment message", "other bytes") from error


def checked_counts(rows: Sequence[Row], path: str) -> FragmentCounts:
    """Turn rows of numbers into arrays, refusing impossible ones."""
    if not rows:
        empty = np.empty(0, np.int64)
        return FragmentCounts(empty, empty, empty, empty, empty, empty)
    ids, physical, deleted, files, deletions, sizes = zip(*rows, strict=True)
    if max(ids) > U32_MAX:
        raise CorruptFileError(path, None, "32-bit fragment ids", f"fragment id {max(ids)}")
    for total, what in ((sum(physical), "rows"), (sum(sizes), "bytes"), (sum(deleted), "rows")):
        if total > _I64_MAX:
            raise CorruptFileError(path, None, f"at most 2**63 {what}", f"{total} {what}")
    counts = FragmentCounts(
        *(np.array(one, np.int64) for one in (ids, physical, deleted, files, deletions, sizes))
    )
    _check_ids_differ(counts.ids, path)
    too_many = (counts.num_deleted_rows > counts.physical_rows) & (counts.physical_rows > 0)
    if too_many.any():
        at = int(np.argmax(too_many))
        raise CorruptFileError(
            path,
            None,
            f"at most {physical[at]} deleted rows in fragment {ids[at]}",
            f"{deleted[at]} deleted rows",
        )
    return counts


def _check_ids_differ(ids: Counts64, path: str) -> None:
    ordered = np.sort(ids)
    twice = np.flatnonzero(ordered[1:] == ordered[:-1])
    if len(twice):
        found = f"fragment id {int(ordered[twice[0]])} twice"
        raise CorruptFileError(path, None, "fragment ids that differ", found)
