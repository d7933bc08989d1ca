"""Conditional puts: requests, what errors mean, the probe, and commits to Cloud Storage and Azure.

For the commits a fake driver keeps objects in memory and knows what gcsfs and adlfs know:
``pipe_file`` with ``mode="create"`` refuses an object that exists. Each of the three outcomes is
produced, and the probe meets a server that ignores the condition.
"""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import lance_nb
from lance_nb.errors import (
    CommitStateUnknownError,
    NotSupportedError,
    ObjectExistsError,
    StorageError,
)
from lance_nb.storage import conditional_put
from lance_nb.storage.conditional_put import (
    CONDITIONAL_PUTS,
    RACERS,
    AzurePut,
    GcsPut,
    Outcome,
    ProbeFolder,
    S3Put,
    bucket_of,
    causes,
    find_fault,
    outcome_by_class,
    outcome_by_status,
    require_exclusive,
)
from lance_nb.storage.memory import MemoryStore, clear
from lance_nb.storage.registry import STORES
from lance_nb.transactions import version_slots
from tests.support.fake_driver import FakeDriver


@pytest.mark.parametrize("scheme", ["s3", "s3a", "gs", "gcs", "az", "abfs", "abfss"])
def test_object_stores_have_a_conditional_put(scheme: str):
    assert CONDITIONAL_PUTS.get(scheme) is not None
    assert scheme in STORES


def test_web_servers_and_unknown_schemes_have_none():
    assert CONDITIONAL_PUTS.get("https") is None
    assert CONDITIONAL_PUTS.get("sftp") is None
    assert set(CONDITIONAL_PUTS) < set(STORES)


class ClientError(Exception):
    """What botocore raises."""

    def __init__(self, code: str, status: int, retries: int = 0) -> None:
        super().__init__(code)
        meta = {"HTTPStatusCode": status, "RetryAttempts": retries}
        self.response: dict[str, Any] = {"Error": {"Code": code}, "ResponseMetadata": meta}


def answered(error: Exception, as_class: type[OSError], *args: Any) -> OSError:
    """Hide the server's answer behind an error of the driver, as s3fs does."""
    shown = as_class(*args)
    shown.__cause__ = error
    return shown


def test_an_s3_object_is_one_conditional_put_whatever_its_size():
    driver = FakeDriver()
    S3Put().put(driver, "bucket/x", b"1")
    assert driver.calls == [("bucket/x", b"1", {"mode": "create", "chunksize": 5 << 30})]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (answered(ClientError("PreconditionFailed", 412), FileExistsError, "x"), Outcome.EXISTS),
        (
            answered(ClientError("PreconditionFailed", 412), OSError, errno.EINVAL, "x"),
            Outcome.EXISTS,
        ),
        (OSError(errno.EINVAL, "At least one of the pre-conditions failed"), Outcome.EXISTS),
        (OSError(errno.EINVAL, "invalid argument"), Outcome.UNKNOWN),
        (answered(ClientError("412", 412), OSError, errno.EINVAL, "x"), Outcome.EXISTS),
        (answered(ClientError("ConditionalRequestConflict", 409), OSError, "x"), Outcome.BUSY),
        (answered(ClientError("AccessDenied", 403), PermissionError, "x"), Outcome.FAILED),
        (answered(ClientError("AccessDenied", 403, 1), PermissionError, "x"), Outcome.UNKNOWN),
        (answered(ClientError("NoSuchBucket", 404), FileNotFoundError, "x"), Outcome.FAILED),
        (answered(ClientError("NotImplemented", 501), OSError, errno.ENOSYS, "x"), Outcome.FAILED),
        (answered(ClientError("InternalError", 500), OSError, errno.EIO, "x"), Outcome.UNKNOWN),
        (answered(ClientError("SlowDown", 503), OSError, errno.EBUSY, "x"), Outcome.UNKNOWN),
        (ConnectionResetError("closed"), Outcome.UNKNOWN),
    ],
)
def test_outcomes_of_s3(error: Exception, expected: Outcome):
    assert S3Put().outcome(error) is expected


def test_places_of_s3_are_endpoint_and_bucket():
    driver = FakeDriver()
    assert S3Put().place(driver, "one/x") != S3Put().place(driver, "two/x")
    driver.endpoint_url = "http://a"
    other = FakeDriver()
    other.client_kwargs = {"endpoint_url": "http://a"}
    assert S3Put().place(driver, "one/x") == S3Put().place(other, "one/y/z")


