"""Conditional puts: the request of each service, what its errors mean, and the probe of a store."""

from __future__ import annotations

import errno
import threading
from typing import Any

import pytest

from lance_nb.errors import NotSupportedError, ObjectExistsError, StorageError
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
    conditional_put.forget_probes()
    clear("probe")
    yield MemoryStore("probe")
    clear("probe")
    conditional_put.forget_probes()


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
        store.write_if_absent(path, data if data == b"first" else b"something else")

    assert "not the one" in find_fault(scratch(store, swapped))


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
    assert len(tries) == 2


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
    assert len(made) == 2 + RACERS
