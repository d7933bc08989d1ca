"""Training symbols and encoding with them."""

from __future__ import annotations

import numpy as np
import pytest

from lance_nb.encodings.kernels import fsst
from lance_nb.encodings.kernels.fsst import symbol_table
from lance_nb.encodings.kernels.fsst_encode import (
    LENGTH_SHIFT,
    LITERAL,
    MOST_SYMBOLS,
    TABLE_BYTES,
    Matcher,
    build,
    encode,
    encode_symbols,
    select,
    to_bytes,
    train,
)
from tests.support.compiled_forms import Form, forced


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
    return build(*select(numbers, np.array([len(one) for one in symbols], np.int64)))


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


STRINGS = {
    "text": [b"the quick brown fox %d" % i for i in range(300)],
    "empty ones": [b"", b"a", b"", b"", b"abcabc", b""],
    "long ones": [b"0123456789" * 100, b"x" * 255, b"y" * 257, b"z" * 256, b"q"],
    "bytes of 255": [b"\xff" * 9, b"\xff", bytes(range(256))],
    "random": [np.random.default_rng(i).bytes(i % 50) for i in range(200)],
}


def joined(strings: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    ends = np.concatenate(([0], np.cumsum([len(string) for string in strings])))
    return np.frombuffer(b"".join(strings), np.uint8), ends.astype(np.int64)


@pytest.mark.parametrize("kind", STRINGS)
def test_both_forms_agree_and_the_reader_undoes_them(kind: str) -> None:
    data, offsets = joined(STRINGS[kind])
    with forced(Form.NUMPY):
        matcher = train(lambda found: encode_symbols(data, offsets, found))
        codes, ends = encode(data, offsets, matcher)
    with forced(Form.COMPILED):
        same_codes, same_ends = encode(data, offsets, matcher)
    assert codes.tobytes() == same_codes.tobytes()
    assert ends.tolist() == same_ends.tolist()
    count = matcher.num_symbols
    symbols = fsst.Symbols(matcher.words[:count].copy(), matcher.lengths[:count].copy())
    found_ends, found = fsst.decode(codes, ends, symbols)
    assert found.tobytes() == data.tobytes()
    assert found_ends.tolist() == offsets.tolist()


def test_the_longest_symbol_is_taken_and_never_past_the_end() -> None:
    symbols = [int.from_bytes(word, "little") for word in (b"abc", b"ab", b"a")]
    matcher = build(np.array(symbols, np.uint64), np.array([3, 2, 1]))
    data, offsets = joined([b"abcab", b"a", b"abd"])
    codes, ends = encode(data, offsets, matcher)
    assert codes.tolist() == [0, 1, 2, 1, 255, ord("d")]
    assert ends.tolist() == [0, 2, 3, 6]


def test_a_slice_of_the_bytes_may_be_encoded() -> None:
    data, offsets = joined([b"skipped", b"abc", b"def"])
    codes, ends = encode(data, offsets[1:], build(np.zeros(0, np.uint64), np.zeros(0, np.int64)))
    assert codes.tobytes() == b"".join(b"\xff%c" % byte for byte in b"abcdef")
    assert ends.tolist() == [0, 6, 12]


def test_no_symbol_reaches_over_the_border_of_two_pieces() -> None:
    symbol = np.array([int.from_bytes(b"abc", "little")], np.uint64)
    data, offsets = joined([b"abc" * 100, b"abc"])  # byte 256 is the b of the 86th
    codes, ends = encode(data, offsets, build(symbol, np.array([3])))
    assert codes.tobytes() == b"\0" * 85 + b"\xffa\xffb\xffc" + b"\0" * 14 + b"\0"
    assert ends.tolist() == [0, 105, 106]
