"""Parts of chunks, counts of chunks."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from lance_nb.encodings.arrow_arrays import from_arrow
from lance_nb.encodings.base import ChunkBuffer
from lance_nb.encodings.compress_base import (
    LeafPage,
    PageLevels,
    Parts,
    power_of_two_below,
    uniform_counts,
)
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.statistics import Measured


def buffer(data: bytes, *sizes: int) -> ChunkBuffer:
    lengths = np.array(sizes, np.int64)
    return ChunkBuffer(np.frombuffer(data, np.uint8), np.cumsum(lengths) - lengths, lengths)


def test_parts_are_joined_chunk_by_chunk() -> None:
    parts = Parts((buffer(b"aabbbc", 2, 3, 1), buffer(b"123", 1, 0, 2)))
    assert parts.sizes.tolist() == [3, 3, 3]
    joined = parts.joined()
    assert joined.data.tobytes() == b"aa1bbbc23"
    assert joined.starts.tolist() == [0, 3, 6]


def test_a_single_part_is_not_copied() -> None:
    part = buffer(b"ab", 1, 1)
    assert Parts((part,)).joined() is part


def test_all_chunks_but_the_last_are_full() -> None:
    assert uniform_counts(10, 4).tolist() == [4, 4, 2]
    assert uniform_counts(8, 4).tolist() == [4, 4]
    assert uniform_counts(0, 4).tolist() == [0]


def test_powers_of_two_below_a_limit() -> None:
    assert [power_of_two_below(limit) for limit in (0, 1, 2, 3, 4, 1000)] == [2, 2, 2, 2, 4, 512]
    assert power_of_two_below(3, least=8) == 8


def test_valid_slots_leave_out_empty_lists() -> None:
    rep = np.array([1, 1, 0, 1], np.uint16)
    definition = np.array([2, 0, 1, 0], np.uint16)
    levels = PageLevels((3, 5), rep, definition, 4, 1, 3)
    values = Measured(from_arrow(pa.array([1, 2, 3])))
    page = LeafPage(values, levels, EncodingOptions(file_version=(2, 2)))
    assert page.valid_slots is not None
    assert page.valid_slots.tolist() == [True, False, True]
    assert levels.layer_enums == [3, 5]
