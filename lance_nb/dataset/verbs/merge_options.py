"""How branches are merged and changes brought over: the arguments of users, checked.

Source: our own; see ``Branches.merge``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lance_nb.errors import InvalidInputError
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


def options_of(
    *,
    strategy: str = "auto",
    on_conflict: str = FAIL,
    key: str | Sequence[str] | None = None,
    copy: bool = False,
    pin: bool = True,
) -> MergeOptions:
    """Check the arguments of a merge; see ``Branches.merge``. Raises InvalidInputError."""
    if strategy not in STRATEGIES:
        raise InvalidInputError(f"strategy is one of {', '.join(STRATEGIES)}, not {strategy!r}")
    keys = (key,) if isinstance(key, str) else tuple(key or ())
    if not all(isinstance(one, str) for one in keys):
        raise InvalidInputError(f"key is the name of a column, or several of them, not {key!r}")
    return MergeOptions(strategy, check_choice(on_conflict), keys, copy, pin)
