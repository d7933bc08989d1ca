"""What a transaction says that it does to fragments: which it removes, and how it leaves others.

Layout: message ``Transaction``. *Whole* operations (Overwrite, Restore, Clone, Merge) make the list
of fragments anew; the others keep every fragment that they do not name.

Limits: rebasing may give a fragment other deletions than its transaction; a later attempt is
recorded under its own read version.
Source: message ``Transaction`` of lance.table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from lance_nb._pb import table as table_pb
from lance_nb._pb import transaction as pb
from lance_nb.format.wire import parse

_WHOLE = frozenset({"overwrite", "restore", "clone"})


@dataclass(frozen=True, slots=True)
class TransactionEffects:
    """A transaction as far as fragments are concerned.

    ``arm`` is the operation's name in the message, None for one that this release does not know.
    ``removed`` are ids of fragments; ``deletions`` the name of the deletion file of each fragment
    that the transaction carries, None for one without.
    """

    read_version: int
    uuid: str
    arm: str | None
    removed: frozenset[int] = frozenset()
    deletions: dict[int, str | None] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        """Whether fragments may come, go and change without being named."""
        return self.arm is None or self.arm in _WHOLE

    @classmethod
    def from_bytes(cls, data: bytes | memoryview, path: str = "") -> TransactionEffects:
        """Parse a serialized transaction. Raises CorruptFileError."""
        message = parse(pb.Transaction, data, path)
        arm = message.WhichOneof("operation")
        removed: list[int] = []
        carried: dict[int, str | None] = {}
        if arm is not None:
            operation = getattr(message, arm)
            removed = list(_removed(arm, operation))
            carried = {one.id: deletion_name(one) for one in _carried(arm, operation)}
        return cls(message.read_version, message.uuid, arm, frozenset(removed), carried)


def deletion_name(fragment: table_pb.DataFragment) -> str | None:
    """Return what tells one deletion file of a fragment from another, None without any."""
    if not fragment.HasField("deletion_file"):
        return None
    file = fragment.deletion_file
    return f"{file.read_version}-{file.id}"


def _removed(arm: str, operation: Any) -> Iterator[int]:
    match arm:
        case "delete":
            yield from operation.deleted_fragment_ids
        case "update":
            yield from operation.removed_fragment_ids
        case "rewrite":
            yield from (one.id for one in operation.old_fragments)
            yield from (one.id for group in operation.groups for one in group.old_fragments)


def _carried(arm: str, operation: Any) -> Iterable[table_pb.DataFragment]:
    match arm:
        case "delete" | "update":
            return list(operation.updated_fragments)
        case "merge":
            return list(operation.fragments)
        case "rewrite":
            groups = [one for group in operation.groups for one in group.new_fragments]
            return [*operation.new_fragments, *groups]
    return []
