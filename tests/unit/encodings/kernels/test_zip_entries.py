"""Walking full-zip rows: every control word and value found, nothing read outside its row."""

from __future__ import annotations

import numpy as np
import pytest

from lance_nb.encodings.base import Bytes
from lance_nb.encodings.kernels.zip_entries import EntryFormat, read_words, walk_entries
from lance_nb.errors import CorruptFileError

TEXT = EntryFormat(1, 1, 1, 0, 4)
WIDE_TEXT = EntryFormat(1, 1, 1, 0, 8)
NUMBER = EntryFormat(2, 2, 1, 4, 0)


def data_of(*rows: bytes) -> tuple[Bytes, np.ndarray, np.ndarray]:
    ends = np.cumsum([len(row) for row in rows], dtype=np.int64)
    starts = ends - np.array([len(row) for row in rows], np.int64)
    return np.frombuffer(b"".join(rows), np.uint8), starts, ends


def text(control: int, value: bytes) -> bytes:
    return bytes([control]) + len(value).to_bytes(4, "little") + value


@pytest.mark.parametrize("repeats", [1, 40])
def test_variable_width_values(repeats: int) -> None:
    rows = [text(2, b"ab") + text(0, b"") + b"\1", b"\3", text(2, b"xyz")] * repeats
    data, starts, stops = data_of(*rows)
    walked = walk_entries(data, starts, stops, TEXT)
    assert walked.control.tolist() == [2, 0, 1, 3, 2] * repeats
    values = [
        bytes(data[start : start + size])
        for start, size in zip(walked.value_starts, walked.value_sizes, strict=True)
    ]
    assert values == [b"ab", b"", b"", b"", b"xyz"] * repeats


@pytest.mark.parametrize("repeats", [1, 40])
def test_fixed_width_values_follow_visible_entries_only(repeats: int) -> None:
    row = b"\4\0" + b"aaaa" + b"\1\0" + b"bbbb" + b"\2\0" + b"\0\0" + b"cccc"
    data, starts, stops = data_of(*([row, b"\7\0"] * repeats))
    walked = walk_entries(data, starts, stops, NUMBER)
    assert walked.control.tolist() == [4, 1, 2, 0, 7] * repeats
    firsts = [bytes(data[start : start + 1]) for start in walked.value_starts]
    assert firsts == [b"a", b"b", b"c"] * repeats
    assert set(walked.value_sizes.tolist()) == {4}


def test_no_rows_have_no_entries() -> None:
    nothing = np.zeros(0, np.int64)
    walked = walk_entries(np.zeros(0, np.uint8), nothing, nothing, TEXT)
    assert walked.control.size == walked.value_starts.size == walked.value_sizes.size == 0


def test_short_and_long_rows_together_keep_their_order() -> None:
    rows = [b"".join(text(0, str(k).encode()) for k in range(n)) for n in (1, 50, 2, 300, 1) * 5]
    data, starts, stops = data_of(*rows)
    walked = walk_entries(data, starts, stops, TEXT)
    found = [
        int(bytes(data[start : start + size]))
        for start, size in zip(walked.value_starts, walked.value_sizes, strict=True)
    ]
    assert found == [k for n in (1, 50, 2, 300, 1) * 5 for k in range(n)]


LENGTHS = [5, 2**31, 2**32 - 1]
WIDE_LENGTHS = [5, 2**31, 2**62, 2**63 - 1, 2**63 - 40, 2**63, 2**64 - 1, 2**64 - 13]


@pytest.mark.parametrize("rows", [1, 40])
@pytest.mark.parametrize("length", WIDE_LENGTHS)
def test_a_64_bit_length_past_the_row_is_refused(length: int, rows: int) -> None:
    data, starts, stops = data_of(*[b"\0" + length.to_bytes(8, "little") + b"abcd"] * rows)
    with pytest.raises(CorruptFileError, match="end inside their row"):
        walk_entries(data, starts, stops, WIDE_TEXT)


@pytest.mark.parametrize("length", WIDE_LENGTHS)
def test_a_64_bit_length_past_the_row_is_refused_later_in_a_row(length: int) -> None:
    entry = b"\0" + (4).to_bytes(8, "little") + b"abcd"
    data, starts, stops = data_of(entry + b"\0" + length.to_bytes(8, "little") + b"abcd")
    with pytest.raises(CorruptFileError, match="end inside their row"):
        walk_entries(data, starts, stops, WIDE_TEXT)


@pytest.mark.parametrize("length", LENGTHS)
def test_a_32_bit_length_past_the_row_is_refused(length: int) -> None:
    data, starts, stops = data_of(b"\0" + length.to_bytes(4, "little") + b"abcd")
    with pytest.raises(CorruptFileError, match="end inside their row"):
        walk_entries(data, starts, stops, TEXT)


@pytest.mark.parametrize(
    ("row", "form"),
    [
        (b"", TEXT),
        (b"\0", NUMBER),
        (b"\0\1\0", TEXT),
        (b"\0\0aaa", NUMBER),
        (text(0, b"a") + b"\0\1\0", TEXT),
        (b"\0\0aaaa\0", NUMBER),
    ],
)
def test_a_row_that_is_cut_off_is_refused(row: bytes, form: EntryFormat) -> None:
    for repeats in (1, 40):
        data, starts, stops = data_of(*[row] * repeats)
        with pytest.raises(CorruptFileError):
            walk_entries(data, starts, stops, form)


def test_a_row_past_the_data_is_refused() -> None:
    data, starts, stops = data_of(text(0, b"abcd"))
    with pytest.raises(CorruptFileError):
        walk_entries(data[:4], starts, stops, TEXT)


def test_entries_without_a_byte_are_refused() -> None:
    form = EntryFormat(0, 0, 0, 0, 0)
    data, starts, stops = data_of(b"ab")
    with pytest.raises(CorruptFileError, match="at least one byte"):
        walk_entries(data, starts, stops, form)


@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_words_are_little_endian(width: int) -> None:
    data = np.arange(1, 20, dtype=np.uint8)
    stops = np.array([19, 19])
    expected = [int.from_bytes(bytes(data[at : at + width]), "little") for at in (0, 7)]
    assert read_words(data, np.array([0, 7]), width, stops).tolist() == expected
