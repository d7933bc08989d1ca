"""Manifest entries in Redis (a real server)."""

from __future__ import annotations

import pytest

from lance_nb.errors import CorruptFileError, InvalidInputError, StorageError
from lance_nb.transactions.external.stores.redis import RedisManifestStore
from tests.conformance.manifest_store_tests import ManifestStoreTests, entry
from tests.support.servers import free_port

pytestmark = pytest.mark.interop


@pytest.fixture
def url(redis_port: int) -> str:
    return f"redis://127.0.0.1:{redis_port}/0"


class TestRedis(ManifestStoreTests):
    @pytest.fixture
    def entries(self, url: str) -> RedisManifestStore:
        return RedisManifestStore(url)


def test_a_url_that_is_none_is_refused(redis_port: int):
    with pytest.raises(InvalidInputError, match="Redis URL"):
        RedisManifestStore("redis+nothing://x")


def test_a_server_that_is_not_there_is_an_unknown_outcome(redis_port: int):
    store = RedisManifestStore(f"redis://:TOPSECRET-canary@127.0.0.1:{free_port()}/0")
    with pytest.raises(StorageError) as caught:
        store.put_if_not_exists("t", entry(1))
    assert caught.value.outcome == "unknown"
    assert "TOPSECRET" not in f"{caught.value} {caught.value.__cause__} {store!r} {store.place}"


def test_a_refused_request_is_a_certain_failure(redis_port: int, url: str):
    store = RedisManifestStore(url)
    store._client.set("lance:manifests:{of another kind}", "x")
    with pytest.raises(StorageError, match="WRONGTYPE") as caught:
        store.put_if_not_exists("of another kind", entry(1))
    assert caught.value.outcome == "failed"


def test_what_somebody_else_wrote_there_is_reported(url: str):
    store = RedisManifestStore(url)
    store._client.hset("lance:manifests:{odd}", mapping={"latest": "1", "1": "no json"})
    with pytest.raises(CorruptFileError, match="no json"):
        store.latest("odd")
