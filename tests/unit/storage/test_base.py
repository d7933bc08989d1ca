"""Paths and ranges as values."""

from __future__ import annotations

import pytest

from lance_nb.errors import InvalidInputError
from lance_nb.storage.base import ByteRange, check_path, check_prefix, join_uri
from tests.conformance.store_tests import BAD_PATHS


@pytest.mark.parametrize("path", ["a", "a/b", "_versions/1.manifest", "a..b", "...", "é ✓", "ab:c"])
def test_plain_relative_paths_are_accepted(path: str):
    assert check_path(path) == path


@pytest.mark.parametrize("path", BAD_PATHS)
def test_other_paths_are_refused(path: str):
    with pytest.raises(InvalidInputError):
        check_path(path)


def test_a_prefix_may_be_empty_or_end_with_a_slash():
    assert check_prefix("") == check_prefix("/") == ""
    assert check_prefix("a/b/") == "a/b"


@pytest.mark.parametrize(("start", "stop"), [(-1, 2), (3, 2)])
def test_a_range_must_be_one(start: int, stop: int):
    with pytest.raises(InvalidInputError):
        ByteRange(start, stop)


def test_uris_are_joined_with_one_slash():
    assert join_uri("s3://b/x/", "y") == "s3://b/x/y"
    assert join_uri("/a", "") == "/a"
