"""Pages of file version 2.0 by hand: buffers of bytes and an array encoding, decoded both ways.

``decode`` reads as from a mapped file and as from a remote one, and holds the two together.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lance_nb._pb import encodings as pb
from lance_nb.encodings.arrow_arrays import to_arrow
from lance_nb.encodings.base import Rows
from lance_nb.encodings.steps import Region, Steps, T
from lance_nb.encodings.v2_0.array_encodings import array_codecs
from lance_nb.encodings.v2_0.base import ItemRanges, Page, Values
from tests.support.reading import rows_of, same

GAP = b"\xee" * 3  # between buffers: nothing is aligned, and nobody may read it


def run(steps: Steps[T], data: bytes) -> tuple[T, list[tuple[int, int]]]:
    """Serve the steps from ``data``; also return every range that was asked for."""
    asked: list[tuple[int, int]] = []
    try:
        wanted = next(steps)
        while True:
            asked += wanted
            wanted = steps.send([np.frombuffer(data[a:b], np.uint8) for a, b in wanted])
    except StopIteration as end:
        return end.value, asked


def decode_values(
    encoding: pb.ArrayEncoding,
    buffers: Sequence[bytes],
    rows: Rows,
    *,
    mapped: bool = True,
    keeps_dictionary: bool = False,
) -> tuple[Values, int]:
    """Decode rows; also return how many bytes were asked for."""
    data = bytearray(GAP)
    regions = []
    for buffer in buffers:
        regions.append(Region(len(data), len(data) + len(buffer), mapped))
        data += buffer + GAP
    page = Page(tuple(regions), keeps_dictionary=keeps_dictionary)
    values, asked = run(array_codecs.decode(encoding, rows, page), bytes(data))
    return values, sum(stop - start for start, stop in asked)


def decode(
    encoding: pb.ArrayEncoding,
    buffers: Sequence[bytes],
    type_: pa.DataType,
    *ranges: tuple[int, int],
) -> list[object]:
    """Decode rows to Python values."""
    keeps = pa.types.is_dictionary(type_)
    arrays = []
    for mapped in (True, False):
        values, _ = decode_values(
            encoding, buffers, rows_of(*ranges), mapped=mapped, keeps_dictionary=keeps
        )
        assert not isinstance(values.block, ItemRanges)
        array = to_arrow(values.block, type_, values.validity)
        array.validate(full=True)
        arrays.append(array)
    assert same(*arrays)
    found: list[object] = arrays[0].to_pylist()
    return found


def u64(*numbers: int) -> bytes:
    """Write unsigned 64-bit numbers."""
    return struct.pack(f"<{len(numbers)}Q", *numbers)


def flat(bits: int, buffer: int = 0, scheme: str | None = None) -> pb.ArrayEncoding:
    """Name a flat buffer."""
    message = pb.Flat(bits_per_value=bits, buffer=pb.Buffer(buffer_index=buffer))
    if scheme is not None:
        message.compression.scheme = scheme
    return pb.ArrayEncoding(flat=message)


def no_nulls(values: pb.ArrayEncoding) -> pb.ArrayEncoding:
    """Wrap values that have no nulls."""
    return pb.ArrayEncoding(nullable=pb.Nullable(no_nulls=pb.Nullable.NoNull(values=values)))


def some_nulls(validity: pb.ArrayEncoding, values: pb.ArrayEncoding) -> pb.ArrayEncoding:
    """Wrap values with a validity bitmap."""
    some = pb.Nullable.SomeNull(validity=validity, values=values)
    return pb.ArrayEncoding(nullable=pb.Nullable(some_nulls=some))


def all_nulls() -> pb.ArrayEncoding:
    """Name values that are all null."""
    return pb.ArrayEncoding(nullable=pb.Nullable(all_nulls=pb.Nullable.AllNull()))


def binary(adjustment: int, ends: int = 0, content: int = 1) -> pb.ArrayEncoding:
    """Name byte strings: ends in one buffer, bytes in another."""
    message = pb.Binary(
        indices=no_nulls(flat(64, ends)), bytes=flat(8, content), null_adjustment=adjustment
    )
    return pb.ArrayEncoding(binary=message)


def fixed_size_list(dimension: int, items: pb.ArrayEncoding) -> pb.ArrayEncoding:
    """Name fixed-size lists."""
    message = pb.FixedSizeList(dimension=dimension, items=items)
    return pb.ArrayEncoding(fixed_size_list=message)
