"""The table of verbs, the parser of a line, and the help texts.

::

    [NAME <<] verb word ... [-o NAME] [--json] [--no-display] [--debug]

To add a verb, declare its function with ``verb``, add it to ``VERBS`` of its module in
``magic/verbs``, and a new module to ``GROUPS``. Quoting: see ``lance_nb.code_lines``, which also
writes the lines that are offered to users. Variables are substituted in words; the text of a verb
such as ``sql`` is passed unchanged.
"""

from __future__ import annotations

import difflib
import re
from argparse import Namespace
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lance_nb.code_lines import Fill, Word, split
from lance_nb.errors import InvalidInputError
from lance_nb.explorer import text
from lance_nb.explorer.static_rendering import render_table
from lance_nb.magic.verb import MAGIC, Argument, Parser, Result, Verb
from lance_nb.magic.verbs import (
    branches,
    browse,
    expectations,
    history,
    indexing,
    maintenance,
    review,
    searching,
    spark,
    sql,
    staging,
)
from lance_nb.value_classes import dataclass

GROUPS: Mapping[str, tuple[Verb, ...]] = {
    "look": browse.VERBS,
    "history": history.VERBS,
    "branches and tags": branches.VERBS,
    "change": staging.VERBS,
    "check and review": (*expectations.VERBS, *review.VERBS),
    "maintenance": (*maintenance.VERBS, *indexing.VERBS),
    "ask": (*sql.VERBS, *searching.VERBS, *spark.VERBS),
}
VERBS: Mapping[str, Verb] = {verb.name: verb for group in GROUPS.values() for verb in group}
# Synonyms.
ALIASES: Mapping[str, str] = {"versions": "log", "history": "log", "checkout": "at", "goto": "at",
                              "query": "sql", "branches": "branch", "tags": "tag",
                              "verify": "doctor"}  # fmt: skip
# Names of other tools, and the verb to suggest for them.
_SUGGESTIONS: Mapping[str, str] = {
    "append": "stage append", "insert": "stage append", "add": "stage append",
    "delete": "stage delete", "update": "stage update", "overwrite": "stage overwrite",
    "undo": "revert HEAD", "rollback": "restore HEAD~1", "reset": "discard",
    "ls": "fragments", "files": "fragments", "cat": "head", "columns": "schema",
    "info": "show", "blame": "row", "optimize": "compact",
    "cleanup": "clean", "vacuum": "clean", "save": "export", "count": "show",
}  # fmt: skip


def find(name: str) -> Verb:
    """Return the verb of that name. Raises InvalidInputError with a suggestion."""
    verb = VERBS.get(ALIASES.get(name, name))
    if verb is not None:
        return verb
    raise InvalidInputError(f"there is no verb {text.name(name)!r}; {_suggested(name)}")


