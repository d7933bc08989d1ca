"""The table of verbs. A new verb is one entry in a file of ``magic.verbs`` and its file's line."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from lance_nb.errors import InvalidInputError
from lance_nb.explorer.models import text
from lance_nb.magic.verb import Verb
from lance_nb.magic.verbs import (
    comparing,
    engines,
    history,
    looking,
    maintenance,
    merging,
    refs,
    sql,
    staging,
)

GROUPS: Mapping[str, tuple[Verb, ...]] = {
    "look": looking.VERBS,
    "history": (*history.VERBS, *comparing.VERBS),
    "branches and tags": (*refs.VERBS, *merging.VERBS),
    "change": staging.VERBS,
    "maintenance": maintenance.VERBS,
    "ask": (*sql.VERBS, *engines.VERBS),
}
VERBS: Mapping[str, Verb] = {verb.name: verb for group in GROUPS.values() for verb in group}
# Words that people try first.
ALIASES: Mapping[str, str] = {"versions": "log", "history": "log", "checkout": "at", "goto": "at",
                              "query": "sql", "branches": "branch", "tags": "tag",
                              "verify": "doctor"}  # fmt: skip
# Words that are not verbs here, and what does what they say.
_MEANT: Mapping[str, str] = {
    "append": "stage append", "insert": "stage append", "add": "stage append",
    "delete": "stage delete", "update": "stage update", "overwrite": "stage overwrite",
    "undo": "revert HEAD", "rollback": "restore HEAD~1", "reset": "discard",
    "ls": "fragments", "files": "fragments", "cat": "head", "columns": "schema",
    "info": "show", "blame": "row", "optimize": "compact",
    "cleanup": "clean", "vacuum": "clean", "save": "export", "count": "show",
}  # fmt: skip


def find(name: str) -> Verb:
    """Return the verb of that name. Raises InvalidInputError with the nearest one."""
    verb = VERBS.get(ALIASES.get(name, name))
    if verb is not None:
        return verb
    raise InvalidInputError(f"there is no verb {text.name(name)!r}; {_suggested(name)}")


def _suggested(name: str) -> str:
    if name in _MEANT:
        return f"did you mean {_MEANT[name]!r}?"
    if "/" in name or name.endswith(".lance"):
        return f"did you mean 'open {text.name(name)}'?"
    near = difflib.get_close_matches(name.lower(), [*VERBS, "help"], n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"it has {', '.join(VERBS)}"
