"""Rows of write-ahead logs: which of them are merged, and what is damaged."""

from __future__ import annotations

from itertools import count
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from pyroaring import BitMap

import lance_nb
from lance_nb._pb import table as pb
from lance_nb.dataset import LanceDataset
from lance_nb.errors import CorruptFileError
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.format.merged_logs import WAL_INDEX, log_number
from lance_nb.table import pending_logs
from lance_nb.table.pending_logs import PendingRows, pending_rows
from lance_nb.transactions.operations.create_index import CreateIndex

_NUMBERS = count()
FIRST, SECOND = str(UUID(int=1)), str(UUID(int=2))


def named(number: int, suffix: str) -> str:
    return f"{number:064b}"[::-1] + suffix


def log_of(num_rows: int) -> bytes:
    sink = pa.BufferOutputStream()
    batch = pa.record_batch({"id": range(num_rows)})
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return bytes(sink.getvalue())


def shard_state(last_in_tables: int, *tables: tuple[int, int]) -> bytes:
    message = pb.ShardManifest(replay_after_wal_entry_position=last_in_tables)
    for generation, num_rows in tables:
        message.sstables.add(generation=generation, path=f"x_gen_{generation}", num_rows=num_rows)
    return bytes(message.SerializeToString())


def logged(merged: dict[str, int], files: dict[str, bytes]) -> LanceDataset:
    """Return a dataset with a log of these files, merged up to these generations."""
    dataset = lance_nb.write_dataset(
        pa.table({"id": range(5)}), f"memory://pending-logs/{next(_NUMBERS)}.lance"
    )
    details = pb.MemWalIndexDetails()
    for shard, generation in merged.items():
        table = details.compacted_sstables.add(generation=generation)
        table.shard_id.uuid = UUID(shard).bytes
    index = IndexMetadata(
        str(UUID(int=9)), WAL_INDEX, (), dataset.version, BitMap().serialize(),
        "/lance.table.MemWalIndexDetails", details=details.SerializeToString(),
    )  # fmt: skip
    dataset._change(CreateIndex((index,)))
    root: Any = dataset.opened[0].root
    for path, data in files.items():
        root.write(f"_mem_wal/{path}", data)
    return dataset


def pending_in(dataset: LanceDataset) -> PendingRows | None:
    return pending_rows(dataset.opened[1])


def test_numbers_are_written_with_the_lowest_bit_first() -> None:
    assert [log_number(named(number, ".arrow")) for number in (1, 2, 6)] == [1, 2, 6]
    assert named(6, "").startswith("0110")


@pytest.mark.parametrize("name", ["version_hint.json", named(6, ".binpb#1"), named(6, "")])
def test_other_files_beside_those_with_a_number_are_skipped(name: str) -> None:
    assert log_number(name) is None


def test_only_rows_beyond_what_was_merged_are_counted() -> None:
    files = {
        f"{FIRST}/manifest/{named(1, '.binpb')}": shard_state(0),
        f"{FIRST}/manifest/{named(2, '.binpb')}": shard_state(2, (1, 30), (2, 4)),
        f"{FIRST}/manifest/version_hint.json": b'{"version": 1}',
        **{f"{FIRST}/wal/{named(number, '.arrow')}": log_of(number) for number in (1, 2, 3, 4)},
        f"{FIRST}/x_gen_1/data/{named(7, '.lance')}": b"a file of an SSTable",
        f"{SECOND}/wal/{named(1, '.arrow')}": log_of(10),
    }
    found = pending_in(logged({FIRST: 1}, files))
    assert found == PendingRows(4 + 3 + 4 + 10, 17, (f"_mem_wal/{FIRST}/x_gen_2",), True)
    found = pending_in(logged({FIRST: 2}, {name: data for name, data in files.items()
                                           if "wal" not in name.rpartition("/")[0]}))  # fmt: skip
    assert found == PendingRows(0, 0, (), True)


def test_what_was_not_counted_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending_logs, "ENTRIES_MAX", 2)
    files = {f"{FIRST}/wal/{named(number, '.arrow')}": log_of(number) for number in (1, 2, 3)}
    assert pending_in(logged({}, files)) == PendingRows(5, 5, (), False)
    assert pending_in(logged({}, dict(list(files.items())[:2]))) == PendingRows(3, 3, (), True)
    files = {f"{FIRST}/manifest/{named(1, '.binpb')}": shard_state(0, (1, 0))}
    assert pending_in(logged({}, files)) == PendingRows(0, 0, (f"_mem_wal/{FIRST}/x_gen_1",), False)


def test_an_entry_that_is_removed_meanwhile_is_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [f"{FIRST}/wal/{named(number, '.arrow')}" for number in (1, 2)]
    dataset = logged({}, {entry: log_of(3) for entry in entries})
    count_rows = pending_logs._num_rows

    def read_after_removal(home: Any, entry: str) -> int:
        if entry.endswith(entries[0]):
            home.delete(entry)
        return count_rows(home, entry)

    monkeypatch.setattr(pending_logs, "_num_rows", read_after_removal)
    assert pending_in(dataset) == PendingRows(3, 3, (), False)


def test_a_dataset_without_a_log_has_nothing_pending() -> None:
    uri = f"memory://pending-logs/{next(_NUMBERS)}.lance"
    assert pending_in(lance_nb.write_dataset(pa.table({"id": [1]}), uri)) is None


@pytest.mark.parametrize("name", [f"manifest/{named(1, '.binpb')}", f"wal/{named(1, '.arrow')}"])
def test_damaged_files_are_named(name: str) -> None:
    dataset = logged({}, {f"{FIRST}/{name}": b"\xff\xff\xff\xff damaged"})
    with pytest.raises(CorruptFileError, match=name.partition("/")[0]):
        pending_in(dataset)
