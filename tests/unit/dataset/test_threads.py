"""One handle used by several threads at once, and commits of copies of it."""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.table.ordering import ColumnOrdering

pytestmark = pytest.mark.slow

THREADS = 8
ROWS = 400


def at_once(work: list[Callable[[], Any]]) -> list[Any]:
    """Run everything at the same moment; return the results, or raise the first error."""
    start = threading.Barrier(len(work))
    found: list[Any] = [None] * len(work)

    def run(number: int) -> None:
        start.wait()
        try:
            found[number] = work[number]()
        except Exception as error:  # noqa: BLE001 (raised below, in the thread of the test)
            found[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(work))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one in found:
        if isinstance(one, Exception):
            raise one
    return found


def rows(first: int, count: int) -> pa.Table:
    ids = range(first, first + count)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "word": [f"word {one % 7}" for one in ids],
            "code": pa.array([f"c{one % 5}" for one in ids]).dictionary_encode(),
            "list": [[one, one + 1] if one % 3 else None for one in ids],
            "file": lance_nb.blob_array([bytes([one % 251]) * (one % 9) for one in ids]),
        }
    )


@pytest.fixture
def uri(tmp_path: Path) -> str:
    place = str(tmp_path / "d")
    lance_nb.write_dataset(rows(0, ROWS), place, max_rows_per_file=90, enable_stable_row_ids=True)
    ds = lance_nb.dataset(place)
    ds.delete("id % 10 = 3")
    ds.create_scalar_index("id", "BTREE")
    ds.update({"word": "'new'"}, where="id % 50 = 0")
    return place


READS: dict[str, Callable[[Any], Any]] = {
    "table": lambda ds: ds.to_table(),
    "filter": lambda ds: ds.to_table(filter="word = 'word 3' AND id > 40", columns=["id", "code"]),
    "index": lambda ds: ds.to_table(filter="id IN (7, 77, 177)"),
    "take": lambda ds: ds.take([300, 5, 5, 122], columns=["id", "list"]),
    "ids": lambda ds: ds.take_rows([1, 2, 399]),
    "count": lambda ds: (ds.count_rows(), ds.count_rows("code = 'c2'"), len(ds)),
    "order": lambda ds: ds.to_table(order_by=[ColumnOrdering("word"), "id"], limit=20),
    "batches": lambda ds: pa.Table.from_batches(ds.to_batches(batch_size=17)),
    "blobs": lambda ds: [one.readall() for one in ds.take_blobs("file", indices=[1, 2, 200])],
    "fragments": lambda ds: [one.count_rows() for one in ds.get_fragments()],
    "schema": lambda ds: (ds.schema, ds.stats(), ds.tags.list(), len(ds.versions())),
    "older": lambda ds: ds.checkout_version(1).to_table(),
}


@pytest.mark.parametrize("session", [False, True], ids=["own caches", "shared session"])
@pytest.mark.parametrize("mixed", [False, True], ids=["one kind", "mixed"])
def test_threads_read_the_same_as_one(uri: str, mixed: bool, session: bool) -> None:
    expected = {name: read(lance_nb.dataset(uri)) for name, read in READS.items()}
    names = list(READS)
    groups = [names] if mixed else [[name] * THREADS for name in names]
    shared = {"session": lance_nb.Session()} if session else {}
    for _ in range(2):
        for group in groups:
            ds = lance_nb.dataset(uri, **shared)  # nothing of it is known yet
            for name, found in zip(
                group, at_once([partial(READS[name], ds) for name in group]), strict=True
            ):
                assert found == expected[name], name


def test_threads_share_a_scanner(uri: str) -> None:
    scanner = lance_nb.dataset(uri).scanner(filter="id % 2 = 0", columns=["id", "word"])
    expected = scanner.to_table()
    again = lance_nb.dataset(uri).scanner(filter="id % 2 = 0", columns=["id", "word"])
    for found in at_once([again.to_table, again.to_table, again.count_rows, again.to_table]):
        assert found == (expected if isinstance(found, pa.Table) else expected.num_rows)


def test_copies_commit_at_once_and_nothing_is_lost(uri: str) -> None:
    ds = lance_nb.dataset(uri)
    before, version = ds.to_table(), ds.version

    def insert(number: int) -> int:
        mine = copy.copy(ds)
        mine.insert(rows(10_000 + 100 * number, 20))
        mine.delete(f"id = {10_000 + 100 * number}")
        return mine.version

    versions = at_once([lambda n=number: insert(n) for number in range(THREADS)])
    assert len(set(versions)) == THREADS
    assert ds.version == version
    assert ds.to_table().equals(before)
    latest = lance_nb.dataset(uri)
    assert latest.version == version + 2 * THREADS
    ids = latest.to_table(columns=["id"])["id"].to_pylist()
    assert sorted(ids) == sorted(
        [*before["id"].to_pylist(),
         *(10_000 + 100 * n + k for n in range(THREADS) for k in range(1, 20))]
    )  # fmt: skip
    latest.validate()


def test_readers_go_on_while_copies_commit(uri: str) -> None:
    ds = lance_nb.dataset(uri)
    before = ds.to_table()

    def commit() -> str:
        mine = copy.copy(ds)
        for number in range(5):
            mine.insert(rows(20_000 + 10 * number, 5))
        return "committed"

    def read() -> bool:
        return all(
            ds.to_table().equals(before) and ds.count_rows() == before.num_rows for _ in range(5)
        )

    assert at_once([commit, read, read, read]) == ["committed", True, True, True]


def test_one_handle_that_commits_in_threads_loses_nothing(uri: str) -> None:
    ds = lance_nb.dataset(uri)
    count, version = ds.count_rows(), ds.version
    work = [lambda n=number: ds.insert(rows(30_000 + 10 * n, 5)) for number in range(4)]
    at_once([*work, lambda: ds.to_table(filter="id < 30000").num_rows])
    latest = lance_nb.dataset(uri)
    assert (latest.count_rows(), latest.version) == (count + 20, version + 4)
    assert version < ds.version <= latest.version
