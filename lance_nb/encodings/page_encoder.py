"""One page of leaf values with their levels, turned into a layout message and buffers.

The file floor builds ``PageLevels``, reads ``EncodingOptions`` from the field, decides where pages
end, and calls ``encode_pages``. ``Learned`` goes from one page of a column to the next, so that the
next need not look again for what one has found.

Each codec and each layout of the registry looks at the statistics of the values and at the options
of the field and nominates itself with a priority; the highest wins. A new one needs no rule here.

Worked example, a nullable int32 column ``[7, null]``::

    levels = PageLevels((3,), None, np.array([0, 1], np.uint16), 2, 1, 2)
    encode_page(pa.array([7, None], pa.int32()), levels, EncodingOptions(file_version=(2, 2)))

Limits: file versions 2.1 and 2.2; a page ends with a row. Flat and variable take all values of
fixed and of variable width, so choosing a codec fails only for a block that has no such form.
Source: pylance 14.0.2.
"""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa

from lance_nb._pb import encodings21
from lance_nb.encodings.arrow_arrays import from_arrow
from lance_nb.encodings.base import AllNull, DataBlock, FixedWidth, Ints, PackedStruct
from lance_nb.encodings.compress_base import (
    CompressedBlocks,
    CompressedChunks,
    CompressedValues,
    Compressors,
    EncodedPage,
    LayoutEncoder,
    LeafPage,
    PageLevels,
)
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.registry import CODECS, LAYOUTS, codec_of, layout_of
from lance_nb.encodings.statistics import Learned, Measured, bits_per_value
from lance_nb.encodings.tiny_page import encode_tiny
from lance_nb.errors import InternalError, NotSupportedError
from lance_nb.value_classes import dataclass

__all__ = ["EncodedPage", "EncodingOptions", "Learned", "PageLevels", "encode_page", "encode_pages"]

_BLOB_DEFINITION_SHIFT = np.uint64(16)
_LEVELS_MAX = (1 << 16) - 1  # in one chunk
_CODECS = [codec_of(arm) for arm in CODECS]
_CHUNKS = [codec for codec in _CODECS if codec.has("nominate_chunks")]
_BLOCKS = [codec for codec in _CODECS if codec.has("nominate_blocks")]
_VALUES = [codec for codec in _CODECS if codec.has("nominate_values")]
LAYOUT_ENCODERS = {
    arm: layout for arm in LAYOUTS if isinstance(layout := layout_of(arm), LayoutEncoder)
}
_LAYOUTS = list(LAYOUT_ENCODERS.values())


def encode_page(
    leaf: pa.Array, levels: PageLevels, options: EncodingOptions, learned: Learned | None = None
) -> EncodedPage:
    """Encode one page. ``leaf`` has one slot per visible entry; its validity is not looked at.

    Raises NotSupportedError for values that no layout of the file version can hold.
    """
    tiny = encode_tiny(leaf, levels, options)
    if tiny is not None:
        return tiny
    block = AllNull(len(leaf)) if _is_all_null(levels, len(leaf)) else from_arrow(leaf)
    return encode_block(block, levels, options, learned)


def encode_pages(
    leaf: pa.Array, levels: PageLevels, options: EncodingOptions, learned: Learned | None = None
) -> list[EncodedPage]:
    """Encode rows as one page, or as several where one cannot hold them.

    That is so for lists of booleans with 65 thousand empty lists between two values: no chunk holds
    so many levels, and no other layout holds bits. The pages are in order; rows stay whole.
    """
    repetition = levels.repetition
    try:
        return [encode_page(leaf, levels, options, learned)]
    except NotSupportedError:
        if repetition is None or levels.num_entries <= _LEVELS_MAX or leaf.type != pa.bool_():
            raise
    begins = np.flatnonzero(repetition == repetition.max())
    cuts = [0]
    while cuts[-1] < levels.num_entries:
        fitting = int(np.searchsorted(begins, cuts[-1] + _LEVELS_MAX, side="right")) - 1
        ends = cuts[-1] + _LEVELS_MAX >= levels.num_entries
        after = levels.num_entries if ends else int(begins[fitting])
        if after == cuts[-1]:  # a single row with more entries: hope that its values lie closer
            after = int(begins[fitting + 1]) if fitting + 1 < begins.size else levels.num_entries
        cuts.append(after)
    return [_encode_part(leaf, levels, options, part) for part in itertools.pairwise(cuts)]


def _encode_part(
    leaf: pa.Array, levels: PageLevels, options: EncodingOptions, part: tuple[int, int]
) -> EncodedPage:
    """Encode the rows between two entries."""
    before = num_visible(_cut(levels, 0, part[0]))
    mine = _cut(levels, *part)
    return encode_page(leaf.slice(before, num_visible(mine)), mine, options)


def _cut(levels: PageLevels, start: int, stop: int) -> PageLevels:
    repetition, definition = levels.repetition, levels.definition
    rows = stop - start
    if repetition is not None:
        rows = int(np.count_nonzero(repetition[start:stop] == repetition.max()))
    return PageLevels(
        levels.layers,
        None if repetition is None else repetition[start:stop],
        None if definition is None else definition[start:stop],
        num_entries=stop - start,
        max_visible_definition=levels.max_visible_definition,
        num_rows=rows,
    )


