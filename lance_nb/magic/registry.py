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
                              "query": "sql", "select": "sql"}  # fmt: skip


def find(name: str) -> Verb:
    """Return the verb of that name. Raises InvalidInputError with the nearest one."""
    verb = VERBS.get(ALIASES.get(name, name))
    if verb is not None:
        return verb
    near = difflib.get_close_matches(name, [*VERBS, "help"], n=1, cutoff=0.5)
    known = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(VERBS)}"
    raise InvalidInputError(f"there is no verb {text.name(name)!r}; {known}")
