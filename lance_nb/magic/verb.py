"""Verb: one command of ``%lance`` and ``lance-nb``, as a value.

A verb has a name, one line of help, arguments in the form of argparse, and a function. The parser,
the help texts, the completions and the tables of the documentation are generated from it.
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
        for one in self.arguments:
            parser.add_argument(*one.flags, help=one.help.replace("%", "%%"), **one.options)
        return parser


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

    ``words``: its input. ``kept``: the original words of the placeholders in it.
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
        return "; quote arguments that contain spaces" if is_split else ""


def _argument_synopsis(one: Argument) -> str:
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
