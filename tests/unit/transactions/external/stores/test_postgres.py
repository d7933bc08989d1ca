"""Manifest entries in PostgreSQL (a real server)."""

from __future__ import annotations

import threading

import pytest

from lance_nb.errors import StorageError
from lance_nb.transactions.external.stores.postgres import PostgresManifestStore
from tests.conformance.manifest_store_tests import ManifestStoreTests, entry
from tests.support.requirements import require_package
from tests.support.servers import free_port

pytestmark = pytest.mark.interop


@pytest.fixture
def url(postgres_port: int) -> str:
    return f"postgresql://postgres@127.0.0.1:{postgres_port}/postgres"


class TestPostgres(ManifestStoreTests):
    @pytest.fixture
    def entries(self, url: str) -> PostgresManifestStore:
        return PostgresManifestStore(url)


def test_several_first_users_make_the_table_together(url: str):
    psycopg = require_package("psycopg")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS lance_manifests")
    stores = [PostgresManifestStore(url) for _ in range(6)]
    barrier = threading.Barrier(len(stores))
    problems: list[Exception] = []

    def use(store: PostgresManifestStore, number: int) -> None:
        barrier.wait()
        try:
            store.put_if_not_exists(f"together{number}", entry(1))
        except StorageError as error:
            problems.append(error)

    threads = [threading.Thread(target=use, args=(s, n)) for n, s in enumerate(stores)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems


def test_a_server_that_is_not_there_is_a_certain_failure():
    require_package("psycopg")
    address = f"postgres:TOPSECRET-canary@127.0.0.1:{free_port()}/postgres"
    store = PostgresManifestStore(f"postgresql://{address}")
    with pytest.raises(StorageError) as caught:
        store.put_if_not_exists("t", entry(1))
    assert caught.value.outcome == "failed"
    assert "TOPSECRET" not in f"{caught.value} {caught.value.__cause__} {store!r} {store.place}"


def test_a_refused_statement_is_a_certain_failure(url: str):
    store = PostgresManifestStore(url)
    store.latest("t")
    with pytest.raises(StorageError) as caught:
        store._changed("INSERT INTO no_such_table VALUES (?)", (1,))
    assert caught.value.outcome == "failed"


def test_durability_is_switched_on(url: str):
    store = PostgresManifestStore(url)
    with store._connected() as connection:
        assert connection.execute("SHOW synchronous_commit").fetchone() == ("on",)
