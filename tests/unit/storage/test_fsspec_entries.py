"""Entries of listings, however a driver names what it knows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from lance_nb.storage.fsspec_entries import object_info

MOMENT = datetime(2024, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("entry", "modified", "e_tag"),
    [
        ({"LastModified": MOMENT, "ETag": '"a"'}, MOMENT, '"a"'),
        ({"mtime": MOMENT.timestamp(), "etag": "b"}, MOMENT, "b"),
        ({"created": MOMENT.replace(tzinfo=None)}, MOMENT, None),
        ({"updated": "yesterday", "e_tag": 5}, None, None),
        ({}, None, None),
    ],
)
def test_times_and_tags_are_found(entry: dict[str, Any], modified: Any, e_tag: Any) -> None:
    info = object_info({"size": 7, **entry}, "x")
    assert (info.name, info.size_bytes, info.modified, info.e_tag) == ("x", 7, modified, e_tag)


def test_a_size_that_is_not_told_is_none() -> None:
    assert object_info({"size": None}, "x").size_bytes == 0
