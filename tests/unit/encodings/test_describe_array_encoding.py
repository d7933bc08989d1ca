from __future__ import annotations

import pytest

from lance_nb._pb import encodings as pb
from lance_nb.encodings.describe import DEPTH_MAX, describe_array_encoding
from tests.support.array_pages import all_nulls, binary, fixed_size_list, flat, no_nulls, some_nulls

DICTIONARY = pb.ArrayEncoding(dictionary=pb.Dictionary(indices=flat(8), items=binary(9)))


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        (flat(64), "flat[64]"),
        (flat(8, scheme="zstd"), "flat[8, zstd]"),
        (flat(8, scheme="abcdefghijklmnopqrstuvwxyz"), "flat[8, abcdefghijklmnopqrst]"),
        (no_nulls(flat(32)), "flat[32]"),
        (some_nulls(flat(1), flat(32)), "nullable(flat[32])"),
        (all_nulls(), "all_nulls"),
        (fixed_size_list(768, no_nulls(flat(32))), "fixed_size_list[768](flat[32])"),
        (binary(9), "binary(flat[64], flat[8])"),
        (DICTIONARY, "dictionary(flat[8], binary(flat[64], flat[8]))"),
        (pb.ArrayEncoding(list=pb.List(offsets=no_nulls(flat(64)))), "list(flat[64])"),
        (pb.ArrayEncoding(struct=pb.SimpleStruct()), "struct"),
        (pb.ArrayEncoding(fsst=pb.Fsst(binary=binary(1))), "fsst(binary(flat[64], flat[8]))"),
        (
            pb.ArrayEncoding(fixed_size_binary=pb.FixedSizeBinary(bytes=flat(8))),
            "fixed_size_binary(flat[8])",
        ),
        (
            pb.ArrayEncoding(packed_struct=pb.PackedStruct(inner=[flat(8), flat(8)])),
            "packed_struct[2]",
        ),
        (
            pb.ArrayEncoding(bitpacked=pb.Bitpacked(compressed_bits_per_value=3)),
            "bitpacked[3]",
        ),
        (
            pb.ArrayEncoding(
                bitpacked_for_non_neg=pb.BitpackedForNonNeg(compressed_bits_per_value=3)
            ),
            "bitpacked_for_non_neg[3]",
        ),
        (flat(8, scheme="x" * 30), f"flat[8, {'x' * 20}]"),
        (pb.ArrayEncoding(constant=pb.Constant(value=b"\x01")), "constant"),
        (pb.ArrayEncoding(nullable=pb.Nullable()), "?"),
        (pb.ArrayEncoding(), "?"),
    ],
)
def test_encodings_are_spelled_out_v2_0(encoding: pb.ArrayEncoding, text: str) -> None:
    assert describe_array_encoding(encoding) == text


def test_endless_nesting_is_cut() -> None:
    encoding = flat(8)
    for _ in range(DEPTH_MAX + 5):
        encoding = fixed_size_list(2, encoding)

    assert describe_array_encoding(encoding).count("(") == DEPTH_MAX


def test_endless_nesting_of_what_is_not_spelled_out_is_cut_too() -> None:
    encoding = flat(8)
    for _ in range(DEPTH_MAX):
        encoding = no_nulls(encoding)

    assert describe_array_encoding(encoding) == "..."
