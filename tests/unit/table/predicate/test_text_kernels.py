"""Functions of whole columns of text, held against the same in Python, row by row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from lance_nb.table.predicate.expression import Column, Literal, evaluate
from lance_nb.table.predicate.string_functions import FUNCTIONS
from lance_nb.table.predicate.text_kernels import TEXT_CHARS_MAX
from tests.support.expressions import values_of

POOL = ["", "a", "aa", "x.y.z", "naïve ß", "データ データ", "a1b c2d", " tr im ", "🎉 ok", None]
TEXTS = pa.chunked_array([POOL * 3, POOL[::-1] * 2])
NUMBERS = pa.chunked_array([[one % 11 - 4 if one % 7 else None for one in range(len(TEXTS))]])
PIECES = pa.chunked_array([[("a", ".", "", "データ", None)[i % 5] for i in range(len(TEXTS))]])
OWN = pa.chunked_array([[f"{one}{i}" if i % 2 else one for i, one in enumerate(TEXTS.to_pylist())]])
COLUMNS = {("t",): TEXTS, ("n",): NUMBERS, ("p",): PIECES, ("o",): OWN}
T, N, P, OWN_COLUMN = (Column(path, values.type) for path, values in COLUMNS.items())


def _split(text: str, delimiter: str, number: int) -> str:
    parts = text.split(delimiter) if delimiter else [text]
    place = number - 1 if number > 0 else len(parts) + number
    return parts[place] if 0 <= place < len(parts) else ""


def _translate(text: str, source: str, target: str) -> str:
    return text.translate(
        {ord(one): target[i] if i < len(target) else None for i, one in enumerate(source)}
    )


def _lit(value: Any) -> Literal:
    return Literal(pa.scalar(value))


CASES: list[tuple[str, list[Any], Callable[..., Any]]] = [
    ("substr", [T, N], lambda text, start: text[max(start - 1, 0) :]),
    ("substr", [T, _lit(2), _lit(3)], lambda text, *_: text[1:4]),
    ("substr", [T, N, _lit(4)], lambda text, at, n: text[max(at - 1, 0) : max(at - 1 + n, 0)]),
    ("left", [T, N], lambda text, n: text[:n] if n else ""),
    ("right", [T, N], lambda text, n: text[-n:] if n else ""),
    ("repeat", [T, N], lambda text, n: text * n),
    ("lpad", [T, _lit(6), _lit("ab")], lambda t, *_: "ababab"[: max(6 - len(t), 0)] + t[:6]),
    ("rpad", [T, _lit(6), P], lambda t, n, f: t[:n] + (f * n)[: max(n - len(t), 0)]),
    ("strpos", [T, _lit("a")], lambda text, piece: text.find(piece) + 1),
    ("strpos", [T, P], lambda text, piece: text.find(piece) + 1),
    ("strpos", [T, OWN_COLUMN], lambda text, piece: text.find(piece) + 1),
    ("contains", [T, P], lambda text, piece: piece in text),
    ("starts_with", [T, P], lambda text, piece: text.startswith(piece)),
    ("ends_with", [T, P], lambda text, piece: text.endswith(piece)),
    ("replace", [T, P, _lit("Z")], lambda t, old, new: t.replace(old, new)),
    ("replace", [T, OWN_COLUMN, P], lambda t, old, new: t.replace(old, new)),
    ("split_part", [T, _lit("."), _lit(2)], _split),
    ("split_part", [T, P, _lit(-1)], _split),
    ("translate", [T, _lit("aデß"), _lit("xy")], _translate),
    ("translate", [T, P, OWN_COLUMN], _translate),
    ("initcap", [T], lambda text: {"a1b c2d": "A1b C2d"}.get(text, _capital(text))),
    ("ascii", [T], lambda text: ord(text[0]) if text else 0),
    ("to_hex", [N], lambda n: f"{n & (1 << 64) - 1:x}"),
    ("md5", [_lit("abc")], lambda _: "900150983cd24fb0d6963f7d28e17f72"),
]


def _capital(text: str) -> str:
    return "".join(
        one.lower() if at and text[at - 1].isalnum() else one.upper() for at, one in enumerate(text)
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_every_row_is_as_python_says(case: tuple[str, list[Any], Callable[..., Any]]) -> None:
    name, operands, wanted = case
    found = evaluate(FUNCTIONS[name][0](name, operands), COLUMNS)
    columns = [
        COLUMNS[one.path].to_pylist() if isinstance(one, Column) else [one.scalar.as_py()] * 50
        for one in operands
    ]
    if isinstance(found, pa.Scalar):
        assert found.as_py() == wanted(columns[0][0])
        return
    expected = [None if None in row else wanted(*row) for row in zip(*columns, strict=True)]
    assert found.to_pylist() == expected


def test_texts_are_joined_without_the_nulls() -> None:
    expression = FUNCTIONS["concat_ws"][0]("concat_ws", [_lit("-"), T, P])
    pairs = zip(TEXTS.to_pylist(), PIECES.to_pylist(), strict=True)
    expected = ["-".join(one for one in pair if one is not None) for pair in pairs]
    assert evaluate(expression, COLUMNS).to_pylist() == expected


@pytest.mark.parametrize(
    ("name", "operands", "message"),
    [
        ("substr", [T, _lit(1), _lit(-1)], "negative length, -1"),
        ("split_part", [T, _lit("."), _lit(0)], "counts from 1"),
        ("chr", [N], "there is no character"),
        ("repeat", [T, _lit(1 << 20)], "longer than"),
        ("lpad", [T, _lit(1 << 21)], "longer than"),
    ],
)
def test_what_no_row_can_have_is_refused(name: str, operands: list[Any], message: str) -> None:
    with pytest.raises(pa.ArrowInvalid, match=message):
        evaluate(FUNCTIONS[name][0](name, operands), COLUMNS)


def test_large_text_is_taken_too() -> None:
    columns = {("t",): TEXTS.cast(pa.large_string()), ("p",): PIECES}
    large = Column(("t",), pa.large_string())
    found = evaluate(FUNCTIONS["translate"][0]("translate", [large, P, _lit("x")]), columns)
    pairs = zip(TEXTS.to_pylist(), PIECES.to_pylist(), strict=True)
    assert found.to_pylist() == [None if None in pair else _translate(*pair, "x") for pair in pairs]


@pytest.mark.parametrize("rows", [12, 3000], ids=["few rows a pattern", "many rows a pattern"])
def test_arguments_that_differ_by_row_are_those_of_each_row(rows: int) -> None:
    words, marks = ["a-b-c", "", None, "x.y", "--"], ["-", ".", "", None]
    fills = ["*", "", "ab", None]
    columns = {
        "s": [words[k % 5] for k in range(rows)], "m": [marks[k // 5 % 4] for k in range(rows)],
        "w": [fills[k // 3 % 4] for k in range(rows)],
    }  # fmt: skip
    table = pa.table(columns)
    each = list(zip(*columns.values(), strict=True))

    assert values_of("replace(s, m, w)", table) == [
        None if None in (s, m, w) else s.replace(m, w) for s, m, w in each
    ]
    assert values_of("starts_with(s, m)", table) == [
        None if None in (s, m) else s.startswith(m) for s, m, _ in each
    ]
    assert values_of("strpos(s, m)", table) == [
        None if None in (s, m) else s.find(m) + 1 for s, m, _ in each
    ]


@pytest.mark.parametrize("new", ["z", "", "\\", r"\0", "é"])
def test_an_empty_text_is_found_around_every_character(new: str) -> None:
    words = ["naïve", "", "データ", None, "a\\b"]

    assert values_of(f"replace(s, '', '{new}')", pa.table({"s": words})) == [
        None if word is None else word.replace("", new) for word in words
    ]


def test_a_text_is_repeated_up_to_a_length() -> None:
    table = pa.table({"s": ["ab", "", None]})
    half = TEXT_CHARS_MAX // 2
    assert values_of(f"length(repeat(s, {TEXT_CHARS_MAX // 2}))", table) == [
        TEXT_CHARS_MAX,
        0,
        None,
    ]
    for count in (half + 1, TEXT_CHARS_MAX - 1, TEXT_CHARS_MAX + 1, 2**62):
        with pytest.raises(pa.ArrowInvalid, match=r"a text of .* is longer than allowed"):
            values_of(f"repeat(s, {count})", table)
        assert values_of(f"repeat(s, {count})", table.slice(1)) == ["", None]
    one = pa.table({"s": ["x"]})
    with pytest.raises(pa.ArrowInvalid, match=rf"a text of {TEXT_CHARS_MAX + 1:,} is"):
        values_of(f"repeat(s, {2**40})", one)
