"""Refs as people write them, and the code that says the same.

======================  ===========================================================
``12``                  version 12 of the branch in view
``dev``                 newest version of branch dev; ``main`` is the main branch
``dev:12``, ``main:12`` version 12 of that branch
``tag:v1``, ``v1``      the version that the tag names (a branch of that name wins without ``tag:``)
``HEAD``, ``HEAD~2``    newest version of the branch in view, two versions before it
======================  ===========================================================

Limits: a ref is at most ``MAX_CHARS`` characters.
"""

from __future__ import annotations

import difflib
import re

from lance_nb.errors import InvalidRefError, RefNotFoundError, VersionNotFoundError
from lance_nb.explorer.models import text
from lance_nb.explorer.models.source import Source

MAX_CHARS = 300
MAIN = "main"
_HEAD = re.compile(r"HEAD(?:~(\d{1,9}))?")
_NUMBER = re.compile(r"\d{1,18}")


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
    if ref.startswith("tag:"):
        return _tagged(dataset, ref.removeprefix("tag:"))
    branch, colon, number = ref.rpartition(":")
    if colon:
        if not branch or not _NUMBER.fullmatch(number):
            raise InvalidRefError(_grammar(ref))
        return dataset.checkout_version((_branch(dataset, branch), int(number)))
    if ref == MAIN or ref in dataset.branches.list():
        return dataset.checkout_version((_branch(dataset, ref), None))
    return _tagged(dataset, ref)


def _grammar(ref: str) -> str:
    return (
        f"{text.name(ref)!r} is not a version; write a number (12), a tag (v1 or tag:v1), "
        "a branch (dev), branch:number (dev:3), or HEAD~2"
    )


def _from_head(dataset: Source, back: int) -> Source:
    numbers = dataset.version_numbers()
    if back >= len(numbers):
        oldest = f"HEAD~{len(numbers) - 1} is the oldest"
        raise VersionNotFoundError(dataset.uri, f"HEAD~{back}", oldest)
    return dataset.checkout_version((dataset.branch, numbers[-1 - back]))


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
    near = difflib.get_close_matches(name, known, n=3)
    return (*near, *(other for other in known if other not in near))


def python_line(dataset: Source, variable: str = "ds") -> str:
    """Return the Python line that opens what is shown."""
    return f"{variable} = lance_nb.dataset({dataset.uri!r}, version={_python_ref(dataset)})"


def _python_ref(dataset: Source) -> str:
    if dataset.branch is None:
        return str(dataset.version)
    return f"({dataset.branch!r}, {dataset.version})"


def magic_line(dataset: Source) -> str:
    """Return the ``%lance`` line that travels to what is shown."""
    return f"%lance at {dataset.branch or MAIN}:{dataset.version}"
