"""``%lance`` and ``%%lance`` in IPython, and their tab completion.

::

    %load_ext lance_nb
    %lance open data/photos.lance as ds     ds follows the version that is shown
    %lance log -n 5
    %lance diff HEAD~1..HEAD
    %%lance                                 a cell of SQL: FROM dataset@tag:v1

Every verb returns an object that displays itself; an error is one line without a traceback.

``%lance open {path}`` and ``%lance open $path`` substitute a variable: a text, a path, a number, or
a dataset. The value is always one word. IPython's own substitution is off, because it would
evaluate any expression in braces, even in a text that was copied from a dataset. SQL is passed
unchanged.

Completion is a matcher of IPython's own completer, because words with ``:`` and ``..`` are split by
the older hooks. Names are read from storage at most once in ``SECONDS_KEPT``.

Limits: ``MAX_OFFERED`` completions. A dataset that cannot be read offers none.
Source: IPython.core.completer (context matchers, API version 2).
"""

from __future__ import annotations

import os
import re
import sys
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

from IPython.core.completer import (
    CompletionContext,
    SimpleCompletion,
    SimpleMatcherResult,
    context_matcher,
)
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, magics_class, no_var_expand
from traitlets import Bool, Int

from lance_nb.code_lines import MAGIC
from lance_nb.dataset import LanceDataset
from lance_nb.errors import InvalidInputError, LanceError
from lance_nb.explorer import text
from lance_nb.explorer.app import Explorer
from lance_nb.magic import verb as argument_kinds
from lance_nb.magic.context import MagicContext, Settings, variables_of
from lance_nb.magic.registry import (
    ALIASES,
    VERBS,
    Request,
    docstring,
    help_of,
    help_of_all,
    parse,
    parse_cell,
)
from lance_nb.magic.verb import Argument, JsonText, Result, Verb, one_line
from lance_nb.magic.verbs.browse import dataset_summary
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
        self.context = MagicContext(namespace=shell.user_ns, show=Explorer)

    @no_var_expand
    @line_cell_magic
    def lance(self, line: str, cell: str | None = None) -> object:
        """Explore a Lance dataset; a cell is SQL."""
        command = _DEBUG.sub(lambda match: match[1] or "", line)
        is_debug = command != line
        try:
            return self._run(command, cell)
        except LanceError as error:
            if is_debug:
                sys.stderr.write(visible_lines(traceback.format_exc()))
            verb = _verb_of(line) if cell is None else "sql"
            problem = one_line(error).removeprefix(f"{verb}: ")
            raise UsageError(f"{MAGIC} {text.name(verb)}: {problem}") from None

    def _run(self, line: str, cell: str | None) -> object:
        self.context.settings = Settings(self.versions_shown, self.rows_shown)
        if cell is not None:
            return self._value_of(parse_cell(line, cell))
        words = line.split()
        if not words or {words[0], words[-1]} & _HELP:
            return _help_result(words)
        if words[0] not in {*VERBS, *ALIASES} and words[0] in variables_of(self.context.namespace):
            raise InvalidInputError(f"{words[0]} is a dataset; did you mean 'open {words[0]}'?")
        return self._value_of(parse(line, fill=self._substitute))

    def _substitute(self, name: str) -> str:
        """Return the text to substitute for ``{name}``. Raises InvalidInputError."""
        if name not in self.context.namespace:
            raise InvalidInputError(
                f"variable {name} is not defined; to write literal braces or dollars, use single "
                f"quotes or {{{{{name}}}}}"
            )
        value = self.context.namespace[name]
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
            f"cannot substitute {name} of type {kind}; use a text, path, number or dataset"
        )

    def _value_of(self, request: Request) -> object:
        result = request.verb.run(self.context, request.arguments)
        if request.output is not None:
            self.context.namespace[request.output] = (
                result.value if isinstance(result, Result) else result
            )
        if request.is_silent:
            return None
        if not request.as_json:
            return result
        answer = result if isinstance(result, Result) else dataset_summary(self.context.dataset)
        return JsonText(answer.json())


def _verb_of(line: str) -> str:
    """Return the verb of a line, for an error message."""
    first, _, after = line.partition("<<")
    words = (after if len(first.split()) == 1 and after.strip() else line).split()
    return words[0] if words else "help"


def _help_result(words: Sequence[str]) -> Result | JsonText:
    names = [word for word in words if word not in {*_HELP, "--json"}]
    help_result = help_of(names[0]) if names else help_of_all()
    return JsonText(help_result.json()) if "--json" in words else help_result


LanceMagics.lance.__doc__ = docstring()


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Add ``%lance`` to an IPython shell: ``%load_ext lance_nb``."""
    magics = LanceMagics(shell)
    shell.register_magics(magics)
    Matcher.install(shell, magics.context)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Remove ``%lance``: ``%unload_ext lance_nb``."""
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop("lance", None)
    shell.magics_manager.registry.pop(LanceMagics.__name__, None)
    Matcher.uninstall(shell)


MAX_OFFERED = 200
SECONDS_KEPT = 3.0
_NEWEST_VERSIONS = 20
_PREFIXES = ("%lance ", "lance ", "%%lance ")


