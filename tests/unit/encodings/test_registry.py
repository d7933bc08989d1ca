"""The registry: every arm has a codec, and what has none is refused by name."""

from __future__ import annotations

import numpy as np
import pytest

from lance_nb._pb import encodings21
from lance_nb.encodings.base import FixedWidth
from lance_nb.encodings.registry import CODECS, LAYOUTS, MAX_DEPTH, codecs
from lance_nb.errors import CorruptFileError, NotSupportedError
from tests.property.encodings.reference_encoders import (
    LZ4,
    Encoding,
    chunks_of,
    constant,
    flat,
    general,
    out_of_line_bitpacking,
    rle,
    variable,
)


def test_every_arm_of_the_message_has_a_codec() -> None:
    arms = {field.name for field in Encoding.DESCRIPTOR.oneofs_by_name["compression"].fields}
    assert set(CODECS) == arms


def test_every_layout_of_the_message_is_registered() -> None:
    oneof = encodings21.PageLayout.DESCRIPTOR.oneofs_by_name["layout"]
    assert set(LAYOUTS) == {field.name for field in oneof.fields}


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
    encoding = flat(32)
    for _ in range(MAX_DEPTH - 1):
        encoding = general(LZ4, encoding)
    assert codecs.num_buffers(encoding) == 1
    with pytest.raises(NotSupportedError, match="nested"):
        codecs.num_buffers(general(LZ4, encoding))
