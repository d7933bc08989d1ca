"""Whether our operation can follow one that was committed after we read: the verdict, and the grid.

The rules stand in the operations' own rows (``VERSUS``); this module asks them. An operation that
we do not know conflicts with everything, and so does a cell that nobody filled in.

Source: verdicts.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from lance_nb.errors import CommitConflictError, CommitError, RetryableCommitConflictError
from lance_nb.transactions.operation import Operation, operation_name
from lance_nb.transactions.registry import OPERATIONS
from lance_nb.transactions.verdicts import Circumstances, Finding, Rule, Verdict

__all__ = ["Circumstances", "Conflict", "Verdict", "check", "conflict_error", "grid"]

NOTHING_KNOWN = Circumstances()
_UNFILLED = Finding(Verdict.INCOMPATIBLE, "this release does not know the other operation")
_REMEDY = {
    Verdict.RETRYABLE: "Read version {version} and do the change again.",
    Verdict.INCOMPATIBLE: (
        "Look at version {version} before deciding anew: repeated as it is, the change would mean"
        " something else."
    ),
}


@dataclass(frozen=True, slots=True)
class Conflict:
    """The verdict on a pair of operations; ``overlap`` says what they have in common."""

    verdict: Verdict
    overlap: str = ""


def check(ours: Operation, theirs: Operation, known: Circumstances = NOTHING_KNOWN) -> Conflict:
    """Judge whether ``ours`` can be committed on top of ``theirs``."""
    rules = ours.VERSUS.get(theirs.arm)
    if rules is None:
        return Conflict(_UNFILLED.verdict, _UNFILLED.overlap)
    if not rules:
        return Conflict(Verdict.COMPATIBLE)
    mine, other = ours.footprint(), theirs.footprint()
    found = [one for rule in rules if (one := rule.judge(mine, other, known)) is not None]
    if not found:
        return Conflict(Verdict.COMPATIBLE)
    strictest = max(found, key=lambda one: one.verdict)
    return Conflict(strictest.verdict, strictest.overlap)


def conflict_error(
    conflict: Conflict, ours: Operation, theirs: Operation, version: int
) -> CommitError:
    """Return the error for a retryable or incompatible conflict with ``version``."""
    text = _text(conflict, ours, theirs, version)
    if conflict.verdict is Verdict.RETRYABLE:
        return RetryableCommitConflictError(text)
    return CommitConflictError(text)


def _text(conflict: Conflict, ours: Operation, theirs: Operation, version: int) -> str:
    how = "was overtaken by" if conflict.verdict is Verdict.RETRYABLE else "is incompatible with"
    return (
        f"this {operation_name(ours.arm)} {how} the {operation_name(theirs.arm)} that was committed"
        f" as version {version}: {conflict.overlap}. "
        f"{_REMEDY[conflict.verdict].format(version=version)}"
    )


# --- the printed grid -----------------------------------------------------------------------------


def grid() -> str:
    """Return the whole matrix as text: rows are ours, columns were committed first."""
    arms = list(OPERATIONS)
    names = [operation_name(arm) for arm in arms]
    short = [_abbreviate(name) for name in names]
    width = max(map(len, names)) + 1
    lines = ["ours \\ theirs".ljust(width) + " ".join(one.ljust(4) for one in short).rstrip()]
    legend: dict[str, Rule] = {}
    for arm, name in zip(arms, names, strict=True):
        cells = []
        for other in arms:
            rules = OPERATIONS[arm].VERSUS.get(other)
            cells.append("X" if rules is None else "".join(rule.letter for rule in rules) or ".")
            legend.update((rule.letter, rule) for rule in rules or ())
        lines.append(name.ljust(width) + " ".join(cell.ljust(4) for cell in cells).rstrip())
    lines += ["", "An operation that is not listed conflicts with everything (X).", ""]
    lines += [". compatible"]
    lines += [f"{letter} {legend[letter].text}" for letter in sorted(legend, key=_by_letter)]
    lines += ["", *(f"{a} {b}" for a, b in zip(short, names, strict=True))]
    return "\n".join(lines) + "\n"


def _abbreviate(name: str) -> str:
    capitals = "".join(letter for letter in name if letter.isupper())
    consonants = [letter for letter in name[1:] if letter not in "aeiou"]
    return capitals if len(capitals) > 1 else name[0] + consonants[0]


def _by_letter(letter: str) -> tuple[str, str]:
    return letter.lower(), letter
