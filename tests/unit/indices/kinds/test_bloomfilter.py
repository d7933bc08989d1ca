"""Bloom filters that are built."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from xxhash import xxh64_intdigest

from lance_nb.errors import InvalidInputError
from lance_nb.indices.kinds import bloomfilter


@pytest.mark.parametrize("length", [*range(70), 200])
def test_hashes_of_a_table_are_those_of_xxhash(length: int) -> None:
    table = np.random.default_rng(length).integers(0, 256, (5, length), np.uint8)
    found = bloomfilter._xxh64(table)
    assert found.tolist() == [xxh64_intdigest(row.tobytes(), 0) for row in table]


def test_values_of_every_length_are_hashed() -> None:
    texts = ["", "a", "b" * 63, "c" * 64, "d" * 500, "", "e" * 64]
    found = np.concatenate(list(bloomfilter._hashes(pa.array(["cut", *texts]).slice(1))))
    assert sorted(found.tolist()) == sorted(xxh64_intdigest(one.encode(), 0) for one in texts)


def test_both_zeros_are_in_a_filter() -> None:
    found = np.concatenate(list(bloomfilter._hashes(pa.array([1.0, -0.0]))))
    for value in (0.0, -0.0, 1.0):
        assert xxh64_intdigest(np.float64(value).tobytes(), 0) in found.tolist()


@pytest.mark.parametrize(
    "parameters",
    [
        {"number_of_items": 0}, {"number_of_items": "9"}, {"probability": 0.0}, {"probability": 1},
        {"rows": 5}, {"number_of_items": 1 << 24, "probability": 1e-12},
    ],
)  # fmt: skip
def test_parameters_without_meaning_are_refused(parameters: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError):
        bloomfilter.check(pa.field("a", pa.int64()), parameters)
