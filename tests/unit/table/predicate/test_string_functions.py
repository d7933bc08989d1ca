"""Digests and codes of bytes: published vectors."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lance_nb.errors import PredicateError
from tests.support.expressions import values_of

TABLE = pa.table({"s": ["abc", None], "wrong": ["*", None], "i": [1, 2]})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("encode(sha256(s), 'hex')",
         "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        ("encode(digest(s, 'md5'), 'hex')", "900150983cd24fb0d6963f7d28e17f72"),
        ("encode(s, 'base64')", "YWJj"),
        ("decode('616263', 'hex') = arrow_cast(s, 'Binary')", True),
    ],
)  # fmt: skip
def test_published_values(text: str, value: object) -> None:
    assert values_of(text, TABLE) == [value, None]


@pytest.mark.parametrize("text", ["digest(s, 'crc')", "sha256(i)", "encode(s, 'base58')"])
def test_other_codes_and_types_are_refused(text: str) -> None:
    with pytest.raises(PredicateError):
        values_of(text, TABLE)


@pytest.mark.parametrize("code", ["hex", "base64"])
def test_text_that_is_no_code_is_refused(code: str) -> None:
    with pytest.raises(pa.ArrowInvalid, match="is not"):
        values_of(f"decode(wrong, '{code}')", TABLE)
