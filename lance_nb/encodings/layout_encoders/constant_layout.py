"""Write pages of one value, or of none.

Layout: see ``layouts.constant_layout``. Beside a value levels are raw; without one they are
compressed from file version 2.2 on.
Limits: a value from file version 2.2 on.
Source: message ConstantLayout of lance.encodings21; pylance 14.0.2.
"""

from __future__ import annotations

import numpy as np

from lance_nb._pb import encodings21
from lance_nb.encodings.base import (
    AllNull,
    Bytes,
    FixedWidth,
)
from lance_nb.encodings.compress_base import Compressors, EncodedPage, LeafPage, PageLevels
from lance_nb.encodings.single_value import (
    inline_bytes,
    scalar_buffer,
    single_value,
)

_PRIORITY = 100
_LEVEL_BITS = 16  # of a raw level: beside them, narrow values are smaller when they are packed
_SMALL_WITH_LEVELS = (1, 8, 16, 64, 128)  # bits: packed, or a dictionary of one item


class ConstantLayoutEncoder:
    """Compress; see the module."""

    def nominate(self, page: LeafPage) -> int:
        """Take pages without any value, and those that may have a single one."""
        return _PRIORITY * (isinstance(page.measured.block, AllNull) or _may_have_one(page))

    def encode(self, page: LeafPage, compressors: Compressors) -> EncodedPage | None:
        """Write the value, and the levels where the layers do not say everything."""
        levels = page.levels
        message = encodings21.ConstantLayout(layers=levels.layer_enums)
        if isinstance(page.measured.block, AllNull):
            buffers = _all_null_levels(page, message, compressors)
        else:
            value = single_value(page.measured.block, page.valid_slots)
            if value is None:
                return None
            buffers = _raw_levels(levels)
            inline = inline_bytes(value)
            if inline is None:
                buffers.insert(0, scalar_buffer(value))
            else:
                message.inline_value = inline
        layout = encodings21.PageLayout(constant_layout=message)
        return EncodedPage(layout, tuple(buffers), levels.num_rows)


def _may_have_one(page: LeafPage) -> bool:
    """Tell whether a single value is worth looking for: beside a value levels stay raw."""
    block, options = page.measured.block, page.options
    if not options.has_large_chunks or options.structural is not None:
        return False
    if page.levels.repetition is None and page.levels.definition is None:
        return True
    if not isinstance(block, FixedWidth) or block.bits_per_value in _SMALL_WITH_LEVELS:
        return False
    widths = page.measured.block_widths
    return widths is None or int(widths.max(initial=0)) > _LEVEL_BITS


def _raw_levels(levels: PageLevels) -> list[Bytes]:
    """Return repetition and definition buffers, none when the page has no levels at all."""
    if levels.repetition is None and levels.definition is None:
        return []
    empty = np.zeros(0, np.uint8)
    both = (levels.repetition, levels.definition)
    return [empty if found is None else found.view(np.uint8) for found in both]


def _all_null_levels(
    page: LeafPage, message: encodings21.ConstantLayout, compressors: Compressors
) -> list[Bytes]:
    """Return the level buffers of a page without values, compressed from file version 2.2 on."""
    levels = page.levels
    if levels.layers == (encodings21.REPDEF_NULLABLE_ITEM,):
        return []
    buffers = _raw_levels(levels)
    if not page.options.has_large_chunks:
        return buffers
    for number, name in enumerate(("rep", "def")[: len(buffers)]):
        count = buffers[number].size // 2
        if not count:
            continue
        compressed = compressors.compress_blocks(
            FixedWidth(16, count, buffers[number]), np.array([count]), page.options.for_levels
        )
        getattr(message, f"{name}_compression").CopyFrom(compressed.encoding)
        setattr(message, f"num_{name}_values", count)
        whole = compressed.blocks.joined()
        first, size = int(whole.starts[0]), int(whole.sizes[0])
        buffers[number] = whole.data[first : first + size]
    return buffers
