"""One page of leaf values with their levels, turned into a layout message and buffers.

The door of the writing side: the file floor builds ``PageLevels``, reads ``EncodingOptions`` from
the field, decides where pages end, and calls ``encode_page``.

Worked example, a nullable int32 column ``[7, null]``::

    levels = PageLevels((3,), None, np.array([0, 1], np.uint16), 2, 1, 2)
    encode_page(pa.array([7, None], pa.int32()), levels, EncodingOptions(file_version=(2, 2)))

Limits: file versions 2.1 and 2.2; a page ends with a row. Source: pylance 14.0.2.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lance_nb.encodings import choose
from lance_nb.encodings.base import AllNull, DataBlock, FixedWidth, PackedStruct
from lance_nb.encodings.compress_base import EncodedPage, LeafPage, PageLevels
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.leaf_blocks import from_arrow
from lance_nb.encodings.statistics import Measured, bits_per_value
from lance_nb.errors import InternalError, NotSupportedError

__all__ = ["EncodedPage", "EncodingOptions", "PageLevels", "encode_page"]


def encode_page(leaf: pa.Array, levels: PageLevels, options: EncodingOptions) -> EncodedPage:
    """Encode one page. ``leaf`` has one slot per visible entry; its validity is not looked at.

    Raises NotSupportedError for values that no layout of the file version can hold.
    """
    block = AllNull(len(leaf)) if _is_all_null(levels, len(leaf)) else from_arrow(leaf)
    return encode_block(block, levels, options)


def encode_block(block: DataBlock, levels: PageLevels, options: EncodingOptions) -> EncodedPage:
    """Encode one page of values that are a data block already."""
    if isinstance(block, PackedStruct):
        _check_packed(block, options)
    visible = num_visible(levels)
    if visible != block.num_values:
        raise InternalError(f"{visible} levels with a value, but {block.num_values} values")
    return choose.encode(LeafPage(Measured(block), levels, options))


def _check_packed(block: PackedStruct, options: EncodingOptions) -> None:
    """Refuse children that rows cannot hold. Raises NotSupportedError."""
    widths = [bits_per_value(child) for child in block.children]
    if any(bits is not None and bits % 8 for bits in widths):
        raise NotSupportedError("a packed struct cannot hold booleans: its rows are whole bytes")
    is_plain = all(isinstance(child, FixedWidth) for child in block.children)
    if not is_plain and not options.has_large_chunks:
        raise NotSupportedError(
            "a packed struct with strings or fixed-size lists needs file version 2.2"
        )


def num_visible(levels: PageLevels) -> int:
    """Count the entries that have a leaf slot."""
    if levels.definition is None:
        return levels.num_entries
    return int(np.count_nonzero(levels.definition <= levels.max_visible_definition))


def _is_all_null(levels: PageLevels, num_values: int) -> bool:
    """Tell whether no entry has a value: all are null, or lists are empty."""
    if not num_values:
        return True
    return levels.definition is not None and bool(levels.definition.all())
