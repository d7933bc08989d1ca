"""Regular expressions in Rust's dialect (values beside pylance's: tests/interop/test_functions)."""

from __future__ import annotations

import unicodedata

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.errors import PredicateError
from lance_nb.table.predicate.regular_expressions import Regex
from tests.support.expressions import values_of

TEXTS = ["aé1", "ab ab", "٣४", "a\u00a0b", "🦀", "", None, "ſ-K_"]
TABLE = pa.table({"s": TEXTS})


@pytest.mark.parametrize(("pattern", "values"), [
    (r"\w", ["aé1", "abab", "٣४", "ab", "", "", None, "ſK_"]),
    (r"\W", ["", " ", "", "\u00a0", "🦀", "", None, "-"]),
    (r"\d", ["1", "", "٣४", "", "", "", None, ""]),
    (r"\D", ["aé", "ab ab", "", "a\u00a0b", "🦀", "", None, "ſ-K_"]),
    (r"\s", ["", " ", "", "\u00a0", "", "", None, ""]),
    (r"\S", ["aé1", "abab", "٣४", "ab", "🦀", "", None, "ſ-K_"]),
    (r"[\s\d]", ["1", " ", "٣४", "\u00a0", "", "", None, ""]),
    (r"[^\W_]", ["aé1", "abab", "٣४", "ab", "", "", None, "ſK"]),
    (r"[\W_]", ["", " ", "", "\u00a0", "🦀", "", None, "-_"]),
    (r"[\S]", ["aé1", "abab", "٣४", "ab", "🦀", "", None, "ſ-K_"]),
    (r"[^\D]", ["1", "", "٣४", "", "", "", None, ""]),
    (r"(?-u)\w", ["a1", "abab", "", "ab", "", "", None, "K_"]),
    (r"(?-u:[\W])\w?", ["é1", " a", "٣४", "\u00a0b", "🦀", "", None, "ſ-K"]),
    (r"\u00e9|\x{61}|\u{62}|\x31|\U0001F980", ["aé1", "abab", "", "ab", "🦀", "", None, ""]),
    (r"[]a]|[[:digit:]]", ["a1", "aa", "", "a", "", "", None, ""]),
])  # fmt: skip
def test_classes_know_unicode(pattern: str, values: list[str | None]) -> None:
    found = Regex(pattern).replaced(pa.array(TEXTS), "[\\0]", None).to_pylist()
    kept = [one and "".join(part.split("]")[0] for part in one.split("[")[1:]) for one in found]
    assert kept == values


@pytest.mark.parametrize(("pattern", "values"), [
    (r"\b", ["|aé1|", "|ab| |ab|", "|٣४|", "|a|\u00a0|b|", "🦀", "", None, "|ſ|-|K_|"]),
    (r"\B", ["a|é|1", "a|b a|b", "٣|४", "a\u00a0b", "|🦀|", "|", None, "ſ-K|_"]),
    (r"(?-u:\b)", ["|a|é|1|", "|ab| |ab|", "٣४", "|a|\u00a0|b|", "🦀", "", None, "ſ-|K_|"]),
    (r"\b$", ["aé1|", "ab ab|", "٣४|", "a\u00a0b|", "🦀", "", None, "ſ-K_|"]),
    (r"^\b|\p{Lu}\b|\z", ["|aé1|", "|ab ab|", "|٣४|", "|a\u00a0b|", "🦀|", "|", None, "|ſ-K_|"]),
])  # fmt: skip
def test_boundaries_are_those_of_unicode(pattern: str, values: list[str | None]) -> None:
    assert Regex(pattern).replaced(pa.array(TEXTS), "|", None).to_pylist() == values


@pytest.mark.parametrize(("text", "values"), [
    ("regexp_like(s, '\\b[a-z]\\b')", [False, False, False, True, False, False, None, False]),
    ("regexp_like(s, '\\bK', 'i')", [False, False, False, False, False, False, None, True]),
    ("regexp_replace(s, '\\b(\\w)', '<$1>')",
     ["<a>é1", "<ab> ab".replace("<ab>", "<a>b"), "<٣>४", "<a>\u00a0b", "🦀", "", None, "<ſ>-K_"]),
    ("regexp_count(s, '\\b')", [2, 4, 2, 4, 0, 0, 0, 4]),
    ("regexp_count(s, '')", [4, 6, 3, 4, 2, 1, 0, 5]),
    ("regexp_count(s, 'a*')", [3, 4, 3, 3, 2, 1, 0, 5]),
    ("regexp_count(s, '$')", [1, 1, 1, 1, 1, 1, 0, 1]),
    ("regexp_count(s, '', 3)", [2, 4, 1, 2, 0, 0, 0, 3]),
    ("regexp_count(s, '\\bx*', 2)", [2, 4, 2, 2, 0, 0, 0, 2]),
    ("regexp_count(s, NULL)", [0] * 8),
    ("regexp_match(s, '\\b(é|a)(\\w)')",
     [["a", "é"], ["a", "b"], None, None, None, None, None, None]),
    ("regexp_match(s, '\\w+\\b')",
     [["aé1"], ["ab"], ["٣४"], ["a"], None, None, None, ["ſ"]]),
    ("regexp_instr(s, '\\b', 2)", [2, 2, 2, 3, 0, 0, None, 3]),
    ("regexp_instr(s, '\\w\\b')", [3, 2, 2, 1, 0, 0, None, 1]),
    ("regexp_instr(s, '')", [0] * 8),
    ("regexp_instr(s, 'é*')", [1, 1, 1, 1, 1, 0, None, 1]),
])  # fmt: skip
def test_functions_of_patterns(text: str, values: list[object]) -> None:
    assert values_of(text, TABLE) == values