def _suggested(name: str) -> str:
    if name in _SUGGESTIONS:
        return f"did you mean {_SUGGESTIONS[name]!r}?"
    if "/" in name or name.endswith(".lance"):
        return f"did you mean 'open {text.name(name)}'?"
    near = difflib.get_close_matches(name.lower(), [*VERBS, "help"], n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"verbs: {', '.join(VERBS)}"


_TARGET = re.compile(r"\s*(\S+?)\s*<<\s*(.*)", re.DOTALL)
# The first words of an SQL query.
_STATEMENTS = frozenset({"select", "with"})
_OPTION = re.compile(r"(?:(?:-o|--output)\s+\S+|--json|--no-display)(?:\s+|$)")


@dataclass(frozen=True, slots=True)
class Request:
    """A parsed line: verb, its arguments, and what to do with the result."""

    verb: Verb
    arguments: Namespace
    output: str | None = None
    as_json: bool = False
    is_silent: bool = False


def parse(line: str, prog: str = "%lance", fill: Fill | None = None) -> Request:
    """Parse a line; ``fill`` returns the text of a variable. Raises InvalidInputError."""
    target = _TARGET.match(line)
    output, verb_words = target.groups() if target else (None, line)
    name, _, words = verb_words.strip().partition(" ")
    if not name:
        raise InvalidInputError(f"{output} << must be followed by a verb, such as {output} << log")
    if name.lower() in _STATEMENTS:
        name, words = "sql", verb_words
    verb = find(name)
    if verb.is_text:
        return parse_text(verb, words, prog, output)
    return parse_words([Word(name), *split(words, fill)], prog, output)


def parse_cell(line: str, cell: str, prog: str = "%%lance") -> Request:
    """Parse a cell of SQL, whose first line may have options. Raises InvalidInputError."""
    target = _TARGET.match(f"{line} ")
    output, words = target.groups() if target else (None, line)
    request = parse_text(find("sql"), words.removeprefix("sql"), prog, output)
    if request.arguments.statement:
        raise InvalidInputError(
            f"{request.arguments.statement!r} is not an option of {prog}, which runs a cell "
            "of SQL; for a verb use %lance on a line of its own"
        )
    return replace(request, arguments=Namespace(statement=cell))


def parse_text(verb: Verb, words: str, prog: str, output: str | None = None) -> Request:
    """Parse leading options; the rest is the text of the verb, unchanged."""
    options, words_left = [], words.strip()
    while match := _OPTION.match(words_left):
        options += match.group().split()
        words_left = words_left[match.end() :]
    common = _common(prog, output).parse_args(options)
    namespace = Namespace(**{verb.arguments[0].flags[0]: words_left})
    return _request(verb, namespace, common)


def parse_words(words: Sequence[Word], prog: str, output: str | None = None) -> Request:
    """Parse the words of a line. Raises InvalidInputError."""
    plain, masked = _mask_dashed_words(words)
    common, other_words = _common(prog, output).parse_known_args(plain[1:])
    verb = find(plain[0])
    parser = verb.parser(prog)
    parser.words, parser.masked = tuple(other_words), masked
    namespace = parser.parse_intermixed_args(other_words)
    for name, value in vars(namespace).items():
        setattr(namespace, name, _unmask(value, masked))
    return _request(verb, namespace, common)


def _mask_dashed_words(words: Sequence[Word]) -> tuple[list[str], dict[str, str]]:
    """Replace quoted words that start with a dash by placeholders.

    argparse takes every word with a dash for an option. Returns the words, and the original word
    of each placeholder.
    """
    plain: list[str] = []
    masked: dict[str, str] = {}
    texts = {word.text for word in words}
    for word in words:
        if word.is_plain or not word.text.startswith("-"):
            plain.append(word.text)
            continue
        mark = f"\0{len(masked)}\0"
        while mark in texts:
            mark += "\0"
        masked[mark] = word.text
        plain.append(mark)
    return plain, masked


def _unmask(value: Any, masked: dict[str, str]) -> Any:
    if isinstance(value, list):
        return [_unmask(element, masked) for element in value]
    return masked.get(value, value) if isinstance(value, str) else value


def _common(prog: str, output: str | None) -> Parser:
    common = Parser(prog=prog, add_help=False, allow_abbrev=False)
    common.add_argument("-o", "--output", dest="output_name", default=output, metavar="NAME")
    common.add_argument("--json", action="store_true", dest="as_json")
    common.add_argument("--no-display", action="store_true", dest="is_silent")
    return common


def _request(verb: Verb, arguments: Namespace, common: Namespace) -> Request:
    if common.output_name is not None and not common.output_name.isidentifier():
        raise InvalidInputError(f"{common.output_name!r} is not a variable name")
    return Request(
        verb, arguments, common.output_name, as_json=common.as_json, is_silent=common.is_silent
    )


COMMON = (
    ("{NAME}, $NAME", "substitute a variable (text, path, number or dataset) as one word"),
    ("'{NAME}', U&'\\007B'", "literal text; text with Unicode escapes, as in SQL"),
    ("-o NAME, NAME <<", "assign the value to a variable"),
    ("--json", "show the result as JSON"),
    ("--no-display", "do not show the result"),
    ("--debug", "show the traceback of an error"),
)
IN_TERMINALS = frozenset({"--json", "--debug"})


def help_of_all(prog: str = "%lance", without: Collection[str] = ()) -> Result:
    """Return the list of verbs, by group."""
    verbs = [verb for group in GROUPS.values() for verb in group if verb.name not in without]
    rows = [(f"{prog} {verb.name}", verb.help) for verb in verbs]
    rows.append((f"{prog} help VERB", "show the help of one verb"))
    data = [{"verb": verb.name, "help": verb.help} for verb in verbs]
    return Result(data, render_table(prog, (), (("command", "what it does"), rows)), data)


def help_of(name: str, prog: str = "%lance") -> Result:
    """Return the help of one verb: synopsis, arguments, options, example."""
    verb = find(name)
    lines = [text.line(verb.synopsis(prog)), verb.help]
    common = COMMON if prog == MAGIC else [option for option in COMMON if option[0] in IN_TERMINALS]
    if verb.example:
        lines.append(f"Example: {_example(verb, prog)}")
    rows = [*((_argument_name(argument), argument.help) for argument in verb.arguments), *common]
    data = {"verb": verb.name, "usage": verb.usage, "help": verb.help, "example": verb.example}
    picture = render_table(f"{prog} {verb.name}", tuple(lines), (("argument", "meaning"), rows))
    return Result(data, picture, data)


def _example(verb: Verb, prog: str) -> str:
    if prog == MAGIC or not (verb.needs_dataset or verb.is_text):
        return f"{prog} {verb.example}"
    name, _, words = verb.example.partition(" ")
    quoted = f'"{words}"' if verb.is_text else words
    return f"{prog} {name} photos.lance {quoted}"


def docstring() -> str:
    """Return the text of ``%lance?``."""
    lines = ["Explore, compare and change Lance datasets. Verbs::", ""]
    lines += [f"    {verb.usage}" for group in GROUPS.values() for verb in group]
    return "\n".join([*lines, "", "%lance help VERB shows the help of one verb."])


def _argument_name(argument: Argument) -> str:
    return (
        ", ".join(argument.flags)
        if argument.is_option
        else str(argument.options.get("metavar", argument.flags[0]))
    )
