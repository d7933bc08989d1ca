"""Encodings in words."""

from __future__ import annotations

import pytest

from lance_nb._pb import encodings21 as pb
from lance_nb.encodings.describe import DEPTH_MAX, describe_encoding, describe_layout
from tests.property.encodings.reference_encoders import (
    LZ4,
    ZSTD,
    byte_stream_split,
    constant,
    fixed_size_list,
    flat,
    fsst,
    general,
    inline_bitpacking,
    out_of_line_bitpacking,
    packed_struct,
    rle,
    variable,
)

FIELDS = pb.VariablePackedStruct(fields=[pb.VariablePackedStruct.FieldEncoding()] * 3)


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        (flat(64), "flat[64]"),
        (variable(), "variable"),
        (constant(b"\1"), "constant"),
        (out_of_line_bitpacking(32, 7), "out_of_line_bitpacking[7]"),
        (inline_bitpacking(16), "inline_bitpacking[16]"),
        (fsst(b""), "fsst(variable)"),
        (pb.CompressiveEncoding(dictionary=pb.Dictionary(items=flat(8))), "dictionary(flat[8])"),
        (rle(32), "rle(flat[32])"),
        (byte_stream_split(32), "byte_stream_split(flat[32])"),
        (general(LZ4, flat(8)), "general[lz4](flat[8])"),
        (general(ZSTD, fsst(b"")), "general[zstd](fsst(variable))"),
        (general(0, flat(8)), "general[?](flat[8])"),
        (fixed_size_list(768, flat(32)), "fixed_size_list[768](flat[32])"),
        (packed_struct([8, 16]), "packed_struct[2](flat[24])"),
        (pb.CompressiveEncoding(variable_packed_struct=FIELDS), "variable_packed_struct[3]"),
        (pb.CompressiveEncoding(), "?"),
        (general(LZ4, pb.CompressiveEncoding()), "general[lz4](?)"),
    ],
)
def test_encodings_are_spelled_out(encoding: pb.CompressiveEncoding, text: str) -> None:
    assert describe_encoding(encoding) == text
    full_zip = pb.FullZipLayout(value_compression=encoding)
    assert describe_layout(pb.PageLayout(full_zip_layout=full_zip)) == f"full_zip({text})"


@pytest.mark.parametrize("over", [-1, 0, 5])
def test_deep_nesting_is_cut(over: int) -> None:
    encoding = flat(8)
    for _ in range(DEPTH_MAX + over):
        encoding = fixed_size_list(2, encoding)
    depth = min(DEPTH_MAX, DEPTH_MAX + over)
    inner = "flat[8]" if over < 0 else "..."
    assert describe_encoding(encoding) == "fixed_size_list[2](" * depth + inner + ")" * depth


@pytest.mark.parametrize(
    ("layout", "text"),
    [
        (
            pb.PageLayout(mini_block_layout=pb.MiniBlockLayout(value_compression=rle(8))),
            "mini_block(rle(flat[8]))",
        ),
        (
            pb.PageLayout(
                mini_block_layout=pb.MiniBlockLayout(
                    value_compression=inline_bitpacking(32), dictionary=general(LZ4, variable())
                )
            ),
            "mini_block(inline_bitpacking[32], dictionary: general[lz4](variable))",
        ),
        (pb.PageLayout(constant_layout=pb.ConstantLayout()), "constant"),
        (
            pb.PageLayout(constant_layout=pb.ConstantLayout(inline_value=b"\1")),
            "constant(inline)",
        ),
        (pb.PageLayout(blob_layout=pb.BlobLayout()), "blob"),
        (pb.PageLayout(), "?"),
    ],
)
def test_layouts_are_spelled_out(layout: pb.PageLayout, text: str) -> None:
    assert describe_layout(layout) == text
