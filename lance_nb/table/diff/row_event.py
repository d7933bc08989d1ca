"""One step of the life of a row, as biography.py tells it.

Source: our own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lance_nb.table.diff.whereabouts import Place

CREATED, UPDATED, MOVED, DELETED = "created", "updated", "moved", "deleted"
RESTORED, FOUND, EXTENDED = "restored", "found", "extended"
WRITTEN, GONE = "written", "gone"


@dataclass(frozen=True, slots=True)
class RowEvent:
    """One step of the life of a row: what the version ``version`` did to it.

    ``event``: created, updated, moved, restored, deleted; "extended" when it got a new column;
    "written" or "gone" when a row known by address was created or deleted, or updated elsewhere;
    "found" where the trace begins.
    ``old`` and ``new`` are its values before and after, None where there are none or they did not
    change; ``columns`` names those that differ. ``fragment_id`` and ``offset`` say where it is
    afterwards (of a deleted row: where it was).
    """

    version: int
    branch: str | None
    timestamp: datetime | None
    operation: str | None
    event: str
    fragment_id: int
    offset: int
    old: Mapping[str, Any] | None = None
    new: Mapping[str, Any] | None = None
    columns: tuple[str, ...] = ()
    message: str | None = None


@dataclass(frozen=True, slots=True)
class Stay:
    """A row at one place; ``position`` is that of a version that has it there."""

    position: int
    place: Place
