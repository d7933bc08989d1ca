"""JSON text to the bytes pylance stores."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lance_nb.encodings.jsonb import to_text
from lance_nb.encodings.jsonb_writer import documents, from_text
from lance_nb.errors import InvalidInputError


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("255", "20000000 20000002 50ff"),
        ("0", "20000000 20000001 00"),
        ("-1", "20000000 20000002 40ff"),
        ("-129", "20000000 20000003 40ff7f"),
        ("256", "20000000 20000003 500100"),
        ("2.5", "20000000 20000009 604004000000000000"),
        ('"a"', "20000000 10000001 61"),
        ("null", "20000000 00000000"),
        ("true", "20000000 40000000"),
        ("false", "20000000 30000000"),
        ("[]", "80000000"),
        ("{}", "40000000"),
        ('{"b":1,"a":null}', "40000002 10000001 10000001 00000000 20000002 6162 5001"),
    ],
)
def test_documents_are_the_bytes_of_the_format(text: str, stored: str):
    assert from_text(text) == bytes.fromhex(stored.replace(" ", ""))


@pytest.mark.parametrize(
    "text", ['[1,2.5,-3,0,{"x":[null,true,"é🦀"]},18446744073709551615,-9223372036854775808]', '""']
)
def test_documents_read_back(text: str):
    assert to_text(memoryview(from_text(text))) == text


def test_the_last_of_equal_keys_wins():
    assert to_text(memoryview(from_text('{"a":1,"a":2}'))) == '{"a":2}'


def test_integers_beyond_64_bits_are_doubles():
    assert float(to_text(memoryview(from_text(str(2**65))))) == 2.0**65


@pytest.mark.parametrize("text", ["", "{", "nul", "NaN", "[" * 200 + "]" * 200])
def test_what_is_no_json_is_refused_with_its_row(text: str):
    with pytest.raises(InvalidInputError, match="'j', row 1"):
        documents(pa.array(["1", text]), "j")


def test_nulls_stay_null():
    assert documents(pa.array(["1", None]), "j").is_null().to_pylist() == [False, True]
