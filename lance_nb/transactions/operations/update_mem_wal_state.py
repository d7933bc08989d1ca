"""UpdateMemWalState: how far write-ahead logs have been merged into the dataset.

The state lies in the details of the system index ``__lance_mem_wal``: the generation reached by
each shard, which never goes back.

Source: message ``Transaction.UpdateMemWalState`` of lance.table.
"""

from __future__ import annotations

from typing import ClassVar

from lance_nb._pb import transaction as pb
from lance_nb.format.merged_logs import MergedLog
from lance_nb.format.wire import unknown_bytes
from lance_nb.transactions.manifest_building import Draft, record_merged_logs
from lance_nb.transactions.operation import ApplyContext, BaseOperation, Built, Footprint
from lance_nb.value_classes import dataclass


@dataclass(frozen=True, slots=True, repr=False)
class UpdateMemWalState(BaseOperation):
    """Record merged logs."""

    arm: ClassVar[str] = "update_mem_wal_state"

    compacted_sstables: tuple[MergedLog, ...]
    unknown: bytes = b""

    @classmethod
    def from_pb(
        cls, message: pb.Transaction.UpdateMemWalState, path: str = ""
    ) -> UpdateMemWalState:
        """Read the message. Raises CorruptFileError."""
        logs = tuple(MergedLog.from_pb(log, path) for log in message.compacted_sstables)
        return cls(logs, unknown_bytes(message))

    def to_pb(self) -> pb.Transaction.UpdateMemWalState:
        """Return the message."""
        message = pb.Transaction.UpdateMemWalState()
        for log in self.compacted_sstables:
            log.write_to(message.compacted_sstables.add())
        message.MergeFromString(self.unknown)
        return message

    def apply(self, ctx: ApplyContext) -> Built:
        """Return the version with the state. Raises InvalidInputError without such an index."""
        draft = Draft.of(ctx, self)
        record_merged_logs(draft, self.compacted_sstables)
        return draft.finish()

    def footprint(self) -> Footprint:
        """Return the logs."""
        logs = tuple((log.shard_id, log.generation) for log in self.compacted_sstables)
        return Footprint(compacted=logs)
