"""What an error says about the outcome, whatever the driver."""

from __future__ import annotations

import pytest

from lance_nb.storage.exclusive.base import (
    Outcome,
    by_class,
    by_status,
    causes,
    first_segment,
)


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
def test_classes(error: Exception, expected: Outcome):
    assert by_class(error) is expected
    wrapped = RuntimeError("the driver's own")
    wrapped.__cause__ = error
    assert by_class(wrapped) is expected


@pytest.mark.parametrize(
    ("status", "expected"),
    [(412, Outcome.EXISTS), (403, Outcome.FAILED), (500, Outcome.UNKNOWN), (503, Outcome.UNKNOWN)],
)
def test_statuses(status: int, expected: Outcome):
    assert by_status(status, RuntimeError("x")) is expected


def test_a_circle_of_causes_ends():
    one, two = RuntimeError("1"), RuntimeError("2")
    one.__cause__, two.__cause__ = two, one
    assert len(list(causes(one))) == 16


def test_buckets():
    assert first_segment("bucket/a/b") == first_segment("/bucket") == "bucket"
