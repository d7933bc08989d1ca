"""The lines of code that do with tags and branches what a view does, in Python and as a magic.

Layout: ``{python, magic}``. The magics speak of the dataset in hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lance_nb.code_lines import PYTHON_ONLY, Python, can_be_listed, magic, offered
from lance_nb.explorer.models.refs import MAIN, place_word
from lance_nb.explorer.models.source import Source

Code = dict[str, str]
Place = tuple[str | None, int]


def list_code(dataset: Source, kind: str) -> Code:
    """List the branches or tags."""
    noun = "branches" if kind == "branch" else "tags"
    return offered(_dataset(dataset).attribute(f"{noun}.list").call(), magic(kind, "list"))


def change_code(
    dataset: Source, kind: str, action: str, name: str, place: Place | None, *, note: str = ""
) -> Code:
    """Create, move or delete a ref."""
    what = (note,) if action == "note" else () if place is None else (_python_place(place),)
    python = _change(_dataset(dataset), kind, action, name, what)
    if action == "note":
        return offered(python, PYTHON_ONLY)
    there = () if place is None or action == "delete" else (place_word(*place),)
    return offered(python, magic(kind, action, name, *there))


def _dataset(dataset: Source) -> Python:
    return Python("lance_nb.dataset").call(dataset.uri)


def _change(opened: Python, kind: str, action: str, name: str, what: tuple[object, ...]) -> Python:
    if action == "create" and kind == "branch":
        return opened.attribute("create_branch").call(name, *what)
    verbs = {"create": "create", "move": "update", "delete": "delete", "note": "replace_metadata"}
    noun = "branches" if kind == "branch" else "tags"
    given = {"note": tuple({"note": note} for note in what), "delete": ()}.get(action, what)
    return opened.attribute(f"{noun}.{verbs[action]}").call(name, *given)


def _python_place(place: Place) -> int | Place:
    return place[1] if place[0] is None else place


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
    named = {
        name: value for name, value in wishes.items() if value not in ("auto", "fail", False, None)
    }
    options: dict[str, object] = {}
    for name, value in named.items():
        is_list = isinstance(value, (tuple, list))
        options[f"--{name.replace('_', '-')}"] = ",".join(map(str, value)) if is_list else value
    key = named.get("key")
    is_sayable = not isinstance(key, (tuple, list)) or can_be_listed(list(map(str, key)))
    if dry_run:
        named["dry_run"] = options["--dry-run"] = True
    if message:
        options["-m"] = message
        named = {**named, "message": message}
    opened = _dataset(dataset)
    if kind == "merge":
        target = into or MAIN
        python = opened.attribute("branches.merge").call(source, target, **_ordered(named))
        shown = source if isinstance(source, str) else source[0] or MAIN
        line = magic("merge", shown, options={"--into": target, **options})
        return offered(python, line if is_sayable else PYTHON_ONLY)
    verb = "revert" if kind == "revert" else "cherry_pick"
    place = source if isinstance(source, tuple) else (source, 0)
    if into is not None:
        opened = opened.attribute("checkout_version").call((into, None))
    there: int | Place = place[1] if place[0] == into else place
    if place[0] is None and into is not None:
        there = (MAIN, place[1])
    python = opened.attribute(verb).call(there, **_ordered(named))
    line = magic(verb.replace("_", "-"), place_word(*place), options=options)
    return offered(python, line if is_sayable else PYTHON_ONLY)


def _ordered(named: Mapping[str, Any]) -> dict[str, Any]:
    """Put what is said of every merge behind what is said of this one."""
    last = ("message", "dry_run")
    found = {name: value for name, value in named.items() if name not in last}
    return found | {name: named[name] for name in last if name in named}
