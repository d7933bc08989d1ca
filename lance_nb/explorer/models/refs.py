"""Refs as people write them, and the code that says the same.

======================  ===========================================================
``12``                  version 12 of the branch in view
``dev``                 newest version of branch dev; ``main`` is the main branch
``dev:12``, ``main:12`` version 12 of that branch
``tag:v1``, ``v1``      the version that the tag names (a branch of that name wins without ``tag:``)
``HEAD``, ``HEAD~2``    newest version of the branch in view, two versions before it
``2026-08-01T12:00``    newest version of the branch in view at that time (local unless it says);
                        a date alone means the end of that day
======================  ===========================================================

Limits: a ref is at most ``MAX_CHARS`` characters.
"""

from __future__ import annotations

import difflib
import re
from bisect import bisect_right
from datetime import UTC, datetime, timedelta

from lance_nb.code_lines import Python, magic
from lance_nb.errors import InvalidRefError, RefNotFoundError, VersionNotFoundError
from lance_nb.explorer.models import text
from lance_nb.explorer.models.source import Source

MAX_CHARS = 300
MAIN = "main"
_HEAD = re.compile(r"HEAD(?:~(\d{1,9}))?")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})?)?")
_NUMBER = re.compile(r"\d{1,18}")
_NO_NAME = re.compile(r"-.*|.*(\.\.|[~^@\s,]).*", re.DOTALL)


def resolve(dataset: Source, ref: str) -> Source:
    """Open the version of ``dataset`` that ``ref`` names, as seen from the branch in view.

    Raises InvalidRefError when the text is not a ref, RefNotFoundError or VersionNotFoundError
    (with a suggestion, if one is near) when it names nothing.
    """
    ref = ref.strip()
    if not ref or len(ref) > MAX_CHARS:
        raise InvalidRefError(_grammar(ref))
    if _NUMBER.fullmatch(ref):
        return dataset.checkout_version((dataset.branch, int(ref)))
    head = _HEAD.fullmatch(ref)
    if head:
        return _from_head(dataset, int(head.group(1) or 0))
    if _DATE.fullmatch(ref):
        return _at_time(dataset, ref)
    if ref.startswith("tag:"):
        return _tagged(dataset, ref.removeprefix("tag:"))
    branch, colon, number = ref.rpartition(":")
    if colon:
        if not branch or not _NUMBER.fullmatch(number):
            raise InvalidRefError(_grammar(ref))
        return dataset.checkout_version((_branch(dataset, branch), int(number)))
    branches = dataset.branches.list()
    if ref == MAIN or ref in branches:
        return dataset.checkout_version((_branch(dataset, ref), None))
    tags = dataset.tags.list()
    if ref not in tags and _NO_NAME.fullmatch(ref):
        raise InvalidRefError(_grammar(ref))
    if ref not in tags:
        known = ["HEAD", MAIN, *branches, *tags]
        raise RefNotFoundError("tag or branch", ref, _nearest_first(ref, known))
    return _tagged(dataset, ref)


def _grammar(ref: str) -> str:
    return (
        f"{text.name(ref)!r} is not a version; write a number (12), a tag (v1 or tag:v1), "
        "a branch (dev), branch:number (dev:3), HEAD~2, or a date (2026-08-01)"
    )


def _from_head(dataset: Source, back: int) -> Source:
    numbers = dataset.version_numbers()
    if back >= len(numbers):
        oldest = f"HEAD~{len(numbers) - 1} is the oldest"
        raise VersionNotFoundError(dataset.uri, f"HEAD~{back}", oldest)
    return dataset.checkout_version((dataset.branch, numbers[-1 - back]))


def _at_time(dataset: Source, ref: str) -> Source:
    """Open the newest version that is not younger, by halving: a few manifests are read."""
    try:
        moment = datetime.fromisoformat(ref).astimezone()
    except ValueError:
        raise InvalidRefError(_grammar(ref)) from None
    if len(ref) == len("2026-08-01"):
        moment += timedelta(days=1, microseconds=-1)
    numbers = dataset.version_numbers()
    found = bisect_right(numbers, moment, key=lambda one: _committed(dataset, one))
    if not found:
        first = f"{_committed(dataset, numbers[0]).astimezone():%Y-%m-%d %H:%M:%S} is the oldest"
        raise VersionNotFoundError(dataset.uri, ref, first)
    return dataset.checkout_version((dataset.branch, numbers[found - 1]))


def _committed(dataset: Source, version: int) -> datetime:
    return dataset.version_info(version).timestamp or datetime.min.replace(tzinfo=UTC)


def _branch(dataset: Source, name: str) -> str | None:
    if name == MAIN:
        return None
    known = dataset.branches.list()
    if name not in known:
        raise RefNotFoundError("branch", name, _nearest_first(name, [MAIN, *known]))
    return name


def _tagged(dataset: Source, name: str) -> Source:
    tags = dataset.tags.list()
    if name not in tags:
        raise RefNotFoundError("tag", name, _nearest_first(name, list(tags)))
    return dataset.checkout_version((tags[name].get("branch"), int(tags[name]["version"])))


def _nearest_first(name: str, known: list[str]) -> tuple[str, ...]:
    folded = {one.casefold(): one for one in known}
    near = [folded[one] for one in difflib.get_close_matches(name.casefold(), folded, 3, 0.5)]
    return (*near, *(other for other in known if other not in near))


def opened(dataset: Source) -> Python:
    """Return the expression that opens what is shown."""
    place = dataset.version if dataset.branch is None else (dataset.branch, dataset.version)
    return Python("lance_nb.dataset").call(dataset.uri, version=place)


def python_line(dataset: Source) -> str:
    """Return the Python line that opens what is shown."""
    return Python(f"ds = {opened(dataset).code}").line()


def place_word(branch: str | None, version: int) -> str:
    """Return how a version is named in a line of ``%lance``: ``main:3``."""
    return f"{branch or MAIN}:{version}"


def magic_line(dataset: Source) -> str:
    """Return the ``%lance`` line that travels to what is shown."""
    return magic("at", place_word(dataset.branch, dataset.version))
