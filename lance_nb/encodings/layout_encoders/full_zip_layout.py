"""Write full-zip pages: wide values, structs with strings, and what no chunk can hold.

Layout: see ``layouts.full_zip_layout``.
Limits: values of whole bytes. Source: message FullZipLayout of lance.encodings21 (pylance 14.0.2).
"""

from __future__ import annotations

from dataclasses import replace

from lance_nb.encodings.base import (
    AllNull,
    Dictionary,
    FixedWidth,
    PackedStruct,
)
from lance_nb.encodings.compress_base import Compressors, EncodedPage, LeafPage
from lance_nb.encodings.statistics import bits_per_value
from lance_nb.encodings.zip_assembly import zip_page

_WIDE_BYTES = 256  # of the widest value: from here on chunks would hold too few values
_PRIORITY = 1
_PRIORITY_WIDE = 20
_PRIORITY_ASKED = 50


class FullZipLayoutEncoder:
    """Compress; see the module."""

    def nominate(self, page: LeafPage) -> int:
        """Take wide values, structs with strings, and what no other layout can hold."""
        block, options = page.measured.block, page.options
        if isinstance(block, AllNull | Dictionary) or (bits_per_value(block) or 8) % 8:
            return 0
        if isinstance(block, PackedStruct):
            # Structs of plain numbers only belong into chunks, whatever their width.
            is_plain = all(isinstance(child, FixedWidth) for child in block.children)
            return 0 if is_plain or not options.has_large_chunks else _PRIORITY_ASKED
        if options.structural == "fullzip":
            return _PRIORITY_ASKED
        return _PRIORITY_WIDE if page.measured.widest_bytes >= _WIDE_BYTES else _PRIORITY

    def encode(self, page: LeafPage, compressors: Compressors) -> EncodedPage | None:
        """Compress the values one by one and zip them with their levels."""
        options = page.options
        if options.compression == "lz4" and page.valid_slots is not None:
            options = replace(options, compression="zstd")  # LZ4 has no form for nulls here
        compressed = compressors.compress_values(page.measured, options)
        return zip_page(compressed, page.levels)
