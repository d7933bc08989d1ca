"""Encodings in words: how a page is laid out and compressed, for people and for inspection tables.

Examples: ``mini_block(inline_bitpacking[64])``, ``full_zip(fixed_size_list[768](flat[32]))``,
``mini_block(inline_bitpacking[32], dictionary: general[lz4](variable))``, ``constant(null)``; of
file version 2.0 ``flat[64]``, ``nullable(flat[32])``, ``binary(flat[64])``, ``all_nulls``,
``dictionary(flat[8], binary(flat[64]))``, ``list(flat[64])``, ``packed_struct[2]``. ``no_nulls`` is
not spelled out.

Limits: at most ``DEPTH_MAX`` nested encodings are spelled out.
Source: messages PageLayout and CompressiveEncoding of lance.encodings21, ArrayEncoding of
lance.encodings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lance_nb._pb import encodings, encodings21

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


def describe_array_encoding(encoding: encodings.ArrayEncoding, depth: int = DEPTH_MAX) -> str:
    """Spell out an array encoding, outermost first."""
    if depth == 0:
        return "..."
    arm = encoding.WhichOneof("array_encoding")
    match arm:
        case "flat":
            return _flat(encoding.flat)
        case "nullable":
            return _nullable(encoding.nullable, depth)
        case "fixed_size_list":
            items = describe_array_encoding(encoding.fixed_size_list.items, depth - 1)
            return f"fixed_size_list[{encoding.fixed_size_list.dimension}]({items})"
        case "list":
            return f"list({describe_array_encoding(encoding.list.offsets, depth - 1)})"
        case "binary":
            parts = [encoding.binary.indices, encoding.binary.bytes]
        case "dictionary":
            parts = [encoding.dictionary.indices, encoding.dictionary.items]
        case "fsst":
            parts = [encoding.fsst.binary]
        case "fixed_size_binary":
            parts = [encoding.fixed_size_binary.bytes]
        case "packed_struct":
            return f"packed_struct[{len(encoding.packed_struct.inner)}]"
        case "bitpacked":
            return f"bitpacked[{encoding.bitpacked.compressed_bits_per_value}]"
        case "bitpacked_for_non_neg":
            bits = encoding.bitpacked_for_non_neg.compressed_bits_per_value
            return f"bitpacked_for_non_neg[{bits}]"
        case _:
            return arm or "?"
    return f"{arm}({', '.join(describe_array_encoding(part, depth - 1) for part in parts)})"


def _flat(flat: encodings.Flat) -> str:
    scheme = f", {flat.compression.scheme[:20]}" if flat.compression.scheme else ""
    return f"flat[{flat.bits_per_value}{scheme}]"


def _nullable(nullable: encodings.Nullable, depth: int) -> str:
    match nullable.WhichOneof("nullability"):
        case "no_nulls":
            return describe_array_encoding(nullable.no_nulls.values, depth - 1)
        case "some_nulls":
            return f"nullable({describe_array_encoding(nullable.some_nulls.values, depth - 1)})"
        case "all_nulls":
            return "all_nulls"
    return "?"
