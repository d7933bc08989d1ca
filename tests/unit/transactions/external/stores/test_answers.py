"""What the drivers of manifest stores are asked, and what their answers mean; without servers."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from lance_nb.errors import (
    CorruptFileError,
    InvalidInputError,
    NotSupportedError,
    ObjectExistsError,
    ObjectNotFoundError,
    StorageError,
)
from lance_nb.format.layout import DETACHED_BIT
from lance_nb.transactions.external.base import CREATE, ManifestEntry
from lance_nb.transactions.external.stores import dynamodb
from lance_nb.transactions.external.stores.dynamodb import DynamoManifestStore
from lance_nb.transactions.external.stores.postgres import PostgresManifestStore
from lance_nb.transactions.external.stores.redis import RedisManifestStore
from tests.support.requirements import require_package

ENTRY = ManifestEntry(3, "t/_versions/3.manifest", 7, '"tag"')
BARE = ManifestEntry(4, "t/_versions/4.manifest")
SECRET = "TOPSECRET-canary"


class Driver:
    """A client that records what it is asked and gives what a test says."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.asked: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    def __getattr__(self, method: str) -> Callable[..., Any]:
        def call(*positional: Any, **named: Any) -> Any:
            self.asked.append((method, positional, named))
            answer = self.answers[method]
            if isinstance(answer, list):
                answer = answer.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        return call


# --- Redis ----------------------------------------------------------------------------------------


def redis_store(**answers: Any) -> tuple[RedisManifestStore, Driver]:
    require_package("redis")
    store = RedisManifestStore(f"redis://:{SECRET}@127.0.0.1:1/0")
    store._client = driver = Driver(**answers)
    return store, driver


VALUE = json.dumps({"path": ENTRY.path, "committer": "lancedb", "size": 7, "e_tag": '"tag"'})


def test_redis_keeps_the_entries_of_a_dataset_in_one_hash() -> None:
    store, driver = redis_store(hget=[VALUE, None], eval=[["3", VALUE], None, 1, 1], delete=1)
    assert store.get("a/b", 3) == ENTRY
    assert store.get("a/b", 4) is None
    assert store.latest("a/b") == ENTRY
    assert store.latest("a/b") is None
    store.put_if_not_exists("a/b", ENTRY)
    store.put_if_exists("a/b", BARE)
    store.forget("a/b")
    key = "lance:manifests:{a/b}"
    assert driver.asked[0] == ("hget", (key, "3"), {})
    assert [asked[1][1:3] for asked in driver.asked[2:6]] == [(1, key)] * 4
    assert [asked[1][3] for asked in driver.asked[4:6]] == ["3", "4"]
    written = [json.loads(asked[1][4]) for asked in driver.asked[4:6]]
    assert written == [
        {"path": ENTRY.path, "committer": "lancedb", "size": 7, "e_tag": '"tag"'},
        {"path": BARE.path, "committer": "lancedb", "size": None, "e_tag": None},
    ]
    assert driver.asked[6] == ("delete", (key,), {})


def test_redis_decodes_answers_and_waits_a_bounded_time() -> None:
    require_package("redis")
    options = RedisManifestStore("redis://127.0.0.1:1/0")._client.get_connection_kwargs()
    assert options["decode_responses"] is True
    assert 0 < options["socket_timeout"] == options["socket_connect_timeout"] <= 60


def test_redis_scripts_say_whether_they_did_it() -> None:
    store, _ = redis_store(eval=0)
    with pytest.raises(ObjectExistsError):
        store.put_if_not_exists("a", ENTRY)
    with pytest.raises(ObjectNotFoundError):
        store.put_if_exists("a", ENTRY)


@pytest.mark.parametrize("value", ["no json", "3", '{"path": "x"}', "[]"])
def test_redis_values_of_somebody_else_are_damage(value: str) -> None:
    store, _ = redis_store(hget=value)
    with pytest.raises(CorruptFileError, match="a path, a size and a tag"):
        store.get("a", 3)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [("ResponseError", "failed"), ("AuthenticationError", "failed"), ("TimeoutError", "unknown"),
     ("ConnectionError", "unknown"), ("RedisError", "unknown"), (None, "unknown")],
)  # fmt: skip
def test_what_redis_refused_is_certain_and_the_rest_is_not(error: str | None, outcome: str) -> None:
    errors = require_package("redis").exceptions
    problem = OSError(SECRET) if error is None else getattr(errors, error)(f"no: {SECRET}")
    store, _ = redis_store(eval=problem)
    with pytest.raises(StorageError) as caught:
        store.put_if_not_exists("a", ENTRY)
    assert caught.value.outcome == outcome
    assert SECRET not in f"{caught.value} {store!r}"


