"""One line for the magic, taken apart: the verb, its arguments, and what becomes of the answer.

::

    [NAME <<] verb word ... [-o NAME] [--json] [--no-display] [--debug]

How words are written: see ``lance_nb.code_lines``, which writes the lines that are offered. Names
of variables are filled in for words; the text of a verb such as ``sql`` stays as it is.
"""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from lance_nb.code_lines import Fill, Word, split
from lance_nb.errors import InvalidInputError
from lance_nb.magic.registry import find
from lance_nb.magic.verb import Parser, Verb

_TARGET = re.compile(r"\s*(\S+?)\s*<<\s*(.*)", re.DOTALL)
# What a statement of SQL that returns rows begins with.
_STATEMENTS = frozenset({"select", "with"})
_OPTION = re.compile(r"(?:(?:-o|--output)\s+\S+|--json|--no-display)(?:\s+|$)")


@dataclass(frozen=True, slots=True)
class Request:
    """What a line asks for. ``arguments`` are those of the verb."""

    verb: Verb
    arguments: Namespace
    output: str | None = None
    as_json: bool = False
    is_silent: bool = False


def parse(line: str, prog: str = "%lance", fill: Fill | None = None) -> Request:
    """Take a line apart; ``fill`` gives the texts of variables. Raises InvalidInputError."""
    target = _TARGET.match(line)
    output, rest = target.groups() if target else (None, line)
    name, _, words = rest.strip().partition(" ")
    if not name:
        raise InvalidInputError(f"{output} << needs a verb behind it, such as {output} << log")
    if name.lower() in _STATEMENTS:
        name, words = "sql", rest
    verb = find(name)
    if verb.is_text:
        return parse_text(verb, words, prog, output)
    return parse_words([Word(name), *split(words, fill)], prog, output)


def parse_cell(line: str, cell: str, prog: str = "%%lance") -> Request:
    """Take a cell of SQL apart; the line may hold options. Raises InvalidInputError."""
    target = _TARGET.match(f"{line} ")
    output, rest = target.groups() if target else (None, line)
    request = parse_text(find("sql"), rest.removeprefix("sql"), prog, output)
    if request.arguments.statement:
        raise InvalidInputError(
            f"{request.arguments.statement!r} is not an option of {prog}, which runs the SQL "
            "in its cell; verbs are written %lance in a line of their own"
        )
    return replace(request, arguments=Namespace(statement=cell))


def parse_text(verb: Verb, words: str, prog: str, output: str | None = None) -> Request:
    """Take options off the front; the rest is the verb's text as it stands."""
    options, rest = [], words.strip()
    while found := _OPTION.match(rest):
        options += found.group().split()
        rest = rest[found.end() :]
    asked = _common(prog, output).parse_args(options)
    said = Namespace(**{verb.arguments[0].flags[0]: rest})
    return _request(verb, said, asked)


def parse_words(words: Sequence[Word], prog: str, output: str | None = None) -> Request:
    """Take the words of a line apart. Raises InvalidInputError."""
    plain, kept = _sheltered(words)
    asked, others = _common(prog, output).parse_known_args(plain[1:])
    verb = find(plain[0])
    parser = verb.parser(prog)
    parser.words, parser.kept = tuple(others), kept
    said = parser.parse_intermixed_args(others)
    for name, value in vars(said).items():
        setattr(said, name, _taken_out(value, kept))
    return _request(verb, said, asked)


def _sheltered(words: Sequence[Word]) -> tuple[list[str], dict[str, str]]:
    """Put a mark in the place of every word that looks like an option and is none.

    argparse knows options by their dash alone. Returns the words, and what each mark stands for.
    """
    plain: list[str] = []
    kept: dict[str, str] = {}
    known = {one.text for one in words}
    for one in words:
        if one.is_plain or not one.text.startswith("-"):
            plain.append(one.text)
            continue
        mark = f"\0{len(kept)}\0"
        while mark in known:
            mark += "\0"
        kept[mark] = one.text
        plain.append(mark)
    return plain, kept


def _taken_out(value: Any, kept: dict[str, str]) -> Any:
    if isinstance(value, list):
        return [_taken_out(one, kept) for one in value]
    return kept.get(value, value) if isinstance(value, str) else value


def _common(prog: str, output: str | None) -> Parser:
    common = Parser(prog=prog, add_help=False, allow_abbrev=False)
    common.add_argument("-o", "--output", dest="output_name", default=output, metavar="NAME")
    common.add_argument("--json", action="store_true", dest="as_json")
    common.add_argument("--no-display", action="store_true", dest="is_silent")
    return common


def _request(verb: Verb, said: Namespace, asked: Namespace) -> Request:
    if asked.output_name is not None and not asked.output_name.isidentifier():
        raise InvalidInputError(f"{asked.output_name!r} is not a variable name")
    return Request(verb, said, asked.output_name, asked.as_json, asked.is_silent)
