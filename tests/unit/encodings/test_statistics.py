"""Statistics of blocks."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.encodings.arrow_arrays import from_arrow
from lance_nb.encodings.base import AllNull, DataBlock
from lance_nb.encodings.statistics import (
    LAST_RESORT,
    Learned,
    Measured,
    bit_lengths,
    bits_per_value,
    saving,
    savings,
)


def measured(values: object, type_: pa.DataType | None = None) -> Measured:
    return Measured(from_arrow(pa.array(values, type_)))


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_bit_lengths_are_those_of_python(bits: int) -> None:
    powers = [1 << bit for bit in range(bits)]
    values = [0, *powers, *(power - 1 for power in powers), 2**bits - 1]
    found = bit_lengths(np.array(values, f"u{bits // 8}"))
    assert found.tolist() == [value.bit_length() for value in values]


def test_every_1024_values_have_a_width() -> None:
    values = np.concatenate((np.zeros(1024), np.full(1024, 5), [300])).astype(np.int64)
    assert measured(values).block_widths.tolist() == [0, 3, 9]
    assert measured(["a"]).block_widths is None


def test_negative_numbers_need_all_bits() -> None:
    assert measured([-1], pa.int16()).block_widths.tolist() == [16]


def test_runs_are_counted_exactly_and_by_sample() -> None:
    runs = measured(np.repeat(np.arange(1000), 40))
    assert runs.num_runs == 1000
    assert 0.02 < runs.sampled_run_share < 0.03
    assert measured(np.arange(50_000)).sampled_run_share == 1.0
    assert measured([], pa.int32()).num_runs == 0
    assert measured(["a", "b"]).num_runs == 0


def test_wide_values_are_seen_in_a_few_blocks() -> None:
    rng = np.random.default_rng(1)
    assert measured(rng.integers(-(2**63), 2**63 - 1, 200_000)).is_wide
    assert not measured(rng.integers(0, 2**40, 200_000)).is_wide


def test_lengths_of_strings() -> None:
    strings = measured(["a", "", "four"])
    assert strings.lengths.tolist() == [1, 0, 4]
    assert strings.longest == strings.widest_bytes == 4
    assert strings.size_bytes == 5


def test_bits_of_values() -> None:
    lists = pa.array([[1, 2]], pa.list_(pa.int16(), 2))
    assert bits_per_value(from_arrow(lists)) == 32
    structs = pa.array([{"a": 1, "b": "x"}], pa.struct([("a", pa.int8()), ("b", pa.string())]))
    assert bits_per_value(from_arrow(structs)) is None
    assert bits_per_value(from_arrow(structs.field("a"))) == 8


def test_priorities_say_how_much_is_saved() -> None:
    assert saving(100, 100) == 0
    assert saving(100, 25) == LAST_RESORT + 750


def test_repetitive_text_pays_and_random_letters_do_not() -> None:
    rng = np.random.default_rng(1)
    letters = rng.integers(97, 123, (3000, 20)).astype(np.uint8).view("S20").reshape(-1)
    random = measured(letters.tolist(), pa.binary())
    assert random.frequent_pairs < 0.45
    text = measured([f"the quick brown fox {i}" for i in range(3000)])
    before, after = text.fsst_sample
    assert after < before / 3


@pytest.mark.parametrize(
    ("length", "count", "sampled"),
    [
        (24, 10, 24 * 10),
        (20, 3000, 16_384 // 20 * 20),
        (1000, 100, 16 * 1000),
        (5000, 100, 3 * 1024),  # of long strings, their beginning
        (20_000, 10, 1024),
        (0, 10, 0),
    ],
)
def test_sixteen_kibibytes_of_text_are_sampled(length: int, count: int, sampled: int) -> None:
    text = measured(["x" * length] * count)
    assert text.fsst_sample[0] == sampled
    assert text.frequent_pairs == (sampled > 0)


def test_samples_are_spread_over_the_page() -> None:
    rows = [letter * 20 for letter in "abcdefgh" for _ in range(1000)]
    data, offsets = measured(rows)._text_sample(0.5)
    assert sorted(set(data.tobytes().decode())) == list("abcdefgh")
    assert np.diff(offsets).tolist() == [20] * 819


@pytest.mark.parametrize(
    ("block", "found"),
    [
        (from_arrow(pa.array([1, 2])), (64, 16, 8)),
        (from_arrow(pa.array([True] * 9)), (1, 2, 1)),
        (from_arrow(pa.array(["abc", ""])), (None, 3, 3)),
        (from_arrow(pa.array([[1, 2]], pa.list_(pa.int16(), 2))), (32, 0, 4)),
        (from_arrow(pa.array(["a", "b"]).dictionary_encode()), (32, 0, 4)),
        (AllNull(3), (None, 0, 0)),
    ],
)
def test_sizes_of_blocks(block: DataBlock, found: tuple[int | None, int, int]) -> None:
    statistics = Measured(block)
    assert (bits_per_value(block), statistics.size_bytes, statistics.widest_bytes) == found


def page_of(words: list[str], seed: int, learned: Learned) -> Measured:
    rng = np.random.default_rng(seed)
    texts = [" ".join(rng.choice(words, 6)) for _ in range(2000)]
    return Measured(from_arrow(pa.array(texts)), learned)


def test_symbols_are_taken_over_by_pages_that_are_alike_and_now_and_then_looked_for_anew() -> None:
    learned, words = Learned(), ["quick", "brown", "fox", "lazy dog"]
    first = page_of(words, 0, learned).fsst_symbols
    taken = [page_of(words, seed, learned).fsst_symbols is first for seed in range(1, 9)]
    assert taken == [True] * 7 + [False]


def test_symbols_that_do_not_suit_a_page_are_not_taken_over() -> None:
    learned = Learned()
    page_of(["quick", "brown", "fox", "lazy dog"], 0, learned).fsst_symbols  # noqa: B018
    other = page_of(["1234", "56789", "777", "0101"], 0, learned)
    alone = page_of(["1234", "56789", "777", "0101"], 0, Learned())
    assert other.fsst_sample == alone.fsst_sample


def test_savings_of_several_sizes_are_those_of_each():
    sizes = np.random.default_rng(3).integers(0, 1100, 400)
    for plain in (999.0, 1000, 7, 1):
        assert savings(plain, sizes).tolist() == [saving(plain, int(size)) for size in sizes]
