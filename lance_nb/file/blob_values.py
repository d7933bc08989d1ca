"""Values of blob columns: brought into one form, and read as bytes in bounded memory.

Layout of the one form: ``BLOB_VALUES``; of a value that is not null exactly one of ``data``,
``uri`` and ``object`` is set. Plain binary columns are taken, and for blobs of the second
generation structs of ``data``, ``uri``, ``position`` and ``size`` or some of these.

Payloads that are stored already are copied: a writer is given their objects by number
(``StoredPayloads``) and copies ranges of them. Payloads up to ``COPY_BYTES`` are read in groups of
about that size, larger ones piece by piece.

Limits: payloads stay where they are; ranges of the array's buffer or of stored objects are
returned. Memory holds one group, at most twice ``COPY_BYTES`` of payloads, and the piece before it.
Source: ``BlobType`` of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from lance_nb import arrow_compute as pc
from lance_nb.encodings.arrow_parts import list_ranges, nulls_of
from lance_nb.encodings.base import Bytes, Ints
from lance_nb.errors import InvalidInputError, SchemaMismatchError
from lance_nb.format.blob_fields import BLOB_INPUT, BLOB_VALUES
from lance_nb.storage.base import ByteRange, Store
from lance_nb.value_classes import dataclass

IN_MEMORY = -1

_NO_BYTES: Bytes = np.zeros(0, np.uint8)
_SPARSE_GAP = 64  # bytes between payloads that are read together: what aligns them
COPY_BYTES = 8 * 1024 * 1024


def fit_blobs(array: pa.Array, path: str) -> pa.Array:
    """Return blobs in the one form. Raises SchemaMismatchError for a type that holds none."""
    if isinstance(array.type, pa.BaseExtensionType):
        array = array.storage
    kind = array.type
    if kind == BLOB_VALUES:
        return array
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        fields = {"data": pc.cast(array, pa.large_binary())}
    elif pa.types.is_struct(kind):
        names = [kind.field(index).name for index in range(kind.num_fields)]
        fields = {name: array.field(index) for index, name in enumerate(names)}
    else:
        raise SchemaMismatchError(f"column {path!r} has type {kind}, but it holds blobs")
    for name, child in fields.items():
        position = BLOB_INPUT.get_field_index(name)
        if position < 0 or child.type != BLOB_INPUT.field(position).type:
            raise SchemaMismatchError(
                f"column {path!r} holds blobs, which have no field {name!r} of type {child.type}"
            )
    return blob_values(fields, nulls_of(array), len(array))


def blob_values(
    fields: dict[str, pa.Array], nulls: np.ndarray | None, num_rows: int
) -> pa.StructArray:
    """Return values in the one form from some of its fields; the others are null."""
    children = [fields.get(field.name, pa.nulls(num_rows, field.type)) for field in BLOB_VALUES]
    mask = None if nulls is None else pa.array(nulls)
    return pa.StructArray.from_arrays(children, fields=list(BLOB_VALUES), mask=mask)


def stored_bytes(array: pa.Array) -> Ints | None:
    """Return how many bytes of stored payloads each row copies, None if no column has any."""
    kind = array.type
    if kind == BLOB_VALUES:
        sizes: Ints = array.field("size").fill_null(0).to_numpy().astype(np.int64)
        sizes[np.asarray(array.field("object").is_null())] = 0
        return sizes
    if pa.types.is_struct(kind):
        parts = [stored_bytes(array.field(index)) for index in range(kind.num_fields)]
        known_sizes = [part for part in parts if part is not None]
        return np.sum(known_sizes, axis=0) if known_sizes else None
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        items = stored_bytes(array.values)
        if items is None:
            return None
        starts, counts = list_ranges(array)
        before = np.concatenate(([0], np.cumsum(items)))
        num_bytes: Ints = before[starts + counts] - before[starts]
        return num_bytes
    return None


@dataclass(frozen=True, slots=True)
class Payloads:
    """Bytes of some rows: range ``starts[i]``, ``sizes[i]`` of ``data`` or of a stored object.

    ``objects`` are the numbers of the objects in ``stored``, ``IN_MEMORY`` for ``data``. Null rows
    have size 0.
    """

    data: Bytes
    starts: Ints
    sizes: Ints
    objects: Ints
    stored: StoredPayloads

    @classmethod
    def of(cls, values: pa.StructArray, stored: StoredPayloads) -> Payloads:
        """Look into an array of blobs in their one form."""
        data, starts, sizes = _in_memory(values.field("data"))
        objects = values.field("object")
        numbers = objects.fill_null(0).to_numpy().astype(np.int64)
        is_copied = np.asarray(objects.is_valid())
        numbers[~is_copied] = IN_MEMORY
        if is_copied.any():
            position, size = (pc.fill_null(values.field(name), 0) for name in ("position", "size"))
            starts = np.where(is_copied, position.to_numpy().astype(np.int64), starts)
            sizes = np.where(is_copied, size.to_numpy().astype(np.int64), sizes)
        nulls = nulls_of(values)
        if nulls is not None:
            sizes = np.where(nulls, 0, sizes)
        return cls(data, starts, sizes, objects=numbers, stored=stored)

    def with_sizes(self, sizes: Ints) -> Payloads:
        """Return payloads of other sizes at the same places."""
        return replace(self, sizes=sizes)

    def chosen(self, rows: Ints | slice) -> Payloads:
        """Return those of some rows."""
        return Payloads(
            self.data,
            self.starts[rows],
            self.sizes[rows],
            objects=self.objects[rows],
            stored=self.stored,
        )

    def groups(self) -> Iterator[Payloads]:
        """Cut the payloads into parts that are brought into memory one after the other."""
        count = self.sizes.size
        is_copied = self.objects != IN_MEMORY
        if not is_copied.any():
            yield self
            return
        large = is_copied & (self.sizes > COPY_BYTES)
        begin = np.cumsum(self.sizes) - self.sizes
        group = begin // COPY_BYTES  # another one behind each that is large
        changes = np.flatnonzero((group[1:] != group[:-1]) | large[1:]) + 1
        edges = [0, *changes.tolist(), count]
        for start, stop in pairwise(edges):
            yield self.chosen(slice(start, stop))

    @property
    def is_streamed(self) -> bool:
        """Whether this is one stored payload too large to be brought into memory."""
        if self.sizes.size != 1 or self.objects[0] == IN_MEMORY:
            return False
        return bool(self.sizes[0] > COPY_BYTES)

    def stream(self) -> Iterator[memoryview]:
        """Read one stored payload piece by piece."""
        number, start, size = (int(array[0]) for array in (self.objects, self.starts, self.sizes))
        return self.stored.pieces(number, start, size)

    def blocks(self) -> Iterator[tuple[Ints, Bytes, Ints]]:
        """Bring a group into memory: rows, bytes, and where in these each of the rows begins."""
        for number in np.unique(self.objects).tolist():
            rows = np.flatnonzero(self.objects == number)
            starts, sizes = self.starts[rows], self.sizes[rows]
            if number == IN_MEMORY:
                yield rows, self.data, starts
                continue
            first, last = int(starts.min()), int((starts + sizes).max())
            if last - first <= 2 * int(sizes.sum()) + _SPARSE_GAP * rows.size:
                (view,) = self.stored.read(number, [(first, last)])
                yield rows, np.frombuffer(view, np.uint8), starts - first
                continue
            ranges = list(zip(starts.tolist(), (starts + sizes).tolist(), strict=True))
            views = [np.frombuffer(piece, np.uint8) for piece in self.stored.read(number, ranges)]
            yield rows, np.concatenate(views), np.cumsum(sizes) - sizes

    def pieces(self) -> list[Bytes]:
        """Bring a group into memory, payload by payload."""
        payloads: list[Bytes] = [_NO_BYTES] * self.sizes.size
        for rows, data, starts in self.blocks():
            sizes = self.sizes[rows].tolist()
            for row, start, size in zip(rows.tolist(), starts.tolist(), sizes, strict=True):
                payloads[row] = data[start : start + size]
        return payloads

    def streams(self) -> Iterator[Iterable[memoryview]]:
        """Read the payloads one after the other, each as a stream of pieces."""
        for group in self.groups():
            if group.is_streamed:
                yield group.stream()
            else:
                yield from ((piece.data,) for piece in group.pieces())


def _in_memory(array: pa.Array) -> tuple[Bytes, Ints, Ints]:
    """Return the bytes of a large_binary array, and where its values lie in them."""
    count = len(array)
    _, offsets_buffer, data_buffer = array.buffers()
    if offsets_buffer is None or not count:
        none: Ints = np.zeros(count, np.int64)
        return _NO_BYTES, none, none
    offsets = np.frombuffer(offsets_buffer, np.int64, count + 1, array.offset * 8)
    data = _NO_BYTES if data_buffer is None else np.frombuffer(data_buffer, np.uint8)
    sizes = np.diff(offsets)
    nulls = nulls_of(array)
    if nulls is not None:
        sizes[nulls] = 0
    return data, offsets[:-1], sizes


def check_one_form(has_data: np.ndarray, has_uri: np.ndarray, nulls: np.ndarray, path: str) -> None:
    """Refuse values with both data and uri, or neither. Raises InvalidInputError."""
    wrong = np.flatnonzero((has_data == has_uri) & ~nulls)
    if wrong.size:
        problem = "both data and uri" if has_data[wrong[0]] else "neither data nor uri"
        raise InvalidInputError(f"column {path!r}: a blob (value {int(wrong[0])}) has {problem}")


class StoredPayloads:
    """The objects that payloads are copied from, by number."""

    def __init__(self) -> None:
        self._objects: list[tuple[Store, str]] = []
        self._numbers: dict[tuple[int, str], int] = {}

    def __len__(self) -> int:
        return len(self._objects)

    def add(self, store: Store, path: str) -> int:
        """Return the number of an object."""
        key = (id(store), path)  # the store is kept, so its id is not used again
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._objects)
            self._objects.append((store, path))
        return number

    def read(self, number: int, ranges: Sequence[tuple[int, int]]) -> list[memoryview]:
        """Read ``(start, stop)`` ranges of an object. Raises StorageError, CorruptFileError."""
        store, path = self._object(number)
        return store.read_ranges(path, [ByteRange(start, stop) for start, stop in ranges])

    def pieces(self, number: int, start: int, size_bytes: int) -> Iterator[memoryview]:
        """Read a range of an object piece by piece, each of at most ``COPY_BYTES``."""
        store, path = self._object(number)
        for first in range(start, start + size_bytes, COPY_BYTES):
            stop = min(first + COPY_BYTES, start + size_bytes)
            yield store.read_range(path, ByteRange(first, stop))

    def _object(self, number: int) -> tuple[Store, str]:
        if number >= len(self._objects):
            raise InvalidInputError(
                f"a blob refers to stored object {number} of {len(self._objects)}"
            )
        return self._objects[number]
