"""How branches are merged and changes brought over: the wishes of users, checked.

Source: our own; see ``Branches.merge``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict, Unpack

from lance_nb.errors import ArgumentError, InvalidInputError
from lance_nb.transactions.branch_merge.findings import FAIL, check_choice
from lance_nb.transactions.branch_merge.planning import FAST_FORWARD, MergeRequest

STRATEGIES = ("auto", FAST_FORWARD, "replay")


@dataclass(frozen=True, slots=True)
class MergeOptions:
    """How to merge; see ``Branches.merge``."""

    strategy: str = "auto"
    on_conflict: str = "fail"
    key: tuple[str, ...] = ()
    copies_files: bool = False
    pin: bool = True

    @property
    def request(self) -> MergeRequest:
        """What the engine wants to know."""
        return MergeRequest(self.on_conflict, self.key, self.copies_files)


class ChangeWishes(TypedDict, total=False):
    """How to bring a change here, by name; see ``Branches.merge``."""

    on_conflict: str
    key: str | Sequence[str] | None
    copy: bool
    pin: bool


class MergeWishes(ChangeWishes, total=False):
    """How to merge, by name; see ``Branches.merge``."""

    strategy: str


def options_of(**wishes: Unpack[MergeWishes]) -> MergeOptions:
    """Check the arguments of a merge. Raises InvalidInputError."""
    unknown = wishes.keys() - MergeWishes.__annotations__.keys()
    if unknown:
        raise ArgumentError(f"a merge has no argument {min(unknown)!r}")
    strategy, key = wishes.get("strategy", "auto"), wishes.get("key")
    if strategy not in STRATEGIES:
        raise InvalidInputError(f"strategy is one of {', '.join(STRATEGIES)}, not {strategy!r}")
    keys = (key,) if isinstance(key, str) else tuple(key or ())
    if not all(isinstance(one, str) for one in keys):
        raise InvalidInputError(f"key is the name of a column, or several of them, not {key!r}")
    decided = check_choice(wishes.get("on_conflict", FAIL))
    return MergeOptions(strategy, decided, keys, wishes.get("copy", False), wishes.get("pin", True))
