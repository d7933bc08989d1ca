"""Texts are cut as the parameters say; what cannot be done is refused by name."""

from __future__ import annotations

import sys
from typing import Any

import pyarrow as pa
import pytest

from lance_nb.errors import (
    CorruptFileError,
    InvalidInputError,
    MissingPackageError,
    NotSupportedError,
)
from lance_nb.indices.texts.tokenizer import (
    Tokenizer,
    TokenizerParameters,
    parameters_of,
    stored_parameters,
)


@pytest.mark.parametrize(
    ("parameters", "text", "tokens"),
    [
        ({}, "The running Foxes, jumping!", [("run", 1), ("fox", 2), ("jump", 3)]),
        ({"stem": False, "remove_stop_words": False}, "The Fox", [("the", 0), ("fox", 1)]),
        ({"base_tokenizer": "whitespace", "stem": False}, "a-b  C", [("a-b", 0), ("c", 1)]),
        ({"base_tokenizer": "raw", "stem": False}, "A whole Text", [("a whole text", 0)]),
        ({"base_tokenizer": "ngram"}, "abcd", [("abc", 0), ("bcd", 0)]),
        ({}, "Müller Straße ÆON", [("muller", 0), ("strasse", 1), ("aeon", 2)]),
        ({"stem": False, "ascii_folding": False}, "ΟΔΟΣ", [("οδοσ", 0)]),
        ({"max_token_length": 3, "stem": False}, "xy abc", [("xy", 0)]),
        ({"custom_stop_words": ["fox"], "stem": False}, "the fox", [("the", 0)]),
        ({}, "", []),
        (
            {"stem": False, "ascii_folding": False},
            "x\u0345y x\U00011f02y x\u0301y",
            [("x\u0345y", 0), ("x\U00011f02y", 1), ("x", 2), ("y", 3)],
        ),
    ],
)
def test_query(parameters: dict[str, Any], text: str, tokens: list[tuple[str, int]]) -> None:
    assert Tokenizer(parameters_of(parameters)).query(text) == tokens


def test_columns_of_texts_and_of_lists() -> None:
    tokenizer = Tokenizer(parameters_of({"stem": False}))
    cut = tokenizer.cut(pa.array(["fox dog", None, "", "dog"]))
    assert cut.texts.tolist() == [0, 0, 3]
    assert cut.words.tolist() == [0, 1, 1]
    cut = tokenizer.cut(pa.array([["fox", "dog cat"], None, [], [None, "dog"]]))
    assert cut.texts.tolist() == [0, 0, 0, 3]
    assert cut.positions.tolist() == [0, 1, 2, 0]
    sliced = tokenizer.cut(pa.array(["x", "fox dog", None])[1:])
    assert sliced.texts.tolist() == [0, 0]
    assert list(tokenizer.words) == ["fox", "dog", "cat"]
    hidden = pa.ListArray.from_arrays(  # a text lies under the null list
        pa.array([0, 1, 2], pa.int32()), pa.array(["cat", "dog"]), mask=pa.array([True, False])
    )
    cut = tokenizer.cut(hidden)
    assert (cut.texts.tolist(), cut.words.tolist()) == ([1], [1])


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"base_tokenizer": "jieba/default"}, NotSupportedError, "'jieba/default' is not supp"),
        ({"base_tokenizer": "lindera/ipadic"}, NotSupportedError, "lindera"),
        ({"base_tokenizer": "words"}, InvalidInputError, "'words' is not known"),
        ({"language": "Klingon"}, InvalidInputError, "'Klingon' is not known: use Arabic"),
        ({"stemming": True}, InvalidInputError, "no parameter 'stemming'"),
        ({"stem": "yes"}, InvalidInputError, "stem cannot be 'yes'"),
        ({"max_token_length": True}, InvalidInputError, "max_token_length cannot be True"),
        ({"max_token_length": 0}, InvalidInputError, "must be positive"),
        ({"min_ngram_length": 4, "max_ngram_length": 3}, InvalidInputError, "n-grams"),
        ({"custom_stop_words": [1]}, InvalidInputError, "a list of texts"),
        ({"split_identifiers": True}, NotSupportedError, "'code'"),
    ],
)
def test_parameters_that_are_refused(
    parameters: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        parameters_of(parameters)


def test_parameters_of_a_file() -> None:
    parameters = TokenizerParameters(language="French", with_position=True)
    assert stored_parameters(parameters.to_json(), "metadata") == parameters
    assert stored_parameters('{"later": null}', "metadata") == TokenizerParameters()
    with pytest.raises(NotSupportedError, match="'later'"):
        stored_parameters('{"later": 1}', "metadata")
    for text in ("[]", "{"):
        with pytest.raises(CorruptFileError):
            stored_parameters(text, "metadata")


def test_stems_need_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "snowballstemmer", None)
    with pytest.raises(MissingPackageError, match=r"pip install .*\[text\]'"):
        Tokenizer(TokenizerParameters())
    assert Tokenizer(parameters_of({"stem": False})).query("foxes") == [("foxes", 0)]