def encode_block(
    block: DataBlock, levels: PageLevels, options: EncodingOptions, learned: Learned | None = None
) -> EncodedPage:
    """Encode one page of values that are a data block already."""
    if isinstance(block, PackedStruct):
        _check_packed(block, options)
    visible = num_visible(levels)
    if visible != block.num_values:
        raise InternalError(f"{visible} levels with a value, but {block.num_values} values")
    return encode_leaf_page(LeafPage(Measured(block, learned), levels, options))


def encode_blob_page(
    positions: Ints,
    sizes: Ints,
    levels: PageLevels,
    file_version: tuple[int, int],
) -> EncodedPage:
    """Encode position (from the start of the file) and size of the payload of every row.

    Layout: see ``layouts/blob_layout``. Raises NotSupportedError for lists of blobs.
    """
    if levels.repetition is not None:
        raise NotSupportedError("lists of blobs cannot be stored")
    places = positions.astype(np.uint64)
    none = sizes == 0
    places[none] = 0
    if levels.definition is not None:
        places[none] = levels.definition[none].astype(np.uint64) << _BLOB_DEFINITION_SHIFT
    count = positions.size
    block = PackedStruct(
        count,
        (
            FixedWidth(64, count, places.view(np.uint8)),
            FixedWidth(64, count, sizes.astype(np.uint64).view(np.uint8)),
        ),
    )
    plain = PageLevels(
        (encodings21.REPDEF_ALL_VALID_ITEM,),
        None,
        None,
        num_entries=count,
        max_visible_definition=0,
        num_rows=count,
    )
    options = EncodingOptions(file_version=file_version, compression="none", is_packed=True)
    inner = encode_block(block, plain, options)
    layout = encodings21.BlobLayout(inner_layout=inner.layout, layers=levels.layers)  # type: ignore[arg-type]
    return EncodedPage(encodings21.PageLayout(blob_layout=layout), inner.buffers, levels.num_rows)


def _check_packed(block: PackedStruct, options: EncodingOptions) -> None:
    """Refuse children that rows cannot hold. Raises NotSupportedError."""
    widths = [bits_per_value(child) for child in block.children]
    if any(bits is not None and bits % 8 for bits in widths):
        raise NotSupportedError("a packed struct cannot hold booleans: its rows are whole bytes")
    is_plain = all(isinstance(child, FixedWidth) for child in block.children)
    if not is_plain and not options.has_large_chunks:
        if any(isinstance(child, PackedStruct) for child in block.children):
            raise NotSupportedError("a packed struct inside a packed struct needs file version 2.2")
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


@dataclass(frozen=True, slots=True)
class _Chooser:
    """The ``Compressors`` handed to codecs and layouts."""

    def compress_chunks(self, measured: Measured, options: EncodingOptions) -> CompressedChunks:
        """Compress into mini-block chunks."""
        best, most = None, 0
        for codec in _CHUNKS:
            priority = codec.nominate_chunks(measured, options)
            if priority > most:
                best, most = codec, priority
        if best is None:
            raise _refused(measured, "mini-block chunks")
        return best.compress_chunks(measured, options, self)

    def compress_blocks(
        self, block: DataBlock, num_values: Ints, options: EncodingOptions
    ) -> CompressedBlocks:
        """Compress consecutive runs of values, each into one opaque block."""
        measured = Measured(block)
        best, most = None, 0
        for codec in _BLOCKS:
            priority = codec.nominate_blocks(measured, num_values, options)
            if priority > most:
                best, most = codec, priority
        if best is None:
            raise _refused(measured, "one block")
        return best.compress_blocks(measured, num_values, options, self)

    def compress_values(self, measured: Measured, options: EncodingOptions) -> CompressedValues:
        """Compress value by value."""
        best = max(_VALUES, key=lambda codec: codec.nominate_values(measured, options))
        if not best.nominate_values(measured, options):
            raise _refused(measured, "single values")
        return best.compress_values(measured, options, self)


def encode_leaf_page(page: LeafPage) -> EncodedPage:
    """Encode the page in the layout that fits it best. Raises NotSupportedError if none does."""
    ranked = sorted(((layout.nominate(page), n) for n, layout in enumerate(_LAYOUTS)), reverse=True)
    for priority, number in ranked:
        encoded = _LAYOUTS[number].encode(page, compressors) if priority else None
        if encoded is not None:
            return encoded
    major, minor = page.options.file_version
    raise NotSupportedError(
        f"no page layout of file version {major}.{minor} can hold these values: "
        f"{page.measured.num_values} values, the longest of {page.measured.longest} bytes"
    )


def _refused(measured: Measured, role: str) -> NotSupportedError:
    return NotSupportedError(
        f"values of kind {type(measured.block).__name__} cannot be stored as {role}"
    )


compressors: Compressors = _Chooser()
