"""The registry: every arm has a codec, and what has none is refused by name."""

from __future__ import annotations

import numpy as np
import pytest

from lance_nb._pb import encodings21
from lance_nb.encodings.base import FixedWidth
from lance_nb.encodings.registry import CODECS, LAYOUTS, MAX_DEPTH, codec_of, codecs, layout_of
from lance_nb.errors import CorruptFileError, NotSupportedError
from tests.property.encodings.reference_encoders import (
    LZ4,
    Encoding,
    byte_stream_split,
    chunks_of,
    constant,
    fixed_size_list,
    flat,
    fsst,
    general,
    inline_bitpacking,
    out_of_line_bitpacking,
    packed_struct,
    rle,
    symbol_table,
    variable,
)


def test_every_arm_of_the_message_has_a_codec() -> None:
    arms = {field.name for field in Encoding.DESCRIPTOR.oneofs_by_name["compression"].fields}
    assert set(CODECS) == arms
    for arm in arms:
        assert type(codec_of(arm)).__name__ == CODECS[arm]
        assert codec_of(arm) is codec_of(arm)


def test_every_layout_of_the_message_is_registered() -> None:
    oneof = encodings21.PageLayout.DESCRIPTOR.oneofs_by_name["layout"]
    assert set(LAYOUTS) == {field.name for field in oneof.fields}
    for arm in LAYOUTS:
        assert type(layout_of(arm)).__name__ == LAYOUTS[arm]


@pytest.mark.parametrize(
    ("encoding", "count"),
    [
        (flat(8), 1),
        (variable(), 1),
        (constant(b"a"), 0),
        (inline_bitpacking(8), 1),
        (out_of_line_bitpacking(16, 1), 1),
        (fsst(symbol_table([b"ab"])), 1),
        (rle(8), 2),
        (byte_stream_split(32), 1),
        (general(LZ4, rle(8)), 2),
        (fixed_size_list(2, flat(8)), 1),
        (fixed_size_list(2, flat(8), has_validity=True), 2),
        (packed_struct([8, 16]), 1),
    ],
    ids=lambda one: one if isinstance(one, int) else one.WhichOneof("compression"),
)
def test_chunks_have_as_many_value_buffers_as_the_encoding_needs(
    encoding: Encoding, count: int
) -> None:
    assert codecs.num_buffers(encoding) == count
    if count:
        with pytest.raises(CorruptFileError, match=f"{count} value buffers"):
            codecs.decode_chunks(encoding, chunks_of([[b"a"] * (count - 1)], [1]))


def test_an_arm_that_is_not_set_is_refused() -> None:
    with pytest.raises(NotSupportedError, match="does not know"):
        codecs.decode_chunks(Encoding(), chunks_of([[b""]], [0]))


def test_a_role_that_an_arm_does_not_have_is_refused_by_name() -> None:
    values = FixedWidth(8, 1, np.zeros(1, np.uint8))
    for encoding in (rle(8), constant(b"a"), out_of_line_bitpacking(16, 1)):
        arm = encoding.WhichOneof("compression")
        with pytest.raises(NotSupportedError, match=f"'{arm}'.*value by value"):
            codecs.decode_values(encoding, values)


def test_missing_buffers_are_refused() -> None:
    with pytest.raises(CorruptFileError, match="2 value buffers"):
        codecs.decode_chunks(rle(8), chunks_of([[b"a"]], [1]))
    with pytest.raises(CorruptFileError, match="one buffer per block"):
        codecs.decode_blocks(flat(8), chunks_of([[b"a", b"b"]], [1]))


def test_nesting_without_end_is_refused() -> None:
    encoding = variable()
    for _ in range(MAX_DEPTH + 5):
        encoding = general(LZ4, encoding)
    chunks = chunks_of([[b""]], [0])
    with pytest.raises(NotSupportedError, match="nested"):
        codecs.num_buffers(encoding)
    with pytest.raises(NotSupportedError, match="nested"):
        codecs.decode_chunks(encoding, chunks)
    with pytest.raises(NotSupportedError, match="nested"):
        codecs.decode_blocks(encoding, chunks)


def test_encodings_nest_as_deep_as_allowed() -> None:
    assert MAX_DEPTH == 20
    encoding = flat(32)
    for _ in range(MAX_DEPTH - 1):
        encoding = general(LZ4, encoding)
    assert codecs.num_buffers(encoding) == 1
    with pytest.raises(NotSupportedError, match="nested"):
        codecs.num_buffers(general(LZ4, encoding))
