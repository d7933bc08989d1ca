"""Put mini-block pages together: headers, levels and values of all chunks, words, row index.

The mirror of ``chunk_table``; the layout of a chunk is described in ``layouts/mini_block_layout``.

Limits: in file version 2.1 a chunk is at most 32 KiB and its parts are at most 65,535 bytes; in 2.2
that bound holds for levels only. A page that does not fit is not an error: the answer is None, and
the page is stored in another layout.
Source: message MiniBlockLayout of lance.encodings21; byte layout verified against pylance 14.0.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lance_nb.encodings.base import Bytes, Ints, Levels
from lance_nb.encodings.compress_base import PageLevels, Parts
from lance_nb.encodings.kernels import memory, scatter
from lance_nb.encodings.kernels.ranges import starts_of

_U16_MAX = (1 << 16) - 1
_WORD_UNITS = {False: 1 << 12, True: 1 << 28}  # a chunk's size in units of 8 bytes


@dataclass(frozen=True, slots=True)
class LevelCuts:
    """Which entries belong to each chunk: chunk ``i`` has ``[ends[i - 1], ends[i])``."""

    starts: Ints
    ends: Ints

    @property
    def counts(self) -> Ints:
        """Entries of each chunk."""
        return self.ends - self.starts


def cut_levels(levels: PageLevels, num_values: Ints) -> LevelCuts:
    """Cut after the last value of each chunk; the last chunk takes all trailing entries."""
    ends = np.cumsum(num_values)
    visible = _visible(levels)
    if visible is not None:
        # The place before the first value counts as -1: no value, no entry.
        at = np.concatenate((np.full(1, -1), np.flatnonzero(visible)))
        ends = at[ends] + 1
    ends[-1] = levels.num_entries
    starts = np.concatenate((np.zeros(1, np.int64), ends[:-1]))
    return LevelCuts(starts, ends)


def _visible(levels: PageLevels) -> npt.NDArray[np.bool_] | None:
    if levels.definition is None or levels.repetition is None:
        return None
    shown: npt.NDArray[np.bool_] = levels.definition <= levels.max_visible_definition
    return None if bool(shown.all()) else shown


def row_index(repetition: Levels, cuts: LevelCuts) -> Bytes:
    """Return two u64 per chunk: rows that end in it, and entries after the last row end."""
    top = int(repetition.max()) if repetition.size else 0
    begins = np.flatnonzero(repetition == top)
    low = np.searchsorted(begins, cuts.starts, side="left")
    high = np.searchsorted(begins, cuts.ends, side="left")
    starts_row = repetition[np.minimum(cuts.starts, repetition.size - 1)] == top
    ended = high - low - starts_row
    last_begin = begins[np.maximum(high, 1) - 1]
    leftover = np.where(high > low, cuts.ends - last_begin, cuts.counts)
    # What looks left over was a whole row after all when the next chunk begins with a new one.
    whole = np.append(starts_row[1:], True) & (leftover > 0)
    ended += whole
    leftover[whole] = 0
    pairs = np.stack((ended, leftover), axis=1).astype("<u8")
    return pairs.ravel().view(np.uint8)


def assemble(
    levels: tuple[Parts, ...], level_counts: Ints | None, values: tuple[Parts, ...], large: bool
) -> tuple[Bytes, Ints] | None:
    """Return the chunks back to back and the size of each; None when a chunk is too large.

    ``levels`` are the compressed repetition and definition levels, as far as there are any.
    """
    num_chunks = values[0].parts[0].sizes.size
    head_type = _header_type(len(levels), len(values), large)
    heads = np.zeros(num_chunks, head_type)
    if level_counts is not None:
        if int(level_counts.max()) > _U16_MAX:
            return None
        heads["levels"] = level_counts
    positions = np.full(num_chunks, head_type.itemsize, np.int64)
    placed: list[tuple[Parts, Ints]] = []
    ends: list[Ints] = []
    for number, buffer in enumerate((*levels, *values)):
        sizes = buffer.sizes
        if (number < len(levels) or not large) and int(sizes.max()) > _U16_MAX:
            return None
        heads[f"size{number}"] = sizes
        placed.append((buffer, positions))
        positions = positions + _pad8(sizes)
        ends.append(positions)
    if int(positions.max()) // 8 > _WORD_UNITS[large]:
        return None
    starts = starts_of(positions)
    lying = _as_they_lie(placed, starts)
    if lying is not None:
        _write(lying, starts[:-1], heads, [])
        return lying, positions
    out = memory.allocate(int(starts[-1]))
    for stop in ends:
        scatter.clear_padding(out, starts[:-1] + stop)
    _write(out, starts[:-1], heads, placed)
    return out, positions


def _as_they_lie(placed: list[tuple[Parts, Ints]], starts: Ints) -> Bytes | None:
    """Return the chunks if their codec has put them where they shall be, with room for headers."""
    if len(placed) != 1 or len(placed[0][0].parts) != 1:
        return None
    (parts, positions) = placed[0]
    part = parts.parts[0]
    if part.spare_bytes != positions[0] or part.data.size != starts[-1]:
        return None
    return part.data if np.array_equal(part.starts, starts[:-1] + positions) else None


def _write(
    out: Bytes, starts: Ints, heads: npt.NDArray[np.void], placed: list[tuple[Parts, Ints]]
) -> None:
    head_bytes = heads.view(np.uint8)
    size = heads.dtype.itemsize
    count = heads.size
    scatter.scatter(head_bytes, np.arange(count) * size, np.full(count, size), out, starts)
    for buffer, position in placed:
        places = starts + position
        for part in buffer.parts:
            scatter.scatter(part.data, part.starts, part.sizes, out, places)
            places = places + part.sizes


def chunk_words(sizes: Ints, num_values: Ints, large: bool) -> Bytes:
    """Return the chunk metadata: size and log2 of the values of each chunk, 0 for the last one."""
    logs = np.frexp(num_values)[1] - 1
    logs[-1] = 0
    words = (sizes // 8 - 1) << 4 | logs
    narrow: Bytes = words.astype("<u4" if large else "<u2").view(np.uint8)
    return narrow


def _header_type(num_levels: int, num_buffers: int, large: bool) -> np.dtype[np.void]:
    """Return the record of a chunk header, padded to 8 bytes."""
    wide = "<u4" if large else "<u2"
    kinds = ["<u2"] * (1 + num_levels) + [wide] * num_buffers
    names = ["levels", *(f"size{number}" for number in range(num_levels + num_buffers))]
    offsets = starts_of(np.array([np.dtype(kind).itemsize for kind in kinds]))
    return np.dtype(
        {
            "names": names,
            "formats": kinds,
            "offsets": offsets[:-1].tolist(),
            "itemsize": int(_pad8(offsets[-1])),
        }
    )


def _pad8(sizes: Ints) -> Ints:
    return (sizes + 7) & ~np.int64(7)
