"""Which pages become dictionaries."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.encodings.base import DataBlock
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


def mixed(count: int, distinct: int, runs_of: int = 1) -> np.ndarray:
    """Return so many different values, no neighbour alike but in runs."""
    return np.repeat(np.arange(count // runs_of) * 7 % distinct, runs_of)


# 4096 values of 16, so 4 bits each beside the items, against what they need without.
@pytest.mark.parametrize(
    ("block", "items", "plain_bytes"),
    [
        (from_arrow(pa.array((mixed(4096, 16) + 1) << 36)), 16 * 8, 4 * 41 * 128),
        (from_arrow(pa.array(mixed(4096, 16, 8) << 36)), 16 * 8, 511 / 4095 * 4096 * 9),
        (from_arrow(pa.array((mixed(4096, 16) + 1) << 59)), 16 * 8, 4096 * 8),
        (
            from_arrow(pa.array([f"{one:10}" for one in mixed(4096, 16).tolist()])),
            16 * 14,
            4096 * 14,
        ),
        (
            from_arrow(pa.array([f"{one:10}" for one in mixed(4096, 16).tolist()], "large_string")),
            16 * 18,
            4096 * 18,
        ),
        (
            from_arrow(pa.array(mixed(4096, 16)).cast(pa.decimal128(30))),
            16 * 16,
            4096 * 16,
        ),
    ],
    ids=["packed", "runs", "wide", "text", "large text", "decimal"],
)
def test_a_dictionary_is_smaller_by_the_ratio(
    block: DataBlock, items: int, plain_bytes: float
) -> None:
    ratio = (items + 4096 * 4 / 8) / plain_bytes
    for share, taken in ((ratio + 1e-9, True), (ratio, False), (ratio - 1e-9, False)):
        options = EncodingOptions(file_version=(2, 2), dict_size_ratio=share)
        assert (to_dictionary(Measured(block), options) is not None) == taken


@pytest.mark.parametrize(
    ("count", "distinct", "divisor", "taken"),
    [
        (63, 3, None, False),
        (64, 3, None, True),
        (100, 50, None, True),
        (100, 51, None, False),
        (100, 25, 4, True),
        (100, 26, 4, False),
        (100, 60, 1, True),
        (5000, 1, None, True),
    ],
)
def test_there_are_enough_values_for_each_item(
    count: int, distinct: int, divisor: int | None, taken: bool
) -> None:
    block = from_arrow(pa.array([f"a rather long text {n % distinct:9}" for n in range(count)]))
    options = EncodingOptions(file_version=(2, 2), dict_divisor=divisor)
    assert (to_dictionary(Measured(block), options) is not None) == taken


@pytest.mark.parametrize(("most", "taken"), [(7 * 10, True), (7 * 10 - 1, False)])
def test_the_text_of_all_items_has_a_bound(most: int, taken: bool) -> None:
    block = from_arrow(pa.array([f"{n % 7:10}" for n in range(5000)]))
    options = EncodingOptions(file_version=(2, 2), dict_max_size_bytes=most)
    assert (to_dictionary(Measured(block), options) is not None) == taken


@pytest.mark.parametrize(("distinct", "taken"), [(1000, True), (1300, False)])
def test_a_page_of_different_values_is_not_hashed(distinct: int, taken: bool) -> None:
    """The first sample of eight runs of 256 tells: up to six tenths of it may differ."""
    texts = [f"a rather long text {n % distinct:9}" for n in range(20_000)]
    found = to_dictionary(Measured(from_arrow(pa.array(texts))), V2_2)
    assert (found is not None) == taken


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
