"""The lines of code that do with tags and branches what a view does, in Python and as a magic.

Layout: ``{python, magic}``. The magics speak of the dataset in hand.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from lance_nb.explorer.models import text
from lance_nb.explorer.models.refs import MAIN
from lance_nb.explorer.models.source import Source

MAX_CHARS = 2000
Code = dict[str, str]
Place = tuple[str | None, int]


def code_of(dataset: Source, call: str, magic: str, after: str = "") -> Code:
    """Return both lines: a call on the dataset, and the magic."""
    return {
        "python": text.line(f"lance_nb.dataset({dataset.uri!r}){after}{call}", MAX_CHARS),
        "magic": text.line(f"%lance {magic}", MAX_CHARS),
    }


def python_place(place: Place) -> str:
    """``3`` on main, ``('dev', 3)`` on a branch."""
    return repr(place[1]) if place[0] is None else repr(place)


def magic_place(place: Place) -> str:
    """``main:3``."""
    return shlex.quote(f"{place[0] or MAIN}:{place[1]}")


def list_code(dataset: Source, kind: str) -> Code:
    """List the branches or tags."""
    noun = "branches" if kind == "branch" else "tags"
    return code_of(dataset, f".{noun}.list()", f"{kind} list")


def change_code(
    dataset: Source, kind: str, action: str, name: str, place: Place | None, *, note: str = ""
) -> Code:
    """Create, move or delete a ref."""
    there = "" if place is None else f" {magic_place(place)}"
    magic = f"{kind} {action} {shlex.quote(name)}{'' if action == 'delete' else there}"
    return code_of(dataset, _call(kind, action, name, place, note), magic)


def _call(kind: str, action: str, name: str, place: Place | None, note: str) -> str:
    shown = "" if place is None else python_place(place)
    if action == "create" and kind == "branch":
        return f".create_branch({name!r}, {shown})"
    verbs = {"create": "create", "move": "update", "delete": "delete", "note": "replace_metadata"}
    noun = "branches" if kind == "branch" else "tags"
    what = {"note": repr({"note": note}), "delete": ""}.get(action, shown)
    return f".{noun}.{verbs[action]}({', '.join(filter(None, (repr(name), what)))})"


def merge_code(
    dataset: Source,
    kind: str,
    source: str | Place,
    into: str | None,
    wishes: Mapping[str, Any],
    *,
    message: str | None = None,
    dry_run: bool = False,
) -> Code:
    """Merge, cherry-pick or revert."""
    given = {
        name: value for name, value in wishes.items() if value not in ("auto", "fail", False, None)
    }
    named = "".join(f", {name}={value!r}" for name, value in given.items())
    named += f", message={message!r}" if message else ""
    named += ", dry_run=True" if dry_run else ""
    flags = "".join(f" --{name.replace('_', '-')}{_value(value)}" for name, value in given.items())
    flags += " --dry-run" if dry_run else ""
    flags += f" -m {shlex.quote(message)}" if message else ""
    if kind == "merge":
        target = into or MAIN
        call = f".branches.merge({source!r}, {target!r}{named})"
        shown = source if isinstance(source, str) else source[0] or MAIN
        return code_of(
            dataset, call, f"merge {shlex.quote(shown)} --into {shlex.quote(target)}{flags}"
        )
    verb = "revert" if kind == "revert" else "cherry_pick"
    place = source if isinstance(source, tuple) else (source, 0)
    after = "" if into is None else f".checkout_version(({into!r}, None))"
    there = repr(place[1]) if place[0] == into else repr(place)
    if place[0] is None and into is not None:
        there = repr((MAIN, place[1]))
    magic = f"{verb.replace('_', '-')} {magic_place(place)}{flags}"
    return code_of(dataset, f".{verb}({there}{named})", magic, after)


def _value(value: object) -> str:
    if value is True:
        return ""
    shown = ",".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)
    return f" {shlex.quote(shown)}"
