"""Encodings in words: how a page is laid out and compressed, for people and for inspection tables.

Examples: ``mini_block(inline_bitpacking[64])``, ``full_zip(fixed_size_list[768](flat[32]))``,
``mini_block(inline_bitpacking[32], dictionary: general[lz4](variable))``, ``constant(null)``.

Limits: at most ``DEPTH_MAX`` nested encodings are spelled out.
Source: messages PageLayout and CompressiveEncoding of lance.encodings21.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lance_nb._pb import encodings21

DEPTH_MAX = 20
_SCHEMES = {
    encodings21.COMPRESSION_ALGORITHM_LZ4: "lz4",
    encodings21.COMPRESSION_ALGORITHM_ZSTD: "zstd",
}
# arm -> (parameter shown in brackets, name of the field with the inner encoding)
_ARMS: dict[str, tuple[Callable[[Any], object] | None, str]] = {
    "flat": (lambda arm: arm.bits_per_value, ""),
    "variable": (None, ""),
    "constant": (None, ""),
    "out_of_line_bitpacking": (lambda arm: arm.values.flat.bits_per_value, ""),
    "inline_bitpacking": (lambda arm: arm.uncompressed_bits_per_value, ""),
    "fsst": (None, "values"),
    "dictionary": (None, "items"),
    "rle": (None, "values"),
    "byte_stream_split": (None, "values"),
    "general": (lambda arm: _SCHEMES.get(arm.compression.scheme, "?"), "values"),
    "fixed_size_list": (lambda arm: arm.items_per_value, "values"),
    "packed_struct": (lambda arm: len(arm.bits_per_value), "values"),
    "variable_packed_struct": (lambda arm: len(arm.fields), ""),
}


def describe_encoding(encoding: encodings21.CompressiveEncoding) -> str:
    """Spell out a compressive encoding, outermost first."""
    opened = 0
    text = ""
    while opened < DEPTH_MAX:
        arm = encoding.WhichOneof("compression")
        if arm is None:
            return text + "?" + ")" * opened
        message = getattr(encoding, arm)
        parameter, inner = _ARMS.get(arm, (None, ""))
        text += arm if parameter is None else f"{arm}[{parameter(message)}]"
        if not inner:
            return text + ")" * opened
        text += "("
        opened += 1
        encoding = getattr(message, inner)
    return text + "..." + ")" * opened


def describe_layout(layout: encodings21.PageLayout) -> str:
    """Spell out a page layout with its encodings."""
    match layout.WhichOneof("layout"):
        case "mini_block_layout":
            page = layout.mini_block_layout
            text = describe_encoding(page.value_compression)
            if page.HasField("dictionary"):
                text += f", dictionary: {describe_encoding(page.dictionary)}"
            return f"mini_block({text})"
        case "full_zip_layout":
            return f"full_zip({describe_encoding(layout.full_zip_layout.value_compression)})"
        case "constant_layout":
            page_constant = layout.constant_layout
            return "constant(inline)" if page_constant.HasField("inline_value") else "constant"
        case "blob_layout":
            return "blob"
    return "?"