class HttpError(Exception):
    """What gcsfs raises for statuses without a class of their own."""

    def __init__(self, code: int) -> None:
        super().__init__(f"status {code}")
        self.code = code


def test_a_gcs_object_is_one_conditional_upload_whatever_its_size():
    driver = FakeDriver()
    GcsPut().put(driver, "bucket/x", b"1")
    assert driver.calls == [("bucket/x", b"1", {"mode": "create", "chunksize": 5 << 30})]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (FileExistsError("b/x"), Outcome.EXISTS),
        (HttpError(412), Outcome.EXISTS),
        (OSError("Forbidden: b/x\nno permission"), Outcome.FAILED),
        (FileNotFoundError("b"), Outcome.FAILED),
        (HttpError(401), Outcome.FAILED),
        (HttpError(503), Outcome.UNKNOWN),
        (TimeoutError("t"), Outcome.UNKNOWN),
        (OSError("something"), Outcome.UNKNOWN),
    ],
)
def test_outcomes_of_gcs(error: Exception, expected: Outcome):
    assert GcsPut().outcome(error) is expected


def test_places_of_gcs_are_endpoint_and_bucket():
    driver = FakeDriver()
    driver._location = "https://storage.googleapis.com"
    assert GcsPut().place(driver, "one/x") == "gcs https://storage.googleapis.com one"


class ServiceError(Exception):
    """What azure-core raises."""

    def __init__(self, status: int, code: str = "") -> None:
        super().__init__(f"{status} {code}")
        self.status_code = status
        self.error_code = code


def test_a_blob_is_one_conditional_upload():
    driver = FakeDriver()
    AzurePut().put(driver, "container/x", b"1")
    assert driver.calls == [("container/x", b"1", {"mode": "create"})]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (FileExistsError("c/x"), Outcome.EXISTS),
        (ServiceError(409, "BlobAlreadyExists"), Outcome.EXISTS),
        (ServiceError(412, "ConditionNotMet"), Outcome.EXISTS),
        (ServiceError(412), Outcome.EXISTS),
        (ServiceError(403, "AuthorizationFailure"), Outcome.FAILED),
        (ServiceError(404, "ContainerNotFound"), Outcome.FAILED),
        (ServiceError(409, "LeaseIdMissing"), Outcome.UNKNOWN),
        (ServiceError(500), Outcome.UNKNOWN),
        (ConnectionError("c"), Outcome.UNKNOWN),
    ],
)
def test_outcomes_of_azure(error: Exception, expected: Outcome):
    assert AzurePut().outcome(error) is expected


def test_places_of_azure_are_account_and_container():
    driver = FakeDriver()
    driver.account_name = "acme"
    assert AzurePut().place(driver, "data/x") == "azure acme data"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (FileExistsError("x"), Outcome.EXISTS),
        (PermissionError("x"), Outcome.FAILED),
        (FileNotFoundError("no such bucket"), Outcome.FAILED),
        (TimeoutError("x"), Outcome.UNKNOWN),
        (ConnectionResetError("x"), Outcome.UNKNOWN),
        (RuntimeError("x"), Outcome.UNKNOWN),
    ],
)
def test_outcomes_by_class(error: Exception, expected: Outcome):
    assert outcome_by_class(error) is expected
    wrapped = RuntimeError("the driver's own")
    wrapped.__cause__ = error
    assert outcome_by_class(wrapped) is expected


@pytest.mark.parametrize(
    ("status", "expected"),
    [(412, Outcome.EXISTS), (403, Outcome.FAILED), (500, Outcome.UNKNOWN), (503, Outcome.UNKNOWN)],
)
def test_outcomes_by_status(status: int, expected: Outcome):
    assert outcome_by_status(status, RuntimeError("x")) is expected


def test_a_circle_of_causes_ends():
    one, two = RuntimeError("1"), RuntimeError("2")
    one.__cause__, two.__cause__ = two, one
    assert len(list(causes(one))) == 16


def test_the_bucket_of_a_path():
    assert bucket_of("bucket/a/b") == bucket_of("/bucket") == "bucket"


@pytest.fixture
def store():
    conditional_put._faults.clear()
    clear("probe")
    yield MemoryStore("probe")
    clear("probe")
    conditional_put._faults.clear()


def scratch(store: MemoryStore, create=None) -> ProbeFolder:
    return ProbeFolder(create or store.write_if_absent, store.read, store.delete, "_versions")


