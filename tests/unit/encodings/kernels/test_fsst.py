"""Decoding FSST codes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_nb.encodings.kernels import fsst
from lance_nb.errors import CorruptFileError
from tests.support.compiled_forms import Form, forced

RNG = np.random.default_rng(3)
LENGTHS = RNG.integers(1, 9, 200).astype(np.uint8)
TEXTS = [RNG.integers(97, 123, n).astype(np.uint8).tobytes() for n in LENGTHS]
WORDS = np.array([int.from_bytes(text, "little") for text in TEXTS], np.uint64)
SYMBOLS = fsst.Symbols(WORDS, LENGTHS)
FORMS = pytest.mark.parametrize("form", [Form.NUMPY, Form.COMPILED], ids=["numpy", "compiled"])


def expected(codes: np.ndarray) -> bytes:
    out, raw, i = [], codes.tolist(), 0
    while i < len(raw):
        out.append(bytes([raw[i + 1]]) if raw[i] == 255 else TEXTS[raw[i]])
        i += 1 + (raw[i] == 255)
    return b"".join(out)


@FORMS
@pytest.mark.parametrize("count", [0, 1, 4096, 4097, 10_000, 450_001])
def test_every_number_of_codes_takes_the_right_path(form: Form, count: int) -> None:
    codes = RNG.integers(0, 200, count).astype(np.uint8)
    inner = np.sort(RNG.integers(0, count + 1, count // 5))
    offsets = np.concatenate([[0], inner, [count]]).astype(np.int32)
    with forced(form):
        found, data = fsst.decode(codes, offsets, SYMBOLS)
    assert data.tobytes() == expected(codes)
    lengths = np.concatenate([[0], np.cumsum(LENGTHS[codes], dtype=np.int64)])
    assert np.array_equal(found, lengths[offsets])


@pytest.mark.parametrize("count", [5000, 65_536])
def test_a_few_codes_do_not_load_the_functions_of_arrow(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = RNG.integers(0, 200, count).astype(np.uint8)
    offsets = np.array([0, 7, count], np.int32)
    monkeypatch.setattr(fsst, "_arrow_is_loaded", lambda: False)
    monkeypatch.setattr(fsst, "_take", None)
    with forced(Form.NUMPY):
        found, data = fsst.decode(codes, offsets, SYMBOLS)
    assert data.tobytes() == expected(codes)
    assert int(found[1]) == len(expected(codes[:7]))


@FORMS
def test_escapes_across_the_stretches_of_a_long_page(form: Form) -> None:
    codes = RNG.integers(0, 200, 100_000).astype(np.uint8)
    codes[::7] = 255
    codes[1::7] = RNG.integers(0, 256, codes[1::7].size)
    offsets = np.append(np.arange(0, 100_000, 7), 100_000).astype(np.int64)
    with forced(form):
        found, data = fsst.decode(codes, offsets, SYMBOLS)
    assert data.tobytes() == expected(codes)
    assert found.dtype == np.int64
    assert int(found[1]) == len(expected(codes[:7]))


@FORMS
@pytest.mark.parametrize("broken", [[255], [1, 2, 255], [200], [255, 1, 254]])
def test_broken_codes_are_refused_at_the_end_of_a_long_page(form: Form, broken: list[int]) -> None:
    codes = np.concatenate([np.ones(50_000), broken]).astype(np.uint8)
    offsets = np.array([0, 50_000, codes.size], np.int32)
    with forced(form), pytest.raises(CorruptFileError, match="FSST"):
        fsst.decode(codes, offsets, SYMBOLS)


@FORMS
def test_a_value_boundary_between_escape_and_literal_is_refused(form: Form) -> None:
    codes = np.array([1, 255, 65, 2], np.uint8)
    with forced(form), pytest.raises(CorruptFileError, match="FSST"):
        fsst.decode(codes, np.array([0, 2, 4], np.int32), SYMBOLS)


def test_bytes_behind_the_last_offset_are_not_codes() -> None:
    codes = np.array([1, 255], np.uint8)
    _, data = fsst.decode(codes, np.array([0, 1], np.int32), SYMBOLS)
    assert data.tobytes() == TEXTS[1]


def values_of(raw: list[int], cuts: list[int]) -> tuple[np.ndarray, np.ndarray]:
    codes = np.array(raw, np.uint8)
    return codes, np.array([0, *cuts, codes.size], np.int32)


def test_escapes_of_every_parity_pair_with_their_literals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fsst, "_PAIRS_FROM", 0)
    for raw, cuts in (
        ([255, 65], []),
        ([1, 255, 65], [1]),
        ([1, 2, 255, 255, 3], [2, 4]),
        ([255, 255, 255, 255, 255, 7], [2, 4]),
        ([1, 255, 0, 255, 1, 2, 255, 2], [1, 3, 3, 5, 6]),
        ([1, 2, 3], [1, 2]),
    ):
        codes, offsets = values_of(raw, cuts)
        with forced(Form.NUMPY):
            found, data = fsst.decode(codes, offsets, SYMBOLS)
        assert data.tobytes() == expected(codes)
        ends = [len(expected(codes[:end])) for end in offsets.tolist()]
        assert found.tolist() == ends


@given(
    st.lists(
        st.lists(st.integers(0, 199) | st.tuples(st.just(255), st.integers(0, 255)), max_size=9),
        min_size=1,
        max_size=30,
    ),
    st.sampled_from([np.int32, np.int64]),
)
def test_pairs_and_single_codes_agree(values: list[list[int]], kind: type) -> None:
    flat = [
        [code for one in value for code in (one if isinstance(one, tuple) else (one,))]
        for value in values
    ]
    codes = np.array([code for value in flat for code in value], np.uint8)
    offsets = np.cumsum([0, *map(len, flat)]).astype(kind)
    before = fsst._PAIRS_FROM
    try:
        with forced(Form.NUMPY):
            fsst._PAIRS_FROM = 1 << 60
            singles = fsst.decode(codes, offsets, SYMBOLS)
            fsst._PAIRS_FROM = 0
            pairs = fsst.decode(codes, offsets, SYMBOLS)
    finally:
        fsst._PAIRS_FROM = before
    assert pairs[1].tobytes() == singles[1].tobytes() == expected(codes)
    assert pairs[0].tolist() == singles[0].tolist()
    assert pairs[0].dtype == singles[0].dtype == kind


@FORMS
@pytest.mark.parametrize("code", [200, 254])
def test_a_code_just_beyond_the_symbols_is_refused_beside_escapes(form: Form, code: int) -> None:
    for raw in ([255, 65, code], [code, 255, 65], [255, 255, 1, code]):
        codes, offsets = values_of(raw, [])
        with forced(form), pytest.raises(CorruptFileError, match="FSST"):
            fsst.decode(codes, offsets, SYMBOLS)
        literal, offsets = values_of([255, code, 199], [2])
        with forced(form):
            _, data = fsst.decode(literal, offsets, SYMBOLS)
        assert data.tobytes() == bytes([code]) + TEXTS[199]


@FORMS
@pytest.mark.parametrize(("code", "sound"), [(199, True), (200, False), (254, False)])
@pytest.mark.parametrize("around", [[], [255, 7]])
def test_codes_beside_escapes_have_symbols(
    form: Form, code: int, sound: bool, around: list[int]
) -> None:
    raw = np.array([*around, code, *around], np.uint8)
    offsets = np.array([0, raw.size], np.int32)
    with forced(form):
        if sound:
            assert fsst.decode(raw, offsets, SYMBOLS)[1].tobytes() == expected(raw)
        else:
            with pytest.raises(CorruptFileError, match="codes below 200"):
                fsst.decode(raw, offsets, SYMBOLS)
