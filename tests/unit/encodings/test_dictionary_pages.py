"""Which pages become dictionaries."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.encodings.dictionary_pages import to_dictionary
from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.encodings.leaf_blocks import from_arrow
from lance_nb.encodings.slicing import take_block
from lance_nb.encodings.statistics import Measured
from tests.property.encodings.reference_encoders import plain
from tests.support.leaf_values import make

V2_1 = EncodingOptions(file_version=(2, 1))
V2_2 = EncodingOptions(file_version=(2, 2))


@pytest.mark.parametrize("kind", ["string, few", "int64, few", "decimal128, few"])
def test_few_values_become_items_and_indices(kind: str) -> None:
    block = from_arrow(make(kind, 5000))
    found = to_dictionary(Measured(block), V2_2)
    assert found is not None
    assert found.items.num_values <= 20
    indices = found.indices.data.view(np.uint32).astype(np.int64)
    assert plain(take_block(found.items, indices)) == plain(block)


@pytest.mark.parametrize(
    "kind", ["int64, all bits", "int64, ten bits", "int64, one", "int32, runs"]
)
def test_other_numbers_stay(kind: str) -> None:
    assert to_dictionary(Measured(from_arrow(make(kind, 5000))), V2_2) is None


def test_different_strings_stay() -> None:
    strings = from_arrow(pa.array([f"string {i}" for i in range(30_000)]))
    assert to_dictionary(Measured(strings), V2_2) is None


def test_numbers_of_64_bits_have_no_dictionary_in_2_1_files() -> None:
    assert to_dictionary(Measured(from_arrow(make("int64, few", 5000))), V2_1) is None
    assert to_dictionary(Measured(from_arrow(make("string, few", 5000))), V2_1) is not None


def test_dictionary_arrays_keep_theirs() -> None:
    block = from_arrow(make("dictionary of int8", 3))
    assert to_dictionary(Measured(block), V2_1) is block


@pytest.mark.parametrize(
    "bound",
    [
        {"dict_divisor": 1000},
        {"dict_size_ratio": 0.01},
        {"dict_max_size_bytes": 10},
        {"compression": "none"},
    ],
)
def test_the_field_may_bound_it(bound: dict[str, int]) -> None:
    strings = from_arrow(make("string, few", 2000))
    options = EncodingOptions(file_version=(2, 2), **bound)  # type: ignore[arg-type]
    assert to_dictionary(Measured(strings), options) is None
