"""The verdicts of conflict resolution, and what a rule is that reaches one.

A rule compares what two operations touch (footprint.py) and either finds nothing or says which
verdict follows and what the two have in common. One letter stands for it in the printed grid.

Limits: rules see transactions only. Whether two writers deleted the same *rows* is found out later,
from their deletion vectors (rebase.py); "rebasable" means that this is worth a try.
Source: specification of transactions; pylance 14.0.2 measured pair by pair. Of the two the stricter
verdict holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import IntEnum

from lance_nb.transactions.footprint import Footprint

_SHOWN = 5


class Verdict(IntEnum):
    """How our operation gets along with one that was committed first; a larger one is stricter."""

    COMPATIBLE = 0
    REBASABLE = 1
    RETRYABLE = 2
    INCOMPATIBLE = 3


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What is known beside the two transactions.

    ``knows_rows``: we know which rows our operation touches, so that deletions can be merged.
    ``both_insert``: both operations add rows that they found missing, without saying which.
    """

    knows_rows: bool = False
    both_insert: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule found: the verdict, and the overlap in words."""

    verdict: Verdict
    overlap: str


Judge = Callable[[Footprint, Footprint, Circumstances], Finding | None]


@dataclass(frozen=True, slots=True)
class Rule:
    """A named rule. ``letter`` stands for it in the grid, ``text`` in its legend."""

    letter: str
    name: str
    text: str
    judge: Judge


def enumerate_ids(noun: str, ids: Iterable[int]) -> str:
    """Return "fragment 3" or "fragments 1, 2, 3 and 4 more"."""
    ordered = sorted(ids)
    shown = ", ".join(map(str, ordered[:_SHOWN]))
    more = f" and {len(ordered) - _SHOWN} more" if len(ordered) > _SHOWN else ""
    return f"{noun if len(ordered) == 1 else noun + 's'} {shown}{more}"
