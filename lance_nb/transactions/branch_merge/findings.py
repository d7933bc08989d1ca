"""Where two lines of history changed the same thing, and what was decided about it.

A conflict that is decided (``ours``: the target's side stays, ``theirs``: the source's is taken)
does not stop a merge; one that nobody decided does, and so does one that cannot be decided.

Source: none; Lance has no merge of branches.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from lance_nb.errors import InvalidInputError

FAIL, OURS, THEIRS = "fail", "ours", "theirs"
CHOICES = (FAIL, OURS, THEIRS)
BOTH = (OURS, THEIRS)

ROWS, KEYS, COLUMNS = "rows", "keys", "columns"
FRAGMENTS, SETTINGS, CONTENT = "fragments", "settings", "content"


@dataclass(frozen=True, slots=True)
class MergeConflict:
    """One thing that both sides changed.

    ``kind``: "rows" (the same row), "keys" (a row with the same key was added on both sides),
    "columns", "fragments" (rewritten on one side, changed on the other), "settings", "content" (all
    of it was replaced on one side). ``fragments`` are ids of the base, ``fields`` of the target.
    ``resolution`` is what was decided, None if nothing was.
    """

    kind: str
    text: str
    remedy: str
    fragments: tuple[int, ...] = ()
    fields: tuple[int, ...] = ()
    keys: tuple[str, ...] = ()
    num_rows: int = 0
    resolution: str | None = None

    def __str__(self) -> str:
        decided = f" [{self.resolution}]" if self.resolution else f". {self.remedy}"
        return f"{self.kind}: {self.text}{decided}"


def check_choice(on_conflict: str) -> str:
    """Return how conflicts are decided. Raises InvalidInputError."""
    if on_conflict not in CHOICES:
        raise InvalidInputError(f"on_conflict is one of {', '.join(CHOICES)}, not {on_conflict!r}")
    return on_conflict


class Findings:
    """The conflicts of one merge, in the order in which they were found, and notes for people."""

    def __init__(self, on_conflict: str = FAIL) -> None:
        self.on_conflict = check_choice(on_conflict)
        self.conflicts: list[MergeConflict] = []
        self.notes: list[str] = []

    def report(
        self,
        kind: str,
        text: str,
        *,
        choices: Iterable[str] = BOTH,
        remedy: str = "",
        fragments: Iterable[int] = (),
        fields: Iterable[int] = (),
        keys: Iterable[str] = (),
        num_rows: int = 0,
    ) -> str:
        """Take note of a conflict; return the side to go on with ("ours" when undecided)."""
        possible = tuple(choices)
        decided = self.on_conflict if self.on_conflict in possible else None
        if not remedy and possible:
            shown = " or ".join(f"on_conflict={one!r}" for one in possible)
            remedy = f"Decide with {shown}"
        found = MergeConflict(
            kind, text, remedy, tuple(fragments), tuple(fields), tuple(keys), num_rows, decided
        )
        self.conflicts.append(found)
        return decided or OURS

    @property
    def open(self) -> tuple[MergeConflict, ...]:
        """The conflicts that nobody has decided."""
        return tuple(one for one in self.conflicts if one.resolution is None)

    def note(self, text: str) -> None:
        """Say something that is no conflict; once."""
        if text not in self.notes:
            self.notes.append(text)
