"""Array encodings of file version 2.0 in words, for people and for inspection tables.

Examples: ``flat[64]``, ``nullable(flat[32])``, ``binary(flat[64])``, ``all_nulls``,
``dictionary(flat[8], binary(flat[64]))``, ``list(flat[64])``, ``packed_struct[2]``. ``no_nulls`` is
not spelled out.

Limits: at most ``DEPTH_MAX`` nested encodings are spelled out.
Source: message ArrayEncoding of lance.encodings.
"""

from __future__ import annotations

from lance_nb._pb import encodings

DEPTH_MAX = 20


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
