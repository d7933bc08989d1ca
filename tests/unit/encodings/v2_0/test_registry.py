from __future__ import annotations

import pyarrow as pa
import pytest

from lance_nb._pb import encodings as pb
from lance_nb.encodings.v2_0.array_encodings import ARMS, MAX_DEPTH
from lance_nb.errors import CorruptFileError, NotSupportedError
from tests.support.array_pages import decode, flat, no_nulls


def test_every_arm_of_the_message_has_a_module() -> None:
    oneof = pb.ArrayEncoding.DESCRIPTOR.oneofs_by_name["array_encoding"]

    assert set(ARMS) == {field.name for field in oneof.fields}


def test_an_unknown_arm_is_refused() -> None:
    # field 15 is an arm of the grammar that 2.0 files do not have
    unknown = pb.ArrayEncoding.FromString(b"\x7a\x00")

    with pytest.raises(NotSupportedError, match="does not know"):
        decode(unknown, [bytes(8)], pa.int8(), (0, 1))


def test_encodings_nest_only_so_deep() -> None:
    encoding = flat(8)
    for _ in range(MAX_DEPTH - 1):
        encoding = no_nulls(encoding)
    assert decode(encoding, [b"\x07"], pa.int8(), (0, 1)) == [7]

    with pytest.raises(NotSupportedError, match="deep"):
        decode(no_nulls(encoding), [b"\x07"], pa.int8(), (0, 1))


def test_an_unknown_kind_of_buffer_is_refused() -> None:
    encoding = flat(8)
    encoding.flat.buffer.buffer_type = 7  # type: ignore[assignment]

    with pytest.raises(CorruptFileError, match="buffer type 7"):
        decode(encoding, [b"\x07"], pa.int8(), (0, 1))
