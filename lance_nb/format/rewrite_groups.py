"""The fragments that a compaction replaced, from the transaction that recorded it.

A Rewrite keeps rows in their order: the live rows of the old fragments of a group, one after the
other, are the rows of its new fragments. That is how a row is followed through a compaction.

Limits: nothing for other operations.
Source: message ``Transaction.Rewrite`` of lance.table; fields 1 and 2 only in old transactions.
"""

from __future__ import annotations

from dataclasses import dataclass

from lance_nb._pb import transaction as pb
from lance_nb.format.fragment import Fragment
from lance_nb.format.wire import parse


@dataclass(frozen=True, slots=True)
class ReplacedFragments:
    """Fragments as they were when they were read, and those written for them."""

    old: tuple[Fragment, ...]
    new: tuple[Fragment, ...]

    @property
    def keeps_rows(self) -> bool:
        """Whether the new fragments hold as many rows as the old ones had live."""
        live = sum(one.num_rows for one in self.old)
        return live == sum(one.physical_rows for one in self.new)


def rewrite_groups(data: bytes | memoryview, path: str = "") -> tuple[ReplacedFragments, ...]:
    """Return the groups of a serialized Transaction, none if it is no Rewrite.

    Raises CorruptFileError.
    """
    message = parse(pb.Transaction, data, path)
    if message.WhichOneof("operation") != "rewrite":
        return ()
    rewrite = message.rewrite
    groups = [(one.old_fragments, one.new_fragments) for one in rewrite.groups]
    if rewrite.old_fragments or rewrite.new_fragments:
        groups.append((rewrite.old_fragments, rewrite.new_fragments))
    return tuple(
        ReplacedFragments(tuple(map(Fragment.from_pb, old)), tuple(map(Fragment.from_pb, new)))
        for old, new in groups
    )


def restored_version(data: bytes | memoryview, path: str = "") -> int | None:
    """Return the version that a serialized Transaction restores, None if it restores none.

    Raises CorruptFileError.
    """
    message = parse(pb.Transaction, data, path)
    return message.restore.version if message.WhichOneof("operation") == "restore" else None
