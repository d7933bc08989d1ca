from __future__ import annotations

import time

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.explorer.changes.text_excerpt import differing_excerpts, excerpts

WORDS = "one two three four five six seven eight nine ten "


def cut(old: str, new: str, chars: int = 100) -> tuple[str, str]:
    return differing_excerpts(pa.py_buffer(old.encode()), pa.py_buffer(new.encode()), chars)


def test_excerpts_begin_at_a_word_before_the_difference() -> None:
    before, after = cut(f"{WORDS * 20}cat{WORDS * 20}", f"{WORDS * 20}dog{WORDS * 20}")
    assert before.startswith("…two three four five six seven eight nine ten cat")
    assert after == before.replace("cat", "dog")
    assert len(before) > 101


def test_texts_that_differ_at_once_are_not_cut_in_front() -> None:
    assert cut("cat " + WORDS, "dog " + WORDS) == ("cat " + WORDS, "dog " + WORDS)
    assert cut(WORDS, WORDS + "more") == (WORDS, WORDS + "more")


def test_an_excerpt_begins_with_a_whole_character() -> None:
    for shift in range(4):
        common = "x" * shift + "é你🙂" * 60
        before, after = cut(f"{common}a", f"{common}b")
        assert before.endswith("🙂a")
        assert after.endswith("🙂b")
        assert before[:-1] == after[:-1]
        assert "\ufffd" not in before


def test_one_text_may_be_the_beginning_of_the_other() -> None:
    before, after = cut("x" * 5000, "x" * 5000 + "!")
    assert (before, after) == ("…" + "x" * 48, "…" + "x" * 48 + "!")


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_only_long_values_that_differ_are_cut(kind: pa.DataType) -> None:
    long = WORDS * 40
    old = pa.array([long + "a", long + "a", "short", None, long], kind)
    new = pa.array([long + "b", long + "a", "other", long, None], kind)
    differs = np.array([True, False, True, True, True])
    before, after = excerpts(old, new, differs, 100)
    assert before.type == after.type == kind
    assert before[0].as_py().endswith("ten a")
    assert after[0].as_py().endswith("ten b")
    assert before.to_pylist()[1:] == old.to_pylist()[1:]
    assert after.to_pylist()[1:] == new.to_pylist()[1:]


def test_values_that_are_no_texts_stay() -> None:
    numbers, bytes_ = pa.array([1]), pa.array([b"x" * 1000])
    assert excerpts(numbers, numbers, np.array([True]), 10) == (numbers, numbers)
    assert excerpts(bytes_, bytes_, np.array([True]), 10) == (bytes_, bytes_)


def test_a_megabyte_is_compared_at_once() -> None:
    old, new = "a " * 500_000 + "x" + "b" * 100, "a " * 500_000 + "y" + "b" * 100
    began = time.process_time()
    before, after = cut(old, new)
    assert time.process_time() - began < 0.2
    assert (before[-102:], after[-102:]) == (" x" + "b" * 100, " y" + "b" * 100)
