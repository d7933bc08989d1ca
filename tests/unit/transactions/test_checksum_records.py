"""Records of checksums: when they are written, and what merging many of them leaves."""

from __future__ import annotations

from uuid import uuid4

import pytest

from lance_nb.format.checksums import FOLDER, FileSum, parse_record
from lance_nb.format.deletion_vector import DeletionVector
from lance_nb.storage.memory import MemoryStore
from lance_nb.table.checksums import Checksums
from lance_nb.transactions import checksum_records
from lance_nb.transactions.checksum_records import merge_records, sum_of, write_record
from lance_nb.transactions.pending_deletions import PendingDeletions

MANY = 16  # records that are worth merging


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore(f"records-{uuid4().hex}")


def put(store: MemoryStore, count: int) -> list[FileSum]:
    """Write files, each with a record of its own."""
    sums = []
    for number in range(count):
        path, data = f"data/{number}.lance", b"%d" % number
        store.write(path, data)
        sums.append(sum_of(path, data))
        write_record(store, sums[-1:])
    return sums


def records(store: MemoryStore) -> list[list[FileSum]]:
    names = store.list_names(FOLDER)
    return [parse_record(store.read(f"{FOLDER}/{one}"), one, one) for one in sorted(names)]


def test_fewer_records_than_are_worth_it_stay(store: MemoryStore) -> None:
    put(store, MANY - 1)

    assert merge_records(store) == 0
    assert len(records(store)) == MANY - 1


def test_many_records_become_one_of_the_files_that_are_there(store: MemoryStore) -> None:
    sums = put(store, MANY)
    store.delete(sums[3].path)

    assert merge_records(store) == MANY
    (left,) = records(store)
    assert sorted(left) == sorted(one for one in sums if one != sums[3])
    assert not Checksums().of(store, sums[3].path)


def test_a_record_that_holds_what_the_merged_one_would_is_kept(store: MemoryStore) -> None:
    sums = put(store, MANY - 1)
    write_record(store, sums)

    assert merge_records(store) == MANY - 1
    assert [sorted(one) for one in records(store)] == [sorted(sums)]


def test_a_damaged_record_stays_for_verify_to_tell(store: MemoryStore) -> None:
    put(store, MANY)
    name = f"{FOLDER}/{store.list_names(FOLDER)[0]}"
    store.write(name, b"damaged")

    assert merge_records(store) == MANY - 1
    assert bytes(store.read(name)) == b"damaged"
    assert len(store.list_names(FOLDER)) == 2


@pytest.mark.parametrize(("files", "merged"), [(5, [5]), (4, [4, 1]), (2, [2, 2, 1])])
def test_a_merged_record_holds_so_many_files(
    store: MemoryStore, files: int, merged: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checksum_records, "_MERGED_MIN", 5)
    monkeypatch.setattr(checksum_records, "_RECORD_FILES", files)
    sums = put(store, 5)

    merge_records(store)

    found = records(store)
    assert sorted(map(len, found), reverse=True) == merged
    assert sorted(one for record in found for one in record) == sums


@pytest.mark.parametrize("wanted", [False, True])
def test_deletions_that_waited_get_a_record_where_one_is_wanted(
    store: MemoryStore, wanted: bool
) -> None:
    pending = PendingDeletions(checksums=wanted)
    for fragment in (0, 7):
        pending.add(fragment, 3, DeletionVector.of([1, 5]))

    paths = pending.write(store)

    assert len(store.list_names("_deletions")) == len(paths) == 2
    found = [sorted(one.path for one in record) for record in records(store)]
    assert found == ([sorted(paths)] if wanted else [])
    known = Checksums()
    assert [known.check(store, one) for one in paths] == [wanted, wanted]
