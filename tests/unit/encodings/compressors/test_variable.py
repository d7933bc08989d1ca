"""Writing strings."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lance_nb.encodings.encoding_options import EncodingOptions
from tests.property.encodings.reference_encoders import variable_block
from tests.support.compressing import V2_2, by_value, in_blocks, in_chunks, measured


@pytest.mark.parametrize("type_", [pa.string(), pa.large_string()])
def test_chunks_come_back(type_: pa.DataType) -> None:
    values = ["é" * (i * 37 % 50) for i in range(3000)]
    encoding, counts = in_chunks("variable", measured(values, type_))
    bits = encoding.variable.offsets.flat.bits_per_value
    assert bits == (32 if type_ == pa.string() else 64)
    assert all(count & (count - 1) == 0 for count in counts[:-1])


def test_chunks_with_longer_strings_are_halved() -> None:
    values = ["a"] * 40_960 + ["b" * 200] * 2048 + ["c"] * 100
    _, counts = in_chunks("variable", measured(values))
    assert len(set(counts[:-1])) > 1
    ends = [sum(counts[: n + 1]) for n in range(len(counts))]
    sizes = [
        sum(map(len, values[end - count : end])) + 4 * count
        for end, count in zip(ends, counts, strict=True)
    ]
    assert max(sizes) <= 16 * 1024


def test_offsets_count_among_the_bytes_of_a_chunk() -> None:
    longest = 2 * V2_2.chunk_bytes - 4 * 1024  # of the strings of 1024 values
    for size, halved in ((longest, False), (longest + 1, True)):
        first = ["a" * (size * (n + 1) // 1024 - size * n // 1024) for n in range(1024)]
        counts = in_chunks("variable", measured(first + [""] * 40_960))[1]
        assert counts == [512] * 2 * halved + [1024] * (41 - halved)


def test_a_huge_string_does_not_keep_chunks_from_ending() -> None:
    values = ["a"] * 10 + ["b" * 100_000] + ["c"] * 10
    assert in_chunks("variable", measured(values))[1] == [2] * 10 + [1]
    values = ["a"] * 41 + ["b" * 400_000] + ["c"] * 10_000
    counts = in_chunks("variable", measured(values))[1]
    assert sum(counts) == len(values)
    assert min(counts[:-1]) == 2


def test_a_dictionary_is_one_block() -> None:
    values = [b"red", b"", b"blue"]
    _, blocks = in_blocks("variable", measured(values), [3])
    assert blocks == [variable_block(values)]
    _, blocks = in_blocks("variable", measured(values, pa.large_binary()), [3])
    assert blocks == [variable_block(values, 64)]


def test_smaller_chunks_may_be_asked_for() -> None:
    options = EncodingOptions(file_version=(2, 2), minichunk_size_bytes=256)
    _, counts = in_chunks("variable", measured(["abcd"] * 100), options)
    assert counts == [32, 32, 32, 4]


def test_single_values_come_back() -> None:
    by_value("variable", measured(["a", "", "ccc"]))
