"""Levels of random nestings unravel to what a slow reference built them from."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lance_nb.encodings.repdef import concat_levels, unravel
from tests.support.examples import examples
from tests.support.shredding import SPARE, nested_rows, page_of, rebuild, shred, values


def leaves_of(page: Any) -> np.ndarray[Any, Any]:
    return page.values.data.view("<i4")


@examples(200)
@given(nested_rows(), SPARE)
def test_levels_unravel_to_the_values_they_came_from(
    case: tuple[list[str], list[Any]], spare: list[tuple[bool, bool]]
) -> None:
    shape, rows = case
    page = page_of(shred(rows, shape, spare))
    levels = unravel(page)
    assert len(levels) == len(shape)
    assert levels[0].length == len(rows)
    assert rebuild(levels, leaves_of(page), shape) == rows


@given(nested_rows(), nested_rows(), st.data())
def test_joined_levels_rebuild_the_joined_rows(
    first: tuple[list[str], list[Any]], second: tuple[list[str], list[Any]], data: st.DataObject
) -> None:
    shape = first[0]
    runs = [first[1], data.draw(st.lists(values(shape), max_size=6)), first[1][:2]]
    pages = [page_of(shred(run, shape)) for run in runs]
    parts = [unravel(page) for page in pages]
    joined = [concat_levels([part[depth] for part in parts]) for depth in range(len(shape))]
    leaves = np.concatenate([leaves_of(page) for page in pages])
    assert rebuild(joined, leaves, shape) == [row for run in runs for row in run]
