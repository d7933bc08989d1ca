"""Merged write-ahead logs."""

from __future__ import annotations

import pytest

from lance_nb._pb import table as pb
from lance_nb.errors import CorruptFileError
from lance_nb.format.merged_logs import MergedLog, merged_logs, with_merged_logs

A = MergedLog("0f0e0d0c-0b0a-0908-0706-050403020100", 7)
B = MergedLog("1f0e0d0c-0b0a-0908-0706-050403020100", 3)


def test_logs_are_added_and_the_higher_generation_stays() -> None:
    details = with_merged_logs(b"", [A])
    details = with_merged_logs(details, [MergedLog(A.shard_id, 5), B])
    assert merged_logs(details) == (A, B)
    details = with_merged_logs(details, [MergedLog(B.shard_id, 9)])
    assert merged_logs(details) == (A, MergedLog(B.shard_id, 9))


def test_the_rest_of_the_details_is_carried() -> None:
    snapshot = b"\x08\x2a"  # field 1: a time
    assert snapshot in with_merged_logs(snapshot, [A])


def test_a_shard_without_a_whole_id_is_damage() -> None:
    message = pb.MemWalIndexDetails()
    message.compacted_sstables.add(generation=1)
    with pytest.raises(CorruptFileError, match="shard id of 16 bytes"):
        merged_logs(message.SerializeToString(), "here")
