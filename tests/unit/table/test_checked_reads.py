"""Datasets opened with check=True: damage is an error before a row comes out, and costs once."""

from __future__ import annotations

import os
import pickle
import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import CorruptFileError
from lance_nb.storage.base import ByteRange
from lance_nb.storage.fsspec_store import FsspecStore
from lance_nb.storage.local import LocalStore
from lance_nb.storage.memory import MemoryStore
from lance_nb.table import checksums
from lance_nb.table.checksums import CheckedStore, ReadChecks

FLIPS = int(os.environ.get("CHECKSUM_FLIPS", "60"))
ROWS = 60
BLOB = b"payload" * 3


def rows(first: int = 0, count: int = ROWS) -> pa.Table:
    numbers = np.arange(first, first + count)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(numbers.repeat(4), pa.float32()), 4)
    metadata = {"lance-encoding:blob": "true"}
    schema = pa.schema(
        [
            pa.field("id", pa.int64()),
            pa.field("name", pa.string()),
            pa.field("vector", vectors.type),
            pa.field("image", pa.large_binary(), metadata=metadata),
        ]
    )
    names = [f"name {n}" for n in numbers]
    return pa.table([numbers, names, vectors, [BLOB] * count], schema=schema)


def make(uri: str) -> str:
    ds = lance_nb.write_dataset(rows(), uri, checksums=True, max_rows_per_file=ROWS // 2)
    ds.delete("id = 5")
    ds.delete("id = 40")
    return uri


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return make(str(tmp_path / "checked.lance"))


@pytest.fixture(autouse=True)
def new_process() -> Iterator[None]:
    """Begin as a process that has read nothing."""
    checksums._digests.clear()
    yield
    checksums._digests.clear()


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count how often each file is read for its sum."""
    counts: Counter[str] = Counter()
    digest = checksums.stored_digest

    def counted(store: Any, path: str, size: int) -> str:
        counts[path] += 1
        return digest(store, path, size)

    monkeypatch.setattr(checksums, "stored_digest", counted)
    return counts


def damaged_files(uri: str) -> list[Path]:
    root = Path(uri)
    return sorted(
        one for folder in ("data", "_deletions") for one in (root / folder).rglob("*.*")
        if one.is_file()
    )  # fmt: skip


def flip(path: Path, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    path.write_bytes(data)


READS: dict[str, Callable[[lance_nb.LanceDataset], object]] = {
    "to_table": lambda ds: ds.to_table(),
    "batches": lambda ds: list(ds.to_batches()),
    "filtered": lambda ds: ds.to_table(filter="id >= 0"),
    "take": lambda ds: ds.take([1, ROWS - 3]),
    "head": lambda ds: ds.head(ROWS),
    "count": lambda ds: ds.count_rows("id >= 0"),
    "blobs": lambda ds: [
        one.read() for one in ds.take_blobs("image", indices=[0, 1, ROWS - 4, ROWS - 3])
    ],
    "nearest": lambda ds: ds.to_table(nearest={"column": "vector", "q": [0.0] * 4, "k": ROWS}),
    "physical rows": lambda ds: [one.count_rows("id >= 0") for one in ds.get_fragments()],
}


@pytest.mark.parametrize("read", READS, ids=str)
def test_every_flipped_bit_raises_before_a_row_is_returned(uri: str, read: str) -> None:
    chance = random.Random(read)
    whole = {one: one.read_bytes() for one in damaged_files(uri)}
    assert len(whole) == 4
    for _ in range(-(-FLIPS // (len(READS) * len(whole)))):
        for path, data in whole.items():
            flip(path, chance.randrange(len(data) * 8))
            with pytest.raises(CorruptFileError, match=r"expected xxh128 .* found xxh128") as error:
                READS[read](lance_nb.dataset(uri, check=True))
            assert path.name in error.value.path
            assert "put the file back from a copy" in str(error.value)
            path.write_bytes(data)

    READS[read](lance_nb.dataset(uri, check=True))


def test_a_file_of_another_size_is_refused_without_reading_it(
    uri: str, hashed: Counter[str]
) -> None:
    path = damaged_files(uri)[0]
    path.write_bytes(path.read_bytes() + b"x")

    with pytest.raises(CorruptFileError, match=f"found {path.stat().st_size} bytes"):
        lance_nb.dataset(uri, check=True).to_table()

    assert path.name not in "".join(hashed)


def test_nothing_is_hashed_twice_in_a_process(uri: str, hashed: Counter[str]) -> None:
    old = 1_000_000_000
    for path in damaged_files(uri):
        os.utime(path, (old, old))
    ds = lance_nb.dataset(uri, check=True)
    for read in READS.values():
        read(ds)
    ds.checkout_version(1).to_table()
    assert set(hashed.values()) == {1}
    assert len(hashed) == 4

    wait_for_the_clock(uri)
    for _ in range(2):  # the first handle may have met files too young for a mark
        other = lance_nb.dataset(uri, check=True)
        other.to_table()
    before = sum(hashed.values())
    lance_nb.dataset(uri, check=True).to_table()
    assert sum(hashed.values()) == before


def wait_for_the_clock(uri: str) -> None:
    import time

    while any(LocalStore(uri).mark(str(one.relative_to(uri)))[1] is None
              for one in damaged_files(uri)):  # fmt: skip
        time.sleep(0.005)


def test_a_file_that_changed_is_compared_again_by_the_next_handle(uri: str) -> None:
    wait_for_the_clock(uri)
    lance_nb.dataset(uri, check=True).to_table()
    path = damaged_files(uri)[0]
    status = path.stat()
    flip(path, 77)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    with pytest.raises(CorruptFileError):
        lance_nb.dataset(uri, check=True).to_table()


def test_without_check_no_record_and_no_file_is_looked_at(
    uri: str, hashed: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("nobody has asked for checks")

    monkeypatch.setattr("lance_nb.table.checksums.Checksums.of", refuse)
    ds = lance_nb.dataset(uri)
    assert isinstance(ds._snapshot.locations.locate("data/x", None)[0], LocalStore)

    for read in READS.values():
        read(ds)

    assert not hashed


def test_other_versions_and_pickles_keep_the_check(uri: str) -> None:
    ds = lance_nb.dataset(uri, check=True)
    branch = ds.create_branch("dev")
    ways = [
        lambda: ds.checkout_version(1),
        lambda: ds.checkout_version(("dev", None)),
        lambda: branch,
        lambda: pickle.loads(pickle.dumps(ds)),  # noqa: S301
        lambda: pickle.loads(pickle.dumps(ds.get_fragments()[0])),  # noqa: S301
        lambda: lance_nb.LanceDataset(uri, check=True),
        lambda: lance_nb.write_dataset(rows(ROWS, 2), ds, mode="append"),
    ]
    handles = [way() for way in ways]
    for path in damaged_files(uri):
        flip(path, 9)

    for one in handles:
        with pytest.raises(CorruptFileError, match="expected xxh128"):
            one.to_table()


def test_files_without_a_record_are_read(tmp_path: Path) -> None:
    uri = str(tmp_path / "plain.lance")
    lance_nb.write_dataset(rows(), uri)
    ds = lance_nb.dataset(uri, check=True)
    assert ds.count_rows("id >= 0") == ROWS

    ds.add_checksums()
    flip(next(Path(uri, "data").glob("*.lance")), 0)

    with pytest.raises(CorruptFileError, match="expected xxh128"):
        lance_nb.dataset(uri, check=True).to_table()


def test_versions_opened_later_know_new_records(uri: str) -> None:
    ds = lance_nb.dataset(uri, check=True)
    ds.to_table()
    known = set(damaged_files(uri))
    lance_nb.write_dataset(rows(ROWS, 3), uri, mode="append")
    (new,) = set(damaged_files(uri)) - known
    flip(new, 3)

    with pytest.raises(CorruptFileError, match=new.name):
        ds.checkout_version(ds.latest_version).to_table()


def test_a_cache_of_handles_without_checks_is_not_used(uri: str) -> None:
    shared = lance_nb.Session()
    path = next(one for one in damaged_files(uri) if one.suffix == ".lance")
    lance_nb.dataset(uri, session=shared).to_table()
    flip(path, 5)

    with pytest.raises(CorruptFileError, match="expected xxh128"):
        lance_nb.dataset(uri, session=shared, check=True).to_table()


def test_files_of_a_shallow_clone_are_compared_where_they_lie(uri: str, tmp_path: Path) -> None:
    lance_nb.dataset(uri).shallow_clone(str(tmp_path / "clone.lance"))
    flip(damaged_files(uri)[-1], 5)

    with pytest.raises(CorruptFileError, match="expected xxh128"):
        lance_nb.dataset(str(tmp_path / "clone.lance"), check=True, allow_bases=[uri]).to_table()


def test_a_dataset_in_memory_is_compared() -> None:
    uri = make("memory://checked/reads.lance")
    store = MemoryStore("checked/reads.lance")
    lance_nb.dataset(uri, check=True).to_table()
    name = next(one.name for one in store.list("data") if one.name.endswith(".lance"))
    data = bytearray(store.read(f"data/{name}"))
    data[3] ^= 1
    store.write(f"data/{name}", data)

    with pytest.raises(CorruptFileError, match="expected xxh128"):
        lance_nb.dataset(uri, check=True).to_table()


def test_verify_reports_instead_of_raising(uri: str) -> None:
    flip(damaged_files(uri)[-1], 5)

    report = lance_nb.dataset(uri, check=True).verify(values=False, checksums=True)

    assert [one.code for one in report.findings] == ["checksum-wrong"]


def stores(tmp_path: Path) -> list[Any]:
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    return [
        LocalStore(str(tmp_path)),
        MemoryStore(f"marks{tmp_path.name}"),
        FsspecStore.over(memory, f"/marks{tmp_path.name}", "memory://marks"),
    ]


@pytest.mark.parametrize("number", range(3))
def test_every_way_to_read_is_preceded_by_the_check(tmp_path: Path, number: int) -> None:
    store = stores(tmp_path)[number]
    store.write("data/x", b"0123456789")
    asked: list[str] = []

    class Noted(ReadChecks):
        def before_read(self, store: Any, path: str) -> None:
            asked.append(path)

    checked = CheckedStore(store, Noted())

    assert bytes(checked.read("data/x")) == b"0123456789"
    assert bytes(checked.read_range("data/x", ByteRange(1, 3))) == b"12"
    assert bytes(checked.read_ranges("data/x", [ByteRange(0, 1)])[0]) == b"0"
    assert bytes(checked.read_tail("data/x", 2)[0]) == b"89"
    checked.map("data/x")
    assert bytes(checked.child("data").read("x")) == b"0123456789"
    assert asked == ["data/x"] * 5 + ["x"]
    assert checked.size("data/x") == 10
    assert checked.exists("data/x")
    assert checked.list_names("data") == ["x"]
    assert [one.name for one in checked.list("data")] == ["x"]
    assert [one.name for one in checked.list_recursive("")] == ["data/x"]
    assert (checked.uri, checked.scheme) == (store.uri, store.scheme)
    checked.write("data/y", b"1")
    writer = checked.create("data/z")
    writer.write([b"22"])
    writer.finish()
    checked.delete("data/x")
    assert sorted(checked.list_names("data")) == ["y", "z"]
    assert len(asked) == 6
    assert ReadChecks().store(checked) is checked


def test_a_mark_changes_with_the_bytes(tmp_path: Path) -> None:
    for store in stores(tmp_path)[:2]:
        store.write("x", b"1")
        if store.scheme == "file":
            assert store.mark("x") == (1, None)  # too young for its clock
            continue
        first = store.mark("x")
        store.write("x", b"2")
        assert store.mark("x")[0] == first[0] == 1
        assert store.mark("x") != first


def test_a_file_without_a_checksum_costs_no_request() -> None:
    store = MemoryStore("checked-without-sums")
    ReadChecks().before_read(store, "data/nowhere.lance")  # asking for its size would raise
