"""Manifest entries in PostgreSQL (a real server)."""

from __future__ import annotations

import threading
from typing import Any

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


def without_table(url: str) -> None:
    with require_package("psycopg").connect(url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS lance_manifests")


def test_several_first_users_make_the_table_together(url: str):
    for _ in range(10):  # who is late is refused in one of three ways
        without_table(url)
        stores = [PostgresManifestStore(url) for _ in range(6)]
        barrier = threading.Barrier(len(stores))
        problems: list[Exception] = []

        def use(
            store: PostgresManifestStore,
            number: int,
            barrier: threading.Barrier = barrier,
            problems: list[Exception] = problems,
        ) -> None:
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


@pytest.mark.parametrize("error", ["UniqueViolation", "DuplicateTable", "DuplicateObject"])
def test_a_table_that_another_makes_meanwhile_is_used(
    url: str, error: str, monkeypatch: pytest.MonkeyPatch
):
    psycopg = require_package("psycopg")
    without_table(url)
    late = []

    def execute(self: Any, statement: Any, *rest: Any, **how: Any) -> Any:
        made = plain(self, statement, *rest, **how)
        if str(statement).startswith("CREATE") and not late:
            late.append(statement)
            raise getattr(psycopg.errors, error)("it is there already")
        return made

    plain = psycopg.Connection.execute
    monkeypatch.setattr(psycopg.Connection, "execute", execute)
    store = PostgresManifestStore(url)
    store.put_if_not_exists("t", entry(1))
    assert late
    assert store.latest("t") == entry(1)


def test_one_who_may_not_make_tables_uses_what_is_there(url: str):
    psycopg = require_package("psycopg")
    PostgresManifestStore(url).put_if_not_exists("granted", entry(1))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS reader")
        connection.execute("CREATE ROLE reader LOGIN")
        connection.execute("GRANT SELECT, INSERT ON lance_manifests TO reader")
    try:
        store = PostgresManifestStore(url.replace("postgres@", "reader@"))
        store.put_if_not_exists("granted", entry(2))
        assert store.latest("granted") == entry(2)
    finally:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("DROP OWNED BY reader")
            connection.execute("DROP ROLE reader")


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
