"""The ``%lance`` magic: a table of verbs, each one call of the façade or the explorer.

::

    %load_ext lance_nb
    %lance open data/demo.lance as ds    explore a dataset; ds is the dataset at the version shown
    %lance versions -n 5                 list the newest versions
    %lance at HEAD~2                     explore another version: 12, tag:v1, dev, dev:3, HEAD~2
    %lance show                          explore the dataset again
    %lance help                          list the verbs

Every verb returns an object with a display of its own, never only prints. An error is one line
without a trace. Python names in braces are filled in by IPython: ``%lance open {path}``.

Limits: one dataset at a time, the one opened last. Not supported: completion of refs.
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Callable
from dataclasses import dataclass

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_magic, magics_class
from traitlets import Int

from lance_nb.errors import LanceError
from lance_nb.explorer.app import Explorer
from lance_nb.explorer.models import refs
from lance_nb.explorer.models.source import Source
from lance_nb.explorer.opening import open_source
from lance_nb.explorer.pictures import Picture, picture_of_text, picture_of_versions


@dataclass(frozen=True, slots=True)
class Verb:
    """One ``%lance`` verb: how to write it, what it does, and the method that does it."""

    usage: str
    help: str
    run: Callable[[LanceMagics, list[str]], object]


@magics_class
class LanceMagics(Magics):
    """The state behind ``%lance``: the dataset opened last and the variable that follows it."""

    versions_shown = Int(20, help="How many versions `%lance versions` lists.").tag(config=True)

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self._dataset: Source | None = None
        self._variable: str | None = None

    @line_magic
    def lance(self, line: str) -> object:
        """Explore a Lance dataset; `%lance help` lists the verbs."""
        words = _split(line)
        name, arguments = (words[0], words[1:]) if words else ("help", [])
        if name not in VERBS:
            raise UsageError(f"%lance has no verb {name!r}{_did_you_mean(name, VERBS)}")
        try:
            return VERBS[name].run(self, arguments)
        except LanceError as error:
            notes = "".join(f"; {note}" for note in getattr(error, "__notes__", ()))
            raise UsageError(f"%lance {name}: {error}{notes}") from None

    def open(self, arguments: list[str]) -> Explorer:
        """Open a dataset and show it."""
        uri, *rest = arguments or [""]
        if not uri or (rest and (len(rest) != 2 or rest[0] != "as")):
            raise _usage("open")
        if rest and not rest[1].isidentifier():
            raise UsageError(f"%lance open: {rest[1]!r} is not a variable name")
        dataset = open_source(uri)
        self._variable = rest[1] if rest else None
        return self._look_at(dataset)

    def versions(self, arguments: list[str]) -> Picture:
        """List the newest versions."""
        limit = self.versions_shown
        if arguments:
            flag, *value = arguments
            if flag != "-n" or len(value) != 1 or not value[0].isdecimal():
                raise _usage("versions")
            limit = int(value[0])
        return picture_of_versions(self._current("versions"), limit)

    def at(self, arguments: list[str]) -> Explorer:
        """Go to another version and show it."""
        if len(arguments) != 1:
            raise _usage("at")
        return self._look_at(refs.resolve(self._current("at"), arguments[0]))

    def show(self, arguments: list[str]) -> Explorer:
        """Show the dataset again."""
        if arguments:
            raise _usage("show")
        return Explorer(self._current("show"))

    def help(self, arguments: list[str]) -> Picture:
        """List the verbs."""
        shown = {name: verb for name, verb in VERBS.items() if not arguments or name in arguments}
        if not shown:
            raise UsageError(f"%lance has no verb {arguments[0]!r}")
        return picture_of_text("%lance", [(verb.usage, verb.help) for verb in shown.values()])

    def _look_at(self, dataset: Source) -> Explorer:
        self._dataset = dataset
        if self._variable is not None and self.shell is not None:
            self.shell.user_ns[self._variable] = dataset
        return Explorer(dataset)

    def _current(self, verb: str) -> Source:
        if self._dataset is None:
            raise UsageError(f"%lance {verb}: no dataset is open; begin with %lance open URI")
        return self._dataset


VERBS: dict[str, Verb] = {
    "open": Verb(
        "%lance open URI [as name]",
        "explore a dataset; the variable follows the version shown by %lance at",
        LanceMagics.open,
    ),
    "versions": Verb("%lance versions [-n N]", "list the newest versions", LanceMagics.versions),
    "at": Verb(
        "%lance at REF",
        "go to another version: 12, tag:v1, v1, dev, dev:3, HEAD~2",
        LanceMagics.at,
    ),
    "show": Verb("%lance show", "explore the dataset again", LanceMagics.show),
    "help": Verb("%lance help [verb]", "list the verbs", LanceMagics.help),
}


def _split(line: str) -> list[str]:
    """Split like a shell, but leave backslashes alone: they are part of Windows paths."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=False)
    lexer.whitespace_split = True
    lexer.commenters = lexer.escape = ""
    try:
        return list(lexer)
    except ValueError:
        raise UsageError("%lance: a quote is not closed") from None


def _usage(verb: str) -> UsageError:
    return UsageError(f"usage: {VERBS[verb].usage}  ({VERBS[verb].help})")


def _did_you_mean(name: str, known: dict[str, Verb]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else f"; it has {', '.join(known)}"


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Add ``%lance`` to an IPython shell: ``%load_ext lance_nb``."""
    shell.register_magics(LanceMagics)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Take ``%lance`` away again: ``%unload_ext lance_nb``."""
    shell.magics_manager.magics["line"].pop("lance", None)
    shell.magics_manager.registry.pop(LanceMagics.__name__, None)
