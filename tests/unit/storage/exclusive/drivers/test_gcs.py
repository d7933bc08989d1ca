"""One upload that expects generation 0, and gcsfs' answers."""

from __future__ import annotations

import pytest

from lance_nb.storage.exclusive.base import Outcome
from lance_nb.storage.exclusive.drivers.gcs import GcsCreate
from tests.support.fake_driver import FakeDriver


class HttpError(Exception):
    """What gcsfs raises for statuses without a class of their own."""

    def __init__(self, code: int) -> None:
        super().__init__(f"status {code}")
        self.code = code


def test_an_object_is_one_conditional_upload_whatever_its_size():
    driver = FakeDriver()
    GcsCreate().put(driver, "bucket/x", b"1")
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
def test_outcomes(error: Exception, expected: Outcome):
    assert GcsCreate().outcome(error) is expected


def test_places_are_endpoint_and_bucket():
    driver = FakeDriver()
    driver._location = "https://storage.googleapis.com"
    assert GcsCreate().place(driver, "one/x") == "gcs https://storage.googleapis.com one"
