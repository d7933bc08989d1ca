"""The compiled loops, run here as the plain Python that they are."""

from __future__ import annotations

import numpy as np
import pytest

from lance_nb.encodings.kernels import bitpack, compiled, loops
from lance_nb.encodings.kernels.fsst_encode import build, encode, encode_symbols, train
from tests.property.encodings.reference_encoders import pack_block

SYMBOLS = np.zeros(256, np.uint64)
SYMBOLS[:2] = [int.from_bytes(b"abc", "little"), int.from_bytes(b"d", "little")]
LENGTHS = np.zeros(256, np.uint8)
LENGTHS[:2] = [3, 1]


def measured(codes: list[int], offsets: list[int], *, escaped: bool) -> tuple[bool, list[int]]:
    out = np.zeros(len(offsets), np.int64)
    loop = loops.measure_escaped_fsst if escaped else loops.measure_fsst
    scratch = np.zeros(3, np.uint64)  # tiny, so that stretches end inside values
    broken = loop(np.array(codes, np.uint8), np.array(offsets), LENGTHS, scratch, out)
    return bool(broken), out.tolist()


def test_values_are_measured() -> None:
    codes, offsets = [0, 1, 1, 0, 1], [0, 2, 2, 5]
    assert measured(codes, offsets, escaped=False) == (False, [0, 4, 4, 9])
    assert measured(codes, offsets, escaped=True) == (False, [0, 4, 4, 9])


def test_escapes_are_measured_and_checked() -> None:
    assert measured([255, 255, 0, 255, 7], [0, 2, 3, 5], escaped=True) == (False, [0, 1, 4, 5])
    assert measured([0, 255, 7], [0, 2, 3], escaped=True)[0]
    assert measured([0, 255], [0, 2], escaped=True)[0]
    assert measured([0, 9], [0, 2], escaped=True)[0]


def test_symbols_are_written_as_whole_words() -> None:
    out = np.zeros(20, np.uint8)
    windows = np.ndarray((13,), np.uint64, out.data, 0, (1,))
    lengths = LENGTHS.copy()
    lengths[255] = 1
    loops.decode_fsst(np.array([0, 255, 90, 1], np.uint8), SYMBOLS, lengths, windows)
    assert out[:5].tobytes() == b"abcZd"


def test_bits_are_unpacked() -> None:
    values = [i % 32 for i in range(1024)]
    words = np.frombuffer(pack_block(values, 8, 5), np.uint8)
    out = np.zeros(1024, np.uint8)
    order = bitpack._first_values(8).astype(np.uint64)
    loops.unpack_bits(words, np.zeros(1, np.uint64), np.uint64(5), order, out)
    assert out.tolist() == values


@pytest.mark.parametrize(("bits", "width"), [(8, 8), (16, 3), (32, 17), (64, 33), (64, 64)])
def test_blocks_anywhere_are_unpacked(bits: int, width: int) -> None:
    rng = np.random.default_rng(width)
    values = rng.integers(0, (1 << width) - 1, (2, 1024), np.uint64, endpoint=True)
    values = values.astype(f"u{bits // 8}")
    size = 1024 * width // bits
    words = np.concatenate(
        [np.full(3, 7, values.dtype)]
        + [np.frombuffer(pack_block(row.tolist(), bits, width), values.dtype) for row in values]
    )
    out = np.zeros(2048, values.dtype)
    order = bitpack._first_values(bits).astype(np.uint64)
    starts = np.array([3 + size, 3], np.uint64)
    with np.errstate(over="ignore"):
        loops.unpack_bits(words, starts, np.uint64(width), order, out)
    assert np.array_equal(out.reshape(2, 1024), values[::-1])


@pytest.fixture
def plain_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let callers run the loops without the compiler."""
    monkeypatch.setattr(compiled, "_state", compiled._State())
    monkeypatch.setattr(compiled, "_jit", lambda loop: loop)


@pytest.mark.usefixtures("plain_loops")
@pytest.mark.parametrize(("bits", "width"), [(8, 5), (8, 8), (16, 3), (32, 17), (64, 33), (64, 64)])
def test_blocks_are_packed_one_behind_the_other(bits: int, width: int) -> None:
    rng = np.random.default_rng(width)
    blocks = rng.integers(0, (1 << width) - 1, (3, 1024), np.uint64, endpoint=True)
    blocks = blocks.astype(f"u{bits // 8}")
    rows = np.full((3, 1024 * width // bits + 2), 7, blocks.dtype)  # a stride of two words more
    with np.errstate(over="ignore"), compiled.forced(compiled.Mode.ALWAYS):
        bitpack.pack(blocks, width, rows[:, 1:-1])
    for block, row in zip(blocks, rows, strict=True):
        assert row[1:-1].tobytes() == pack_block(block.tolist(), bits, width)
        assert (row[0], row[-1]) == (7, 7)


@pytest.mark.usefixtures("plain_loops")
def test_bytes_without_a_symbol_are_escaped_by_the_loop_too() -> None:
    symbol = np.array([int.from_bytes(b"abc", "little")], np.uint64)
    matcher = build(symbol, np.array([3]))
    data = np.frombuffer(b"abcabxabcz", np.uint8)
    with np.errstate(over="ignore"), compiled.forced(compiled.Mode.ALWAYS):
        codes, ends = encode(data, np.array([0, 6, 10]), matcher)
        wide, wide_ends = encode_symbols(data, np.array([0, 6, 10]), matcher)
    assert codes.tobytes() == b"\0\xffa\xffb\xffx\0\xffz"
    assert ends.tolist() == [0, 7, 10]
    assert wide.tolist() == [0, 256 + ord("a"), 256 + ord("b"), 256 + ord("x"), 0, 256 + ord("z")]
    assert wide_ends.tolist() == [0, 4, 6]


@pytest.mark.usefixtures("plain_loops")
@pytest.mark.parametrize(
    "strings",
    [
        [b"the quick brown fox %d" % i for i in range(30)],
        [b"", b"a", b"", b"abcdefghabcdefgh" * 20, b"\xff\xfe", b"ab"],
        [b"z"],
    ],
    ids=["text", "mixed", "one"],
)
def test_strings_are_encoded_as_without_the_loop(strings: list[bytes]) -> None:
    ends = np.concatenate(([0], np.cumsum([len(string) for string in strings])))
    data = np.frombuffer(b"".join(strings), np.uint8)
    with compiled.forced(compiled.Mode.NEVER):
        matcher = train(lambda found: encode_symbols(data, ends, found))
        wanted = [encode(data, ends, matcher), encode_symbols(data, ends, matcher)]
    with np.errstate(over="ignore"), compiled.forced(compiled.Mode.ALWAYS):
        found = [encode(data, ends, matcher), encode_symbols(data, ends, matcher)]
    for (codes, offsets), (same_codes, same_offsets) in zip(wanted, found, strict=True):
        assert codes.tolist() == same_codes.tolist()
        assert offsets.tolist() == same_offsets.tolist()
