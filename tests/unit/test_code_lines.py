from __future__ import annotations

import shlex

import pytest

from lance_nb.code_lines import (
    LINE_CHARS,
    PYTHON_ONLY,
    TOO_LONG,
    Python,
    can_be_listed,
    literal,
    magic,
    offered,
    shell_variable,
    split,
    word,
)
from lance_nb.errors import InternalError, InvalidInputError


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("main:3", "main:3"),
        ("HEAD~1", "HEAD~1"),
        ("a,b", "a,b"),
        ("", "''"),
        ("a b", "'a b'"),
        ("it's", '"it\'s"'),
        ("name = 'x'", "\"name = 'x'\""),
        ("'\"", "U&'\\0027\"'"),
        ("{x}", "U&'\\007Bx\\007D'"),
        ("$x = 'a'", "U&\"\\0024x = 'a'\""),
        ("a\nb", "U&'a\\000Ab'"),
        ("\x1b[0m", "U&'\\001B[0m'"),
        ("\u202e", "U&'\\202E'"),
        ("\U000e0041", "U&'\\+0E0041'"),
        ("C:\\a b", "'C:\\a b'"),
        ("C:\\", "U&'C:\\\\'"),
        ("x=%run", "'x=%run'"),
        ("why?", "'why?'"),
        ("help", "'help'"),
        ("-x", "'-x'"),
        ("naïve", "'naïve'"),
    ],
)
def test_a_word_is_readable_where_nothing_needs_an_escape(text: str, written: str) -> None:
    assert word(text) == written
    assert [one.text for one in split(written)] == [text]


def test_quotes_and_escapes_may_stand_inside_of_a_word() -> None:
    line = """ --where='a b' x"y "U&'\\007B'z\tU&'' 'U&a' U&x a\\007B """
    words = [one.text for one in split(line)]
    assert words == ["--where=a b", "xy {z", "", "U&a", "U&x", "a\\007B"]
    assert [one.is_plain for one in split(line)] == [True, True, False, False, True, True]


def test_options_are_written_by_their_value() -> None:
    line = magic("clean", options={"--keep": 3, "--really": True, "--older-than": None, "-m": "-x"})
    assert line == "%lance clean --keep 3 --really -m '-x'"
    for flag in ("keep", "--a b", "--{x}", ""):
        with pytest.raises(InternalError):
            magic("clean", options={flag: True})


def test_a_line_that_is_too_long_is_a_comment() -> None:
    assert magic("head", "x" * LINE_CHARS) == TOO_LONG
    assert Python("f").call("x" * LINE_CHARS).line() == TOO_LONG
    assert offered(Python("f").call(), PYTHON_ONLY) == {"python": "f()", "magic": PYTHON_ONLY}
    for comment in (TOO_LONG, PYTHON_ONLY):
        assert comment.startswith("# ")


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ((1,), "(1,)"),
        ([True, None, b"\0"], "[True, None, b'\\x00']"),
        ({"a": (None, 2)}, "{'a': (None, 2)}"),
        (float("inf"), "float('inf')"),
        ("\u3164\u202e\ud800", "'\\u3164\\u202e\\ud800'"),
        (Python("pa.int32()"), "pa.int32()"),
    ],
)
def test_values_become_constants(value: object, code: str) -> None:
    assert literal(value) == code


class Loud(str):
    __slots__ = ()

    def __repr__(self) -> str:
        return "fired()"


def test_a_value_cannot_say_how_it_is_written() -> None:
    assert literal(Loud("x")) == "'x'"
    with pytest.raises(InternalError, match="object"):
        literal(object())


@pytest.mark.parametrize("name", ["a()", "a.b;c", "", "a b", "x\n", "é"])
def test_names_are_names(name: str) -> None:
    with pytest.raises(InternalError):
        Python("ds").attribute(name)
    with pytest.raises(InternalError):
        Python("ds.f").call(**{name: 1})


@pytest.mark.parametrize("line", ["'a", 'a "b', "U&'\\'", "x U&'\\00'"])
def test_a_line_that_is_not_closed_is_refused(line: str) -> None:
    with pytest.raises(InvalidInputError):
        split(line)


def test_a_shell_gets_a_variable_as_one_word_or_not_at_all() -> None:
    line = shell_variable("A", "/a b/$(x)`y`'")
    assert shlex.split(line) == ["export", "A=/a b/$(x)`y`'"]
    for text in ("a\nb", "\x1b", "\u202e", "\ud800"):
        assert not shell_variable("A", text)


def test_names_with_commas_cannot_be_listed() -> None:
    assert can_be_listed(["a", "b c"])
    assert not can_be_listed(["a,b"])
    assert not can_be_listed(["", "b"])
    assert not can_be_listed([])


def test_an_option_with_several_values_is_repeated() -> None:
    line = magic("merge", "dev", options={"--resolve": ["theirs", "a b=ours"], "-m": ""})
    assert line == "%lance merge dev --resolve theirs --resolve 'a b=ours' -m ''"
    words = [one.text for one in split(line.removeprefix("%lance "))]
    assert words == ["merge", "dev", "--resolve", "theirs", "--resolve", "a b=ours", "-m", ""]
