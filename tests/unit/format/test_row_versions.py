"""Version sequences: only the size of a span counts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_nb._pb import rowids as pb
from lance_nb.errors import CorruptFileError
from lance_nb.format.row_versions import RowVersionSequence


@given(st.lists(st.integers(1, 4) | st.just(2**63), max_size=50))
def test_any_versions_round_trip(versions: list[int]):
    built = RowVersionSequence.from_numpy(np.array(versions, np.uint64))
    again = RowVersionSequence.from_bytes(built.to_bytes(), physical_rows=len(versions))
    assert again == built
    assert again.to_numpy().tolist() == versions


def test_the_values_of_a_span_mean_nothing():
    bitmap = pb.U64Segment.RangeWithBitmap(start=500, end=504, bitmap=b"\x0d")
    message = pb.RowDatasetVersionSequence(
        runs=[
            pb.RowDatasetVersionRun(span=pb.U64Segment(range_with_bitmap=bitmap), version=3),
            pb.RowDatasetVersionRun(
                span=pb.U64Segment(range=pb.U64Segment.Range(start=0, end=2)), version=7
            ),
        ]
    )
    found = RowVersionSequence.from_bytes(message.SerializeToString())
    assert found.runs == ((3, 3), (2, 7))
    assert found.to_numpy().tolist() == [3, 3, 3, 7, 7]


def test_a_wrong_number_of_rows_is_damage():
    data = RowVersionSequence(((2**40, 1),)).to_bytes()
    with pytest.raises(CorruptFileError, match="10 versions"):
        RowVersionSequence.from_bytes(data, physical_rows=10)
