"""Putting full-zip pages together, against a slow builder."""

from __future__ import annotations

import numpy as np
import pytest

from lance_nb.encodings.base import FixedWidth, VariableWidth
from lance_nb.encodings.compress_base import CompressedValues, PageLevels
from lance_nb.encodings.zip_assembly import _row_index, zip_page
from tests.support.pages import flat, full_zip, variable
from tests.support.shredding import Shredded, shred

ROWS = [[1, 2], [], None, [4, None, 5000], [], [7]]


def levels(shredded: Shredded) -> PageLevels:
    entries = shredded.entries
    rep = np.array([entry.rep for entry in entries], np.uint16)
    definition = np.array([entry.definition for entry in entries], np.uint16)
    hidden = [entry.definition for entry in entries if not entry.visible]
    return PageLevels(
        tuple(shredded.layers),
        rep if shredded.num_lists else None,
        definition if definition.any() else None,
        len(entries),
        min(hidden, default=99) - 1,
        len(shredded.rows),
    )


def slots(shredded: Shredded) -> list[int | None]:
    return [entry.value for entry in shredded.entries if entry.visible]


@pytest.fixture(params=["lists", "nulls", "plain"])
def shredded(request: pytest.FixtureRequest) -> Shredded:
    kind = request.param
    rows = ROWS if kind == "lists" else [1, None, 3] if kind == "nulls" else [1, 2, 3]
    return shred(rows, ("list", "leaf") if kind == "lists" else ("leaf",))


def test_numbers_are_zipped_as_the_format_says(shredded: Shredded) -> None:
    expected = full_zip(shredded, text=False)
    data = np.array([value or 0 for value in slots(shredded)], "<i4").view(np.uint8)
    values = CompressedValues(flat(32), FixedWidth(32, len(slots(shredded)), data))
    page = zip_page(values, levels(shredded))
    assert page is not None
    assert [bytes(buffer) for buffer in page.buffers] == list(expected.buffers)
    assert page.layout.full_zip_layout == expected.message


@pytest.mark.parametrize("under_nulls", [b"", b"junk"])
def test_strings_are_zipped_as_the_format_says(shredded: Shredded, under_nulls: bytes) -> None:
    expected = full_zip(shredded, text=True)
    texts = [under_nulls if value is None else str(value).encode() for value in slots(shredded)]
    ends = np.concatenate(([0], np.cumsum([len(text) for text in texts]))).astype(np.int32)
    joined = np.frombuffer(b"".join(texts) or b"\0", np.uint8)
    values = CompressedValues(variable(), VariableWidth(len(texts), ends, joined))
    page = zip_page(values, levels(shredded))
    assert page is not None
    assert [bytes(buffer) for buffer in page.buffers] == list(expected.buffers)
    assert page.layout.full_zip_layout == expected.message


@pytest.mark.parametrize(("num_entries", "fits"), [(2**32 - 1, True), (2**32, False)])
def test_a_page_of_more_entries_than_the_format_counts_is_not_zipped(
    num_entries: int, fits: bool
) -> None:
    values = CompressedValues(flat(32), FixedWidth(32, 0, np.zeros(0, np.uint8)))
    page = zip_page(values, PageLevels((1,), None, None, num_entries, 0, num_entries))
    assert (page is not None) == fits


@pytest.mark.parametrize(
    ("total", "width"),
    [(255, 1), (256, 2), (65_535, 2), (65_536, 4), (2**32 - 1, 4), (2**32, 8)],
)
def test_the_row_index_has_the_narrowest_integers_that_hold_its_end(total: int, width: int) -> None:
    found = _row_index(np.array([0, 7, total]), PageLevels((1,), None, None, 2, 0, 2))
    assert found.view(f"<u{width}").tolist() == [0, 7, total]