def test_a_store_that_creates_exclusively_passes_and_is_left_clean(store: MemoryStore):
    assert find_fault(scratch(store)) == ""
    assert store.list_recursive("") == []


def test_a_store_that_replaces_is_found_out(store: MemoryStore):
    assert "replaced an object" in find_fault(scratch(store, store.write))
    assert store.list_recursive("") == []


def test_a_store_that_looks_first_and_writes_then_is_found_out(store: MemoryStore):
    together = threading.Barrier(RACERS)

    def look_then_write(path: str, data: bytes) -> None:
        if store.exists(path):
            raise ObjectExistsError(path)
        if data.startswith(b"racer"):
            together.wait(10)
        store.write(path, data)

    assert f"{RACERS} of {RACERS}" in find_fault(scratch(store, look_then_write))


def test_a_store_whose_winner_is_not_what_is_kept_is_found_out(store: MemoryStore):
    def swapped(path: str, data: bytes) -> None:
        store.write_if_absent(path, b"something else")

    assert "not the one" in find_fault(scratch(store, swapped))


def test_a_store_that_refuses_and_replaces_is_found_out(store: MemoryStore):
    def late_replaces(path: str, data: bytes) -> None:
        if data.startswith(b"racer"):
            store.write_if_absent(path, data)
            return
        store.write(path, data)
        raise ObjectExistsError(path)

    assert "replaced an object" in find_fault(scratch(store, late_replaces))


def test_a_store_that_tells_no_racer_and_replaces_is_found_out(store: MemoryStore):
    def quiet(path: str, data: bytes) -> None:
        store.write(path, data)
        if data.startswith(b"racer"):
            raise ObjectExistsError(path)

    assert "replaced an object" in find_fault(scratch(store, quiet))
    assert store.list_recursive("") == []


def test_a_probe_asks_eleven_times(store: MemoryStore):
    asked = []

    def noted(request):
        def ask(*args):
            asked.append(request.__name__)
            return request(*args)

        return ask

    target = ProbeFolder(
        noted(store.write_if_absent), noted(store.read), noted(store.delete), "_versions"
    )
    assert find_fault(target) == ""
    assert sorted(asked) == ["delete", "read", *["write_if_absent"] * (RACERS + 1)]


def test_a_lost_reply_is_no_fault(store: MemoryStore):
    def lost(path: str, data: bytes) -> None:
        store.write_if_absent(path, data)
        raise ObjectExistsError(path)

    assert find_fault(scratch(store, lost)) == ""


def test_a_store_that_refuses_everything_is_found_out(store: MemoryStore):
    def refuse(path: str, data: bytes) -> None:
        raise ObjectExistsError(path)

    assert find_fault(scratch(store, refuse))


def test_the_answer_is_kept_and_names_the_way_out(store: MemoryStore):
    tries = []

    def replace(path: str, data: bytes) -> None:
        tries.append(path)
        store.write(path, data)

    for _ in range(2):
        with pytest.raises(NotSupportedError, match="manifest_store"):
            require_exclusive("bad place", scratch(store, replace))
    assert len(tries) == RACERS + 1  # one probe, although asked twice


def test_a_probe_that_could_not_be_made_is_made_again(store: MemoryStore):
    def down(path: str, data: bytes) -> None:
        raise StorageError(path, "no route", "unknown")

    with pytest.raises(StorageError):
        require_exclusive("place", scratch(store, down))
    require_exclusive("place", scratch(store))


def test_threads_that_begin_together_share_one_probe(store: MemoryStore):
    made = []

    def create(path: str, data: bytes) -> None:
        made.append(path)
        store.write_if_absent(path, data)

    wanted = [
        threading.Thread(target=require_exclusive, args=("place", scratch(store, create)))
        for _ in range(4)
    ]
    for thread in wanted:
        thread.start()
    for thread in wanted:
        thread.join()
    assert len(made) == RACERS + 1


ROWS = pa.table({"a": range(5)})
_NUMBERS = count()


