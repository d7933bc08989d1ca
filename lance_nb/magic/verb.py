"""Verb: one command of ``%lance`` and ``lance-nb``, as a value; Result: what it returns.

A verb has a name, one line of help, arguments in the form of argparse, and a function. The parser,
the help texts, the completions and the tables of the documentation are generated from it.

A result has a text, an HTML and a JSON form. ``value`` is the Python object that ``-o NAME``
assigns: an Arrow table, a list, a report. All texts are escaped for display, because names and
values come from datasets.
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa

from lance_nb.errors import InvalidInputError
from lance_nb.explorer import text
from lance_nb.explorer.static_rendering import StaticRendering, render_table
from lance_nb.explorer.table_images import table_images
from lance_nb.format.python_values import rows_to_python, to_python
from lance_nb.shown_text import visible, visible_json
from lance_nb.value_classes import dataclass

if TYPE_CHECKING:
    from lance_nb.magic.context import MagicContext


# What an argument completes to.
REF, RANGE, URI, COLUMN, BRANCH, TAG, VARIABLE = (
    "ref", "range", "uri", "column", "branch", "tag", "variable",
)  # fmt: skip

MAGIC = "%lance"
# Options of every verb.
COMMON_FLAGS = ("--json", "--no-display", "--debug", "-o", "--help")
_OPERATORS = frozenset({"=", "!=", "<>", "<", ">", "<=", ">="})
_INVALID_CHOICE = re.compile(r"invalid choice: '(?P<word>.*)' \(choose from (?P<choices>.*)\)")


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a verb: ``options`` are those of ``ArgumentParser.add_argument``."""

    flags: tuple[str, ...]
    help: str
    completes: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_option(self) -> bool:
        """Whether it starts with a dash."""
        return self.flags[0].startswith("-")


def argument(*flags: str, help: str, completes: str = "", **options: Any) -> Argument:
    """Declare an argument; ``options`` are those of ``ArgumentParser.add_argument``."""
    return Argument(flags, help, completes, options)


@dataclass(frozen=True, slots=True)
class Verb:
    """One verb. ``run`` returns a Result, or an object that displays itself."""

    name: str
    help: str
    run: Callable[[MagicContext, argparse.Namespace], object]
    arguments: tuple[Argument, ...] = ()
    example: str = ""
    # Whether it needs a dataset: in a terminal its URI is the first argument.
    needs_dataset: bool = True
    # Whether its only argument is text, such as SQL, whose quotes are kept.
    is_text: bool = False

    @property
    def usage(self) -> str:
        """The synopsis in a notebook, in one line."""
        return self.synopsis(MAGIC)

    def synopsis(self, prog: str) -> str:
        """Return the synopsis of the verb for ``prog``; in a terminal the dataset comes first."""
        is_terminal = prog.strip("%") != MAGIC.strip("%")
        uri = ["URI"] if is_terminal and (self.needs_dataset or self.is_text) else []
        return " ".join([prog, self.name, *uri, *map(_argument_synopsis, self.arguments)])

    def parser(self, prog: str) -> Parser:
        """Return the argument parser of the verb."""
        usage = self.synopsis(prog).replace("%", "%%")
        parser = Parser(prog=f"{prog} {self.name}", usage=usage, add_help=False)
        for argument in self.arguments:
            parser.add_argument(
                *argument.flags, help=argument.help.replace("%", "%%"), **argument.options
            )
        return parser


def verb(
    *arguments: Argument, name: str = "", example: str = "", needs_dataset: bool = True,
    is_text: bool = False,
) -> Callable[[Callable[[MagicContext, argparse.Namespace], object]], Verb]:  # fmt: skip
    """Declare a function as a verb: its name, and as help the first line of its docstring."""

    def declare(run: Callable[[MagicContext, argparse.Namespace], object]) -> Verb:
        line = (run.__doc__ or "").partition("\n")[0].removesuffix(".")
        verb_name = name or run.__name__.replace("_", "-")
        help_line = line[:1].lower() + line[1:]
        return Verb(
            name=verb_name,
            help=help_line,
            run=run,
            arguments=arguments,
            example=example,
            needs_dataset=needs_dataset,
            is_text=is_text,
        )

    return declare


