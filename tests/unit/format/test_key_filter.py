"""Keys of inserted rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

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