class Matcher:
    """Complete lines of one shell. ``install`` adds the matcher, ``uninstall`` removes it."""

    def __init__(self, context: MagicContext) -> None:
        self._context = context
        self._names: tuple[float, object, list[str]] = (0.0, None, [])

    @classmethod
    def install(cls, shell: InteractiveShell, context: MagicContext) -> None:
        """Add a matcher to a shell; one that is there already is replaced."""
        cls.uninstall(shell)
        magics = cls(context)

        @context_matcher(identifier="lance_nb")  # type: ignore[untyped-decorator]
        def match(context: CompletionContext) -> SimpleMatcherResult:
            return magics.match(context.line_with_cursor.split("\n")[-1][: context.cursor_position])

        shell.Completer.custom_matchers.append(match)

    @staticmethod
    def uninstall(shell: InteractiveShell) -> None:
        """Remove the matcher."""
        matchers = shell.Completer.custom_matchers
        matchers[:] = [matcher for matcher in matchers if _identifier(matcher) != "lance_nb"]

    def match(self, line: str) -> SimpleMatcherResult:
        """Complete the last word of a line."""
        command = next((line.lstrip()[len(prefix) :] for prefix in _PREFIXES
                      if line.lstrip().startswith(prefix)), None)  # fmt: skip
        if command is None:
            return {"completions": [], "suppress": False}
        words = command.split(" ")
        token, offered = self._offered(words[:-1], words[-1])
        fits = [candidate for candidate in dict.fromkeys(offered) if candidate.startswith(token)][
            :MAX_OFFERED
        ]
        return {
            "completions": [SimpleCompletion(fit, type="lance") for fit in fits],
            "suppress": bool(fits),
            "matched_fragment": token,
        }

    def _offered(self, before: list[str], word: str) -> tuple[str, Iterable[str]]:
        """Return the part of the word to complete, and the candidates."""
        before = [earlier for earlier in before if earlier]
        if not before:
            return word, [*VERBS, "help"]
        if before[0] == "help":
            return word, VERBS
        verb = VERBS.get(ALIASES.get(before[0], before[0]))
        if verb is None:
            return word, []
        if word.startswith("-"):
            return word, _options(verb)
        meant = _next_argument(verb, before[1:])
        if meant is None:
            return word, []
        if "choices" in meant.options:
            return word, meant.options["choices"]
        if meant.completes == argument_kinds.RANGE:
            start = max(word.rfind(".."), word.rfind("..."))
            word = word[start + 2 :].lstrip(".") if start >= 0 else word
        if meant.completes == argument_kinds.COLUMN:
            word = word.rpartition(",")[2]
        return word, self._named(meant.completes, word)

    def _named(self, kind: str, word: str) -> Iterable[str]:
        if kind == argument_kinds.URI:
            return [*variables_of(self._context.namespace), *_datasets(word)]
        if kind == argument_kinds.VARIABLE:
            return [name for name in self._context.namespace if not name.startswith("_")]
        if not self._context.is_open:
            return []
        if kind == argument_kinds.COLUMN:
            return list(self._context.dataset.schema.names)
        if kind in {argument_kinds.REF, argument_kinds.RANGE}:
            return self._refs()
        dataset = self._context.dataset
        try:
            if kind == argument_kinds.BRANCH:
                return dataset.branches.names()
            return dataset.tags.names() if kind == argument_kinds.TAG else []
        except LanceError:
            return []

    def _refs(self) -> list[str]:
        """List refs: names first, then the newest version numbers."""
        dataset = self._context.dataset
        stamp, of, names = self._names
        if of is dataset and time.monotonic() - stamp < SECONDS_KEPT:
            return names
        try:
            branches, tags = dataset.branches.names(), dataset.tags.names()
            newest = dataset.version_numbers()[: -_NEWEST_VERSIONS - 1 : -1]
        except LanceError:
            return []
        names = ["main", *branches, *tags, *(f"tag:{tag}" for tag in tags), "HEAD", "HEAD~1"]
        names += [str(number) for number in newest] + [f"{branch}:" for branch in branches]
        self._names = (time.monotonic(), dataset, names)
        return names


def _next_argument(verb: Verb, before: list[str]) -> Argument | None:
    """Return the argument whose value comes next."""
    by_flag = {
        flag: argument
        for argument in verb.arguments
        if argument.is_option
        for flag in argument.flags
    }
    positional = [argument for argument in verb.arguments if not argument.is_option]
    position, waiting = 0, None
    for word in before:
        if waiting is not None:
            waiting = None
        elif word.startswith("-"):
            option = by_flag.get(word)
            has_value = option is not None and "action" not in option.options
            waiting = option if has_value else None
        else:
            position += 1
    if waiting is not None:
        return waiting
    if position < len(positional):
        return positional[position]
    last = positional[-1] if positional else None
    return last if last is not None and last.options.get("nargs") in {"+", "*"} else None


def _options(verb: Verb) -> Iterator[str]:
    for argument in verb.arguments:
        if argument.is_option:
            yield from argument.flags
    yield from argument_kinds.COMMON_FLAGS


def _datasets(word: str) -> list[str]:
    """List folders that are datasets, or may contain some, below the typed path."""
    if "://" in word:
        return []
    prefix = word[: max(word.rfind("/"), word.rfind(os.sep)) + 1]
    folder = Path(prefix or ".")
    try:
        folders = sorted(entry for entry in folder.iterdir() if entry.is_dir())[:MAX_OFFERED]
    except OSError:
        return []
    shown = [
        folder_entry for folder_entry in folders if not folder_entry.name.startswith((".", "_"))
    ]
    return [
        prefix + entry.name + ("" if (entry / "_versions").is_dir() else "/") for entry in shown
    ]


def _identifier(matcher: Any) -> str:
    return str(getattr(matcher, "matcher_identifier", ""))
