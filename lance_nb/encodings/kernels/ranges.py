"""Gather, scatter and join many byte ranges, without a Python loop per value.

Layout: range ``i`` is ``data[starts[i]:starts[i] + sizes[i]]``. Gathered ranges lie in order, back
to back; a scattered range goes to ``out[places[i]:]``. ``join_rows`` takes columns of byte strings
(int64 offsets, one more than rows, starting at 0, and bytes) and joins them row by row.

How: equal sizes at equal distances are one strided copy. Of the rest, small ranges go byte by byte
through their indices, large ones in a loop per range, and Arrow copies what lies between; it also
joins columns, without a separator, in one compiled pass.
Limits: the caller has checked that every range lies inside ``data`` and ``out``; places ascend and
do not overlap; joined columns have the same number of rows.
Not supported: negative sizes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numpy.lib.stride_tricks import as_strided

from lance_nb import arrow_compute as pc
from lance_nb.encodings.kernels import compiled
from lance_nb.encodings.kernels.memory import allocate, from_integers
from lance_nb.value_classes import dataclass

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]

_FEW_RANGES = 256  # below, a Python loop of slice copies beats importing pyarrow.compute
_LONG_RANGE = 768  # from this mean size on, a copy per range is as fast as Arrow's
_SHORT_RANGE = 48  # below this mean size, an index per byte beats a copy per range
_SMALL = 32  # bytes of a range, on average, that are indexed sooner than sliced


def starts_of(sizes: Ints) -> Ints:
    """Return where each range begins when they lie back to back, and the total as last item."""
    out = np.zeros(sizes.size + 1, np.int64)
    np.cumsum(sizes, out=out[1:])
    return out


def uniform_prefix(values: Ints) -> int:
    """Return how many of the first items equal the very first one."""
    (different,) = (values != values[:1]).nonzero()
    return int(different[0]) if different.size else values.size


def ragged_indices(starts: Ints, counts: Ints) -> Ints:
    """Return ``starts[i], starts[i] + 1, ...`` (``counts[i]`` of them) for every ``i``, flat."""
    ends = np.cumsum(counts)
    total = int(ends[-1]) if ends.size else 0
    shift = starts - (ends - counts)
    indices: Ints = np.arange(total, dtype=np.int64)
    indices += np.repeat(shift, counts)
    return indices


def rows(data: Bytes, starts: Ints, size: int) -> Bytes:
    """Return the equally long ranges as a matrix ``(len(starts), size)``.

    A view, not to be written to, when the ranges are equally far apart; else a copy.
    """
    count = starts.size
    if count == 0 or size == 0:
        return np.empty((count, size), np.uint8)
    even = _even_rows(data, starts, size)
    return _gather_rows(data, starts, size) if even is None else even


def _even_rows(data: Bytes, starts: Ints, size: int) -> Bytes | None:
    """View one or more ranges that are equally far apart; None if they are not."""
    if starts.size == 1:
        first = int(starts[0])
        return data[first : first + size].reshape(1, size)
    stride = int(starts[1] - starts[0])
    if stride < 0 or not np.logical_and.reduce(starts[1:] - starts[:-1] == stride):
        return None
    return np.ndarray((starts.size, size), np.uint8, data, int(starts[0]), (stride, 1))


def _gather_rows(data: Bytes, starts: Ints, size: int) -> Bytes:
    """Copy ranges out of overlapping windows, in the widest words that fit every start."""
    word = _common_word(data, starts, size)
    words = data[: data.size // word * word].view(f"u{word}")
    width = size // word
    windows = as_strided(words, (words.size - width + 1, width), (word, word), writeable=False)
    # Indexing the first axis copies one whole window per start; ``take`` would copy all windows.
    return np.ascontiguousarray(windows[starts // word]).view(np.uint8).reshape(starts.size, size)


def _common_word(data: Bytes, starts: Ints, size: int) -> int:
    bits = int(np.bitwise_or.reduce(starts)) | size | data.ctypes.data
    return 8 if bits % 8 == 0 else 4 if bits % 4 == 0 else 2 if bits % 2 == 0 else 1


def concatenate(data: Bytes, starts: Ints, sizes: Ints) -> Bytes:
    """Copy the ranges, back to back, into a new buffer."""
    same = uniform_prefix(sizes)
    alike = same * int(sizes[0]) if same else 0
    out = allocate(alike + int(np.add.reduce(sizes[same:])))
    if not out.size:
        return out
    if same > 1:
        out[:alike].reshape(same, -1)[:] = rows(data, starts[:same], alike // same)
    else:
        same = alike = 0
    if same < sizes.size:
        _copy_ragged(data, starts[same:], sizes[same:], out[alike:])
    return out


@dataclass(frozen=True, slots=True)
class Even:
    """Views of ranges of which all but the last are equally long and equally far apart."""

    matrix: Bytes
    last: Bytes

    def joined(self) -> Bytes:
        """Copy the ranges, back to back, into a new buffer."""
        alike = self.matrix.size
        out = allocate(alike + self.last.size)
        out[:alike].reshape(self.matrix.shape)[:] = self.matrix
        out[alike:] = self.last
        return out


def even_ranges(data: Bytes, starts: Ints, sizes: Ints) -> Even | None:
    """View the ranges to copy them several times; None if they do not lie as ``Even`` has them."""
    if sizes.size < 2 or uniform_prefix(sizes) < sizes.size - 1 or not sizes[0]:
        return None
    matrix = _even_rows(data, starts[:-1], int(sizes[0]))
    begin = int(starts[-1])
    return None if matrix is None else Even(matrix, data[begin : begin + int(sizes[-1])])


def _copy_ragged(data: Bytes, starts: Ints, sizes: Ints, out: Bytes) -> None:
    loops = compiled.loops
    if loops is not None and loops.copy_ranges(data, starts, sizes, out):
        return
    if out.size < _SHORT_RANGE * sizes.size and sizes.size > _FEW_RANGES:
        np.take(data, ragged_indices(starts, sizes), out=out)
        return
    middling = sizes.size > _FEW_RANGES and out.size < _LONG_RANGE * sizes.size
    if middling and bool((starts[1:] >= starts[:-1] + sizes[:-1]).all()):
        out[:] = _take_ranges(data, starts, sizes)
        return
    source, target = data.data, out.data  # half the price of slices of arrays
    position = 0
    for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
        end = position + size
        target[position:end] = source[start : start + size]
        position = end


def _take_ranges(data: Bytes, starts: Ints, sizes: Ints) -> Bytes:
    """Let Arrow copy ascending ranges: they are every other value of one binary array."""
    bounds = np.empty(2 * starts.size + 1, np.int64)
    bounds[:-1:2] = starts
    bounds[1::2] = starts + sizes
    bounds[-1] = bounds[-2]
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(data)]
    array = pa.Array.from_buffers(pa.large_binary(), 2 * starts.size, buffers)
    taken = array.take(from_integers(np.arange(0, 2 * starts.size, 2)))
    return np.frombuffer(taken.buffers()[2], np.uint8, int(sizes.sum()))


def concatenate_bits(data: Bytes, starts: Ints, num_bits: Ints) -> Bytes:
    """Join bitmaps (least significant bit first), each starting on a byte, into one bitmap."""
    sizes = (num_bits + 7) // 8
    joined = concatenate(data, starts, sizes)
    if not np.bitwise_or.reduce(num_bits[:-1]) & 7:
        return joined
    bits = np.unpackbits(joined, bitorder="little")
    bits_taken = bits[ragged_indices(starts_of(sizes)[:-1] * 8, num_bits)]
    return np.packbits(bits_taken, bitorder="little")


def scatter(data: Bytes, starts: Ints, sizes: Ints, out: Bytes, places: Ints) -> None:
    """Copy every range to its place."""
    if not sizes.any():
        return
    same = _uniform_run(sizes, places)
    if same > 1 and int(sizes[0]):
        places_at = int(places[0])
        stride = int(places[1] - places[0])
        size = int(sizes[0])
        target = as_strided(out[places_at:], (same, size), (stride, 1))
        _copy_rows(rows(data, starts[:same], size), target, stride)
    else:
        same = 0
    if same == sizes.size:
        return
    starts, sizes, places = starts[same:], sizes[same:], places[same:]
    loops = compiled.loops
    if loops is not None and loops.scatter_ranges(data, starts, sizes, out, places):
        return
    if int(sizes.sum()) < _SMALL * sizes.size:
        out[ragged_indices(places, sizes)] = concatenate(data, starts, sizes)
        return
    source, target_view = data.data, out.data
    for a, n, to in zip(starts.tolist(), sizes.tolist(), places.tolist(), strict=True):
        target_view[to : to + n] = source[a : a + n]


def _copy_rows(source: Bytes, target: Bytes, stride: int) -> None:
    """Copy equal rows, in words of 8 bytes where everything is aligned."""
    size = target.shape[1]
    aligned = (size | stride | target.ctypes.data | source.ctypes.data | source.strides[0]) % 8 == 0
    if aligned and source.strides[1] == 1:
        shape = (target.shape[0], size // 8)
        source = as_strided(source[:, :8].view(np.uint64), shape, (source.strides[0], 8))
        target = as_strided(target[:, :8].view(np.uint64), shape, (stride, 8))
    np.copyto(target, source)


def _uniform_run(sizes: Ints, places: Ints) -> int:
    """Return how many ranges, from the first on, have one size and lie equally far apart."""
    if sizes.size < 2:
        return 0
    far = places[1:] - places[:-1]
    odd = np.flatnonzero((sizes[1:] != sizes[0]) | (far != far[0]))
    return int(odd[0]) + 1 if odd.size else int(sizes.size)


def write_rows(out: Bytes, places: Ints, source: Bytes) -> None:
    """Copy each row of ``source`` to its place: equal sizes at any distance, without overlap."""
    size = source.shape[1]
    if not source.size:
        return
    windows = as_strided(out, (out.size - size + 1, size), (1, 1))
    windows[places] = source


def clear_padding(out: Bytes, ends: Ints) -> None:
    """Zero the 8 bytes that end at each of ``ends`` (all multiples of 8)."""
    out[: out.size // 8 * 8].view(np.uint64)[ends // 8 - 1] = 0


def join_rows(columns: Sequence[tuple[Ints, Bytes]]) -> Bytes:
    """Return the rows back to back."""
    total = sum(int(offsets[-1]) for offsets, _ in columns)
    if not total:
        return np.zeros(0, np.uint8)
    arrays = [_large_binary(offsets, data) for offsets, data in columns]
    nothing = _large_binary(np.zeros(2, np.int64), np.zeros(0, np.uint8))[0]  # without pandas
    joined = pc.binary_join_element_wise(*arrays, nothing)
    return np.frombuffer(joined.buffers()[2], np.uint8, total)


def _large_binary(offsets: Ints, data: Bytes) -> pa.Array:
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_binary(), offsets.size - 1, buffers)
