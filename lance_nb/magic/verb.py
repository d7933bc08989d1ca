"""Verb: one thing that ``%lance`` and ``lance-nb`` can do, as a value.

Layout: a name, one line of help, the arguments in argparse's terms, and the function. The parser,
the help texts, the completions and the tables of the documentation are all made from it.
"""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

from lance_nb.errors import InvalidInputError

if TYPE_CHECKING:
    from lance_nb.magic.desk import Desk

# What the word in an argument's place means, for completion.
REF, RANGE, URI, COLUMN, BRANCH, TAG, VARIABLE = (
    "ref", "range", "uri", "column", "branch", "tag", "variable",
)  # fmt: skip

MAGIC = "%lance"
# What every verb understands.
COMMON_FLAGS = ("--json", "--no-display", "--debug", "-o", "--help")
_OPERATORS = frozenset({"=", "!=", "<>", "<", ">", "<=", ">="})
_INVALID_CHOICE = re.compile(r"invalid choice: '(?P<word>.*)' \(choose from (?P<choices>.*)\)")


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a verb: ``options`` are those of ``ArgumentParser.add_argument``."""

    flags: tuple[str, ...]
    help: str
    means: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_option(self) -> bool:
        """Whether it is written with a dash."""
        return self.flags[0].startswith("-")


def argument(*flags: str, help: str, means: str = "", **options: Any) -> Argument:
    """Declare an argument as ``ArgumentParser.add_argument`` takes it."""
    return Argument(flags, help, means, options)


@dataclass(frozen=True, slots=True)
class Verb:
    """One verb. ``run`` returns an Answer, or an object that displays itself."""

    name: str
    help: str
    run: Callable[[Desk, argparse.Namespace], object]
    arguments: tuple[Argument, ...] = ()
    example: str = ""
    # Whether it needs a dataset: a terminal asks for its URI first.
    needs_dataset: bool = True
    # Whether its one argument is text in a language of its own, whose quotes must stay.
    is_text: bool = False

    @property
    def usage(self) -> str:
        """How the verb is written in a notebook, in one line."""
        return self.written(MAGIC)

    def written(self, prog: str) -> str:
        """Return how the verb is written behind ``prog``; in a terminal the dataset comes first."""
        is_terminal = prog.strip("%") != MAGIC.strip("%")
        uri = ["URI"] if is_terminal and (self.needs_dataset or self.is_text) else []
        return " ".join([prog, self.name, *uri, *map(_written, self.arguments)])

    def parser(self, prog: str) -> Parser:
        """Make the parser of the verb's words."""
        usage = self.written(prog).replace("%", "%%")
        parser = Parser(prog=f"{prog} {self.name}", usage=usage, add_help=False)
        for one in self.arguments:
            parser.add_argument(*one.flags, help=one.help.replace("%", "%%"), **one.options)
        return parser


def names_of(words: str | None) -> list[str] | None:
    """Take ``A,B`` apart. Raises InvalidInputError for an empty name."""
    if not words:
        return None
    names = words.split(",")
    if "" in names:
        raise InvalidInputError(f"{words!r}: write names with commas and without spaces: A,B")
    return names


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that raises instead of ending the process.

    ``words``: what it is given. ``kept``: the words that marks among them stand for.
    """

    words: Sequence[str] = ()
    kept: Mapping[str, str] = MappingProxyType({})

    def error(self, message: str) -> NoReturn:
        """Raise InvalidInputError with a suggestion and the usage."""
        for mark, word in self.kept.items():
            message = message.replace(mark, word)
        usage = " ".join(self.format_usage().removeprefix("usage:").split())
        raise InvalidInputError(f"{message}{self._suggested(message)}; usage: {usage}")

    def _suggested(self, message: str) -> str:
        """Say what was probably meant: an option, a choice, or words that need quotes."""
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
        flags = [flag for one in self._actions for flag in one.option_strings]
        is_flag = wrong.startswith("-")
        if not is_flag and "--message" in flags and wrong in self.words:
            return f"; did you mean -m {wrong!r}?"
        first = wrong.partition(" ")[0]
        meant = first if is_flag else f"--{first}"
        near = difflib.get_close_matches(meant, [*flags, *COMMON_FLAGS], n=1, cutoff=0.75)
        if near:
            return f"; did you mean {near[0]}?"
        is_split = not is_flag and (" " in wrong or ":" in wrong or _OPERATORS & set(self.words))
        return "; put quotes around words that belong together" if is_split else ""


def _written(one: Argument) -> str:
    many = one.options.get("nargs")
    choices = "|".join(one.options.get("choices", ()))
    name = one.options.get("metavar") or one.flags[-1].lstrip("-").upper().replace("-", "_")
    if not one.is_option:
        word = choices or str(name)
        ending = "..." if many in {"+", "*"} else ""
        return f"[{word}{ending}]" if many in {"?", "*"} else f"{word}{ending}"
    takes_value = one.options.get("action") not in {"store_true", "store_const"}
    value = one.options.get("metavar") or choices or name
    return f"[{one.flags[0]}{f' {value}' if takes_value else ''}]"
