"""Values that Python has no form for become the numbers that are stored."""

from __future__ import annotations

import subprocess
import sys
from ast import literal_eval
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


@pytest.mark.parametrize("zone", [None, "UTC", "+02:00"])
def test_nanoseconds_without_pandas_are_text(zone: str | None) -> None:
    code = (
        "import sys, pyarrow as pa\n"
        "from lance_nb.magic.command_line import _convert_without_pandas\n"
        "from lance_nb.format.python_values import to_python\n"
        "_convert_without_pandas()\n"
        f"kind = pa.timestamp('ns', {zone!r})\n"
        "print(to_python(pa.array([1_577_836_800_000_000_001, -1, None]).view(kind)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    offset = {None: "", "UTC": "+00:00", "+02:00": "+02:00"}[zone]
    hours = 2 if zone == "+02:00" else 0
    last = "1970-01-01T01:59:59" if hours else "1969-12-31T23:59:59"
    assert literal_eval(done.stdout) == [
        f"2020-01-01T0{hours}:00:00.000000001{offset}", f"{last}.999999999{offset}", None,
    ]  # fmt: skip