def names_of(words: str | None) -> list[str] | None:
    """Split ``A,B`` into names. Raises InvalidInputError for an empty name."""
    if not words:
        return None
    names = words.split(",")
    if "" in names:
        raise InvalidInputError(f"{words!r}: separate names by commas without spaces, as in A,B")
    return names


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that raises instead of exiting.

    ``words``: its input. ``masked``: the original words of the placeholders in it.
    """

    words: Sequence[str] = ()
    masked: Mapping[str, str] = MappingProxyType({})

    def error(self, message: str) -> NoReturn:
        """Raise InvalidInputError with a suggestion and the usage."""
        for mark, word in self.masked.items():
            message = message.replace(mark, word)
        usage = " ".join(self.format_usage().removeprefix("usage:").split())
        raise InvalidInputError(f"{message}{self._suggested(message)}; usage: {usage}")

    def _suggested(self, message: str) -> str:
        """Suggest what was probably meant: an option, a choice, or quotes."""
        kind, _, wrong = message.partition(": ")
        if kind == "unrecognized arguments":
            return self._of_unrecognized(wrong)
        invalid = _INVALID_CHOICE.search(message)
        if invalid is None:
            return ""
        word, choices = invalid["word"], re.findall(r"[\w-]+", invalid["choices"])
        near = difflib.get_close_matches(word, choices, n=1)
        if not near and word.isidentifier():  # as git has it: tag NAME, tag -d NAME
            verb = "delete" if {"-d", "-D", "--delete"} & set(self.words) else "create"
            near = [f"{verb} {word}"] if verb in choices else []
        return f"; did you mean {near[0]!r}?" if near else ""

    def _of_unrecognized(self, wrong: str) -> str:
        flags = [flag for action in self._actions for flag in action.option_strings]
        is_flag = wrong.startswith("-")
        if not is_flag and "--message" in flags and wrong in self.words:
            return f"; did you mean -m {wrong!r}?"
        first = wrong.partition(" ")[0]
        meant = first if is_flag else f"--{first}"
        near = difflib.get_close_matches(meant, [*flags, *COMMON_FLAGS], n=1, cutoff=0.75)
        if near:
            return f"; did you mean {near[0]}?"
        is_split = not is_flag and (" " in wrong or ":" in wrong or _OPERATORS & set(self.words))
        return "; quote arguments that contain spaces" if is_split else ""


def _argument_synopsis(argument: Argument) -> str:
    nargs = argument.options.get("nargs")
    choices = "|".join(argument.options.get("choices", ()))
    name = argument.options.get("metavar") or argument.flags[-1].lstrip("-").upper().replace(
        "-", "_"
    )
    if not argument.is_option:
        word = choices or str(name)
        ending = "..." if nargs in {"+", "*"} else ""
        return f"[{word}{ending}]" if nargs in {"?", "*"} else f"{word}{ending}"
    takes_value = argument.options.get("action") not in {"store_true", "store_const"}
    value = argument.options.get("metavar") or choices or name
    return f"[{argument.flags[0]}{f' {value}' if takes_value else ''}]"


MAX_ROWS = 1000
_MAX_BYTES_SHOWN = 64
_CELL_CHARS = 120
NULL = "NULL"


@dataclass(frozen=True, slots=True, repr=False)
class Result:
    """The result of a verb. ``exit_code`` is the exit status in a terminal."""

    value: Any
    picture: StaticRendering
    data: Any = None
    exit_code: int = field(default=0)

    def __repr__(self) -> str:
        return self.picture.text

    def _repr_html_(self) -> str:
        return self.picture.html

    def json(self) -> str:
        """Return the result as JSON text."""
        return visible_json(json.dumps(self.data, indent=2, default=plain, ensure_ascii=False))


class JsonText(str):
    """JSON text that a cell shows without quotes and escapes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def records_result(
    heading: str,
    records: Sequence[Mapping[str, Any]],
    *,
    value: Any = None,
    data: Any = None,
    lines: Iterable[str] = (),
    exit_code: int = 0,
) -> Result:
    """Return a result that shows records as a table, one column per key of the first.

    Its value and its JSON are the records unless they are given.
    """
    head = tuple(map(text.name, records[0])) if records else ()
    rows = [tuple(map(word, record.values())) for record in records[:MAX_ROWS]]
    numeric = {
        index
        for index, key in enumerate(records[0] if records else ())
        if _is_number(records[0][key])
    }
    note = _more(len(records) - MAX_ROWS, "row")
    picture = render_table(heading, tuple(lines), (head, rows), numeric=numeric, note=note)
    listed = [dict(record) for record in records]
    value, data = listed if value is None else value, listed if data is None else data
    return Result(value, picture, data, exit_code)


