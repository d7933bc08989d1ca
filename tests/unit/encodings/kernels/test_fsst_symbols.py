"""Choosing symbols."""

from __future__ import annotations

import numpy as np

from lance_nb.encodings.kernels.fsst import symbol_table
from lance_nb.encodings.kernels.fsst_encode import encode_symbols
from lance_nb.encodings.kernels.fsst_symbols import (
    LENGTH_SHIFT,
    LITERAL,
    MOST_SYMBOLS,
    TABLE_BYTES,
    Matcher,
    build,
    to_bytes,
    train,
)


def trained(*strings: bytes) -> Matcher:
    data = np.frombuffer(b"".join(strings), np.uint8)
    ends = np.concatenate(([0], np.cumsum([len(string) for string in strings])))
    return train(lambda matcher: encode_symbols(data, ends, matcher))


def words(matcher: Matcher) -> list[bytes]:
    pairs = zip(matcher.words.tolist(), matcher.lengths.tolist(), strict=True)
    found = [word.to_bytes(8, "little")[:length] for word, length in pairs]
    return found[: matcher.num_symbols]


def test_frequent_strings_become_symbols() -> None:
    found = words(trained(*[b"https://www.example.com/%d" % i for i in range(200)]))
    assert any(len(word) == 8 and word in b"https://www.example.com/" for word in found)


def test_nothing_to_train_on_gives_no_symbols() -> None:
    assert trained(b"").num_symbols == 0


def test_there_are_at_most_255() -> None:
    rng = np.random.default_rng(1)
    assert trained(rng.bytes(16_000)).num_symbols <= MOST_SYMBOLS


def built(*symbols: bytes) -> Matcher:
    numbers = np.array([int.from_bytes(one, "little") for one in symbols], np.uint64)
    return build(numbers, np.array([len(one) for one in symbols], np.int64))


def test_of_long_symbols_with_one_hash_the_first_is_kept() -> None:
    assert words(built(b"x", b"abcd", b"ab", b"abce", b"abc", b"xyz")) == [
        b"x", b"abcd", b"ab", b"xyz"
    ]  # fmt: skip


def test_a_collision_leaves_room_for_another_symbol() -> None:
    many = [bytes([at // 16 + 65, at % 16 + 65]) for at in range(MOST_SYMBOLS - 1)]
    matcher = built(b"abcd", b"abce", *many, b"too late")
    assert words(matcher) == [b"abcd", *many]
    assert matcher.pairs[int.from_bytes(many[-1], "little")] == MOST_SYMBOLS - 1 | 2 << LENGTH_SHIFT


def test_a_symbol_of_eight_bytes_is_compared_whole() -> None:
    matcher = built(b"abcdefgh", b"xyz")
    assert sorted(matcher.hash_masks[matcher.hash_masks > 0].tolist()) == [2**24 - 1, 2**64 - 1]


def test_bytes_without_a_symbol_are_literals() -> None:
    matcher = built(b"a")
    assert matcher.singles[ord("a")] == 0 | 1 << LENGTH_SHIFT
    assert matcher.singles[ord("b")] == LITERAL + ord("b") | 1 << LENGTH_SHIFT
    assert matcher.pairs[ord("a") | ord("b") << 8] == 0 | 1 << LENGTH_SHIFT


def test_a_written_table_is_read_again() -> None:
    matcher = trained(*[b"some text %d" % i for i in range(100)])
    raw = to_bytes(matcher)
    assert len(raw) == TABLE_BYTES
    assert raw[4:8] == b"TSSF"
    symbols = symbol_table(raw)
    assert symbols is not None
    assert symbols.words.tolist() == matcher.words[: matcher.num_symbols].tolist()
    assert symbols.lengths.tolist() == matcher.lengths[: matcher.num_symbols].tolist()
