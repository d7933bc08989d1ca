"""Constant: a value in the description."""

from __future__ import annotations

from lance_nb.encodings.base import AllNull, Constant
from lance_nb.encodings.registry import codecs
from tests.property.encodings.reference_encoders import chunks_of, constant, integers


def test_the_value_is_kept_once_with_its_count() -> None:
    chunks = chunks_of([[b""], [b""]], [1000, 2**40])
    assert codecs.num_buffers(constant(b"\x07\0")) == 0
    for block in (
        codecs.decode_chunks(constant(b"\x07\0"), chunks),
        codecs.decode_blocks(constant(b"\x07\0"), chunks),
    ):
        assert isinstance(block, Constant)
        assert block.num_values == 1000 + 2**40
        assert (block.value.bits_per_value, integers(block.value)) == (16, [7])


def test_without_a_value_everything_is_null() -> None:
    assert codecs.decode_chunks(constant(None), chunks_of([[b""]], [5])) == AllNull(5)
