"""Different values of a block, in the order in which they first appear: whether a dictionary pays.

A dictionary is worth it when indices and items are clearly smaller than the values. Samples tell
most pages where it is not, a small one first: runs of neighbours from all over the page. Only what
stands this test is numbered whole.

How: the compiled loop keeps a table of hashes, and gives up when there are too many values, or too
many collisions of their hashes (a bound on what hostile values can cost); Arrow numbers them then,
and wherever the loop was not built. Both give the same numbers.

Limits: values of 64 or 128 bits, and of variable width.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lance_nb import arrow_compute as pc
from lance_nb.encodings.arrow_arrays import from_arrow
from lance_nb.encodings.base import DataBlock, Dictionary, FixedWidth, Ints, VariableWidth
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.kernels import compiled, memory, ranges
from lance_nb.encodings.statistics import SAMPLE, data_size
from lance_nb.value_classes import dataclass

_DIVISOR = 2  # of the number of values: the most items that are taken
_SIZE_RATIO = 0.8
_BYTES_MAX = 8 << 20
_FIRST_SAMPLE = 2048
_SAMPLE_RUN = 256
_SAMPLE_SHARE = 0.6  # of different values in the sample: from here on the page is not hashed
_SLOTS_MIN = 1 << 10
_TOO_MANY = -1


@dataclass(frozen=True, slots=True)
class Worth:
    """What a dictionary has to beat: ``plain`` bytes of ``count`` values without one."""

    count: int
    plain: float
    options: EncodingOptions

    @property
    def most_items(self) -> int:
        """The most items that are taken."""
        return self.count // (self.options.dict_divisor or _DIVISOR)

    def pays(self, items: DataBlock) -> bool:
        """Tell whether indices and items are clearly smaller than the plain values."""
        if items.num_values > self.most_items:
            return False
        item_bytes = data_size(items)
        if isinstance(items, VariableWidth):
            if item_bytes > (self.options.dict_max_size_bytes or _BYTES_MAX):
                return False
            item_bytes += items.offsets.itemsize * items.num_values
        index_bits = max(1, (items.num_values - 1).bit_length())
        ratio = self.options.dict_size_ratio or _SIZE_RATIO
        return item_bytes + self.count * index_bits / 8 < ratio * self.plain


def pays_off(
    num_items: Ints, item_bytes: int, count: int, plain: npt.NDArray[np.float64]
) -> npt.NDArray[np.bool_]:
    """Tell the same of many columns of ``count`` values, with default options."""
    index_bits = np.maximum(1, np.frexp(num_items - 1)[1])
    smaller = num_items * item_bytes + count * index_bits / 8 < _SIZE_RATIO * plain
    is_worth_it: npt.NDArray[np.bool_] = (num_items <= count // _DIVISOR) & smaller
    return is_worth_it


def numbered(block: DataBlock, worth: Worth) -> Dictionary | None:
    """Return the values as a dictionary, None if that is not worth it."""
    for sample_size in (_FIRST_SAMPLE, SAMPLE):
        if block.num_values < 2 * sample_size:
            break  # the whole costs little more
        sample = _number(
            block, _spread(block.num_values, sample_size), int(_SAMPLE_SHARE * sample_size)
        )
        if sample is None or not worth.pays(sample.items):
            return None
    numbered_values = _number(block, None, worth.most_items)
    return (
        numbered_values
        if numbered_values is not None and worth.pays(numbered_values.items)
        else None
    )


def _spread(count: int, num_wanted: int) -> Ints:
    """Return where runs of 256 values begin, evenly spread."""
    runs = num_wanted // _SAMPLE_RUN
    return np.arange(runs, dtype=np.int64) * (count - _SAMPLE_RUN) // (runs - 1)


def _number(block: DataBlock, starts: Ints | None, most: int) -> Dictionary | None:
    """Give each value of these runs a number, or of all; None if too many differ."""
    if not isinstance(block, FixedWidth | VariableWidth) or most < 1:
        return None
    loops = compiled.loops
    if loops is None:
        return _number_by_arrow(block, starts, most)
    run = block.num_values if starts is None else _SAMPLE_RUN
    begins = np.zeros(1, np.int64) if starts is None else starts
    table = np.zeros(max(_SLOTS_MIN, 1 << (2 * most - 1).bit_length()), np.uint64)
    numbers = memory.allocate(4 * run * begins.size)
    firsts = np.empty(most, np.int64)
    offsets = block.offsets if isinstance(block, VariableWidth) else None
    size = block.bits_per_value // 8 if isinstance(block, FixedWidth) else 0
    num_distinct = loops.number_values(
        block.data, offsets, size, begins, run, table, numbers.view(np.int32), firsts
    )
    if num_distinct == _TOO_MANY:
        return None
    if num_distinct < 0:
        return _number_by_arrow(block, starts, most)
    indices = FixedWidth(32, run * begins.size, numbers)
    return Dictionary(indices.num_values, indices, _taken(block, firsts[:num_distinct]))


def _taken(block: FixedWidth | VariableWidth, positions: Ints) -> DataBlock:
    """Return some values of a block."""
    if isinstance(block, FixedWidth):
        size = block.bits_per_value // 8
        return FixedWidth(
            block.bits_per_value, positions.size, block.data.reshape(-1, size)[positions].ravel()
        )
    starts = block.offsets[positions].astype(np.int64)
    sizes = block.offsets[positions + 1] - starts
    ends = ranges.starts_of(sizes)
    offsets = ends if block.offsets.itemsize == 8 else ends.astype(np.int32)
    return VariableWidth(positions.size, offsets, ranges.concatenate(block.data, starts, sizes))


def _number_by_arrow(
    block: FixedWidth | VariableWidth, starts: Ints | None, most: int
) -> Dictionary | None:
    values = _as_array(block)
    if starts is not None:
        values = pa.concat_arrays([values.slice(start, _SAMPLE_RUN) for start in starts.tolist()])
    encoded = pc.dictionary_encode(values)
    if len(encoded.dictionary) > most:
        return None
    count = len(values)
    indices = np.frombuffer(encoded.indices.buffers()[1], np.uint8, 4 * count)
    return Dictionary(count, FixedWidth(32, count, indices), from_arrow(encoded.dictionary))


def _as_array(block: FixedWidth | VariableWidth) -> pa.Array:
    """View a block as an Arrow array that can be hashed."""
    if isinstance(block, VariableWidth):
        kind = pa.large_binary() if block.offsets.itemsize == 8 else pa.binary()
        buffers = [None, pa.py_buffer(block.offsets), pa.py_buffer(block.data)]
        return pa.Array.from_buffers(kind, block.num_values, buffers)
    kind = pa.uint64() if block.bits_per_value == 64 else pa.binary(block.bits_per_value // 8)
    return pa.Array.from_buffers(kind, block.num_values, [None, pa.py_buffer(block.data)])
