"""Variable packed struct: children of any width row by row."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from lance_nb._pb import encodings21
from lance_nb.encodings.base import FixedWidth, PackedStruct, VariableWidth
from lance_nb.encodings.registry import codec_of, codecs
from lance_nb.errors import CorruptFileError, NotSupportedError
from tests.property.encodings.reference_encoders import (
    Encoding,
    chunks_of,
    flat,
    fsst,
    integers,
    strings,
    symbol_table,
    variable,
)
from tests.support.compressing import (
    V2_1,
    V2_2,
    by_value,
    compressors,
    measured,
)

Struct = encodings21.VariablePackedStruct


def encoding(*fields: tuple[Encoding, str, int]) -> Encoding:
    parts = [Struct.FieldEncoding(value=value, **{layout: bits}) for value, layout, bits in fields]
    return Encoding(variable_packed_struct=Struct(fields=parts))


FIXED = (flat(16), "bits_per_value", 16)
SHORT = (variable(), "bits_per_length", 32)
LONG = (variable(64), "bits_per_length", 64)


def values(*rows: bytes) -> VariableWidth:
    offsets = np.cumsum([0, *map(len, rows)]).astype(np.int64)
    return VariableWidth(len(rows), offsets, np.frombuffer(b"".join(rows) or b"\0", np.uint8))


def row(number: int, short: bytes, long: bytes) -> bytes:
    head = struct.pack("<HI", number, len(short))
    return head + short + struct.pack("<Q", len(long)) + long


def children(block: PackedStruct) -> Sequence[list]:
    return [
        integers(child) if isinstance(child, FixedWidth) else strings(child)
        for child in block.children
    ]


def test_rows_are_walked_child_by_child() -> None:
    block = codecs.decode_values(
        encoding(FIXED, SHORT, LONG),
        values(row(1, b"ab", b""), row(2, b"", b"xyz"), row(3, b"c" * 300, b"d")),
    )
    assert isinstance(block, PackedStruct)
    assert children(block) == [[1, 2, 3], [b"ab", b"", b"c" * 300], [b"", b"xyz", b"d"]]
    assert [child.offsets.dtype for child in block.children[1:]] == [np.int32, np.int64]


def test_a_row_without_bytes_is_a_null_struct() -> None:
    block = codecs.decode_values(encoding(FIXED, SHORT, LONG), values(b"", row(2, b"x", b"y"), b""))
    assert children(block) == [[0, 2, 0], [b"", b"x", b""], [b"", b"y", b""]]


def test_children_may_be_compressed() -> None:
    child = (fsst(symbol_table([b"hello"])), "bits_per_length", 32)
    block = codecs.decode_values(encoding(child), values(b"\1\0\0\0\0", b"\2\0\0\0\xff!"))
    assert children(block) == [[b"hello", b"!"]]


@pytest.mark.parametrize(
    "broken",
    [
        row(1, b"ab", b"c")[:-1],
        row(1, b"ab", b"c") + b"!",
        row(1, b"ab", b"c")[:4],
        b"\1",
        struct.pack("<HI", 1, 2**32 - 1) + b"ab",
        struct.pack("<HI", 1, 0) + struct.pack("<Q", 2**64 - 1),
        struct.pack("<HI", 1, 0) + struct.pack("<Q", 2**63),
    ],
)
def test_rows_that_do_not_add_up_are_refused(broken: bytes) -> None:
    with pytest.raises(CorruptFileError):
        codecs.decode_values(encoding(FIXED, SHORT, LONG), values(row(1, b"", b""), broken))


def test_a_huge_child_that_no_row_has_is_refused() -> None:
    huge = (flat(2**35), "bits_per_value", 2**35)
    with pytest.raises(CorruptFileError):
        codecs.decode_values(encoding(huge), values(b"", b""))
    with pytest.raises(CorruptFileError):
        codecs.decode_values(encoding(huge), values(b"ab"))


def test_children_without_a_proper_width_are_refused() -> None:
    missing = Encoding(variable_packed_struct=Struct(fields=[Struct.FieldEncoding(value=flat(8))]))
    odd = encoding((flat(1), "bits_per_value", 1))
    length = encoding((variable(), "bits_per_length", 16))
    for broken in (missing, odd, length, Encoding(variable_packed_struct=Struct())):
        with pytest.raises(CorruptFileError):
            codecs.decode_values(broken, values(b"a"))


def test_only_the_per_value_role_exists() -> None:
    with pytest.raises(NotSupportedError, match="mini-block"):
        codecs.decode_chunks(encoding(FIXED), chunks_of([[b"ab"]], [1]))
    with pytest.raises(CorruptFileError):
        codecs.decode_values(encoding(FIXED), FixedWidth(16, 1, np.zeros(2, np.uint8)))


def test_strings_have_offsets_as_wide_as_their_lengths() -> None:
    block = codecs.decode_values(encoding(SHORT, LONG), values(row(1, b"ab", b"xyz")[2:]))
    assert [child.offsets.dtype for child in block.children] == [np.int32, np.int64]
    assert children(block) == [[b"ab"], [b"xyz"]]


def test_a_wide_child_that_the_rows_hold_is_read() -> None:
    wide = (flat(8 * 5000), "bits_per_value", 8 * 5000)
    rows = [bytes([number]) * 5000 for number in range(3)]

    block = codecs.decode_values(encoding(wide), values(*rows))

    (child,) = block.children
    assert child.data.tobytes() == b"".join(rows)


def test_a_narrow_child_of_rows_that_are_nearly_all_empty_is_read() -> None:
    rows = [b"\x07\0", *[b""] * 2000]

    block = codecs.decode_values(encoding(FIXED), values(*rows))

    (child,) = block.children
    assert integers(child) == [7, *[0] * 2000]


TYPE = pa.struct([("a", pa.int32()), ("s", pa.string()), ("b", pa.large_binary())])
ROWS = [{"a": i, "s": "x" * (i % 9), "b": b"y" * (i % 4)} for i in range(1000)]


def test_rows_come_back() -> None:
    encoding = by_value("variable_packed_struct", measured(ROWS, TYPE))
    first, second, third = encoding.variable_packed_struct.fields
    assert first.bits_per_value == 32
    assert second.bits_per_length == 32
    assert third.bits_per_length == 64


def test_the_rows_of_a_small_page_have_offsets_of_32_bits() -> None:
    compressed = codec_of("variable_packed_struct").compress_values(
        measured(ROWS, TYPE), V2_2, compressors
    )
    assert compressed.values.offsets.dtype == np.int32


def test_rows_with_vectors_come_back() -> None:
    type_ = pa.struct([("s", pa.string()), ("v", pa.list_(pa.float32(), 2))])
    by_value("variable_packed_struct", measured([{"s": "a", "v": [1, 2]}] * 3, type_))


def test_it_is_for_2_2_and_whole_bytes() -> None:
    codec = codec_of("variable_packed_struct")
    assert codec.nominate_values(measured(ROWS, TYPE), V2_2)
    assert not codec.nominate_values(measured(ROWS, TYPE), V2_1)
    flags = pa.struct([("s", pa.string()), ("f", pa.bool_())])
    assert not codec.nominate_values(measured([{"s": "a", "f": True}], flags), V2_2)
