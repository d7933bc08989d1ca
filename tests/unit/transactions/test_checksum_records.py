"""Records of checksums: written for copies and for files that are there, and merged into one."""

from __future__ import annotations

from itertools import count

import pytest

from lance_nb.errors import CorruptFileError
from lance_nb.format.checksums import FOLDER, FileSum, parse_record
from lance_nb.storage.memory import MemoryStore
from lance_nb.storage.summed_writer import SummedWriter
from lance_nb.table.checksums import Checksums
from lance_nb.transactions import checksum_records
from lance_nb.transactions.checksum_records import (
    AddedChecksums,
    CopiedSums,
    merge_records,
    record_existing,
    sum_of,
    write_record,
)

_NUMBERS = count()


@pytest.fixture
def store() -> MemoryStore:
    """Return a store of ten files of different sizes."""
    made = MemoryStore(f"checksum-records-{next(_NUMBERS)}")
    for number in range(10):
        made.write(f"data/{number}", b"x" * number)
    return made


def recorded(store: MemoryStore) -> list[list[str]]:
    """Return the paths in each record, the records by their first path."""
    found = []
    for name in store.list_names(FOLDER):
        path = f"{FOLDER}/{name}"
        found.append(sorted(one.path for one in parse_record(store.read(path), path, name)))
    return sorted(found)


FILES = [f"data/{number}" for number in range(10)]


@pytest.mark.parametrize(
    ("most", "records"),
    [
        (50_000, [FILES]), (10, [FILES]), (9, [FILES[:9], FILES[9:]]),
        (4, [FILES[:4], FILES[4:8], FILES[8:]]),
    ],
)  # fmt: skip
def test_files_that_are_there_get_a_sum_each(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, most: int, records: list[list[str]]
) -> None:
    monkeypatch.setattr(checksum_records, "_RECORD_FILES", most)
    told: list[int] = []
    done = record_existing([(store, path) for path in FILES], told.append)
    assert done == AddedChecksums(10, sum(range(10)), 0)
    assert told == list(range(1, 11))
    assert recorded(store) == records
    sums = Checksums()
    assert sums.of(store, "data/3") == (sum_of("data/3", b"xxx"),)
    assert all(sums.check(store, path) for path in FILES)


def test_files_with_a_sum_are_not_read_again(store: MemoryStore) -> None:
    write_record(store, [sum_of("data/4", b"xxxx"), sum_of("data/5", b"xxxxx")])
    other = MemoryStore(f"checksum-records-{next(_NUMBERS)}")
    other.write("data/a", b"aa")
    told: list[int] = []
    wanted = [*((store, path) for path in FILES[3:7]), (other, "data/a")]
    assert record_existing(wanted, told.append) == AddedChecksums(3, 3 + 6 + 2, 2)
    assert told == [1, 2, 3, 4, 5]
    assert recorded(store) == [["data/3", "data/6"], ["data/4", "data/5"]]
    assert recorded(other) == [["data/a"]]
    assert record_existing([]) == AddedChecksums(0, 0, 0)
    assert write_record(store, []) == ""


def test_the_sums_of_copies_are_recorded_unless_the_original_is_damaged(
    store: MemoryStore,
) -> None:
    write_record(store, [sum_of("data/4", b"xxxx"), sum_of("data/5", b"other")])
    target = MemoryStore(f"checksum-records-{next(_NUMBERS)}")
    sums = CopiedSums()
    for path in ("data/3", "data/4"):  # one without a sum, one that has the right one
        copy = SummedWriter(target.create(f"copied/{path}"), f"copied/{path}")
        copy.write([store.read(path)])
        copy.finish()
        sums.add(store, path, copy)
    damaged = SummedWriter(target.create("copied/data/5"), "copied/data/5")
    damaged.write([store.read("data/5")])
    with pytest.raises(CorruptFileError, match="data/5"):
        sums.add(store, "data/5", damaged)
    sums.write(target)
    assert recorded(target) == [["copied/data/3", "copied/data/4"]]
    assert Checksums().of(target, "copied/data/4")[0] == FileSum(
        "copied/data/4", sum_of("x", b"xxxx").digest, 4
    )


@pytest.mark.parametrize(
    ("most", "sizes", "gone"), [(50_000, [9], 16), (5, [4, 5], 16), (4, [1, 4, 4], 15)]
)
def test_records_are_merged_without_files_that_are_gone(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch, most: int, sizes: list[int], gone: int
) -> None:
    monkeypatch.setattr(checksum_records, "_RECORD_FILES", most)
    for number, path in enumerate(FILES):
        write_record(store, [sum_of(path, b"x" * number)])
    for number in range(5):  # each of these files was written anew meanwhile, or its sum repeated
        write_record(store, [sum_of(f"data/{number}", b"x" * number), sum_of("data/gone", b"")])
    assert merge_records(store) == 0  # fewer than 16
    store.delete("data/9")
    write_record(store, [sum_of("data/0", b""), sum_of("data/1", b"x")])
    assert merge_records(store) == gone  # a record of "data/8" alone is as it was
    assert sorted(map(len, recorded(store))) == sizes
    assert sorted(path for one in recorded(store) for path in one) == FILES[:9]
    assert merge_records(store) == 0


def test_a_damaged_record_is_left_where_it_is(store: MemoryStore) -> None:
    names = [write_record(store, [sum_of(path, b"x" * n)]) for n, path in enumerate(FILES)]
    more = [write_record(store, [sum_of(one, b"?")]) for one in FILES[:6]]
    store.write(names[0], b"damaged")
    assert merge_records(store) == 15
    assert store.exists(names[0])
    assert not any(store.exists(one) for one in (*names[1:], *more))
