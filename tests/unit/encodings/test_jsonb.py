"""JSONB documents by hand, and what cannot be one."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lance_nb.encodings import jsonb
from lance_nb.encodings.jsonb import DEPTH_MAX, documents, from_text, texts, to_text
from lance_nb.errors import CorruptFileError, InvalidInputError, NotSupportedError


def read(hexadecimal: str) -> str:
    return to_text(memoryview(bytes.fromhex(hexadecimal)))


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ("", "null"),
        ("2000000000000000", "null"),
        ("2000000040000000", "true"),
        ("2000000030000000", "false"),
        ("20000000 20000001 00", "0"),
        ("20000000 20000000", "0"),
        ("20000000 20000002 40fb", "-5"),
        ("20000000 20000002 50ff", "255"),
        ("20000000 20000003 40ff7f", "-129"),
        ("20000000 20000005 5000010000", "65536"),
        ("20000000 20000009 50ab54a98ceb1f0ad2", "12345678901234567890"),
        ("20000000 20000009 408000000000000000", "-9223372036854775808"),
        ("20000000 20000009 604008000000000000", "3.0"),
        ("20000000 20000009 607e41eb2d66005835", "1.5e+300"),
        ("20000000 20000009 603ee4f8b588e368f1", "0.00001"),
        ("20000000 20000009 603eb0c6f7a0b5ed8d", "1e-6"),
        ("20000000 20000001 10", "NaN"),
        ("20000000 20000001 20", "Infinity"),
        ("20000000 20000001 30", "-Infinity"),
        ("20000000 10000003 737472", '"str"'),
        ("20000000 10000003 220a5c", '"\\"\\n\\\\"'),
        ("20000000 10000002 c3a9", '"é"'),
        ("80000000", "[]"),
        ("80000002 20000002 00000000 5001", "[1,null]"),
        ("40000000", "{}"),
        ("40000001 10000001 20000002 61 5002", '{"a":2}'),
        ("40000002 10000001 10000001 20000002 20000002 61 7a 5002 5001", '{"a":2,"z":1}'),
        ("80000001 50000004 80000000", "[[]]"),
    ],
)
def test_documents_read_as_compact_json(document: str, text: str) -> None:
    assert read(document) == text


def test_small_exponents_have_no_leading_zero() -> None:
    assert read("20000000 20000009 603e60000000000000") == "2.9802322387695312e-8"


@pytest.mark.parametrize(
    "document",
    [
        "00",  # no header
        "10000000",  # no kind
        "20000000",  # a scalar without its entry
        "ffffffff",
        "80000003 20000002",  # entries missing
        "20000000 10000009 61",  # longer than the document
        "20000000 10000001 ff",  # not UTF-8
        "20000000 20000004 40aabbcc",  # a number of 3 bytes
        "20000000 20000003 60aabb",
        "20000000 20000008 60aabbccddeeff00",  # a double of 7 bytes
        "20000000 20000002 10",  # longer than the document by one
        "800000",  # a header of 3 bytes
        "9fffffff",
    ],
)
def test_damage_is_refused(document: str) -> None:
    with pytest.raises(CorruptFileError):
        read(document)


@pytest.mark.parametrize("document", ["20000000 60000001 00", "20000000 20000002 7000"])
def test_newer_kinds_of_values_are_named(document: str) -> None:
    with pytest.raises(NotSupportedError):
        read(document)


def test_depth_is_limited() -> None:
    document = bytes.fromhex("80000000")
    for _ in range(DEPTH_MAX - 1):
        document = bytes.fromhex("80000001") + (0x50000000 + len(document)).to_bytes(4) + document
    assert to_text(memoryview(document)) == "[" * DEPTH_MAX + "]" * DEPTH_MAX

    document = bytes.fromhex("80000001") + (0x50000000 + len(document)).to_bytes(4) + document
    with pytest.raises(CorruptFileError, match="levels"):
        to_text(memoryview(document))


@pytest.mark.parametrize("kind", [pa.large_binary(), pa.binary()])
def test_a_column_keeps_its_nulls(kind: pa.DataType) -> None:
    empty, one = bytes.fromhex("80000000"), bytes.fromhex("20000000 20000002 5001")
    found = texts(pa.array([empty, None, one, empty, b""], kind))
    assert found.to_pylist() == ["[]", None, "1", "[]", "null"]
    assert found.slice(1).type == pa.large_string()
    sliced = texts(pa.array([b"damaged", one, None], kind).slice(1))
    assert sliced.to_pylist() == ["1", None]


def test_equal_documents_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read_documents: list[bytes] = []
    monkeypatch.setattr(jsonb, "to_text", lambda one: read_documents.append(bytes(one)) or "0")
    documents = pa.array([bytes([number % 3]) for number in range(100)], pa.large_binary())
    assert texts(documents).to_pylist() == ["0"] * 100
    assert read_documents == [b"\0", b"\1", b"\2"]


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
