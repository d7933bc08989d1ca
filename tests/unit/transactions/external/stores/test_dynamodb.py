"""Manifest entries in Lance's own DynamoDB table (moto)."""

from __future__ import annotations

import pytest

from lance_nb.errors import CorruptFileError, InvalidInputError, StorageError
from lance_nb.format.layout import DETACHED_BIT
from lance_nb.transactions.external.stores.dynamodb import DynamoManifestStore
from tests.conformance.manifest_store_tests import ManifestStoreTests, entry
from tests.interop.remote.conftest import client
from tests.support.servers import free_port

pytestmark = pytest.mark.interop

KEYS = {"aws_access_key_id": "test", "aws_secret_access_key": "TOPSECRET-canary"}


@pytest.fixture
def entries(moto: str, table: str) -> DynamoManifestStore:
    options = {**KEYS, "aws_region": "us-east-1", "dynamodb_endpoint": moto}
    return DynamoManifestStore(f"dynamodb://{table}", options)


class TestDynamo(ManifestStoreTests):
    @pytest.fixture
    def entries(self, moto: str, table: str) -> DynamoManifestStore:
        options = {"key": "test", "secret": "testtest"}
        url = f"dynamodb://{table}?region=us-east-1&endpoint={moto}"
        return DynamoManifestStore(url, options)


def test_an_entry_is_what_lance_writes(entries: DynamoManifestStore, moto: str, table: str):
    entries.put_if_not_exists("a/b", entry(3))
    items = client("dynamodb", moto).scan(TableName=table)["Items"]
    assert items == [
        {
            "base_uri": {"S": "a/b"},
            "version": {"N": "3"},
            "path": {"S": "data/t/_versions/3.manifest"},
            "committer": {"S": "lancedb"},
            "size": {"N": "100"},
        }
    ]


def test_detached_versions_are_not_the_latest(entries: DynamoManifestStore):
    entries.put_if_not_exists("a", entry(3))
    entries.put_if_not_exists("a", entry(DETACHED_BIT + 7))
    assert entries.latest("a") == entry(3)


def test_a_table_with_other_keys_is_refused(moto: str):
    service = client("dynamodb", moto)
    service.create_table(
        TableName="other",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    options = {**KEYS, "region": "us-east-1", "dynamodb_endpoint": moto}
    with pytest.raises(InvalidInputError, match="base_uri"):
        DynamoManifestStore("dynamodb://other", options).latest("a")
    with pytest.raises(StorageError) as caught:
        DynamoManifestStore("dynamodb://missing", options).latest("a")
    assert caught.value.outcome == "failed"


def test_an_item_without_a_path_is_reported(entries: DynamoManifestStore, moto: str, table: str):
    item = {"base_uri": {"S": "odd"}, "version": {"N": "1"}}
    client("dynamodb", moto).put_item(TableName=table, Item=item)
    with pytest.raises(CorruptFileError, match="path"):
        entries.latest("odd")


def test_a_service_that_is_not_there_is_an_unknown_outcome(moto: str):
    options = {**KEYS, "region": "us-east-1"}
    url = f"dynamodb://t?endpoint=http://127.0.0.1:{free_port()}"
    store = DynamoManifestStore(url, options)
    with pytest.raises(StorageError) as caught:
        store.put_if_not_exists("t", entry(1))
    assert caught.value.outcome == "unknown"
    assert "TOPSECRET" not in f"{caught.value} {caught.value.__cause__} {store!r}"


@pytest.mark.parametrize("url", ["dynamodb://", "dynamodb://a/b"])
def test_what_names_no_table_is_refused(url: str, moto: str):
    with pytest.raises(InvalidInputError):
        DynamoManifestStore(url)
