"""Commits to S3 by conditional PUT, against moto: outcomes, races, lost replies, the probe."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator

import obstore
import pytest

from lance_nb.errors import NotSupportedError, ObjectExistsError, StorageError
from lance_nb.storage.base import Store
from lance_nb.storage.object_store import DRIVERS
from lance_nb.storage.registry import open_store
from tests.conformance.store_tests import StoreTests
from tests.interop.remote.conftest import S3Place, client
from tests.support.fault_proxy import FaultProxy
from tests.support.header_proxy import header_dropping_proxy

pytestmark = pytest.mark.interop

SLOT = "_versions/18446744073709551614.manifest"


@pytest.fixture(params=DRIVERS)
def driver(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class TestS3(StoreTests):
    @pytest.fixture
    def store(self, s3: S3Place) -> Store:
        return open_store(f"s3://{s3.bucket}/data", s3.options)


def proxied(s3: S3Place, proxy: FaultProxy) -> Store:
    store = open_store(f"s3://{s3.bucket}/data", s3.through(proxy).options)
    store.write_if_absent("_versions/warm", b"so that the probe is done")
    return store


@pytest.mark.parametrize("spelling", ["options", "pylance_options"])
def test_both_spellings_of_the_options_commit(s3: S3Place, spelling: str):
    options = {**getattr(s3, spelling), "driver": s3.driver}
    store = open_store(f"s3://{s3.bucket}/data", options)
    store.write_if_absent(SLOT, b"1")
    assert bytes(store.read(SLOT)) == b"1"


def test_the_probe_leaves_nothing_and_runs_once(s3: S3Place, s3_proxy: FaultProxy):
    store = open_store(f"s3://{s3.bucket}/data", s3.through(s3_proxy).options)
    seen = s3_proxy.arm(rb"PUT /\S+\.probe-", "count", times=10**6)
    store.write_if_absent(SLOT, b"1")
    assert seen.hits == 9
    store.write_if_absent(SLOT.replace("14", "13"), b"2")
    other = open_store(f"s3://{s3.bucket}/elsewhere", s3.through(s3_proxy).options)
    other.write_if_absent(SLOT, b"2")
    assert seen.hits == 9
    names = [info.name for info in open_store(f"s3://{s3.bucket}", s3.options).list_recursive("")]
    assert len(names) == 3
    assert not [name for name in names if "probe" in name]


def test_a_request_that_never_arrives_is_repeated_by_the_driver(s3, s3_proxy):
    store = proxied(s3, s3_proxy)
    fault = s3_proxy.arm(rb"PUT /\S+\.manifest", "before")
    store.write_if_absent(SLOT, b"mine")
    assert fault.hits == 1
    assert bytes(store.read(SLOT)) == b"mine"


def test_a_lost_reply_is_reported_as_exists_and_the_bytes_are_ours(s3, s3_proxy):
    store = proxied(s3, s3_proxy)
    fault = s3_proxy.arm(rb"PUT /\S+\.manifest", "lost")
    with pytest.raises(ObjectExistsError, match="manifest"):
        store.write_if_absent(SLOT, b"mine")
    assert fault.hits == 1
    assert bytes(store.read(SLOT)) == b"mine"


def test_a_server_that_stays_away_is_an_unknown_outcome(s3, s3_proxy, monkeypatch):
    options = {**s3.through(s3_proxy).options}
    options["config_kwargs"] = {"retries": {"max_attempts": 1}, "connect_timeout": 2}
    store = open_store(f"s3://{s3.bucket}/data", options)
    store.write_if_absent("_versions/warm", b"")
    if s3.driver == "fsspec":
        store._fs.retries = 1
    s3_proxy.refuse = True
    with pytest.raises(StorageError) as caught:
        store.write_if_absent(SLOT, b"mine")
    assert caught.value.outcome == "unknown"


def test_a_refusal_is_a_certain_failure(s3: S3Place):
    store = open_store(f"s3://{s3.bucket}-missing/data", s3.options)
    with pytest.raises(StorageError) as caught:
        store.write_if_absent(SLOT, b"x")
    assert caught.value.outcome == "failed"


@pytest.fixture
def ignoring(s3: S3Place) -> Iterator[S3Place]:
    """The same server behind a proxy that takes the condition away."""
    if os.environ.get("S3_SERVER") == "ceph":
        pytest.skip("a proxy cannot take a header out of a request whose signature is checked")
    with header_dropping_proxy(s3.endpoint, "if-none-match") as endpoint:
        yield S3Place(endpoint, s3.bucket, s3.driver)


def test_a_store_that_ignores_the_condition_is_refused(ignoring: S3Place, s3: S3Place):
    store = open_store(f"s3://{ignoring.bucket}/data", ignoring.options)
    for _ in range(2):
        with pytest.raises(NotSupportedError, match=r"replaced an object .*manifest_store"):
            store.write_if_absent(SLOT, b"1")
    assert store.list_recursive("") == []
    store.write("_versions/plain", b"writing without a condition is not refused")
    assert client("s3", s3.endpoint).list_objects_v2(Bucket=s3.bucket)["KeyCount"] == 1


def test_a_driver_that_ignores_the_mode_is_refused(s3: S3Place, monkeypatch: pytest.MonkeyPatch):
    if s3.driver == "obstore":
        put = obstore.put
        monkeypatch.setattr(obstore, "put", lambda *args, **_: put(*args))
        with pytest.raises(NotSupportedError):
            open_store(f"s3://{s3.bucket}/data", s3.options).write_if_absent(SLOT, b"1")
        return
    store = open_store(f"s3://{s3.bucket}/data", s3.options)
    put = store._fs.pipe_file
    monkeypatch.setattr(store._fs, "pipe_file", lambda full, data, **_: put(full, data))
    with pytest.raises(NotSupportedError):
        store.write_if_absent(SLOT, b"1")


def test_of_8_writers_on_two_clients_one_wins_each_of_10_rounds(s3: S3Place):
    clients = [{**s3.options, "skip_instance_cache": fresh} for fresh in (True, False)]
    stores = [open_store(f"s3://{s3.bucket}/data", options) for options in clients * 4]
    stores[0].write_if_absent("_versions/warm", b"")
    for number in range(10):
        path = f"_versions/{number + 1}.manifest"
        barrier = threading.Barrier(len(stores))
        won: list[bytes] = []

        def race(store: Store, name: bytes, path=path, barrier=barrier, won=won) -> None:
            barrier.wait()
            try:
                store.write_if_absent(path, name)
            except ObjectExistsError:
                return
            won.append(name)

        threads = [
            threading.Thread(target=race, args=(store, b"writer %d" % k))
            for k, store in enumerate(stores)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
        assert bytes(stores[0].read(path)) == won[0]


def test_secrets_stay_out_of_what_a_server_answers(s3: S3Place):
    options = {**s3.options, "secret": "TOPSECRET-canary", "key": "TOPSECRET-key"}
    store = open_store(f"s3://{s3.bucket}-missing/data", options)
    with pytest.raises(StorageError) as caught:
        store.write_if_absent(SLOT, b"x")
    text = f"{caught.value!r} {caught.value} {store!r} {caught.value.__cause__!r}"
    assert not re.search("TOPSECRET", text)