def table_result(
    heading: str,
    table: pa.Table,
    rows_shown: int,
    *,
    lines: Iterable[str] = (),
    exit_code: int = 0,
) -> Result:
    """Return a result that shows the first rows of an Arrow table; its value is the table.

    Values are written as data: numbers without separators, a null as NULL, an empty text empty.
    """
    first = table.slice(0, rows_shown)
    images = table_images(first.columns)
    columns = [[data_word(value) for value in to_python(column)] for column in first.columns]
    for (row, column), image in images.items():
        columns[column][row] = f"{image.media.label} · {text.size(len(image.data))}"
    rows = list(zip(*columns, strict=True)) if columns else []
    numeric = {
        index
        for index, field_ in enumerate(table.schema)
        if pa.types.is_integer(field_.type) or pa.types.is_floating(field_.type)
    }
    names = tuple(map(text.name, table.column_names))
    note = _more(table.num_rows - first.num_rows, "row")
    picture = render_table(
        heading, tuple(lines), (names, rows), numeric=numeric, note=note, images=images
    )
    return Result(table, picture, Rows(table), exit_code)


def text_result(
    heading: str, lines: Iterable[str], *, value: Any = None, data: Any = None, exit_code: int = 0
) -> Result:
    """Return a result that shows a heading and lines of text."""
    text_lines = tuple(lines)
    picture = render_table(heading, text_lines, ((), []))
    return Result(value, picture, list(text_lines) if data is None else data, exit_code)


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a table, converted to JSON on demand."""

    table: pa.Table


def one_line(error: BaseException) -> str:
    """Return the message and notes of an error in one line, without control characters."""
    notes = "".join(f"; {note}" for note in getattr(error, "__notes__", ()))
    return visible(" ".join(f"{error}{notes}".split()))


def plain(value: Any) -> Any:
    """Convert a value that is no JSON type."""
    if isinstance(value, Rows):
        return rows_to_python(value.table)
    if isinstance(value, pa.Table):
        return rows_to_python(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, set | frozenset | tuple):
        return list(value)
    return str(value)


def word(value: Any) -> str:
    """Format one value for a table cell."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    if isinstance(value, bytes):
        more = text.ELLIPSIS if len(value) > _MAX_BYTES_SHOWN else ""
        return value[:_MAX_BYTES_SHOWN].hex() + more
    if isinstance(value, Mapping | list | tuple):
        return text.line(json.dumps(value, default=plain, ensure_ascii=False), _CELL_CHARS)
    if isinstance(value, float | Decimal | timedelta | bool):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else text.line(value, _CELL_CHARS)


def data_word(value: Any) -> str:
    """Format one value of a dataset for a table cell, so that it can be copied."""
    if value is None:
        return NULL
    return str(value) if isinstance(value, int) else word(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _more(count: int, noun: str) -> str:
    return f"{text.plural(count, f'more {noun}')}" if count > 0 else ""
