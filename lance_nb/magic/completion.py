"""Tab completion of ``%lance``: verbs, options, choices, refs, branches, tags, columns, variables.

A matcher of IPython's own completer, because words with ``:`` and ``..`` are not words for the
older hooks. Names are read from the store at most once in ``SECONDS_KEPT``.

Limits: ``MAX_OFFERED`` completions. A dataset that cannot be read offers nothing.
Source: IPython.core.completer (context matchers, API version 2).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from IPython.core.completer import (
    CompletionContext,
    SimpleCompletion,
    SimpleMatcherResult,
    context_matcher,
)
from IPython.core.interactiveshell import InteractiveShell

from lance_nb.errors import LanceError
from lance_nb.magic import verb as means
from lance_nb.magic.desk import Desk, variables_of
from lance_nb.magic.registry import ALIASES, VERBS
from lance_nb.magic.verb import Argument, Verb

MAX_OFFERED = 200
SECONDS_KEPT = 3.0
_NEWEST_VERSIONS = 20
_PREFIXES = ("%lance ", "lance ", "%%lance ")


class Matcher:
    """Completes the lines of one shell. ``install`` adds it, ``uninstall`` takes it away."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._names: tuple[float, object, list[str]] = (0.0, None, [])

    @classmethod
    def install(cls, shell: InteractiveShell, desk: Desk) -> None:
        """Add a matcher to a shell; one that is there already is replaced."""
        cls.uninstall(shell)
        made = cls(desk)

        @context_matcher(identifier="lance_nb")  # type: ignore[untyped-decorator]
        def match(context: CompletionContext) -> SimpleMatcherResult:
            return made.match(context.line_with_cursor.split("\n")[-1][: context.cursor_position])

        shell.Completer.custom_matchers.append(match)

    @staticmethod
    def uninstall(shell: InteractiveShell) -> None:
        """Take the matcher away again."""
        matchers = shell.Completer.custom_matchers
        matchers[:] = [one for one in matchers if _identifier(one) != "lance_nb"]

    def match(self, line: str) -> SimpleMatcherResult:
        """Complete the last word of a line."""
        found = next((line.lstrip()[len(one) :] for one in _PREFIXES
                      if line.lstrip().startswith(one)), None)  # fmt: skip
        if found is None:
            return {"completions": [], "suppress": False}
        words = found.split(" ")
        token, offered = self._offered(words[:-1], words[-1])
        fits = [one for one in dict.fromkeys(offered) if one.startswith(token)][:MAX_OFFERED]
        return {
            "completions": [SimpleCompletion(one, type="lance") for one in fits],
            "suppress": bool(fits),
            "matched_fragment": token,
        }

    def _offered(self, before: list[str], word: str) -> tuple[str, Iterable[str]]:
        """Return the part of the word that is completed, and what could stand there."""
        before = [one for one in before if one]
        if not before:
            return word, [*VERBS, "help"]
        if before[0] == "help":
            return word, VERBS
        verb = VERBS.get(ALIASES.get(before[0], before[0]))
        if verb is None:
            return word, []
        if word.startswith("-"):
            return word, _options(verb)
        meant = _meant(verb, before[1:])
        if meant is None:
            return word, []
        if "choices" in meant.options:
            return word, meant.options["choices"]
        if meant.means == means.RANGE:
            start = max(word.rfind(".."), word.rfind("..."))
            word = word[start + 2 :].lstrip(".") if start >= 0 else word
        if meant.means == means.COLUMN:
            word = word.rpartition(",")[2]
        return word, self._named(meant.means, word)

    def _named(self, kind: str, word: str) -> Iterable[str]:
        if kind == means.URI:
            return [*variables_of(self._desk.namespace), *_datasets(word)]
        if kind == means.VARIABLE:
            return [one for one in self._desk.namespace if not one.startswith("_")]
        if not self._desk.is_open:
            return []
        if kind == means.COLUMN:
            return list(self._desk.dataset.schema.names)
        if kind in {means.REF, means.RANGE}:
            return self._refs()
        dataset = self._desk.dataset
        try:
            if kind == means.BRANCH:
                return dataset.branches.names()
            return dataset.tags.names() if kind == means.TAG else []
        except LanceError:
            return []

    def _refs(self) -> list[str]:
        """List what a ref may be: names first, then the newest numbers."""
        dataset = self._desk.dataset
        made, of, names = self._names
        if of is dataset and time.monotonic() - made < SECONDS_KEPT:
            return names
        try:
            branches, tags = dataset.branches.names(), dataset.tags.names()
            newest = dataset.version_numbers()[: -_NEWEST_VERSIONS - 1 : -1]
        except LanceError:
            return []
        names = ["main", *branches, *tags, *(f"tag:{one}" for one in tags), "HEAD", "HEAD~1"]
        names += [str(one) for one in newest] + [f"{one}:" for one in branches]
        self._names = (time.monotonic(), dataset, names)
        return names


def _meant(verb: Verb, before: list[str]) -> Argument | None:
    """Find the argument whose value comes next."""
    by_flag = {flag: one for one in verb.arguments if one.is_option for flag in one.flags}
    positional = [one for one in verb.arguments if not one.is_option]
    at, waiting = 0, None
    for word in before:
        if waiting is not None:
            waiting = None
        elif word.startswith("-"):
            option = by_flag.get(word)
            has_value = option is not None and "action" not in option.options
            waiting = option if has_value else None
        else:
            at += 1
    if waiting is not None:
        return waiting
    if at < len(positional):
        return positional[at]
    last = positional[-1] if positional else None
    return last if last is not None and last.options.get("nargs") in {"+", "*"} else None


def _options(verb: Verb) -> Iterator[str]:
    for one in verb.arguments:
        if one.is_option:
            yield from one.flags
    yield from means.COMMON_FLAGS


def _datasets(word: str) -> list[str]:
    """List folders that may be datasets, or lead to one, below the part that is written."""
    if "://" in word:
        return []
    prefix = word[: max(word.rfind("/"), word.rfind(os.sep)) + 1]
    folder = Path(prefix or ".")
    try:
        found = sorted(one for one in folder.iterdir() if one.is_dir())[:MAX_OFFERED]
    except OSError:
        return []
    shown = [one for one in found if not one.name.startswith((".", "_"))]
    return [prefix + one.name + ("" if (one / "_versions").is_dir() else "/") for one in shown]


def _identifier(matcher: Any) -> str:
    return str(getattr(matcher, "matcher_identifier", ""))
