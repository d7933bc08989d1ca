"""The vocabulary of the encodings floor: rows, buffers at hand, chunks."""

from __future__ import annotations

import numpy as np
import pytest

from lance_nb.encodings.base import VALUES_MAX, PageBuffer, corrupt, single_chunk
from lance_nb.errors import CorruptFileError
from tests.support.reading import rows_of


def test_rows_are_counted() -> None:
    assert rows_of((0, 3), (5, 6)).num_rows == 4
    assert rows_of().num_rows == 0


def test_a_whole_buffer_needs_no_translation() -> None:
    offsets = np.array([0, 7, 99])
    assert PageBuffer(np.zeros(100, np.uint8)).locate(offsets) is offsets


def test_offsets_are_found_in_the_spans_at_hand() -> None:
    data = np.arange(100, dtype=np.uint8)
    spans = [(10, 20), (50, 51), (60, 90)]
    buffer = PageBuffer(
        np.concatenate([data[start:stop] for start, stop in spans]),
        np.array([start for start, _ in spans]),
        np.array([0, 10, 11]),
    )
    wanted = np.array([10, 19, 50, 60, 89, 12])
    assert buffer.data[buffer.locate(wanted)].tolist() == wanted.tolist()


def test_one_chunk_holds_whole_buffers() -> None:
    chunks = single_chunk(7, np.zeros(3, np.uint8), np.zeros(0, np.uint8))
    assert [(int(one.starts[0]), int(one.sizes[0])) for one in chunks.buffers] == [(0, 3), (0, 0)]
    assert chunks.num_values.tolist() == [7]


@pytest.mark.parametrize("count", [VALUES_MAX + 1, 2**63, 2**64 - 1])
def test_an_absurd_count_is_refused(count: int) -> None:
    with pytest.raises(CorruptFileError, match="values in a block"):
        single_chunk(count, np.zeros(3, np.uint8))


def test_a_broken_page_gets_its_place_from_the_floor_above() -> None:
    error = corrupt("three", "four").located("a.lance", 64, "column 'x', page 0")
    assert error.problem == (
        "a.lance is damaged at byte 64 (column 'x', page 0): expected three, found four"
    )


def test_a_buffer_without_positions_is_whole() -> None:
    offsets = np.array([3])
    assert PageBuffer(np.zeros(9, np.uint8), np.array([0])).locate(offsets) is offsets
