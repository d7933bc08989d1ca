"""Keys of inserted rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.format.bfloat16 import BFloat16Type
from lance_nb.format.key_filter import KeyFilter


def bloom(*blocks: int) -> KeyFilter:
    """Return a filter of four blocks; one bit is set in each word of the given ones."""
    words = np.zeros((4, 8), "<u4")
    for block in blocks:
        words[block] = 1 << block
    return KeyFilter((0,), bitmap=words.tobytes(), parameters=(1024, 10, 0.01))


def test_exact_hashes_overlap_if_one_is_in_both() -> None:
    assert KeyFilter((0,), (1, 2)).may_overlap(KeyFilter((0,), (2, 3)))
    assert not KeyFilter((0,), (1, 2)).may_overlap(KeyFilter((0,), (3,)))


def test_bloom_filters_overlap_if_all_words_of_a_block_do() -> None:
    assert bloom(0, 1).may_overlap(bloom(1, 2))
    assert not bloom(0, 1).may_overlap(bloom(2, 3))
    words = np.frombuffer(bloom(1).bitmap, "<u4").copy()
    words[8] = 0  # a key sets a bit in every word of its block, so none can be here
    assert not bloom(1).may_overlap(replace(bloom(1), bitmap=words.tobytes()))


def test_what_cannot_be_compared_may_overlap() -> None:
    exact = KeyFilter((0,), (1,))
    for other in (
        KeyFilter((1,), (2,)),
        KeyFilter((0,)),
        bloom(3),
        replace(bloom(3), parameters=(1024, 11, 0.01)),
        replace(bloom(3), bitmap=b"odd"),
    ):
        assert exact.may_overlap(other)
    assert bloom(0).may_overlap(replace(bloom(3), parameters=(1024, 11, 0.01)))
    assert bloom(0).may_overlap(replace(bloom(3), bitmap=b""))
    odd = replace(bloom(0), bitmap=b"odd")
    assert odd.may_overlap(odd)


def test_both_forms_are_read_back() -> None:
    for one in (KeyFilter((0, 3), (5, 6)), KeyFilter((), ()), bloom(2), KeyFilter((1,))):
        assert KeyFilter.from_pb(one.to_pb()) == one


def test_keys_set_the_bits_that_pylance_sets() -> None:
    made = KeyFilter.of_keys([0], [pa.array([5], pa.int64())])
    bits = np.flatnonzero(np.unpackbits(np.frombuffer(made.bitmap, np.uint8), bitorder="little"))
    assert bits.tolist() == [140815, 140843, 140872, 140923, 140936, 140974, 140998, 141046]
    assert made.parameters == (262144, 8192, 0.00057)
    texts = KeyFilter.of_keys([1], [pa.array(["x"])])
    bits = np.flatnonzero(np.unpackbits(np.frombuffer(texts.bitmap, np.uint8), bitorder="little"))
    assert len(bits) == 8


def test_filters_of_keys_overlap_where_a_key_is_in_both() -> None:
    def made(*keys: int) -> KeyFilter:
        return KeyFilter.of_keys([0], [pa.array(keys, pa.int64())])

    assert made(1, 2).may_overlap(made(2, 3))
    assert not made(1, 2).may_overlap(made(3, 4))
    assert not made().may_overlap(made(1))


def test_keys_that_pylance_does_not_hash_overlap_with_every_filter_of_its() -> None:
    def times(*keys: int) -> KeyFilter:
        return KeyFilter.of_keys([0], [pa.array(keys, pa.timestamp("us"))])

    assert times(1, 2).may_overlap(times(2))
    assert not times(1, 2).may_overlap(times(3))
    empty = KeyFilter.of_keys([0], [pa.array([], pa.int64())])
    assert empty.bitmap is not None
    assert times(1).may_overlap(empty)


def test_equal_words_of_dictionaries_are_one_key() -> None:
    one = pa.array(["a", "b"]).dictionary_encode()
    other = pa.array(["b", "c"]).dictionary_encode()
    assert KeyFilter.of_keys([0], [one]).may_overlap(KeyFilter.of_keys([0], [other]))
    fresh = pa.array(["c"]).dictionary_encode()
    assert not KeyFilter.of_keys([0], [one]).may_overlap(KeyFilter.of_keys([0], [fresh]))


def test_too_many_keys_of_such_types_say_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lance_nb.format.key_filter.EXACT_MAX", 2)
    many = KeyFilter.of_keys([0], [pa.array([1.0, 2.0, 3.0])])
    few = KeyFilter.of_keys([0], [pa.array([7.0])])
    assert many.hashes is None
    assert many.may_overlap(few)
    assert KeyFilter.from_pb(many.to_pb()) == many


@pytest.mark.parametrize(("count", "exact"), [(100_000, True), (100_001, False)])
def test_a_hundred_thousand_keys_are_told_exactly(count: int, exact: bool) -> None:
    made = KeyFilter.of_keys([0], [pa.array(range(count), pa.timestamp("us"))])
    assert (made.hashes is not None) is exact
    half = KeyFilter((0,), tuple(range(count // 2)))
    rest = KeyFilter((0,), tuple(range(count // 2, count)))
    assert (KeyFilter.united([half, rest]).hashes is not None) is exact


def test_united_filters_hold_the_keys_of_all() -> None:
    one, other = bloom(0), bloom(2, 3)
    both = KeyFilter.united([one, other])
    assert both == bloom(0, 2, 3)
    assert KeyFilter.united([one]) == one
    exact = KeyFilter.united([KeyFilter((0,), (5, 1)), KeyFilter((0,), (3, 5))])
    assert exact == KeyFilter((0,), (1, 3, 5))


@pytest.mark.parametrize(
    "filters",
    [
        [bloom(0), KeyFilter((0,), (1,))],
        [bloom(0), replace(bloom(1), parameters=(1024, 11, 0.01))],
        [bloom(0), replace(bloom(1), field_ids=(1,))],
        [bloom(0), replace(bloom(1), bitmap=bytes(64))],
        [KeyFilter((0,), (1,)), KeyFilter((1,), (1,))],
        [KeyFilter((0,), (1,)), KeyFilter((0,))],
        [KeyFilter((0,))],
    ],
    ids=["two kinds", "two parameters", "two keys", "two lengths", "two exact keys", "one silent",
         "silent"],
)  # fmt: skip
def test_filters_that_do_not_fit_together_say_nothing(filters: list[KeyFilter]) -> None:
    made = KeyFilter.united(filters)
    assert made == KeyFilter(filters[0].field_ids)
    assert made.may_overlap(KeyFilter((0,), (99,)))


@pytest.mark.parametrize(("limit", "hashes"), [(3, (1, 2, 3)), (2, None)])
def test_too_many_united_keys_say_nothing(
    monkeypatch: pytest.MonkeyPatch, limit: int, hashes: tuple[int, ...] | None
) -> None:
    monkeypatch.setattr("lance_nb.format.key_filter.EXACT_MAX", limit)
    made = KeyFilter.united([KeyFilter((0,), (1, 2)), KeyFilter((0,), (3,))])
    assert made.hashes == hashes


def test_values_behind_an_extension_type_are_the_keys() -> None:
    plain = pa.array([b"ab", b"cd"], pa.binary(2))
    wrapped = pa.ExtensionArray.from_storage(BFloat16Type(), plain)
    made = KeyFilter.of_keys([0], [wrapped])
    assert made.hashes is not None
    again = pa.ExtensionArray.from_storage(BFloat16Type(), plain[1:])
    assert made.may_overlap(KeyFilter.of_keys([0], [again]))


def test_keys_of_lists_say_nothing() -> None:
    assert KeyFilter.of_keys([0], [pa.array([[1]])]) == KeyFilter((0,))
