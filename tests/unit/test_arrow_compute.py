"""Compute functions are those of ``pyarrow.compute``, which is the judge and is not imported."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute
import pytest

import lance_nb
from lance_nb import arrow_compute as pc

SOURCES = sorted(Path(lance_nb.__file__).parent.rglob("*.py"))
NAMES = sorted(
    {
        name
        for path in SOURCES
        if "import arrow_compute as pc" in (text := path.read_text("utf-8"))
        for name in re.findall(r"\bpc\.(\w+)\(", text)
    }
    - {"scalar_of"}  # is ours
)
NUMBERS = pa.chunked_array([[3, None], [1]], pa.int64())


def test_the_package_uses_functions() -> None:
    assert {"take", "equal", "and_", "fill_null"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_function_in_use_is_that_of_arrow(name: str) -> None:
    assert getattr(pc, name).__name__ == getattr(pyarrow.compute, name).__name__


@pytest.mark.parametrize(
    ("name", "args", "options"),
    [
        ("take", (NUMBERS, pa.array([2, 0])), {}),
        ("take", (pa.table({"n": NUMBERS}), pa.array([1])), {}),
        ("filter", (NUMBERS, pa.array([True, None, True])), {}),
        ("filter", (NUMBERS, pa.array([True, None, True]), "emit_null"), {}),
        ("equal", (NUMBERS, 3), {}),
        ("and_", (pa.array([True, None]), pa.array([True, True])), {}),
        ("fill_null", (NUMBERS, 7), {}),
        ("fill_null", (NUMBERS, pa.scalar(7, pa.int8())), {}),
        ("fill_null", (pa.array(["a", None]), "é"), {}),
        ("cast", (NUMBERS, pa.float32()), {}),
        ("cast", (pa.scalar(300), pa.int8()), {"safe": False}),
        ("cast", (pa.array([1.5]),), {"options": pyarrow.compute.CastOptions.unsafe(pa.int8())}),
        ("is_in", (NUMBERS,), {"value_set": pa.array([1]), "skip_nulls": True}),
        ("round", (pa.array([1.25, 2.75]), 1), {}),
        ("if_else", (pa.array([True, False]), "yes", "no"), {}),
        ("binary_join_element_wise", ("a", pa.array(["b", None]), "-"), {}),
        ("dictionary_encode", (NUMBERS, "encode"), {}),
        ("min_max", (NUMBERS,), {"skip_nulls": False}),
        ("sort_indices", (NUMBERS,), {"sort_keys": [("", "descending")]}),
        ("coalesce", (NUMBERS, 2), {}),
        ("any", (pa.array([False, None]),), {}),
    ],
)  # fmt: skip
def test_values_and_options_are_passed_on(name: str, args: tuple, options: dict) -> None:
    result = getattr(pc, name)(*args, **options)
    assert result.equals(getattr(pyarrow.compute, name)(*args, **options))


def test_errors_are_those_of_arrow() -> None:
    with pytest.raises(pa.ArrowInvalid, match="not in range"):
        pc.cast(pa.array([300]), pa.int8())
    with pytest.raises(pa.ArrowNotImplementedError):
        pc.add(pa.array(["a"]), pa.array([1]))
    with pytest.raises(TypeError):
        pc.is_in(NUMBERS, values=NUMBERS)
    with pytest.raises(AttributeError, match="no compute function 'equals'"):
        pc.equals(NUMBERS, NUMBERS)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (True, None), (2**63 - 1, None), (-1, None), (2**64 - 1, pa.uint64()), (0.5, None),
        ("é", None), (b"\0", None), (None, None), (None, pa.int8()), (5, pa.int8()),
        ("x", pa.large_string()),
    ],
)  # fmt: skip
def test_scalars_are_those_of_arrow(value: object, kind: pa.DataType | None) -> None:
    assert pc.scalar_of(value, kind).equals(pa.scalar(value, kind))


def test_a_number_that_no_int64_holds_is_refused_as_by_arrow() -> None:
    with pytest.raises(OverflowError):
        pc.scalar_of(2**63)


def test_functions_and_python_values_load_neither_all_functions_nor_pandas() -> None:
    code = (
        "import sys, pyarrow as pa\n"
        "from lance_nb import arrow_compute as pc\n"
        "numbers = pa.nulls(2, pa.int64())\n"
        "pc.fill_null(pc.equal(pc.take(numbers, numbers), 1), False)\n"
        "pc.filter(numbers, pc.is_null(numbers))\n"
        "pc.if_else(pc.is_null(pc.dictionary_encode(pc.cast(numbers, pa.string()))), 'a', 'b')\n"
        "print([name for name in ('pyarrow.compute', 'pandas') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
