"""The door of IPython: ``%lance`` and ``%%lance``.

::

    %load_ext lance_nb
    %lance open data/photos.lance as ds     ds is the dataset at the version shown
    %lance log -n 5
    %lance diff HEAD~1..HEAD
    %%lance                                 a cell of SQL: FROM dataset@tag:v1

Every verb returns an object that displays itself; an error is one line without a trace.

``%lance open {path}`` and ``%lance open $path`` fill in a variable: a text, a path, a number, or a
dataset. It becomes one word whatever it holds. IPython itself fills in nothing here: it would
evaluate any expression in braces, also one in a text that was copied from a dataset. SQL stays as
it is written.
"""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Sequence
from numbers import Real

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand
from traitlets import Bool, Int

from lance_nb.code_lines import MAGIC
from lance_nb.dataset import LanceDataset
from lance_nb.errors import InvalidInputError, LanceError
from lance_nb.explorer.app import Explorer
from lance_nb.explorer.models import text
from lance_nb.magic.answer import Answer, JsonText, one_line
from lance_nb.magic.completion import Matcher
from lance_nb.magic.desk import Desk, Settings, variables_of
from lance_nb.magic.help import docstring, help_of, help_of_all
from lance_nb.magic.registry import ALIASES, VERBS
from lance_nb.magic.request import Request, parse, parse_cell
from lance_nb.magic.verbs.looking import in_words
from lance_nb.shown_text import visible_lines

# Outside of quotes.
_DEBUG = re.compile(r"""('[^']*'|"[^"]*")|(?<!\S)--debug(?!\S)""")
_HELP = frozenset({"help", "--help", "-h", "?"})


@magics_class
class LanceMagics(Magics):
    """``%lance`` of one shell. Configure it with ``%config LanceMagics.rows_shown = 50``."""

    versions_shown = Int(20, min=0, help="How many versions `%lance log` lists.").tag(config=True)
    rows_shown = Int(20, min=0, help="How many rows of a result are shown.").tag(config=True)
    autoload = Bool(
        False, help="Whether `import lance_nb` adds `%lance` (in ipython_config.py)."
    ).tag(config=True)

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self.desk = Desk(namespace=shell.user_ns, show=Explorer)

    @no_var_expand
    @line_cell_magic
    def lance(self, line: str, cell: str | None = None) -> object:
        """Explore a Lance dataset; a cell is SQL."""
        rest = _DEBUG.sub(lambda found: found[1] or "", line)
        is_debug = rest != line
        try:
            return self._run(rest, cell)
        except LanceError as error:
            if is_debug:
                sys.stderr.write(visible_lines(traceback.format_exc()))
            verb = _verb_of(line) if cell is None else "sql"
            said = one_line(error).removeprefix(f"{verb}: ")
            raise UsageError(f"{MAGIC} {text.name(verb)}: {said}") from None

    def _run(self, line: str, cell: str | None) -> object:
        self.desk.settings = Settings(self.versions_shown, self.rows_shown)
        if cell is not None:
            return self._kept(parse_cell(line, cell))
        words = line.split()
        if not words or {words[0], words[-1]} & _HELP:
            return _helped(words)
        if words[0] not in {*VERBS, *ALIASES} and words[0] in variables_of(self.desk.namespace):
            raise InvalidInputError(f"{words[0]} is a dataset; did you mean 'open {words[0]}'?")
        return self._kept(parse(line, fill=self._filled))

    def _filled(self, name: str) -> str:
        """Return what ``{name}`` stands for. Raises InvalidInputError."""
        if name not in self.desk.namespace:
            raise InvalidInputError(
                f"there is no variable {name} to fill in; text with braces or dollars goes into "
                f"single quotes, or is written {{{{{name}}}}}"
            )
        value = self.desk.namespace[name]
        if isinstance(value, str):
            return str.__str__(value)
        if isinstance(value, LanceDataset):
            return name
        if isinstance(value, os.PathLike):
            return os.fsdecode(value)
        if isinstance(value, Real):
            return str(value)
        kind = type(value).__name__
        raise InvalidInputError(
            f"{name} is of type {kind}: texts, paths, numbers and datasets are filled in"
        )

    def _kept(self, request: Request) -> object:
        found = request.verb.run(self.desk, request.arguments)
        if request.output is not None:
            self.desk.namespace[request.output] = (
                found.value if isinstance(found, Answer) else found
            )
        if request.is_silent:
            return None
        if not request.as_json:
            return found
        answer = found if isinstance(found, Answer) else in_words(self.desk.dataset)
        return JsonText(answer.json())


def _verb_of(line: str) -> str:
    """Return the verb that a line asks for, for an error about it."""
    first, _, rest = line.partition("<<")
    words = (rest if len(first.split()) == 1 and rest.strip() else line).split()
    return words[0] if words else "help"


def _helped(words: Sequence[str]) -> Answer | JsonText:
    names = [one for one in words if one not in {*_HELP, "--json"}]
    found = help_of(names[0]) if names else help_of_all()
    return JsonText(found.json()) if "--json" in words else found


LanceMagics.lance.__doc__ = docstring()


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Add ``%lance`` to an IPython shell: ``%load_ext lance_nb``."""
    magics = LanceMagics(shell)
    shell.register_magics(magics)
    Matcher.install(shell, magics.desk)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Take ``%lance`` away again: ``%unload_ext lance_nb``."""
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop("lance", None)
    shell.magics_manager.registry.pop(LanceMagics.__name__, None)
    Matcher.uninstall(shell)
