"""Putting mini-block pages together."""

from __future__ import annotations

import numpy as np
import pytest

from lance_nb.encodings.base import ChunkBuffer
from lance_nb.encodings.chunk_assembly import assemble, chunk_words, cut_levels, row_index
from lance_nb.encodings.compress_base import PageLevels, Parts, uniform_counts
from tests.support.pages import cut_entries, repetition_index
from tests.support.shredding import Entry


def parts(*chunks: bytes) -> Parts:
    data = np.frombuffer(b"".join(chunks) or b"\0", np.uint8)
    sizes = np.array([len(chunk) for chunk in chunks], np.int64)
    return Parts((ChunkBuffer(data, np.cumsum(sizes) - sizes, sizes),))


def levels(entries: list[Entry]) -> PageLevels:
    rep = np.array([entry.rep for entry in entries], np.uint16)
    definition = np.array([entry.definition for entry in entries], np.uint16)
    rows = sum(entry.rep == 1 for entry in entries)
    return PageLevels((1, 6), rep, definition, len(entries), 0, rows)


def random_entries(seed: int, count: int) -> list[Entry]:
    rng = np.random.default_rng(seed)
    entries: list[Entry] = []
    while len(entries) < count:
        if rng.random() < 0.3:
            entries.append(Entry(1, int(rng.integers(1, 3)), False, None))
        else:
            length = int(rng.integers(1, 9))
            entries += [Entry(int(at == 0), 0, True, at) for at in range(length)]
    return entries


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("per_chunk", [2, 4, 16])
def test_entries_and_rows_are_cut_as_the_format_says(seed: int, per_chunk: int) -> None:
    entries = random_entries(seed, 60)
    visible = sum(entry.visible for entry in entries)
    counts = uniform_counts(visible, per_chunk)
    page = levels(entries)
    cuts = cut_levels(page, counts)
    expected = cut_entries(entries, counts[:-1].tolist())
    assert cuts.counts.tolist() == [len(cut) for cut in expected]
    assert page.repetition is not None
    assert row_index(page.repetition, cuts).tobytes() == repetition_index(expected, 1)


def test_chunks_without_values_take_no_entries_but_the_last() -> None:
    null, value = Entry(1, 2, False, None), Entry(1, 0, True, 1)
    page = levels([null, null, value, value, null])
    for counts in ([0, 2], [0, 1, 1], [2, 0], [1, 0, 1], [0, 2, 0]):
        expected = [{0: 0, 1: 3, 2: 4}[sum(counts[: at + 1])] for at in range(len(counts))]
        assert cut_levels(page, np.array(counts)).ends.tolist() == [*expected[:-1], 5]
    hidden = levels([null] * 3)
    assert cut_levels(hidden, np.array([0])).ends.tolist() == [3]


def test_every_part_of_a_chunk_begins_on_eight_bytes() -> None:
    built = assemble((), None, (parts(b"abc", b"defghijkl"), parts(b"", b"x")), True)
    assert built is not None
    chunks, sizes = built
    assert sizes.tolist() == [24, 40]
    first, second = chunks[:24].tobytes(), chunks[24:].tobytes()
    assert first == bytes.fromhex("0000 03000000 00000000 000000000000") + b"abc".ljust(8, b"\0")
    assert second[16:] == b"defghijkl".ljust(16, b"\0") + b"x".ljust(8, b"\0")


def test_headers_of_2_1_have_short_sizes() -> None:
    built = assemble((parts(b"\1\0"),), np.array([1]), (parts(b"abcd"),), False)
    assert built is not None
    assert built[0].tobytes() == bytes.fromhex("0100 0200 0400 0000") + b"\1".ljust(8, b"\0") + (
        b"abcd\0\0\0\0"
    )


def test_what_is_too_large_for_a_chunk_is_not_stored_in_one() -> None:
    assert assemble((), None, (parts(b"x" * 32_761),), False) is None
    assert assemble((), None, (parts(b"x" * 32_760),), False) is not None
    assert assemble((), None, (parts(b"x" * 100_000),), True) is not None
    assert assemble((parts(b"x" * 65_536),), np.array([9]), (parts(b""),), True) is None
    assert assemble((parts(b"x"),), np.array([65_536]), (parts(b""),), True) is None


def test_words_hold_size_and_logarithm() -> None:
    words = chunk_words(np.array([800, 16]), np.array([512, 3]), True)
    assert words.view("<u4").tolist() == [(99 << 4) | 9, 1 << 4]
    assert chunk_words(np.array([16]), np.array([8]), False).tobytes() == b"\x10\0"