class Cloud(MemoryFileSystem):
    """Objects of one test, and what happens around each exclusive creation of a manifest."""

    store: dict[str, Any] = {}  # noqa: RUF012
    pseudo_dirs: list[str] = [""]  # noqa: RUF012
    cachable = False
    protocol = ("gs", "az")
    ignores_the_condition = False
    before: Callable[[str], None] | None = None
    after: Callable[[str], None] | None = None
    created: list[str] = []  # noqa: RUF012

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return (
            "/" + str(path).partition("://")[2].strip("/")
            if "://" in path
            else f"/{path.strip('/')}"
        )

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> None:
        is_manifest = mode == "create" and path.endswith(".manifest")
        if is_manifest and type(self).before is not None:
            type(self).before(path)
        if mode == "create" and not self.ignores_the_condition and self.exists(path):
            raise FileExistsError(path)
        super().pipe_file(path, value)
        if is_manifest:
            self.created.append(path)
            if type(self).after is not None:
                type(self).after(path)


@pytest.fixture(params=["gs", "az"])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URI of a dataset in a bucket (container) that nobody has used."""
    drivers = import_module("fsspec.registry")._registry
    monkeypatch.setitem(drivers, request.param, Cloud)
    monkeypatch.setattr(version_slots, "WAIT_S", 0.0)
    for name, value in (
        ("store", {}), ("pseudo_dirs", [""]), ("created", []), ("ignores_the_condition", False),
        ("before", None), ("after", None),
    ):  # fmt: skip
        monkeypatch.setattr(Cloud, name, value)
    conditional_put._faults.clear()
    yield f"{request.param}://bucket{next(_NUMBERS)}/table.lance"
    conditional_put._faults.clear()


def once(action: Callable[[str], None]) -> Callable[[str], None]:
    """Do something at the first call only."""
    calls = count()
    return lambda path: action(path) if next(calls) == 0 else None


def fails(error: Exception) -> Callable[[str], None]:
    def fail(_: str) -> None:
        raise error

    return fail


def versions(place: str) -> list[int]:
    return [one["version"] for one in lance_nb.dataset(place).versions()]


def test_each_version_is_one_exclusive_creation(place: str) -> None:
    lance_nb.write_dataset(ROWS, place)
    after = lance_nb.write_dataset(ROWS, place, mode="append")
    assert (after.count_rows(), versions(place)) == (10, [1, 2])
    assert len(Cloud.created) == 2
    assert not any(conditional_put.PROBE_PREFIX in path for path in Cloud.store)
    after.delete("a = 3")
    after.tags.create("kept", 2)
    after.create_branch("dev").insert(ROWS)
    assert lance_nb.dataset(place, version=("dev", None)).count_rows() == 13


def test_a_version_that_another_took_is_met_and_followed(place: str) -> None:
    lance_nb.write_dataset(ROWS, place)
    other = lance_nb.dataset(place)
    Cloud.before = staticmethod(once(lambda _: other.insert(ROWS)))
    mine = lance_nb.write_dataset(ROWS, place, mode="append")
    assert (mine.version, mine.count_rows(), versions(place)) == (3, 15, [1, 2, 3])


@pytest.mark.parametrize("error", [ConnectionError("gone"), TimeoutError("late"), OSError("?")])
def test_a_lost_reply_is_found_out_by_reading_back(place: str, error: Exception) -> None:
    lance_nb.write_dataset(ROWS, place)
    Cloud.after = staticmethod(once(fails(error)))
    after = lance_nb.write_dataset(ROWS, place, mode="append")
    assert (after.version, after.count_rows(), versions(place)) == (2, 10, [1, 2])


def test_an_outcome_that_stays_unknown_is_said_to_be_and_nothing_is_deleted(place: str) -> None:
    lance_nb.write_dataset(ROWS, place)
    Cloud.before = staticmethod(fails(TimeoutError("late")))
    with pytest.raises(CommitStateUnknownError):
        lance_nb.write_dataset(ROWS, place, mode="append")
    assert sum(path.endswith(".lance") for path in Cloud.store) == 2
    Cloud.before = None
    assert lance_nb.write_dataset(ROWS, place, mode="append").count_rows() == 10


def test_a_refusal_commits_nothing(place: str) -> None:
    lance_nb.write_dataset(ROWS, place)
    Cloud.before = staticmethod(fails(PermissionError("no")))
    with pytest.raises(StorageError) as caught:
        lance_nb.write_dataset(ROWS, place, mode="append")
    assert caught.value.outcome == "failed"
    assert versions(place) == [1]


def test_a_server_that_ignores_the_condition_is_refused(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Cloud, "ignores_the_condition", True)
    with pytest.raises(NotSupportedError, match="external manifest store"):
        lance_nb.write_dataset(ROWS, place)
    assert Cloud.created == []
    with pytest.raises(lance_nb.DatasetNotFoundError):
        lance_nb.dataset(place)
