"""Values that Python has no form for become the numbers that are stored."""

from __future__ import annotations

from datetime import date

import pyarrow as pa
import pytest

from lance_nb.format.python_values import rows_to_python, to_python

FAR = 2**62


@pytest.mark.parametrize(
    "kind",
    [
        pa.timestamp("s"),
        pa.timestamp("us", "Nowhere/Land"),
        pa.date64(),
        pa.time64("us"),
        pa.duration("s"),
    ],
)
def test_dates_and_times_beyond_python(kind: pa.DataType) -> None:
    values = pa.array([FAR, None]).view(kind)
    assert to_python(values) == [FAR, None]
    assert to_python(pa.ListArray.from_arrays([0, 1, 2], values)) == [[FAR], [None]]
    assert to_python(pa.LargeListArray.from_arrays([0, 2], values)) == [[FAR, None]]
    assert to_python(pa.FixedSizeListArray.from_arrays(values, 2)) == [[FAR, None]]
    inside = pa.StructArray.from_arrays([values, pa.array(["x", "y"])], ["at", "text"])
    assert to_python(inside) == [{"at": FAR, "text": "x"}, {"at": None, "text": "y"}]
    coded = pa.DictionaryArray.from_arrays(pa.array([1, 0]), values)
    assert to_python(coded) == [None, FAR]


def test_other_values_are_as_pyarrow_has_them() -> None:
    table = pa.table({"day": [date(2026, 1, 2)], "n": [1]})
    assert rows_to_python(table) == table.to_pylist()
    assert rows_to_python(table.slice(0, 0)) == []
