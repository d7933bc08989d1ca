"""Rules about the names of modules."""

from __future__ import annotations

from collections.abc import Iterator

from tests.house.source import Source

BANNED_NAMES = frozenset(
    {"common", "core", "helper", "helpers", "misc", "util", "utilities", "utils"}
)


def module_names(source: Source) -> Iterator[str]:
    """A module is named for what it holds, not for being left over."""
    if not source.path.endswith((".py", ".js")):
        return
    for part in source.path.split("/"):
        if part.split(".")[0] in BANNED_NAMES:
            yield source.at(1, f"'{part}' says nothing; name it for what it holds")


NAME_RULES = (module_names,)
