"""Payloads of blob columns of 2.0 files, read where their descriptions say they lie."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from lance_nb._pb import encodings as pb
from lance_nb.encodings.base import FixedWidth, PackedStruct, VariableWidth
from lance_nb.encodings.steps import Region
from lance_nb.encodings.v2_0.base import Values
from lance_nb.encodings.v2_0.blobs import holds_blobs, read_payloads
from lance_nb.errors import CorruptFileError, NotSupportedError
from tests.support.array_pages import run

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


FILE = b"0123456789abcdefghij"


def described(positions: list[int], sizes: list[int], bits: int = 64) -> Values:
    numbers = [np.array(column, f"<u{bits // 8}") for column in (positions, sizes)]
    children = tuple(FixedWidth(bits, one.size, one.view(np.uint8)) for one in numbers)
    return Values(PackedStruct(len(positions), children))


def payloads(positions: list[int], sizes: list[int]) -> tuple[list[bytes | None], int]:
    found, asked = run(
        read_payloads(described(positions, sizes), Region(0, len(FILE), False)), FILE
    )
    block = found.block
    assert isinstance(block, VariableWidth)
    valid = [True] * len(positions) if found.validity is None else found.validity.tolist()
    data, ends = block.data.tobytes(), block.offsets.tolist()
    cut = [data[a:b] for a, b in itertools.pairwise(ends)]
    return [one if shown else None for one, shown in zip(cut, valid, strict=True)], len(asked)


def test_payloads_are_read_where_they_lie_empty_and_null_ones_not_at_all() -> None:
    found, reads = payloads([3, 0, 1, 17, 0], [4, 0, 0, 3, 2])
    assert found == [b"3456", b"", None, b"hij", b"01"]
    assert reads == 3


def test_a_payload_may_begin_anywhere_and_end_with_the_file() -> None:
    assert payloads([0], [20]) == ([FILE], 1)
    assert payloads([], []) == ([], 0)
    assert payloads([20, 7], [0, 0]) == ([None, None], 0)


def test_all_valid_payloads_have_no_bitmap() -> None:
    steps = read_payloads(described([0, 2, 0], [2, 3, 0]), Region(0, len(FILE), False))
    assert run(steps, FILE)[0].validity is None


@pytest.mark.parametrize(
    ("positions", "sizes"),
    [
        ([21], [0]),
        ([0], [21]),
        ([18], [3]),
        ([0, 5], [15, 6]),  # together more than the file has: they overlap
        ([2**64 - 1], [1]),
        ([1], [2**64 - 1]),
        ([2**63], [2**63]),
    ],
)
def test_payloads_outside_of_the_file_are_refused(positions: list[int], sizes: list[int]) -> None:
    with pytest.raises(CorruptFileError, match="blobs inside a file of 20 bytes, found"):
        payloads(positions, sizes)


def test_descriptions_of_another_form_are_refused() -> None:
    region = Region(0, len(FILE), False)
    with pytest.raises(CorruptFileError, match="64-bit positions"):
        run(read_payloads(described([1], [1], bits=32), region), FILE)
    one = FixedWidth(64, 1, np.zeros(8, np.uint8))
    for block in (one, PackedStruct(1, (one,)), PackedStruct(1, (one, one, one))):
        with pytest.raises(CorruptFileError, match="pairs of position and size"):
            run(read_payloads(Values(block), region), FILE)
    text = VariableWidth(1, np.zeros(2, np.int64), np.zeros(0, np.uint8))
    with pytest.raises(CorruptFileError, match="64-bit positions"):
        run(read_payloads(Values(PackedStruct(1, (text, text))), region), FILE)