# --- PostgreSQL -----------------------------------------------------------------------------------


class Connection:
    """A connection that answers statements by their first word."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.statements: list[str] = []
        self.is_closed = False

    def execute(self, statement: str, parameters: tuple[Any, ...] = ()) -> Any:
        self.statements.append(statement)
        word = "EXISTS" if "to_regclass" in statement else statement.split(maxsplit=1)[0]
        answer = self.answers.get(word)
        if isinstance(answer, list):
            answer = answer.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return SimpleNamespace(rowcount=answer, fetchone=lambda: answer)

    def close(self) -> None:
        self.is_closed = True


def postgres_store(
    monkeypatch: pytest.MonkeyPatch, **answers: Any
) -> tuple[PostgresManifestStore, list[Connection]]:
    psycopg = require_package("psycopg")
    made: list[Connection] = []

    def connect(url: str, **options: Any) -> Connection:
        assert options["autocommit"] is True
        if isinstance(answers.get("connect"), Exception):
            raise answers["connect"]
        made.append(Connection(**answers))
        return made[-1]

    monkeypatch.setattr(psycopg, "connect", connect)
    return PostgresManifestStore(f"postgresql://u:{SECRET}@h/db"), made


def test_postgres_makes_its_table_once(monkeypatch: pytest.MonkeyPatch) -> None:
    row = (3, ENTRY.path, 7, '"tag"')
    store, made = postgres_store(monkeypatch, EXISTS=[(False,)], SELECT=[row, None], INSERT=1)
    assert store.get("a", 3) == ENTRY
    assert store.latest("a") is None
    store.put_if_not_exists("a", ENTRY)
    assert [CREATE in one.statements for one in made] == [True, False, False]
    assert all(one.is_closed for one in made)
    assert made[2].statements[-1].count("%s") == 6
    assert all("synchronous_commit" in one.statements[0] for one in made)


def test_postgres_uses_a_table_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    store, made = postgres_store(monkeypatch, EXISTS=[(True,)], UPDATE=1, DELETE=0)
    store.put_if_exists("a", ENTRY)
    store.forget("a")
    assert not any(CREATE in one.statements for one in made)


@pytest.mark.parametrize("error", ["UniqueViolation", "DuplicateTable", "DuplicateObject"])
@pytest.mark.parametrize("late", [1, 2, 3])
def test_postgres_looks_again_when_another_makes_the_table(
    monkeypatch: pytest.MonkeyPatch, error: str, late: int
) -> None:
    problem = getattr(require_package("psycopg").errors, error)("there already")
    store, made = postgres_store(
        monkeypatch, EXISTS=[(False,)] * late + [(True,)], CREATE=[problem] * late, INSERT=1
    )
    if late < 3:
        store.put_if_not_exists("a", ENTRY)
        return
    with pytest.raises(StorageError) as caught:
        store.put_if_not_exists("a", ENTRY)
    assert caught.value.outcome == "failed"
    assert made[0].statements.count(CREATE) == 3


@pytest.mark.parametrize(
    ("code", "outcome"),
    [("22001", "failed"), ("23505", "failed"), ("25006", "failed"), ("28000", "failed"),
     ("42501", "failed"), ("53100", "failed"), ("57P01", "unknown"), ("08006", "unknown"),
     ("", "unknown"), (None, "unknown")],
)  # fmt: skip
def test_what_postgres_refused_is_certain_and_the_rest_is_not(
    monkeypatch: pytest.MonkeyPatch, code: str | None, outcome: str
) -> None:
    problem = require_package("psycopg").Error(f"no: {SECRET}")
    problem.sqlstate = code
    store, made = postgres_store(monkeypatch, EXISTS=[(True,)], INSERT=problem)
    with pytest.raises(StorageError) as caught:
        store.put_if_not_exists("a", ENTRY)
    assert caught.value.outcome == outcome
    assert SECRET not in f"{caught.value} {store!r} {store.place}"
    assert made[0].is_closed


def test_no_connection_is_a_certain_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = require_package("psycopg").OperationalError(f"no: {SECRET}")
    store, _ = postgres_store(monkeypatch, connect=problem)
    with pytest.raises(StorageError) as caught:
        store.latest("a")
    assert caught.value.outcome == "failed"
    assert SECRET not in str(caught.value)


# --- DynamoDB -------------------------------------------------------------------------------------

KEYS = {"aws_access_key_id": "test", "aws_secret_access_key": SECRET, "aws_region": "us-east-1"}
TABLE = {"Table": {"KeySchema": [{"AttributeName": "base_uri", "KeyType": "HASH"},
                                 {"AttributeName": "version", "KeyType": "RANGE"}]}}  # fmt: skip
ITEM = {
    "base_uri": {"S": "a"}, "version": {"N": "3"}, "path": {"S": ENTRY.path},
    "committer": {"S": "lancedb"}, "size": {"N": "7"}, "e_tag": {"S": '"tag"'},
}  # fmt: skip
BARE_ITEM = {
    "base_uri": {"S": "a"}, "version": {"N": "4"}, "path": {"S": BARE.path},
    "committer": {"S": "lancedb"},
}  # fmt: skip


def dynamo_store(**answers: Any) -> tuple[DynamoManifestStore, Driver]:
    require_package("boto3")
    store = DynamoManifestStore("dynamodb://manifests", KEYS)
    store._client = driver = Driver(**({"describe_table": TABLE} | answers))
    return store, driver


def test_dynamodb_keeps_an_item_per_version() -> None:
    store, driver = dynamo_store(
        get_item=[{"Item": ITEM}, {}],
        query=[{"Items": [BARE_ITEM]}, {"Items": []}, {"Items": [ITEM, BARE_ITEM]}, {"Items": []}],
        put_item={},
        delete_item={},
    )
    assert store.get("a", 3) == ENTRY
    assert store.get("a", 4) is None
    assert store.latest("a") == BARE
    assert store.latest("a") is None
    store.put_if_not_exists("a", ENTRY)
    store.put_if_exists("a", BARE)
    store.forget("a")

    def of(method: str) -> list[dict[str, Any]]:
        return [named for name, _, named in driver.asked if name == method]

    key = {"base_uri": {"S": "a"}, "version": {"N": "3"}}
    assert of("get_item")[0] == {"TableName": "manifests", "Key": key, "ConsistentRead": True}
    assert [(one["Limit"], one["ScanIndexForward"]) for one in of("query")[:2]] == [(1, False)] * 2
    assert all(one["ConsistentRead"] for one in of("query"))
    values = of("query")[0]["ExpressionAttributeValues"]
    assert values == {":base_uri": {"S": "a"}, ":detached": {"N": str(DETACHED_BIT)}}
    assert [one["Item"] for one in of("put_item")] == [ITEM, BARE_ITEM]
    assert [one["ConditionExpression"] for one in of("put_item")] == [
        "attribute_not_exists(base_uri) AND attribute_not_exists(version)",
        "attribute_exists(base_uri) AND attribute_exists(version)",
    ]
    assert [one["Key"]["version"]["N"] for one in of("delete_item")] == ["3", "4"]
    assert len(of("describe_table")) == 1


def client_error(code: str, status: int | None, retries: int = 0) -> Exception:
    meta = {"RetryAttempts": retries} | ({} if status is None else {"HTTPStatusCode": status})
    answer = {"Error": {"Code": code, "Message": SECRET}, "ResponseMetadata": meta}
    made: Exception = require_package("botocore").exceptions.ClientError(answer, "PutItem")
    return made


def test_a_condition_that_did_not_hold_is_an_answer() -> None:
    store, _ = dynamo_store(put_item=client_error("ConditionalCheckFailedException", 400, 2))
    with pytest.raises(ObjectExistsError):
        store.put_if_not_exists("a", ENTRY)
    with pytest.raises(ObjectNotFoundError):
        store.put_if_exists("a", ENTRY)


@pytest.mark.parametrize(
    ("status", "retries", "outcome"),
    [(400, 0, "failed"), (403, 0, "failed"), (499, 0, "failed"), (400, 1, "unknown"),
     (500, 0, "unknown"), (503, 2, "unknown"), (None, 0, "unknown"), (399, 0, "unknown")],
)  # fmt: skip
def test_what_dynamodb_refused_at_once_is_certain_and_the_rest_is_not(
    status: int | None, retries: int, outcome: str
) -> None:
    store, _ = dynamo_store(put_item=client_error("Whatever", status, retries))
    with pytest.raises(StorageError) as caught:
        store.put_if_not_exists("a", ENTRY)
    assert caught.value.outcome == outcome
    assert SECRET not in f"{caught.value} {store!r}"
    assert "***" in str(caught.value)


def test_no_answer_of_dynamodb_is_an_unknown_outcome() -> None:
    errors = require_package("botocore").exceptions
    store, _ = dynamo_store(put_item=errors.EndpointConnectionError(endpoint_url="http://x"))
    with pytest.raises(StorageError) as caught:
        store.put_if_not_exists("a", ENTRY)
    assert caught.value.outcome == "unknown"


@pytest.mark.parametrize("gone", ["version", "path"])
def test_items_of_somebody_else_are_damage(gone: str) -> None:
    item = {name: value for name, value in ITEM.items() if name != gone}
    store, _ = dynamo_store(get_item={"Item": item})
    with pytest.raises(CorruptFileError, match="version, path and size"):
        store.get("a", 3)
    store, _ = dynamo_store(get_item={"Item": ITEM | {"size": {"N": "many"}}})
    with pytest.raises(CorruptFileError, match="many"):
        store.get("a", 3)


def test_a_table_of_other_keys_is_refused_before_it_is_asked() -> None:
    other = {"Table": {"KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}]}}
    store, driver = dynamo_store(describe_table=other)
    with pytest.raises(InvalidInputError, match="'base_uri'"):
        store.latest("a")
    assert [name for name, _, _ in driver.asked] == ["describe_table"]


@pytest.mark.parametrize("url", ["dynamodb://", "dynamodb:///", "dynamodb://a/b"])
def test_what_names_no_table_is_refused(url: str) -> None:
    require_package("boto3")
    with pytest.raises(InvalidInputError, match="is not dynamodb://TABLE"):
        DynamoManifestStore(url, KEYS)


def test_options_and_the_url_say_where_the_service_is(monkeypatch: pytest.MonkeyPatch) -> None:
    boto3 = require_package("boto3")
    made: list[tuple[str, dict[str, Any]]] = []

    def client(_self: Any, service: str, config: Any, **arguments: Any) -> object:
        assert config.read_timeout == 10
        made.append((service, arguments))
        return object()

    monkeypatch.setattr(boto3.session.Session, "client", client)
    monkeypatch.setattr(dynamodb, "_clients", {})
    first = DynamoManifestStore("dynamodb://t%20x?region=eu&endpoint=http://e", KEYS)
    again = DynamoManifestStore("dynamodb://other?region=eu&endpoint=http://e", KEYS)
    DynamoManifestStore("dynamodb://t", KEYS | {"dynamodb_endpoint": "http://f"})
    DynamoManifestStore("dynamodb://t", {"aws_session_token": "s", "region": "r"})
    assert first._client is again._client
    assert (first._table, first.place) == ("t x", "dynamodb://t%20x?region=eu&endpoint=http://e")
    keys = {"aws_access_key_id": "test", "aws_secret_access_key": SECRET}
    assert made == [
        ("dynamodb", keys | {"region_name": "eu", "endpoint_url": "http://e"}),
        ("dynamodb", keys | {"region_name": "us-east-1", "endpoint_url": "http://f"}),
        ("dynamodb", {"aws_session_token": "s", "region_name": "r"}),
    ]


def test_stores_are_not_pickled(monkeypatch: pytest.MonkeyPatch) -> None:
    for store in (redis_store()[0], postgres_store(monkeypatch)[0], dynamo_store()[0]):
        with pytest.raises(NotSupportedError, match="open it by its URL"):
            pickle.dumps(store)
