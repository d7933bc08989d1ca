"""Copy many byte ranges to many places of one buffer: the mirror of ``kernels.ranges``.

Layout: range ``i`` is ``data[starts[i]:starts[i] + sizes[i]]`` and goes to ``out[places[i]:]``.
Limits: the caller has checked that every range lies inside ``data`` and ``out``; places ascend and
do not overlap. Equal sizes at equal distances are one strided copy; of the rest, small ranges go
byte by byte through their indices, large ones in a loop per range: ranges are the parts of chunks,
thousands in a page and not millions.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from lance_nb.encodings.kernels.ranges import concatenate, ragged_indices, rows

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]

_SMALL = 32  # bytes of a range, on average, that are indexed sooner than sliced


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
    far = np.diff(places)
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
