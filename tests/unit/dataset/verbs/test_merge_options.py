"""Wishes for a merge, checked before anything is read."""

from __future__ import annotations

from typing import Any

import pytest

from lance_nb.dataset.verbs.branch_merging import MergeOptions, options_of
from lance_nb.errors import InvalidInputError


def test_what_is_not_wished_for_is_the_default() -> None:
    assert options_of() == MergeOptions()
    made = options_of(strategy="replay", on_conflict="ours", key="id", copy=True, pin=False)
    assert made == MergeOptions("replay", "ours", ("id",), True, False)
    assert (made.request.keys, made.request.on_conflict) == (("id",), "ours")
    assert options_of(key=["a", "b"]).key == ("a", "b")


@pytest.mark.parametrize("wishes", [{"strategy": "hope"}, {"on_conflict": "maybe"}, {"key": [1]}])
def test_other_wishes_are_refused(wishes: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        options_of(**wishes)
