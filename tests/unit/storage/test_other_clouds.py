"""Cloud Storage and Azure Blob through obstore, against a server of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import NotSupportedError, ObjectExistsError
from lance_nb.storage import conditional_put
from lance_nb.storage.base import Store
from lance_nb.storage.object_store import ObjectStore
from lance_nb.storage.registry import open_store
from tests.conformance.store_tests import StoreTests
from tests.support.fake_clouds import FakeCloud, fake_cloud

ROWS = pa.table({"a": range(5)})
ACCOUNT_KEY = "c2VjcmV0LWtleS1vZi10aGUtYWNjb3VudA=="


@pytest.fixture
def cloud() -> Iterator[FakeCloud]:
    conditional_put._faults.clear()
    with fake_cloud() as made:
        yield made
    conditional_put._faults.clear()


def options_of(scheme: str, cloud: FakeCloud) -> dict[str, Any]:
    address = f"http://127.0.0.1:{cloud.port}"
    if scheme == "gs":
        account = {"type": "service_account", "disable_oauth": True, "client_email": "",
                   "private_key": "", "private_key_id": "", "gcs_base_url": address}  # fmt: skip
        return {"token": account, "endpoint_url": address, "driver": "obstore"}
    named = {"account_name": "acme", "account_key": ACCOUNT_KEY}
    return {**named, "endpoint": address, "driver": "obstore"}


class TestCloudStorage(StoreTests):
    @pytest.fixture
    def store(self, cloud: FakeCloud) -> Store:
        return open_store("gs://bucket/data", options_of("gs", cloud))


class TestAzure(StoreTests):
    @pytest.fixture
    def store(self, cloud: FakeCloud) -> Store:
        return open_store("az://bucket/data", options_of("az", cloud))


@pytest.mark.parametrize("scheme", ["gs", "az"])
def test_a_version_is_one_conditional_put_and_a_lost_reply_is_found_out(
    scheme: str, cloud: FakeCloud
):
    options = options_of(scheme, cloud)
    place = f"{scheme}://bucket/t.lance"
    lance_nb.write_dataset(ROWS, place, storage_options=options)
    cloud.conditions.clear()
    cloud.loses = 1
    after = lance_nb.write_dataset(ROWS, place, mode="append", storage_options=options)
    assert (after.version, after.count_rows()) == (2, 10)
    assert {one.rpartition(".")[2] for one in cloud.conditions} == {"manifest"}
    found = lance_nb.dataset(place, storage_options=options)
    assert [one["version"] for one in found.versions()] == [1, 2]
    assert found.to_table()["a"].to_pylist() == [*range(5), *range(5)]


@pytest.mark.parametrize("scheme", ["gs", "az"])
def test_a_server_that_ignores_the_condition_is_refused(scheme: str, cloud: FakeCloud):
    cloud.ignores_the_condition = True
    store = open_store(f"{scheme}://bucket/data", options_of(scheme, cloud))
    with pytest.raises(NotSupportedError, match="manifest_store"):
        store.write_if_absent("_versions/1.manifest", b"x")
    assert cloud.objects == {}


def test_a_lost_reply_is_told_as_exists_and_the_bytes_are_ours(cloud: FakeCloud):
    store = open_store("gs://bucket/data", options_of("gs", cloud))
    store.write_if_absent("_versions/warm", b"so that the probe is done")
    cloud.loses = 1
    with pytest.raises(ObjectExistsError):
        store.write_if_absent("_versions/1.manifest", b"mine")
    assert bytes(store.read("_versions/1.manifest")) == b"mine"


def test_sizes_that_a_manifest_records_need_no_request(cloud: FakeCloud):
    options = options_of("az", cloud)
    lance_nb.write_dataset(ROWS, "az://bucket/t.lance", storage_options=options)
    cloud.requests.clear()
    dataset = lance_nb.dataset("az://bucket/t.lance", storage_options=options)
    assert dataset.to_table().num_rows == 5
    assert not [one for one in cloud.requests if one.startswith("HEAD") and "/data/" in one]


def test_the_container_and_the_account_of_a_long_uri(cloud: FakeCloud):
    options = options_of("az", cloud)
    del options["account_name"]
    store = open_store("abfs://bucket@acme.dfs.core.windows.net/data", options)
    assert isinstance(store, ObjectStore)
    store.write("x", b"1")
    assert list(cloud.objects) == ["bucket/data/x"]
