"""``s3+ddb://`` tables of pylance and ours are the same: in turn, together, after crashes."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from urllib.parse import urlsplit

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.transactions.external.registry import open_root
from tests.interop.remote.conftest import S3Place, client
from tests.interop.remote.shared_table import PATH, Shared
from tests.support.fault_proxy import fault_proxy
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop


@pytest.fixture
def shared(s3: S3Place, table: str) -> Shared:
    uri = f"s3+ddb://{s3.bucket}/{PATH}?ddbTableName={table}"
    return Shared(s3, uri, require_pylance())


@pytest.fixture
def check(shared: Shared, table: str) -> Callable[[list[int]], None]:
    """Check the rows, and that every version has a finished entry."""

    def check_both(expected: list[int]) -> None:
        shared.check(expected)
        service = client("dynamodb", shared.s3.endpoint)
        items = service.scan(TableName=table, ConsistentRead=True)["Items"]
        versions = sorted(int(item["version"]["N"]) for item in items)
        found = lance_nb.dataset(shared.uri, storage_options=shared.options)
        assert versions == list(range(1, found.version + 1))
        assert {item["base_uri"]["S"] for item in items} == {PATH}
        assert all(item["path"]["S"].endswith(".manifest") for item in items)

    return check_both


def test_both_commit_in_turn(shared: Shared, check):
    shared.theirs(0, mode="create")
    for value in range(1, 5):
        (shared.ours if value % 2 else shared.theirs)(value)
    check(list(range(5)))


def test_pylance_goes_on_with_a_table_that_we_created(shared: Shared, check):
    shared.ours(0, mode="create")
    shared.theirs(1)
    dataset = lance_nb.dataset(shared.uri, storage_options=shared.options)
    assert (dataset.uri, dataset.name) == (shared.uri, "t.lance")
    dataset.delete("x = 0")
    judge = shared.lance.dataset(shared.uri, storage_options=shared.options)
    judge.validate()
    judge.delete("x = 7")
    shared.theirs(2)
    check([1, 2])


def test_both_commit_at_the_same_time(shared: Shared, check):
    shared.theirs(-1, mode="create")
    check([-1, *shared.together(writers=4, appends=4)])


def stage_again(shared: Shared, table: str) -> None:
    """Put the newest version back to where it was after the second step of its commit."""
    slots = open_root(shared.uri, shared.options).manifest_slots()
    newest = slots.entries.latest(slots.base_uri)
    assert newest is not None
    staged = f"{newest.object_path}-{uuid.uuid4()}"
    slots.home.write(staged, slots.home.read(newest.object_path))
    slots.home.delete(newest.object_path)
    client("dynamodb", shared.s3.endpoint).update_item(
        TableName=table,
        Key={"base_uri": {"S": slots.base_uri}, "version": {"N": str(newest.version)}},
        UpdateExpression="SET #path = :path",
        ExpressionAttributeNames={"#path": "path"},
        ExpressionAttributeValues={":path": {"S": f"{slots.base_uri}/{staged}"}},
    )


def test_we_finish_the_commit_of_a_pylance_that_crashed(shared: Shared, check, table: str):
    shared.theirs(0, mode="create")
    shared.theirs(1)
    stage_again(shared, table)
    plain = f"s3://{shared.s3.bucket}/{PATH}"
    assert lance_nb.dataset(plain, storage_options=shared.s3.options).version == 1
    assert lance_nb.dataset(shared.uri, storage_options=shared.options).version == 2
    assert lance_nb.dataset(plain, storage_options=shared.s3.options).version == 2
    check([0, 1])


def test_pylance_finishes_our_commit_when_we_crash(shared: Shared, check, table: str):
    shared.theirs(0, mode="create")
    shared.ours(1)
    stage_again(shared, table)
    shared.theirs(2)
    check([0, 1, 2])


def test_a_branch_is_a_table_of_its_own_in_both(shared: Shared, table: str):
    shared.theirs(0, mode="create")
    judge = shared.lance.dataset(shared.uri, storage_options=shared.options)
    branch = judge.create_branch("team/b")
    branch.insert(pa.table({"x": [1]}))
    found = lance_nb.dataset(shared.uri, ("team/b", None), storage_options=shared.options)
    found.insert(pa.table({"x": [2]}))
    again = judge.checkout_version(("team/b", None))
    assert sorted(again.to_table()["x"].to_pylist()) == [0, 1, 2]
    items = client("dynamodb", shared.s3.endpoint).scan(TableName=table)["Items"]
    bases = {item["base_uri"]["S"] for item in items}
    assert bases == {PATH, f"{PATH}/tree/team/b"}


@pytest.mark.parametrize("kind", ["before", "lost"])
@pytest.mark.parametrize(
    "request_of",
    [rb"PutItem[\s\S]*attribute_not_exists", rb"PutItem[\s\S]*attribute_exists",
     rb"PUT \S+\.manifest-", rb"PUT \S+\.manifest "],
    ids=["commit entry", "final entry", "staged manifest", "final manifest"],
)  # fmt: skip
def test_a_broken_connection_commits_once(shared: Shared, check, request_of: bytes, kind: str):
    shared.ours(0, mode="create")
    place = urlsplit(shared.s3.endpoint)
    with fault_proxy(str(place.hostname), int(place.port or 0)) as proxy:
        options = shared.s3.through(proxy).pylance_options
        fault = proxy.arm(request_of, kind)
        shared.ours(1, options=options)
        assert fault.hits == 1
    check([0, 1])
