"""Pages of random nestings, cut into random chunks: any rows equal that part of the whole page,
whether the page's buffers are at hand or only the bytes that it asks for.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lance_nb.encodings.base import DecodedPage, Rows, VariableWidth
from lance_nb.encodings.repdef import unravel
from tests.support.examples import examples
from tests.support.pages import Page, constant, full_zip, mini_block
from tests.support.reading import positions_of, rows_of
from tests.support.shredding import SPARE, nested_rows, rebuild, shred

Case = tuple[list[str], list[Any]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    shape, rows = draw(nested_rows())
    return shape, rows * draw(st.sampled_from([1, 1, 3, 9]))


def some_rows(data: st.DataObject, num_rows: int) -> Rows:
    cuts = sorted(data.draw(st.sets(st.integers(0, num_rows), max_size=10)))
    if data.draw(st.booleans()):  # touching ranges are ranges of their own
        pairs = list(itertools.pairwise(cuts))
    else:
        pairs = list(zip(cuts[::2], cuts[1::2], strict=False))
    return rows_of(*pairs)


def leaves(page: DecodedPage) -> list[int]:
    values = page.values
    if isinstance(values, VariableWidth):
        ends = values.offsets.tolist()
        pairs = itertools.pairwise(ends)
        texts = [bytes(values.data[start:stop]).decode() for start, stop in pairs]
        return [int(text) if text else 0 for text in texts]
    return values.data.view("<i4").tolist()


def check(page: Page, shape: list[str], expected: list[Any], data: st.DataObject) -> None:
    """Decode all rows and random ones, both ways, and compare with the reference."""
    assert page.num_rows == len(expected)
    for rows in (
        rows_of((0, len(expected))) if expected else rows_of(),
        rows_of(),
        some_rows(data, len(expected)),
    ):
        wanted = [expected[position] for position in positions_of(rows)]
        for whole in (True, False):
            found = page.decode(rows, whole=whole)
            assert rebuild(unravel(found), leaves(found), shape) == wanted


@examples(80)
@given(cases(), SPARE, st.sampled_from([(2, 1), (2, 2)]), st.data())
def test_mini_block_pages(
    case: Case, spare: Any, version: tuple[int, int], data: st.DataObject
) -> None:
    shape, rows = case
    shredded = shred(rows, shape, spare)
    left = sum(entry.visible for entry in shredded.entries)
    counts = []
    while left > 1 and data.draw(st.booleans()):
        counts.append(2 ** data.draw(st.integers(0, left.bit_length() - 1)))
        left -= counts[-1]
    if not left and counts:  # all values placed: the trailing specials need a last chunk
        counts.pop()
    check(mini_block(shredded, counts, version), shape, rows, data)


@examples(80)
@given(cases(), SPARE, st.booleans(), st.sampled_from([0, 8]), st.data())
def test_full_zip_pages(
    case: Case, spare: Any, text: bool, index_width: int, data: st.DataObject
) -> None:
    shape, rows = case
    check(
        full_zip(shred(rows, shape, spare), text=text, index_width=index_width), shape, rows, data
    )


@examples(80)
@given(cases(), SPARE, st.booleans(), st.data())
def test_constant_pages(case: Case, spare: Any, compressed: bool, data: st.DataObject) -> None:
    shape, rows = case
    rows = [same_leaf(row, shape) for row in rows]
    value = np.array([7], "<i4").tobytes()
    page = constant(shred(rows, shape, spare), value, compressed=compressed)
    for wanted in (rows_of((0, len(rows))) if rows else rows_of(), some_rows(data, len(rows))):
        found = page.decode(wanted)
        count = found.values.num_values
        expected = [rows[position] for position in positions_of(wanted)]
        assert rebuild(unravel(found), [7] * count, shape) == expected


def same_leaf(value: Any, shape: list[str]) -> Any:
    """Make every leaf that is not null a 7."""
    if value is None:
        return None
    if shape[0] == "leaf":
        return 7
    if shape[0] == "struct":
        return (same_leaf(value[0], shape[1:]),)
    return [same_leaf(item, shape[1:]) for item in value]
