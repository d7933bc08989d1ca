"""Whether the values of a page become a dictionary and indices into it.

Strings do, and (from file version 2.2 on) values of 64 and 128 bits, when that is smaller by a
margin; Arrow dictionary arrays come with theirs. A sample of 16 thousand values is looked at first,
because hashing a page of different values would cost more than storing it.

Layout: indices are u32, or have the width of the Arrow keys.
Limits: ``dict-divisor`` (2: at most half as many items as values), ``dict-size-ratio`` (0.8 of the
size without) and ``dict-max-size`` of the field's metadata bound it; at most 2**31 - 1 items.
Source: pylance 14.0.2, field metadata ``lance-encoding:dict-*``.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lance_nb.encodings.base import DataBlock, Dictionary, FixedWidth, VariableWidth
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.leaf_blocks import from_arrow
from lance_nb.encodings.statistics import BLOCK, SAMPLE, Measured, data_size

_DIVISOR = 2
_SIZE_RATIO = 0.8
_MAX_SIZE_BYTES = 8 << 20
_LEAST_VALUES = 64  # below, nothing is worth a dictionary
_FIRST_SAMPLE = 2048
_SAMPLE_RUN = 256
_SAMPLE_SHARE = 0.6  # of different values in the sample: from here on the page is not hashed


def to_dictionary(measured: Measured, options: EncodingOptions) -> Dictionary | None:
    """Return the values as a dictionary if they are one, or should become one."""
    block = measured.block
    if isinstance(block, Dictionary):
        return block
    plain = _plain_bytes(measured, options)
    if plain is None or measured.num_values < _LEAST_VALUES:
        return None
    if options.compression == "none":
        return None
    if not _may_pay(measured, plain, options):
        return None
    array = _as_array(block)
    encoded = array.dictionary_encode()
    items = from_arrow(encoded.dictionary)
    if not _pays(measured.num_values, plain, items, options):
        return None
    indices = np.frombuffer(encoded.indices.buffers()[1], np.uint8, 4 * measured.num_values)
    return Dictionary(measured.num_values, FixedWidth(32, measured.num_values, indices), items)


def _plain_bytes(measured: Measured, options: EncodingOptions) -> float | None:
    """Estimate the size without a dictionary; None for values that never get one."""
    block = measured.block
    if isinstance(block, VariableWidth):
        return float(measured.size_bytes + block.offsets.itemsize * block.num_values)
    if not isinstance(block, FixedWidth):
        return None
    if block.bits_per_value == 128:
        return float(block.data.size)
    if block.bits_per_value != 64 or options.file_version < (2, 2):
        return None
    widths = None if measured.is_wide else measured.block_widths
    packed = block.data.size if widths is None else int(widths.sum()) * BLOCK // 8
    runs = measured.sampled_run_share * block.num_values * 9
    return float(min(packed, runs))


def _may_pay(measured: Measured, plain: float, options: EncodingOptions) -> bool:
    """Look at samples, a small one first: runs of neighbours from all over the page."""
    count = measured.num_values
    for wanted in (_FIRST_SAMPLE, SAMPLE):
        whole = _as_array(measured.block)
        sample = whole if count <= wanted else _sampled(whole, wanted)
        distinct = sample.dictionary_encode().dictionary
        if len(distinct) > _SAMPLE_SHARE * len(sample):
            return False
        if not _pays(count, plain, from_arrow(distinct), options):
            return False
    return True


def _sampled(values: pa.Array, wanted: int) -> pa.Array:
    """Return runs of 256 values, evenly spread."""
    last = len(values) - _SAMPLE_RUN
    starts = np.linspace(0, last, wanted // _SAMPLE_RUN).astype(np.int64).tolist()
    return pa.concat_arrays([values.slice(start, _SAMPLE_RUN) for start in starts])


def _pays(count: int, plain: float, items: DataBlock, options: EncodingOptions) -> bool:
    """Tell whether indices and items are clearly smaller than the plain values."""
    if items.num_values > count // (options.dict_divisor or _DIVISOR):
        return False
    item_bytes = data_size(items)
    if isinstance(items, VariableWidth):
        if item_bytes > (options.dict_max_size_bytes or _MAX_SIZE_BYTES):
            return False
        item_bytes += items.offsets.itemsize * items.num_values
    index_bits = max(1, (items.num_values - 1).bit_length())
    ratio = options.dict_size_ratio or _SIZE_RATIO
    return item_bytes + count * index_bits / 8 < ratio * plain


def _as_array(block: DataBlock) -> pa.Array:
    """View a block as an Arrow array that can be hashed."""
    if isinstance(block, VariableWidth):
        kind = pa.large_binary() if block.offsets.itemsize == 8 else pa.binary()
        buffers = [None, pa.py_buffer(block.offsets), pa.py_buffer(block.data)]
        return pa.Array.from_buffers(kind, block.num_values, buffers)
    bits = block.bits_per_value if isinstance(block, FixedWidth) else 0
    kind = pa.uint64() if bits == 64 else pa.binary(bits // 8)
    data = block.data if isinstance(block, FixedWidth) else np.zeros(0, np.uint8)
    return pa.Array.from_buffers(kind, block.num_values, [None, pa.py_buffer(data)])
