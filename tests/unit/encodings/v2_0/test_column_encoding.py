from __future__ import annotations

import pytest

from lance_nb._pb import encodings as pb
from lance_nb.encodings.v2_0.column_encoding import holds_blobs
from lance_nb.errors import CorruptFileError, NotSupportedError

VALUES = pb.ColumnEncoding(values=pb.ColumnEncoding.Values())


def zoned(inner: pb.ColumnEncoding) -> pb.ColumnEncoding:
    return pb.ColumnEncoding(zone_index=pb.ColumnEncoding.ZoneIndex(rows_per_zone=7, inner=inner))


def blob(inner: pb.ColumnEncoding) -> pb.ColumnEncoding:
    return pb.ColumnEncoding(blob=pb.ColumnEncoding.Blob(inner=inner))


@pytest.mark.parametrize(
    ("encoding", "blobs"),
    [
        (VALUES, False),
        (zoned(VALUES), False),
        (blob(VALUES), True),
        (zoned(blob(VALUES)), True),
        (pb.ColumnEncoding(), False),
    ],
)
def test_wrappers_are_taken_off(encoding: pb.ColumnEncoding, blobs: bool) -> None:
    assert holds_blobs(encoding.SerializeToString()) is blobs


def test_the_form_that_pylance_writes() -> None:
    assert holds_blobs(bytes.fromhex("1a040a020a00"))
    assert not holds_blobs(bytes.fromhex("0a00"))


def test_unknown_or_endless_wrappers_are_refused() -> None:
    deep = VALUES
    for _ in range(9):
        deep = zoned(deep)

    for raw in (deep.SerializeToString(), b"\x22\x00"):
        with pytest.raises(NotSupportedError):
            holds_blobs(raw)
    with pytest.raises(CorruptFileError):
        holds_blobs(b"\x0a\x7f")
