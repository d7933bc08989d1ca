"""One PUT with a condition, and the answers of S3 servers."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from lance_nb.storage.exclusive.base import Outcome
from lance_nb.storage.exclusive.drivers.s3 import S3Create
from tests.support.fake_driver import FakeDriver


class ClientError(Exception):
    """What botocore raises."""

    def __init__(self, code: str, status: int, retries: int = 0) -> None:
        super().__init__(code)
        meta = {"HTTPStatusCode": status, "RetryAttempts": retries}
        self.response: dict[str, Any] = {"Error": {"Code": code}, "ResponseMetadata": meta}


def told(error: Exception, as_class: type[OSError], *args: Any) -> OSError:
    """Hide the server's answer behind an error of the driver, as s3fs does."""
    shown = as_class(*args)
    shown.__cause__ = error
    return shown


def test_an_object_is_one_conditional_put_whatever_its_size():
    driver = FakeDriver()
    S3Create().put(driver, "bucket/x", b"1")
    assert driver.calls == [("bucket/x", b"1", {"mode": "create", "chunksize": 5 << 30})]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (told(ClientError("PreconditionFailed", 412), FileExistsError, "x"), Outcome.EXISTS),
        (told(ClientError("PreconditionFailed", 412), OSError, errno.EINVAL, "x"), Outcome.EXISTS),
        (OSError(errno.EINVAL, "At least one of the pre-conditions failed"), Outcome.EXISTS),
        (OSError(errno.EINVAL, "invalid argument"), Outcome.UNKNOWN),
        (told(ClientError("412", 412), OSError, errno.EINVAL, "x"), Outcome.EXISTS),
        (told(ClientError("ConditionalRequestConflict", 409), OSError, "x"), Outcome.BUSY),
        (told(ClientError("AccessDenied", 403), PermissionError, "x"), Outcome.FAILED),
        (told(ClientError("AccessDenied", 403, 1), PermissionError, "x"), Outcome.UNKNOWN),
        (told(ClientError("NoSuchBucket", 404), FileNotFoundError, "x"), Outcome.FAILED),
        (told(ClientError("NotImplemented", 501), OSError, errno.ENOSYS, "x"), Outcome.FAILED),
        (told(ClientError("InternalError", 500), OSError, errno.EIO, "x"), Outcome.UNKNOWN),
        (told(ClientError("SlowDown", 503), OSError, errno.EBUSY, "x"), Outcome.UNKNOWN),
        (ConnectionResetError("closed"), Outcome.UNKNOWN),
    ],
)
def test_outcomes(error: Exception, expected: Outcome):
    assert S3Create().outcome(error) is expected


def test_places_are_endpoint_and_bucket():
    driver = FakeDriver()
    assert S3Create().place(driver, "one/x") != S3Create().place(driver, "two/x")
    driver.endpoint_url = "http://a"
    other = FakeDriver()
    other.client_kwargs = {"endpoint_url": "http://a"}
    assert S3Create().place(driver, "one/x") == S3Create().place(other, "one/y/z")
