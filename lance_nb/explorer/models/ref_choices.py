"""What a person may mean who begins to type a ref: choices from names alone, no manifest is read.

Layout of ``to_json``: ``ref`` (what to travel to, see ``refs``), ``label`` (fit to show), ``kind``
(branch, tag, version, head, date), ``note``.

Choices come in the order of their likelihood: what is called exactly so, what begins so, what holds
it. Case does not matter.

Limits: ``MAX_CHOICES`` in all, ``MAX_KIND`` of a kind; names that no ref can hold are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from heapq import nsmallest
from itertools import islice
from typing import Any

from lance_nb.explorer.models import refs, text
from lance_nb.explorer.models.source import Source

MAX_CHOICES = 14
MAX_KIND = 6
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2})?)?")
_BRANCH_VERSION = re.compile(r"(.+):(\d{0,18})")


@dataclass(frozen=True, slots=True)
class RefNames:
    """The names of everything that can be travelled to from one branch.

    ``tags``: by name a text that changes when the tag is moved.
    """

    branch: str | None
    numbers: tuple[int, ...]
    branches: tuple[str, ...]
    tags: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RefChoice:
    """One line of the list under the box."""

    ref: str
    label: str
    kind: str
    note: str

    def to_json(self) -> dict[str, Any]:
        """Return the choice as JSON-able values."""
        return asdict(self)


def ref_names(dataset: Source) -> RefNames:
    """List the names: three listings of the store, nothing is opened."""
    return RefNames(
        branch=dataset.branch,
        numbers=tuple(dataset.version_numbers()),
        branches=tuple(dataset.branches.names()),
        tags=dict(dataset.tags.marks()),
    )


def ref_choices(names: RefNames, typed: str) -> tuple[RefChoice, ...]:
    """Return what may be meant by ``typed``, the likeliest first; of nothing, what is near."""
    typed = typed.strip()[: refs.MAX_CHARS]
    here = text.name(names.branch or refs.MAIN)
    groups = [
        _dates(typed),
        _heads(names, typed, here),
        _versions(names, typed, here),
        _branches(names, typed),
        _tags(names, typed),
        _of_branch(names, typed),
    ]
    found = [choice for group in groups for choice in islice(group, MAX_KIND)]
    return tuple(found[:MAX_CHOICES])


def _nearest(names: Iterable[str], typed: str) -> list[str]:
    """Return the names that hold ``typed``: exact ones, then beginnings, then the others."""
    wanted = typed.casefold()

    def rank(name: str) -> tuple[int, str]:
        folded = name.casefold()
        return (0 if folded == wanted else 1 if folded.startswith(wanted) else 2), folded

    usable = (name for name in names if len(name) < refs.MAX_CHARS - 8)
    return nsmallest(MAX_KIND, (name for name in usable if wanted in name.casefold()), key=rank)


def _branches(names: RefNames, typed: str) -> Iterator[RefChoice]:
    for name in _nearest([refs.MAIN, *names.branches], typed):
        yield RefChoice(name, text.name(name), "branch", "newest of the branch")


def _tags(names: RefNames, typed: str) -> Iterator[RefChoice]:
    for name in _nearest(names.tags, typed.removeprefix("tag:")):
        yield RefChoice(f"tag:{name}", text.name(name), "tag", "")


def _versions(names: RefNames, typed: str, here: str) -> Iterator[RefChoice]:
    if typed and not typed.isdecimal():
        return
    exact = [number for number in names.numbers if str(number) == typed]
    newest_first: Sequence[int] = names.numbers[::-1]
    others = (n for n in newest_first if str(n).startswith(typed) and str(n) != typed)
    for number in [*exact, *islice(others, MAX_KIND - len(exact) if typed else 2)]:
        newest = " · newest" if number == names.numbers[-1] else ""
        yield RefChoice(str(number), str(number), "version", f"of {here}{newest}")


def _heads(names: RefNames, typed: str, here: str) -> Iterator[RefChoice]:
    wanted = typed.upper()
    backs: list[int] = []
    found = re.fullmatch(r"HEAD~(\d{1,9})", wanted)
    if found:
        backs = [int(found.group(1))]
    elif wanted and "HEAD~".startswith(wanted):
        backs = [0, 1, 2]
    for back in backs:
        if back < len(names.numbers):
            ref = f"HEAD~{back}" if back else "HEAD"
            yield RefChoice(ref, ref, "head", f"{here}:{names.numbers[-1 - back]}")


def _dates(typed: str) -> Iterator[RefChoice]:
    if _DATE.fullmatch(typed):
        when = "at that time" if len(typed) > 10 else "at the end of that day"
        yield RefChoice(typed, typed, "date", f"newest version {when}")


def _of_branch(names: RefNames, typed: str) -> Iterator[RefChoice]:
    """``dev:3``: whether there is a version 3 is seen when it is opened."""
    found = _BRANCH_VERSION.fullmatch(typed)
    if not found or found.group(1) == "tag":
        return
    for name in _nearest([refs.MAIN, *names.branches], found.group(1)):
        number = found.group(2)
        ref = f"{name}:{number}" if number else name
        yield RefChoice(ref, text.name(ref), "branch" if not number else "version", "")
