"""One upload that does not overwrite, and the answers of the Blob service."""

from __future__ import annotations

import pytest

from lance_nb.storage.exclusive.base import Outcome
from lance_nb.storage.exclusive.drivers.azure import AzureCreate
from tests.support.fake_driver import FakeDriver


class ServiceError(Exception):
    """What azure-core raises."""

    def __init__(self, status: int, code: str = "") -> None:
        super().__init__(f"{status} {code}")
        self.status_code = status
        self.error_code = code


def test_a_blob_is_one_conditional_upload():
    driver = FakeDriver()
    AzureCreate().put(driver, "container/x", b"1")
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
def test_outcomes(error: Exception, expected: Outcome):
    assert AzureCreate().outcome(error) is expected


def test_places_are_account_and_container():
    driver = FakeDriver()
    driver.account_name = "acme"
    assert AzureCreate().place(driver, "data/x") == "azure acme data"
