"""``s3+ddb://`` tables of pylance and ours are the same: in turn, together, after crashes."""

from __future__ import annotations

import threading
import uuid
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import RetryableCommitConflictError, TooMuchWriteContentionError
from lance_nb.storage.registry import open_store
from lance_nb.transactions.external.opening import open_root
from tests.interop.remote.conftest import S3Place, client
from tests.support.fault_proxy import fault_proxy
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop


@dataclass(frozen=True)
class Shared:
    """One table, written by both."""

    s3: S3Place
    table: str
    lance: Any

    @property
    def uri(self) -> str:
        return f"s3+ddb://{self.s3.bucket}/some dir/t.lance?ddbTableName={self.table}"

    @property
    def options(self) -> dict[str, str]:
        return self.s3.pylance_options

    def ours(self, *values: int, mode: str = "append", options: Any = None) -> None:
        """Write rows with lance_nb, until they land."""
        rows = pa.table({"x": list(values)})
        while True:
            try:
                lance_nb.write_dataset(
                    rows, self.uri, mode=mode, storage_options=options or self.options
                )
            except (RetryableCommitConflictError, TooMuchWriteContentionError):
                continue
            return

    def theirs(self, *values: int, mode: str = "append") -> None:
        """Write rows with pylance."""
        rows = pa.table({"x": list(values)})
        self.lance.write_dataset(rows, self.uri, mode=mode, storage_options=self.options)

    def check(self, expected: list[int]) -> None:
        """Check that both read the rows, and that every entry and manifest is finished."""
        judge = self.lance.dataset(self.uri, storage_options=self.options)
        found = lance_nb.dataset(self.uri, storage_options=self.options)
        assert sorted(judge.to_table()["x"].to_pylist()) == sorted(expected)
        assert sorted(found.to_table()["x"].to_pylist()) == sorted(expected)
        assert judge.version == found.version
        service = client("dynamodb", self.s3.endpoint)
        items = service.scan(TableName=self.table, ConsistentRead=True)["Items"]
        versions = sorted(int(item["version"]["N"]) for item in items)
        assert versions == list(range(1, found.version + 1))
        assert {item["base_uri"]["S"] for item in items} == {"some dir/t.lance"}
        assert all(item["path"]["S"].endswith(".manifest") for item in items)
        names = open_store(f"s3://{self.s3.bucket}/some dir/t.lance", self.s3.options).list_names(
            "_versions"
        )
        assert not [name for name in names if ".manifest-" in name]


@pytest.fixture
def shared(s3: S3Place, table: str) -> Shared:
    return Shared(s3, table, require_pylance())


def test_both_commit_in_turn(shared: Shared):
    shared.theirs(0, mode="create")
    for value in range(1, 5):
        (shared.ours if value % 2 else shared.theirs)(value)
    shared.check(list(range(5)))


def test_pylance_goes_on_with_a_table_that_we_created(shared: Shared):
    shared.ours(0, mode="create")
    shared.theirs(1)
    dataset = lance_nb.dataset(shared.uri, storage_options=shared.options)
    assert (dataset.uri, dataset.name) == (shared.uri, "t.lance")
    dataset.delete("x = 0")
    judge = shared.lance.dataset(shared.uri, storage_options=shared.options)
    judge.validate()
    judge.delete("x = 7")
    shared.theirs(2)
    shared.check([1, 2])


def test_both_commit_at_the_same_time(shared: Shared):
    shared.theirs(-1, mode="create")
    problems: list[BaseException] = []

    def write(number: int) -> None:
        act = shared.ours if number % 2 else shared.theirs
        try:
            for step in range(4):
                act(number * 4 + step)
        except BaseException as error:
            problems.append(error)
            raise

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    shared.check(list(range(-1, 16)))


def stage_again(shared: Shared) -> None:
    """Put the newest version back to where it was after the second step of its commit."""
    slots = open_root(shared.uri, shared.options).manifest_slots()
    newest = slots.entries.latest(slots.base_uri)
    assert newest is not None
    staged = f"{newest.object_path}-{uuid.uuid4()}"
    slots.home.write(staged, slots.home.read(newest.object_path))
    slots.home.delete(newest.object_path)
    client("dynamodb", shared.s3.endpoint).update_item(
        TableName=shared.table,
        Key={"base_uri": {"S": slots.base_uri}, "version": {"N": str(newest.version)}},
        UpdateExpression="SET #path = :path",
        ExpressionAttributeNames={"#path": "path"},
        ExpressionAttributeValues={":path": {"S": f"{slots.base_uri}/{staged}"}},
    )


def test_we_finish_the_commit_of_a_pylance_that_crashed(shared: Shared):
    shared.theirs(0, mode="create")
    shared.theirs(1)
    stage_again(shared)
    plain = f"s3://{shared.s3.bucket}/some dir/t.lance"
    assert lance_nb.dataset(plain, storage_options=shared.s3.options).version == 1
    assert lance_nb.dataset(shared.uri, storage_options=shared.options).version == 2
    assert lance_nb.dataset(plain, storage_options=shared.s3.options).version == 2
    shared.check([0, 1])


def test_pylance_finishes_our_commit_when_we_crash(shared: Shared):
    shared.theirs(0, mode="create")
    shared.ours(1)
    stage_again(shared)
    shared.theirs(2)
    shared.check([0, 1, 2])


def test_a_branch_is_a_table_of_its_own_in_both(shared: Shared):
    shared.theirs(0, mode="create")
    judge = shared.lance.dataset(shared.uri, storage_options=shared.options)
    branch = judge.create_branch("team/b")
    branch.insert(pa.table({"x": [1]}))
    found = lance_nb.dataset(shared.uri, ("team/b", None), storage_options=shared.options)
    found.insert(pa.table({"x": [2]}))
    again = judge.checkout_version(("team/b", None))
    assert sorted(again.to_table()["x"].to_pylist()) == [0, 1, 2]
    items = client("dynamodb", shared.s3.endpoint).scan(TableName=shared.table)["Items"]
    bases = {item["base_uri"]["S"] for item in items}
    assert bases == {"some dir/t.lance", "some dir/t.lance/tree/team/b"}


@pytest.mark.parametrize("kind", ["before", "lost"])
@pytest.mark.parametrize(
    "request_of",
    [rb"PutItem[\s\S]*attribute_not_exists", rb"PutItem[\s\S]*attribute_exists",
     rb"PUT \S+\.manifest-", rb"PUT \S+\.manifest "],
    ids=["commit entry", "final entry", "staged manifest", "final manifest"],
)  # fmt: skip
def test_a_broken_connection_commits_once(shared: Shared, request_of: bytes, kind: str):
    shared.ours(0, mode="create")
    place = urlsplit(shared.s3.endpoint)
    with fault_proxy(str(place.hostname), int(place.port or 0)) as proxy:
        options = shared.s3.through(proxy).pylance_options
        fault = proxy.arm(request_of, kind)
        shared.ours(1, options=options)
        assert fault.hits == 1
    shared.check([0, 1])
