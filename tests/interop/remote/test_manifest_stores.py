"""Commits through each real manifest store: crashes, outages, races, portable copies."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import RetryableCommitConflictError, TooMuchWriteContentionError
from lance_nb.transactions.external.base import ExternalManifestStore
from lance_nb.transactions.external.registry import open_external, open_root
from tests.conformance.external_commit_tests import ExternalCommitTests
from tests.support.fault_proxy import fault_proxy
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop

KINDS = ("sqlite", "redis", "postgresql", "dynamodb")
WRITERS = 8
APPENDS = 3


@pytest.fixture
def url(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """Return the URL of an empty manifest store; skips when its server is missing."""
    match kind:
        case "sqlite":
            return f"sqlite:///{tmp_path}/manifests.db"
        case "redis":
            return f"redis://127.0.0.1:{request.getfixturevalue('redis_port')}/0"
        case "postgresql":
            port = request.getfixturevalue("postgres_port")
            return f"postgresql://postgres@127.0.0.1:{port}/postgres"
    endpoint, table = request.getfixturevalue("moto"), request.getfixturevalue("table")
    return f"dynamodb://{table}?endpoint={endpoint}&region=us-east-1"


CREDENTIALS = {"aws_access_key_id": "test", "aws_secret_access_key": "testtest"}


@pytest.mark.parametrize("kind", KINDS)
class TestCommits(ExternalCommitTests):
    @pytest.fixture
    def entries(self, url: str) -> ExternalManifestStore:
        return open_external(url, CREDENTIALS)


@pytest.mark.parametrize("kind", KINDS)
def test_8_writers_append_and_nothing_is_lost_or_doubled(url: str, tmp_path: Path):
    lance = require_pylance()
    place = str(tmp_path / "t.lance")
    options = {**CREDENTIALS, "manifest_store": url}
    lance_nb.write_dataset(pa.table({"x": [-1]}), place, storage_options=options)
    problems: list[BaseException] = []
    barrier = threading.Barrier(WRITERS)

    def write(number: int) -> None:
        barrier.wait()
        try:
            for step in range(APPENDS):
                rows = pa.table({"x": [number * APPENDS + step]})
                _append(rows, place, options)
        except BaseException as error:
            problems.append(error)
            raise

    threads = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    expected = list(range(-1, WRITERS * APPENDS))
    found = lance_nb.dataset(place, storage_options=options)
    assert sorted(found.to_table()["x"].to_pylist()) == expected
    assert found.version == WRITERS * APPENDS + 1
    copy = str(tmp_path / "copy.lance")
    shutil.copytree(place, copy)
    judge = lance.dataset(copy)
    judge.validate()
    assert sorted(judge.to_table()["x"].to_pylist()) == expected
    root = open_root(place, options)
    slots = root.manifest_slots()
    newest = slots.entries.latest(slots.base_uri)
    assert newest is not None
    assert (newest.version, newest.is_staged) == (found.version, False)
    assert not [name for name in root.list_names("_versions") if ".manifest-" in name]


# What the driver sends for the second step of a commit, and for the last.
REQUESTS = {
    "redis": (b"HSETNX", b"HEXISTS"),
    "postgresql": (b"INSERT INTO lance_manifests", b"UPDATE lance_manifests"),
}


@pytest.mark.parametrize("fault", ["before", "lost"])
@pytest.mark.parametrize("step", [0, 1], ids=["commit entry", "final entry"])
@pytest.mark.parametrize("kind", REQUESTS)
def test_a_broken_connection_commits_once(
    kind: str, url: str, step: int, fault: str, tmp_path: Path
):
    parts = urlsplit(url)
    place = str(tmp_path / "t.lance")
    plain = {"manifest_store": url}
    lance_nb.write_dataset(pa.table({"x": [0]}), place, storage_options=plain)
    with fault_proxy(str(parts.hostname), int(parts.port or 0)) as proxy:
        proxied = {"manifest_store": url.replace(f":{parts.port}", f":{proxy.port}")}
        armed = proxy.arm(REQUESTS[kind][step], fault)
        made = lance_nb.write_dataset(
            pa.table({"x": [1]}), place, mode="append", storage_options=proxied
        )
        assert armed.hits == 1
    assert made.version == 2
    found = lance_nb.dataset(place, storage_options=plain)
    assert found.to_table()["x"].to_pylist() == [0, 1]
    assert [one["version"] for one in lance_nb.dataset(place).versions()] == [1, 2]


def _append(rows: pa.Table, place: str, options: dict[str, str]) -> None:
    """Append until it lands: 8 writers on one table may run out of retries."""
    while True:
        try:
            lance_nb.write_dataset(rows, place, mode="append", storage_options=options)
        except (RetryableCommitConflictError, TooMuchWriteContentionError):
            continue
        return
