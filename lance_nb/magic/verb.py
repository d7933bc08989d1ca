"""Verb: one thing that ``%lance`` and ``lance-nb`` can do, as a value.

Layout: a name, one line of help, the arguments in argparse's terms, and the function. The parser,
the help texts, the completions and the tables of the documentation are all made from it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from lance_nb.errors import InvalidInputError

if TYPE_CHECKING:
    from lance_nb.magic.desk import Desk

# What the word in an argument's place means, for completion.
REF, RANGE, URI, COLUMN, BRANCH, TAG, VARIABLE = (
    "ref", "range", "uri", "column", "branch", "tag", "variable",
)  # fmt: skip


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
        """How the verb is written, in one line."""
        return " ".join(["%lance", self.name, *map(_written, self.arguments)])

    def parser(self, prog: str) -> Parser:
        """Make the parser of the verb's words."""
        usage = self.usage.replace("%lance", prog).replace("%", "%%")
        parser = Parser(prog=f"{prog} {self.name}", usage=usage, add_help=False)
        for one in self.arguments:
            parser.add_argument(*one.flags, help=one.help.replace("%", "%%"), **one.options)
        return parser


class Parser(argparse.ArgumentParser):
    """An ArgumentParser that raises instead of ending the process."""

    def error(self, message: str) -> NoReturn:
        """Raise InvalidInputError with the usage."""
        usage = " ".join(self.format_usage().removeprefix("usage:").split())
        raise InvalidInputError(f"{message}; usage: {usage}")


def _written(one: Argument) -> str:
    many = one.options.get("nargs")
    name = one.options.get("metavar") or one.flags[-1].lstrip("-").upper().replace("-", "_")
    if not one.is_option:
        word = "|".join(one.options["choices"]) if "choices" in one.options else str(name)
        ending = "..." if many in {"+", "*"} else ""
        return f"[{word}{ending}]" if many in {"?", "*"} else f"{word}{ending}"
    takes_value = one.options.get("action") not in {"store_true", "store_const"}
    return f"[{one.flags[0]}{f' {name}' if takes_value else ''}]"
