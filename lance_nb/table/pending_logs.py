"""Count the rows of write-ahead logs that have not been merged into a version.

Rows that are written through pylance's MemWAL stand in the log of a shard, then in an SSTable, and
in the dataset once somebody merges them. Until then no scan of the dataset returns them.

Limits: of entries that are in no SSTable at most ``ENTRIES_MAX`` are read, the newest first.
Source: format/merged_logs.py.
"""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

from lance_nb.errors import CorruptFileError, ObjectNotFoundError
from lance_nb.format.merged_logs import LOGS, WAL_INDEX, ShardState, log_number, merged_logs
from lance_nb.storage.base import Store
from lance_nb.table.indices import read_indices
from lance_nb.table.snapshot import Snapshot

ENTRIES_MAX = 256


class PendingRows(NamedTuple):
    """Rows that were written and not merged; a row that was written twice counts twice.

    ``tables`` are the datasets that hold them, paths below the dataset's folder; ``is_exact`` is
    False where there are more than were counted.
    """

    num_rows: int
    num_in_log: int
    tables: tuple[str, ...]
    is_exact: bool


def pending_rows(snapshot: Snapshot) -> PendingRows | None:
    """Count the rows that are not in this version; None for a dataset without such logs.

    Raises CorruptFileError, StorageError.
    """
    indices = [index for index in read_indices(snapshot) if index.name == WAL_INDEX]
    if not indices:
        return None
    path = snapshot.manifest.path
    merged = {log.shard_id: log.generation for log in merged_logs(indices[0].details, path)}
    home = snapshot.locations.home
    manifests: dict[str, dict[int, str]] = {}
    entries: dict[str, dict[int, str]] = {}
    for file in home.list_recursive(LOGS):
        shard, _, inside = file.name.removeprefix(f"{LOGS}/").partition("/")
        folder, _, name = inside.rpartition("/")
        number = log_number(name)
        if number is not None and folder in ("manifest", "wal"):
            group = manifests if folder == "manifest" else entries
            group.setdefault(shard, {})[number] = f"{LOGS}/{shard}/{inside}"
    tables: list[str] = []
    waiting: list[str] = []
    num_rows, is_exact = 0, True
    for shard in sorted(manifests.keys() | entries.keys()):
        state = _state(home, manifests.get(shard, {}))
        for table in state.tables:
            if table.generation > merged.get(shard, 0):
                tables.append(f"{LOGS}/{shard}/{table.path}")
                num_rows += table.num_rows
                is_exact &= table.num_rows > 0
        numbers = entries.get(shard, {})
        waiting += [
            numbers[number]
            for number in sorted(numbers, reverse=True)
            if number > state.last_in_tables
        ]
    num_in_log = 0
    is_exact &= len(waiting) <= ENTRIES_MAX
    for entry in waiting[:ENTRIES_MAX]:
        try:
            num_in_log += _num_rows(home, entry)
        except ObjectNotFoundError:  # removed since the folder was listed
            is_exact = False
    return PendingRows(num_rows + num_in_log, num_in_log, tuple(tables), is_exact)


def _state(home: Store, manifests: dict[int, str]) -> ShardState:
    if not manifests:
        return ShardState(0, ())
    path = manifests[max(manifests)]
    return ShardState.from_bytes(home.read(path), f"{home.uri}/{path}")


def _num_rows(home: Store, entry: str) -> int:
    data = home.read(entry)  # outside: its errors are an OSError too, and say nothing of the bytes
    try:
        with pa.ipc.open_stream(data) as stream:
            return sum(batch.num_rows for batch in stream)
    except (pa.ArrowException, OSError) as error:
        where = f"{home.uri}/{entry}"
        raise CorruptFileError(where, None, "an Arrow stream of rows", str(error)) from error
