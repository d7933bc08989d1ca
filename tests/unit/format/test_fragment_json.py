"""Fragments as JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from lance_nb.errors import InvalidInputError, NotSupportedError
from lance_nb.format.fragment import (
    ColumnSequence,
    DataFile,
    DeletionFile,
    DeletionFileType,
    Fragment,
    InlineSequence,
)
from lance_nb.format.fragment_json import fragment_from_json, fragment_to_json

FRAGMENT = Fragment(
    7,
    (
        DataFile("a.lance", (0, -2), (0, 1), (2, 2), 99),
        DataFile("b.lance", (1,), (0,), (2, 2), 0, 0),
    ),
    10,
    DeletionFile(DeletionFileType.BITMAP, 3, 2**63 + 1, 4, 0),
    InlineSequence(b"\x01\x02"),
    InlineSequence(b"\x03"),
    InlineSequence(b"\x04"),
)  # fmt: skip


def test_a_fragment_comes_back_as_it_was() -> None:
    assert fragment_from_json(json.loads(json.dumps(fragment_to_json(FRAGMENT)))) == FRAGMENT
    bare = Fragment(0, (), 0)
    assert fragment_to_json(bare) == {"id": 0, "files": [], "physical_rows": 0}
    assert fragment_from_json(fragment_to_json(bare)) == bare


@pytest.mark.parametrize(
    "more",
    [{"metadata": {"a": "b"}}, {"unknown": b"\x08\x01"}, {"row_ids": ColumnSequence(-3)}],
)
def test_what_json_does_not_hold_is_refused(more: dict[str, Any]) -> None:
    with pytest.raises(NotSupportedError):
        fragment_to_json(replace(FRAGMENT, **more))


@pytest.mark.parametrize(
    "value",
    [None, [], {}, {"id": "a", "files": []}, {"id": 1, "files": [{}]}, {"id": 1, "files": 3}],
)
def test_other_json_is_refused(value: Any) -> None:
    with pytest.raises(InvalidInputError):
        fragment_from_json(value)
