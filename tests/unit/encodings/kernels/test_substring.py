"""Searching texts for a piece."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.encodings.kernels import compiled
from lance_nb.encodings.kernels.substring import contains
from tests.support.compiled_forms import Form, forced

FORMS = pytest.mark.parametrize("form", [Form.NUMPY, Form.COMPILED], ids=["numpy", "compiled"])
TEXTS = ["needle", "need", None, "le", "", "a needle" * 30, "x" * 500 + "needle", "ne" + "edle"]
FOUND = [True, False, None, False, False, True, True, True]


@FORMS
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
@pytest.mark.parametrize("offset", [0, 1, 3])
def test_texts_with_the_piece_are_found(form: Form, kind: pa.DataType, offset: int) -> None:
    texts = pa.array(TEXTS, pa.string()).cast(kind).slice(offset)
    with forced(form):
        found = contains(texts, "needle")
    assert found.to_pylist() == FOUND[offset:]


@FORMS
def test_no_match_reaches_from_one_text_into_the_next(form: Form) -> None:
    texts = pa.array(["need", "le needl", "e"] * 40)
    with forced(form):
        assert not any(contains(texts, "needle").to_pylist())
        assert contains(texts, "").to_pylist() == [True] * 120
        assert contains(pa.array(["\u20ac1", "1"]), "\u20ac").to_pylist() == [True, False]
        chunked = contains(pa.chunked_array([["a", "b"], [None]], pa.string()), "a")
        assert chunked.to_pylist() == [True, False, None]
        assert contains(texts.slice(0, 0), "x").to_pylist() == []
        assert contains(pa.array([None, None], pa.string()), "x").to_pylist() == [None, None]


@pytest.mark.skipif(compiled.loops is None, reason="no extension built")
def test_texts_outside_of_the_data_are_refused() -> None:
    loops, data = compiled.loops, np.frombuffer(b"needle", np.uint8)
    piece = data[:2]
    for offsets in ([0, 7], [-1, 3], [0, 5, 3], [4, 2], [0], [0, 1, 2, 3, 4, 5]):
        found = np.zeros(max(len(offsets) - 1, 1) if len(offsets) < 6 else 4, np.uint8)
        assert not loops.find_substring(data, np.array(offsets, np.int32), piece, found)
    assert not loops.find_substring(data, np.array([0, 6]), piece[:0], np.zeros(1, np.uint8))
    found = np.zeros(2, np.uint8)
    assert loops.find_substring(data, np.array([0, 1, 6]), data[1:3], found)
    assert found.tolist() == [0, 1]
