"""Encoding with FSST: both forms agree, and the reader's kernel undoes it."""

from __future__ import annotations

import numpy as np
import pytest

from lance_nb.encodings.kernels import compiled, fsst, fsst_encode
from lance_nb.encodings.kernels.fsst_encode import encode, encode_symbols
from lance_nb.encodings.kernels.fsst_symbols import build, train

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
    with compiled.forced(compiled.Mode.NEVER):
        matcher = train(lambda found: encode_symbols(data, offsets, found))
        codes, ends = encode(data, offsets, matcher)
    with compiled.forced(compiled.Mode.ALWAYS):
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


def test_what_a_loop_would_save_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    data, offsets = joined(STRINGS["text"])
    state = type(compiled._state)()
    monkeypatch.setattr(compiled, "_state", state)
    encode(data, offsets, build(np.zeros(0, np.uint64), np.zeros(0, np.int64)))
    assert state.missed_seconds == pytest.approx(data.size * fsst_encode._SAVED_SECONDS)


def test_no_symbol_reaches_over_the_border_of_two_pieces() -> None:
    symbol = np.array([int.from_bytes(b"abc", "little")], np.uint64)
    data, offsets = joined([b"abc" * 100, b"abc"])  # byte 256 is the b of the 86th
    codes, ends = encode(data, offsets, build(symbol, np.array([3])))
    assert codes.tobytes() == b"\0" * 85 + b"\xffa\xffb\xffc" + b"\0" * 14 + b"\0"
    assert ends.tolist() == [0, 105, 106]
