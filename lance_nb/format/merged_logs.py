"""The generation up to which each shard of a write-ahead log has been merged into a dataset.

The state is in the details of the system index ``__lance_mem_wal``; transactions that merge a log
carry the part that they add.

Layout: messages ``CompactedSsTable`` and ``MemWalIndexDetails``; of the latter only the merged
generations are decoded, the rest is preserved. A shard is the folder ``_mem_wal/<shard id>``::

    manifest/<number>.binpb   a ShardManifest, the greatest number is the newest
    wal/<number>.arrow        an entry of the log: an Arrow stream of rows
    <name>_gen_<generation>   an SSTable: a dataset with the rows of some entries

A number is written as its 64 bits, the lowest one first.
Limits: shard ids are 16 bytes.
Source: lance.table as pylance 14.0.2 knows it.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable
from typing import Any

from lance_nb._pb import table as pb
from lance_nb.errors import CorruptFileError
from lance_nb.format.index_metadata import SYSTEM_NAMES
from lance_nb.format.wire import parse, unknown_bytes
from lance_nb.value_classes import dataclass

WAL_INDEX = SYSTEM_NAMES[1]
LOGS = "_mem_wal"
_NUMBERED_NAME = re.compile(r"([01]{64})\.(?:binpb|arrow)")


@dataclass(frozen=True, slots=True)
class MergedLog:
    """One shard, merged up to ``generation``."""

    shard_id: str
    generation: int
    unknown: bytes = b""

    @classmethod
    def from_pb(cls, message: Any, path: str = "") -> MergedLog:
        """Read a ``CompactedSsTable`` of either message. Raises CorruptFileError."""
        shard = message.shard_id.uuid
        if len(shard) != 16:
            raise CorruptFileError(path, None, "a shard id of 16 bytes", f"{len(shard)} bytes")
        return cls(str(uuid.UUID(bytes=shard)), message.generation, unknown_bytes(message))

    def write_to(self, message: Any) -> None:
        """Fill a ``CompactedSsTable`` of either message."""
        message.shard_id.uuid = uuid.UUID(self.shard_id).bytes
        message.generation = self.generation
        message.MergeFromString(self.unknown)


def merged_logs(details: bytes, path: str = "") -> tuple[MergedLog, ...]:
    """Return the generations in the details of the index. Raises CorruptFileError."""
    message = parse(pb.MemWalIndexDetails, details, path)
    return tuple(
        MergedLog.from_pb(compacted_sstable, path)
        for compacted_sstable in message.compacted_sstables
    )


def with_merged_logs(details: bytes, logs: Iterable[MergedLog], path: str = "") -> bytes:
    """Return the details with the logs recorded; the higher generation of a shard wins."""
    message = parse(pb.MemWalIndexDetails, details, path)
    entries_by_shard = {
        MergedLog.from_pb(compacted_sstable, path).shard_id: compacted_sstable
        for compacted_sstable in message.compacted_sstables
    }
    for log in logs:
        if log.shard_id in entries_by_shard:
            entry = entries_by_shard[log.shard_id]
            entry.generation = max(entry.generation, log.generation)
        else:
            entry = entries_by_shard[log.shard_id] = message.compacted_sstables.add()
            log.write_to(entry)
    return message.SerializeToString()


@dataclass(frozen=True, slots=True)
class SsTable:
    """The rows of some entries of a log, as a dataset; ``num_rows`` is 0 where it is not known."""

    generation: int
    path: str
    num_rows: int


@dataclass(frozen=True, slots=True)
class ShardState:
    """How far a shard has got: entries up to ``last_in_tables`` are in SSTables."""

    last_in_tables: int
    tables: tuple[SsTable, ...]

    @classmethod
    def from_bytes(cls, data: bytes | memoryview, path: str = "") -> ShardState:
        """Parse a manifest of a shard. Raises CorruptFileError."""
        message = parse(pb.ShardManifest, data, path)
        return cls(
            message.replay_after_wal_entry_position,
            tuple(
                SsTable(table.generation, table.path, table.num_rows) for table in message.sstables
            ),
        )


def log_number(name: str) -> int | None:
    """Return the number of a manifest or an entry of a shard by its file name, None for others."""
    match = _NUMBERED_NAME.fullmatch(name)  # not what is still being written: "<number>.binpb#1"
    return int(match[1][::-1], 2) if match else None
