"""What drivers raise, told as errors of ours and without secrets."""

from __future__ import annotations

import pytest

from lance_nb.errors import ObjectExistsError, ObjectNotFoundError, StorageError
from lance_nb.storage.driver_errors import DriverErrors
from lance_nb.storage.exclusive.base import by_class
from lance_nb.storage.exclusive.drivers.gcs import GcsCreate


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (FileNotFoundError("x"), ObjectNotFoundError),
        (NotADirectoryError("x"), ObjectNotFoundError),
        (PermissionError("x"), StorageError),
        (RuntimeError(""), StorageError),
        (StorageError("x", "told already"), StorageError),
        (KeyError("a mistake of ours"), KeyError),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ],
)
def test_each_error_has_one_of_ours(raised: BaseException, expected: type) -> None:
    with pytest.raises(expected), DriverErrors("s3://b/x", []):
        raise raised


def test_a_secret_is_told_neither_by_the_error_nor_by_its_cause() -> None:
    with pytest.raises(StorageError) as caught, DriverErrors("s3://b/x", ["TOPSECRET"]):
        raise OSError("no access with TOPSECRET")
    assert "TOPSECRET" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_creations_are_judged_by_their_strategy() -> None:
    guard = DriverErrors("gs://b/x", [], GcsCreate())
    with pytest.raises(ObjectExistsError), guard:
        raise FileExistsError("b/x")
    with pytest.raises(StorageError) as caught, guard:
        raise TimeoutError("late")
    assert (caught.value.outcome, guard.busy) == ("unknown", False)


@pytest.mark.parametrize(
    ("raised", "outcome"),
    [(TimeoutError("late"), "unknown"), (PermissionError("no"), "failed")],
    ids=["timeout", "refused"],
)
def test_a_change_that_was_not_refused_may_have_been_done(raised: Exception, outcome: str) -> None:
    with pytest.raises(StorageError) as caught, DriverErrors("s3://b/x", [], changes=by_class):
        raise raised
    assert caught.value.outcome == outcome
    with pytest.raises(StorageError) as read, DriverErrors("s3://b/x", []):
        raise raised
    assert read.value.outcome == "failed"
