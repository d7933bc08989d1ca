"""Manifest entries in a SQLite file."""

from __future__ import annotations

import multiprocessing
import sqlite3
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from pathlib import Path

import pytest

from lance_nb.errors import InvalidInputError, ObjectExistsError, StorageError
from lance_nb.transactions.external.stores import sqlite
from lance_nb.transactions.external.stores.sqlite import SqliteManifestStore
from tests.conformance.manifest_store_tests import ManifestStoreTests, entry


class TestSqlite(ManifestStoreTests):
    @pytest.fixture
    def entries(self, tmp_path: Path) -> SqliteManifestStore:
        return SqliteManifestStore(f"sqlite:///{tmp_path}/manifests.db")


def put_some(url: str, number: int, results) -> None:
    """Race for 30 versions; runs in a process of its own."""
    store = SqliteManifestStore(url)
    won = []
    for version in range(1, 31):
        try:
            store.put_if_not_exists("t", entry(version, f"-{number}"))
        except ObjectExistsError:
            continue
        won.append(version)
    results.put(won)


@pytest.mark.slow
def test_processes_race_fairly(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/manifests.db"
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    workers = [context.Process(target=put_some, args=(url, one, results)) for one in range(3)]
    for worker in workers:
        worker.start()
    won = [version for _ in workers for version in results.get(timeout=180)]
    for worker in workers:
        worker.join()
    assert sorted(won) == list(range(1, 31))


def test_the_file_is_synced_and_logs_ahead(tmp_path: Path):
    SqliteManifestStore(f"sqlite:///{tmp_path}/m.db").put_if_not_exists("t", entry(1))
    with closing(sqlite3.connect(tmp_path / "m.db")) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        rows = connection.execute("SELECT * FROM lance_manifests").fetchall()
    assert rows == [("t", 1, entry(1).path, "lancedb", 100, None)]


def test_the_first_writer_waits_for_another_one(tmp_path: Path):
    with closing(sqlite3.connect(tmp_path / "m.db", isolation_level=None)) as other:
        other.execute("CREATE TABLE x (y)")
        other.execute("BEGIN IMMEDIATE")  # the switch of logs does not wait by itself
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(put, f"sqlite:///{tmp_path}/m.db", 0)
            assert not wait([waiting], timeout=0.2).done
            other.execute("COMMIT")
            waiting.result(timeout=60)


def put(url: str, number: int) -> None:
    SqliteManifestStore(url).put_if_not_exists("t", entry(number + 1))


def test_a_file_that_another_program_keeps_locked_is_an_error_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sqlite, "_BUSY_S", 0.05)
    with closing(sqlite3.connect(tmp_path / "m.db", isolation_level=None)) as other:
        other.execute("CREATE TABLE x (y)")
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(StorageError, match="locked; another program") as caught:
            put(f"sqlite:///{tmp_path}/m.db", 0)
    assert caught.value.outcome == "failed"
    put(f"sqlite:///{tmp_path}/m.db", 0)


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///", "sqlite://host/x", "other:///x"])
def test_what_is_no_sqlite_url_is_refused(url: str):
    with pytest.raises(InvalidInputError):
        SqliteManifestStore(url)


def test_a_file_that_cannot_be_opened_is_a_certain_failure(tmp_path: Path):
    store = SqliteManifestStore(f"sqlite:///{tmp_path}/missing/m.db")
    with pytest.raises(StorageError, match="folder must exist") as caught:
        store.put_if_not_exists("t", entry(1))
    assert caught.value.outcome == "failed"


def test_a_file_that_is_no_database_is_reported(tmp_path: Path):
    (tmp_path / "m.db").write_bytes(b"no database" * 100)
    with pytest.raises(StorageError, match="not a database; name another file"):
        SqliteManifestStore(f"sqlite:///{tmp_path}/m.db").latest("t")