@pytest.mark.parametrize(("pattern", "replacement", "values"), [
    (r"\b", "|", ["|ab cd", "x", " |a"]), (r"\B(\w)", r"<\1\0>", ["a<bb> cd", "x", " a"]),
    (r"(?-u:\b)c(d)", r"\1", ["ab d", "x", " a"]), (r"\b\n?a", "-", ["-b cd", "x", " -"]),
])  # fmt: skip
def test_the_first_match_is_replaced_where_it_stands(
    pattern: str, replacement: str, values: list[str]
) -> None:
    texts = pa.array(["ab cd", "x", " a"])
    found = Regex(pattern).replaced(texts, replacement, 1).to_pylist()
    assert found == [one if one != "x" or pattern != r"\b" else "|x" for one in values]
    with pytest.raises(pa.ArrowInvalid, match="groups up to 7"):
        Regex(pattern).replaced(texts, r"\8", 1)


def test_a_literal_text_is_searched_as_a_column_is() -> None:
    assert values_of("regexp_match('é é', '\\b(é)') IS NOT NULL", TABLE.slice(0, 1)) == [True]
    assert Regex(r"\bé").matches(pa.scalar("aé")).as_py() is False
    assert Regex(r"\bé").counted(pa.scalar(None, pa.string())).as_py() is None


@pytest.mark.parametrize("pattern", ["[a[bc]]", "[a&&b]", "[a--b]", "[a~~b]"])
def test_classes_made_of_classes_are_refused(pattern: str) -> None:
    with pytest.raises(PredicateError, match="write one class, or alternatives"):
        Regex(pattern)


@pytest.mark.parametrize("pattern", [
    r"(a+)+\b", r"(?:a|b*){3}\b", r"\ba*b*", r"a?a?a?a?a?a?a?a?a?a?a?\b",
])  # fmt: skip
def test_a_search_that_might_take_long_is_refused(pattern: str) -> None:
    long = "é" + "a" * 3000
    with pytest.raises(pa.ArrowInvalid, match=r"may take too long in a text of 3,001"):
        Regex(pattern).matches(pa.array([long]))
    assert Regex(pattern).matches(pa.array([long[1:]])).to_pylist()  # RE2, in linear time
    assert Regex(r"[(*]\b\w+?\)?").matches(pa.array([long])).to_pylist() == [False]


@pytest.mark.parametrize("pattern", [r"\b\p{Greek}", r"\b[[:^alpha:]]", r"(a(?i)b)\b"])
def test_what_python_does_not_know_is_refused_beside_a_boundary(pattern: str) -> None:
    with pytest.raises(pa.ArrowInvalid, match="has a boundary"):
        Regex(pattern).matches(pa.array(["é"]))
    assert Regex(pattern).matches(pa.array(["e"])).to_pylist() == [False]


@pytest.mark.parametrize(("pattern", "found"), [
    (r"\b\pL+\b", True), (r"\b\P{Lu}", True), (r"\b\p{^L}", True), (r"\b[\pN\x{e9}]", True),
    (r"\b[[:alpha:]]", True), (r"(?m)é\b$", True), (r"é\b$", False), (r"(?P<n>é)\b", True),
    (r"(?<n>é)\b", True), (r"\b[^\s\d]", True), (r"\b[\w-]", True), (r"(?-u:\bb)", True),
    (r"\bb|x{2,}", True), (r"(?s-i:é.b)\b", True),
])  # fmt: skip
def test_python_reads_what_rust_does(pattern: str, found: bool) -> None:
    assert Regex(pattern).matches(pa.array(["é\nb"])).to_pylist() == [found]


def _code_points() -> pa.Array:
    return pa.array([chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000])


def test_white_space_is_the_unicode_property() -> None:
    texts = _code_points()
    is_space = Regex(r"\s").matches(texts).to_numpy(zero_copy_only=False)
    # Python counts the separators of ASCII as white space, Unicode does not.
    wanted = [one.isspace() and one not in "\x1c\x1d\x1e\x1f" for one in texts.to_pylist()]
    assert np.flatnonzero(is_space).tolist() == np.flatnonzero(wanted).tolist()


def test_letters_that_are_symbols_are_of_words() -> None:
    texts = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    symbols = [one for one in texts if unicodedata.category(one) in ("So", "Cf")]
    found = Regex(r"\w").matches(pa.array(symbols)).to_pylist()
    # Other_Alphabetic and Join_Control of the Unicode database.
    wanted = [
        *range(0x200C, 0x200E), *range(0x24B6, 0x24EA), *range(0x1F130, 0x1F14A),
        *range(0x1F150, 0x1F16A), *range(0x1F170, 0x1F18A),
    ]  # fmt: skip
    assert [ord(one) for one, is_word in zip(symbols, found, strict=True) if is_word] == wanted


@pytest.mark.parametrize(("pattern", "found"), [
    (r"(?:(?-u:a)é)\w", [True, False]), (r"(?-u:(?u)é\w)", [True, True]),
    (r"((?-u)\w)é\w", [True, False]), (r"(?-u:\w)é(?:\w)", [True, False]),
    (r"(?-u:a)é\w", [True, False]),
])  # fmt: skip
def test_flags_hold_to_the_end_of_their_group(pattern: str, found: list[bool]) -> None:
    assert Regex(pattern).matches(pa.array(["aéé", "éé"])).to_pylist() == found
