"""Which codec and which layout a page is written with: each of the tables below nominates itself.

Every codec looks at the statistics of the values and at the options of the field and answers with
a priority; the highest wins. So a new codec needs its own module and its line in a table, and no
rule here. Reading has tables of its own (``registry``) and loads nothing of this.

Limits: something always takes fixed and variable width (flat and variable), so choosing fails only
for a block that has no such form.
"""

from __future__ import annotations

from dataclasses import dataclass

from lance_nb.encodings.base import DataBlock, Ints
from lance_nb.encodings.compress_base import (
    BlockCompressor,
    ChunkCompressor,
    CompressedBlocks,
    CompressedChunks,
    CompressedValues,
    Compressors,
    EncodedPage,
    LayoutEncoder,
    LeafPage,
    ValueCompressor,
)
from lance_nb.encodings.compressors.byte_stream_split import ByteStreamSplitCompressor
from lance_nb.encodings.compressors.fixed_size_list import FixedSizeListCompressor
from lance_nb.encodings.compressors.flat import FlatCompressor
from lance_nb.encodings.compressors.fsst import FsstCompressor
from lance_nb.encodings.compressors.general import GeneralCompressor
from lance_nb.encodings.compressors.inline_bitpacking import InlineBitpackingCompressor
from lance_nb.encodings.compressors.out_of_line_bitpacking import OutOfLineBitpackingCompressor
from lance_nb.encodings.compressors.packed_struct import PackedStructCompressor
from lance_nb.encodings.compressors.rle import RleCompressor
from lance_nb.encodings.compressors.variable import VariableCompressor
from lance_nb.encodings.compressors.variable_packed_struct import VariablePackedStructCompressor
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.layout_encoders.constant_layout import ConstantLayoutEncoder
from lance_nb.encodings.layout_encoders.full_zip_layout import FullZipLayoutEncoder
from lance_nb.encodings.layout_encoders.mini_block_layout import MiniBlockLayoutEncoder
from lance_nb.encodings.statistics import Measured
from lance_nb.errors import NotSupportedError

COMPRESSORS: dict[str, ChunkCompressor | BlockCompressor | ValueCompressor] = {
    "flat": FlatCompressor(),
    "variable": VariableCompressor(),
    "out_of_line_bitpacking": OutOfLineBitpackingCompressor(),
    "inline_bitpacking": InlineBitpackingCompressor(),
    "fsst": FsstCompressor(),
    "rle": RleCompressor(),
    "byte_stream_split": ByteStreamSplitCompressor(),
    "general": GeneralCompressor(),
    "fixed_size_list": FixedSizeListCompressor(),
    "packed_struct": PackedStructCompressor(),
    "variable_packed_struct": VariablePackedStructCompressor(),
}

LAYOUT_ENCODERS: dict[str, LayoutEncoder] = {
    "mini_block_layout": MiniBlockLayoutEncoder(),
    "constant_layout": ConstantLayoutEncoder(),
    "full_zip_layout": FullZipLayoutEncoder(),
}

_CHUNKS = [codec for codec in COMPRESSORS.values() if isinstance(codec, ChunkCompressor)]
_BLOCKS = [codec for codec in COMPRESSORS.values() if isinstance(codec, BlockCompressor)]
_VALUES = [codec for codec in COMPRESSORS.values() if isinstance(codec, ValueCompressor)]
_LAYOUTS = list(LAYOUT_ENCODERS.values())


@dataclass(frozen=True, slots=True)
class _Chooser:
    """The ``Compressors`` handed to codecs and layouts."""

    def compress_chunks(self, measured: Measured, options: EncodingOptions) -> CompressedChunks:
        """Compress into mini-block chunks."""
        best = max(_CHUNKS, key=lambda codec: codec.nominate_chunks(measured, options))
        if not best.nominate_chunks(measured, options):
            raise _refused(measured, "mini-block chunks")
        return best.compress_chunks(measured, options, self)

    def compress_blocks(
        self, block: DataBlock, num_values: Ints, options: EncodingOptions
    ) -> CompressedBlocks:
        """Compress consecutive runs of values, each into one opaque block."""
        measured = Measured(block)
        best = max(_BLOCKS, key=lambda codec: codec.nominate_blocks(measured, num_values, options))
        if not best.nominate_blocks(measured, num_values, options):
            raise _refused(measured, "one block")
        return best.compress_blocks(measured, num_values, options, self)

    def compress_values(self, measured: Measured, options: EncodingOptions) -> CompressedValues:
        """Compress value by value."""
        best = max(_VALUES, key=lambda codec: codec.nominate_values(measured, options))
        if not best.nominate_values(measured, options):
            raise _refused(measured, "single values")
        return best.compress_values(measured, options, self)


def encode(page: LeafPage) -> EncodedPage:
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
