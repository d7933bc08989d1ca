"""What the arms of file version 2.0 share: buffers by their numbers, scaled rows, plain values."""

from __future__ import annotations

import numpy as np
import pytest

from lance_nb._pb import encodings as pb
from lance_nb.encodings.base import VALUES_MAX, FixedWidth, VariableWidth
from lance_nb.encodings.steps import Region
from lance_nb.encodings.v2_0.base import (
    FREE_VALUES_MAX,
    Page,
    Values,
    check_free,
    fixed_width,
    scaled,
)
from lance_nb.errors import CorruptFileError
from tests.support.reading import rows_of

PAGE = Page(
    (Region(0, 1, is_mapped=True), Region(1, 2, is_mapped=True)),
    (Region(2, 3, is_mapped=True),),
    (Region(3, 4, is_mapped=True),),
)
BYTES = FixedWidth(8, 2, np.array([1, 2], np.uint8))


@pytest.mark.parametrize(("kind", "number", "start"), [(0, 0, 0), (0, 1, 1), (1, 0, 2), (2, 0, 3)])
def test_a_buffer_is_of_the_page_the_column_or_the_file(kind: int, number: int, start: int) -> None:
    buffer = pb.Buffer(buffer_type=kind, buffer_index=number)
    assert PAGE.region(buffer).start == start


@pytest.mark.parametrize(
    ("kind", "number", "message"),
    [(3, 0, "buffer type 3"), (0, 2, "number below 2"), (1, 1, "number below 1")],
)
def test_buffers_that_do_not_exist_are_refused(kind: int, number: int, message: str) -> None:
    with pytest.raises(CorruptFileError, match=message):
        PAGE.region(pb.Buffer(buffer_type=kind, buffer_index=number))


def test_rows_are_scaled_to_their_parts() -> None:
    found = scaled(rows_of((1, 3), (5, 6)), 4)
    assert (found.starts.tolist(), found.stops.tolist()) == ([4, 20], [12, 24])
    assert scaled(rows_of(), 4).num_rows == 0


def test_more_parts_than_a_page_has_are_refused() -> None:
    most = VALUES_MAX // 4
    assert int(scaled(rows_of((0, 1), (most - 1, most)), 4).stops[-1]) == VALUES_MAX
    for rows in (rows_of((most, most + 1)), rows_of((0, 1), (most, most + 1))):
        with pytest.raises(CorruptFileError, match=f"{most + 1} times 4"):
            scaled(rows, 4)


def test_values_without_bytes_are_bounded() -> None:
    check_free(FREE_VALUES_MAX)
    with pytest.raises(CorruptFileError, match="without bytes"):
        check_free(FREE_VALUES_MAX + 1)


def test_plain_values_have_the_right_width_and_no_nulls() -> None:
    assert fixed_width(Values(BYTES), 8, "indices") is BYTES.data
    text = VariableWidth(1, np.array([0, 1], np.int32), np.zeros(1, np.uint8))
    for values, message in (
        (Values(BYTES), "indices of 16 bits each.*values of 8 bits"),
        (Values(text), "indices of 16 bits each.*VariableWidth"),
    ):
        with pytest.raises(CorruptFileError, match=message):
            fixed_width(values, 16, "indices")
    with pytest.raises(CorruptFileError, match="indices without nulls"):
        fixed_width(Values(BYTES, np.array([True, False])), 8, "indices")
