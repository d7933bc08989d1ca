"""Put full-zip pages together: control word and value of every entry, and the row index.

The mirror of ``kernels.zip_entries``; the layout is described in ``layouts/full_zip_layout``.

Limits: at most 2**32 - 1 entries. Without levels a page of fixed-width values is the values
themselves, not copied.
Source: message FullZipLayout of lance.encodings21; byte layout verified against pylance 14.0.2.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lance_nb._pb import encodings21
from lance_nb.encodings.base import Bytes, FixedWidth, Ints, VariableWidth
from lance_nb.encodings.compress_base import CompressedValues, EncodedPage, PageLevels
from lance_nb.encodings.kernels import memory, ranges, scatter
from lance_nb.encodings.kernels.join import join_rows
from lance_nb.encodings.kernels.ranges import starts_of

_ENTRIES_MAX = (1 << 32) - 1
Mask = npt.NDArray[np.bool_]


def zip_page(compressed: CompressedValues, levels: PageLevels) -> EncodedPage | None:
    """Zip values with their levels; None when there are too many entries."""
    if levels.num_entries > _ENTRIES_MAX:
        return None
    values = compressed.values
    control = _control_words(levels)
    message = encodings21.FullZipLayout(
        bits_rep=_bits(levels.repetition),
        bits_def=_bits(levels.definition),
        num_items=levels.num_entries,
        num_visible_items=values.num_values,
        value_compression=compressed.encoding,
        layers=levels.layer_enums,
    )
    if isinstance(values, FixedWidth):
        message.bits_per_value = values.bits_per_value
        data, starts = _zip_fixed(values, control, levels)
    else:
        message.bits_per_offset = 8 * values.offsets.dtype.itemsize
        data, starts = _zip_variable(values, control, levels)
    buffers = [data]
    if levels.repetition is not None or isinstance(values, VariableWidth):
        buffers.append(_row_index(starts, levels))
    layout = encodings21.PageLayout(full_zip_layout=message)
    return EncodedPage(layout, tuple(buffers), levels.num_rows)


def _bits(levels: npt.NDArray[np.uint16] | None) -> int:
    return int(levels.max()).bit_length() if levels is not None and levels.size else 0


def _control_words(levels: PageLevels) -> Bytes:
    """Return the control word of every entry as rows of 0, 1, 2 or 4 bytes."""
    bits_def = _bits(levels.definition)
    bits = _bits(levels.repetition) + bits_def
    width = 0 if not bits else 1 if bits <= 8 else 2 if bits <= 16 else 4
    if not width:
        return np.zeros((levels.num_entries, 0), np.uint8)
    words = np.zeros(levels.num_entries, np.uint32)
    if levels.repetition is not None:
        words |= levels.repetition.astype(np.uint32) << np.uint32(bits_def)
    if levels.definition is not None:
        words |= levels.definition
    return words.astype(f"<u{width}").view(np.uint8).reshape(-1, width)


def _visible(levels: PageLevels) -> Mask | None:
    if levels.definition is None:
        return None
    shown: Mask = levels.definition <= levels.max_visible_definition
    return None if bool(shown.all()) else shown


def _zip_fixed(values: FixedWidth, control: Bytes, levels: PageLevels) -> tuple[Bytes, Ints]:
    """Return the entries, and where each begins, with the total as last item.

    Without control words nobody asks where: no row index is needed.
    """
    size, width = values.bits_per_value // 8, control.shape[1]
    visible = _visible(levels)
    if visible is None and not width:
        return values.data, starts_of(np.zeros(0, np.int64))
    if visible is None:
        starts = np.arange(levels.num_entries + 1, dtype=np.int64) * (size + width)
        out = memory.allocate(int(starts[-1])).reshape(-1, size + width)
        out[:, :width] = control
        out[:, width:] = values.data.reshape(-1, size)
        return out.ravel(), starts
    starts = starts_of(width + size * visible.astype(np.int64))
    flat = memory.allocate(int(starts[-1]))
    scatter.write_rows(flat, starts[:-1], control)
    scatter.write_rows(flat, starts[:-1][visible] + width, values.data.reshape(-1, size))
    return flat, starts


def _zip_variable(values: VariableWidth, control: Bytes, levels: PageLevels) -> tuple[Bytes, Ints]:
    """Return the entries, and where each begins; null leaves have no length and no bytes.

    What lies between two values (control words of entries without one, then control word and
    length of the next) is one *head*; Arrow joins heads and values pair by pair.
    """
    word = values.offsets.dtype.itemsize
    count, width = levels.num_entries, control.shape[1]
    filled = np.ones(count, np.bool_) if levels.definition is None else levels.definition == 0
    visible = _visible(levels)
    kept = filled if visible is None else filled[visible]
    lengths = np.diff(values.offsets)[kept]
    sizes = np.zeros(count, np.int64)
    sizes[filled] = lengths
    heads = memory.allocate(count * (width + word)).reshape(count, width + word)
    heads[:, :width] = control
    heads[:, width:] = sizes.astype(f"<u{word}").view(np.uint8).reshape(count, word)
    head_bytes = heads.ravel()
    if not bool(filled.all()):
        keep = np.ones((count, width + word), np.bool_)
        keep[~filled, width:] = False
        head_bytes = heads[keep]
    head_ends = starts_of(np.where(filled, width + word, width))
    ends = np.concatenate(([0], head_ends[1:][filled], head_ends[-1:]))
    data = join_rows(((ends, head_bytes), _values_with_end(values, kept, lengths)))
    return data, head_ends + starts_of(sizes)


def _values_with_end(values: VariableWidth, kept: Mask, lengths: Ints) -> tuple[Ints, Bytes]:
    """Return the kept values and an empty one behind them, without copying where none is left out.

    Bytes under a null are left out too.
    """
    ends = starts_of(lengths.astype(np.int64))
    data = values.data
    if int(ends[-1]) != int(values.offsets[-1]):
        starts = values.offsets[:-1][kept].astype(np.int64)
        data = ranges.concatenate(data, starts, lengths.astype(np.int64))
    return np.append(ends, ends[-1]), data


def _row_index(starts: Ints, levels: PageLevels) -> Bytes:
    """Return where each row begins and the total, in the narrowest integers that hold it."""
    total = int(starts[-1])
    if levels.repetition is not None:
        top = int(levels.repetition.max()) if levels.repetition.size else 1
        begins = np.flatnonzero(levels.repetition == top)
        starts = np.append(starts[begins], total)
    width = 1 if total < 1 << 8 else 2 if total < 1 << 16 else 4 if total < 1 << 32 else 8
    return starts.astype(f"<u{width}").view(np.uint8)
