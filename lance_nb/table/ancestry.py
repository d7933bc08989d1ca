"""The ancestry of a branch: the lines of versions that it was created from, back to main.

Lines are known by the id of their creation (the last part of a branch's identifier), so that a
branch that was deleted and created again under the same name is not taken for the old one.

Source: spec page "branch and tag"; identifiers as pylance 14.0.2 writes them.
"""

from __future__ import annotations

from collections.abc import Mapping

from lance_nb.errors import InvalidInputError, RefNotFoundError
from lance_nb.format.merge_record import MAIN_ID, identity_of
from lance_nb.format.refs import Branch
from lance_nb.value_classes import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """A branch up to a version. ``is_gone``: it was deleted, its name is not known."""

    identity: str
    branch: str | None
    version: int
    is_gone: bool = False


Ancestry = tuple[Line, ...]
"""A branch and what it came from, the newest first, main last."""


def ancestry(branches: Mapping[str, Branch], branch: str | None, version: int) -> Ancestry:
    """Return where a version of a branch comes from. Raises RefNotFoundError."""
    lines: list[Line] = []
    name, number = branch, version
    while name is not None:
        record = branches.get(name)
        if record is None:
            raise RefNotFoundError("branch", name, tuple(branches))
        lines.append(Line(identity_of(name, record.identifier, record.create_at), name, number))
        if len(lines) > len(branches):
            raise InvalidInputError(f"branch {name!r} is recorded as its own ancestor")
        parent = record.parent_branch
        if parent is not None and not _is_parent(branches.get(parent), record):
            return (*lines, *_gone(record))
        name, number = parent, record.parent_version
    return (*lines, Line(MAIN_ID, None, number))


def _is_parent(parent: Branch | None, child: Branch) -> bool:
    if parent is None:
        return False
    return not child.identifier or parent.identifier == child.identifier[:-1]


def _gone(child: Branch) -> list[Line]:
    """Return the ancestors of a branch whose parent was deleted: its identifier tells."""
    pairs = child.identifier
    lines = [
        Line(pairs[position][1], None, pairs[position + 1][0], is_gone=True)
        for position in range(len(pairs) - 2, -1, -1)
    ]
    first = pairs[0][0] if pairs else child.parent_version
    return [*lines, Line(MAIN_ID, None, first)]
