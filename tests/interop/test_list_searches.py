"""Values looked for in lists select the rows of pylance, whatever the types of the two are."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import PredicateError
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop

_ELEMENTS = {
    "f16": pa.float16(), "f32": pa.float32(), "f64": pa.float64(), "i8": pa.int8(),
    "i64": pa.int64(), "u8": pa.uint8(), "u64": pa.uint64(),
}  # fmt: skip
_VALUES = ("0.3", "1", "1.0", "1.5", "300", "-1", "NULL", "'1'", "true", "k", "g", "small")
_SEARCHES = (
    "array_has({0}, {1})", "array_position({0}, {1}) = 1",
    "array_length(array_remove({0}, {1})) = 1",
    "array_length(array_positions({0}, {1})) = 1", "array_has(array_append({0}, {1}), {1})",
    "array_has(array_replace({0}, {1}, {1}), {1})", "array_length(array_resize({0}, 3, {1})) = 3",
)  # fmt: skip
_LITERAL_SEARCHES = ("array_has_any({0}, [{1}])", "array_has_all({0}, [{1}])")


def _table() -> pa.Table:
    columns: dict[str, pa.Array] = {}
    for name, type_ in _ELEMENTS.items():
        values: list[object] = [0.3, 1.0, 0.1] if pa.types.is_floating(type_) else [1, 2, 3]
        if pa.types.is_float16(type_):
            values = [np.float16(value) for value in (0.3, 1.0, 0.1)]
        if name == "u64":
            values[2] = 2**63 + 1
        lists = [values[:2], values[2:], [], None, [values[1], None]]
        columns[name] = pa.array(lists, pa.list_(type_))
    columns["k"] = pa.array([1, 300, None, 2, 2])
    columns["g"] = pa.array([0.3, 1.5, 2.0, None, 1.0])
    columns["small"] = pa.array([1, 3, None, 2, 2], pa.int8())
    return pa.table({"n": pa.array(range(5)), **columns})


def test_values_of_every_type_are_found_in_lists_of_every_number(tmp_path: Path) -> None:
    lance = require_pylance()
    uri = tmp_path / "lists"
    theirs = lance.write_dataset(_table(), uri)
    ours = lance_nb.dataset(uri)
    compared = 0
    for name in _ELEMENTS:
        for value in _VALUES:
            literal = () if value in {"k", "g", "small"} else _LITERAL_SEARCHES
            for search in (*_SEARCHES, *literal):
                text = search.format(name, value)
                try:
                    wanted = theirs.to_table(columns=["n"], filter=text)
                except (ValueError, OSError, pa.ArrowInvalid):
                    continue  # a combination of types that pylance refuses
                assert ours.to_table(columns=["n"], filter=text) == wanted, text
                compared += 1
    assert compared > 400


NUMBERS = ("0.0", "-0.0", "1.0", "CAST('NaN' AS DOUBLE)", "-CAST('NaN' AS DOUBLE)", "v")
FLOAT_SEARCHES = (
    "array_has(x, {0})", "array_has_any(x, [{0}])", "array_has_all(x, [{0}, 1.0])",
    "array_has_any([{0}, 2.0], x)", "array_position(x, {0})", "array_remove_all(x, {0})",
    "array_replace(x, {0}, 5.0)", "array_except(x, [{0}])", "array_union(x, [{0}])",
)  # fmt: skip
FLOAT_FUNCTIONS = (
    "array_max(x)", "array_min(x)", "array_sort(x)", "array_sort(x, 'DESC', 'NULLS LAST')",
    "array_distinct(x)", "array_has_all(x, array_reverse(x))", "array_has_any(x, [v])",
    "array_intersect(x, array_reverse(x))", "array_to_string(x, ',', 'null')",
    "x = array_sort(x)", "x < [0.0, 0.0]",
)  # fmt: skip


def _float_lists(width: str) -> pa.Table:
    """Return the pairs of special floats, longer and empty lists, nulls in lists, null lists."""
    nan = np.array(np.nan, width)
    special = np.array([0.0, -0.0, nan, -nan, 1.0, np.inf, -np.inf, 2.5, 1e-5, 1e4], width)
    pairs = np.array(np.meshgrid(special, special)).T.ravel()
    items = pa.concat_arrays([pa.array(pairs), pa.nulls(1, pa.from_numpy_dtype(width))])
    items = pa.concat_arrays([items, pa.array(special), items[:3]])
    offsets = [*range(0, 200, 2), 200, 211, 211, 214]
    lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), items)
    column = pa.concat_arrays([lists, pa.nulls(1, lists.type)])
    return pa.table({"x": column, "v": pa.array(np.resize(special, len(column)))})


def _bits(values: pa.ChunkedArray) -> list[object]:
    """Return values that differ where the bits of floats do."""

    def comparable(value: object) -> object:
        if isinstance(value, list):
            return [comparable(item) for item in value]
        return (value, np.signbit(value)) if isinstance(value, float) else value

    return [repr(comparable(value)) for value in values.to_pylist()]


@pytest.mark.parametrize("width", ["float16", "float32", "float64"])
def test_functions_of_lists_tell_floats_apart_as_pylance_does(tmp_path: Path, width: str) -> None:
    lance = require_pylance()
    theirs = lance.write_dataset(_float_lists(width), tmp_path / "lists")
    ours = lance_nb.dataset(tmp_path / "lists")
    searches = [search.format(number) for search in FLOAT_SEARCHES for number in NUMBERS]
    compared = 0
    for text in (*searches, *FLOAT_FUNCTIONS):
        try:
            expected = theirs.to_table(columns={"y": text})["y"]
        except (ValueError, OSError, pa.ArrowInvalid):
            continue  # an expression that pylance refuses
        assert _bits(ours.to_table(columns={"y": text})["y"]) == _bits(expected), text
        compared += 1
    assert compared > 40


@pytest.mark.parametrize("builder", ["lance", "lance_nb"])
def test_an_index_of_lists_tells_zeros_apart(tmp_path: Path, builder: str) -> None:
    engines = {"lance": require_pylance(), "lance_nb": lance_nb}
    engines["lance"].write_dataset(_float_lists("float64"), tmp_path / "lists")
    engines[builder].dataset(tmp_path / "lists").create_scalar_index("x", "LABEL_LIST")
    for search in FLOAT_SEARCHES[:3]:
        for number in NUMBERS[:3]:
            text = search.format(number)
            counts = {
                (name, use_index): engine.dataset(tmp_path / "lists")
                .scanner(filter=text, use_scalar_index=use_index)
                .count_rows()
                for name, engine in engines.items()
                for use_index in (False, True)
            }
            assert len(set(counts.values())) == 1, (text, counts)


def test_elements_of_every_type_are_joined_as_the_text_of_pylance(tmp_path: Path) -> None:
    lance = require_pylance()
    moment = datetime(2020, 1, 2, 3, 4, 5, 600, UTC)
    columns = {
        "floats": pa.array([[1e300, 5e-324, 1e-7, 1e16, 0.1, -0.0, math.inf, None]]),
        "singles": pa.array([[1e30, 1e-7, 16777216.0, 0.1]], pa.list_(pa.float32())),
        "flags": pa.array([[True, False, None]]),
        "moments": pa.array([[moment, moment.replace(microsecond=0)]]),
        "local": pa.array([[moment.replace(tzinfo=None)]], pa.list_(pa.timestamp("us"))),
        "days": pa.array([[moment.date()]]),
        "decimals": pa.array([[Decimal("1.50")]]),
        "bytes": pa.array([[b"ab"]]),
        "nested": pa.array([[[1.0, None], None, [2.5]]]),
        "texts": pa.array([["a", None]], pa.large_list(pa.large_string())),
    }
    theirs = lance.write_dataset(pa.table(columns), tmp_path / "lists")
    for name in columns:
        for text in (f"array_to_string({name}, ',')", f"array_to_string({name}, ',', 'null')"):
            expected = theirs.to_table(columns={"y": text})
            assert lance_nb.dataset(theirs.uri).to_table(columns={"y": text}) == expected, text


def test_durations_become_the_text_of_pylance(tmp_path: Path) -> None:
    lance = require_pylance()
    ticks = [0, 1, -1, 1500, -1500, 86400, 123456789012, -123456789012, None]
    for unit in ("s", "ms", "us", "ns"):
        rows = pa.table({"x": pa.array(ticks, pa.duration(unit))})
        theirs = lance.write_dataset(rows, tmp_path / unit)
        columns = {"y": "CAST(x AS STRING)"}
        assert lance_nb.dataset(theirs.uri).to_table(columns=columns) == theirs.to_table(
            columns=columns
        )


@pytest.mark.parametrize("text", ["array_has(i8, true)", "array_remove(f32, '1') IS NULL"])
def test_values_of_another_kind_are_refused_like_in_pylance(tmp_path: Path, text: str) -> None:
    lance = require_pylance()
    theirs = lance.write_dataset(_table(), tmp_path / "lists")

    with pytest.raises(ValueError, match="planning"):
        theirs.to_table(filter=text)
    with pytest.raises(PredicateError, match="element"):
        lance_nb.dataset(tmp_path / "lists").to_table(filter=text)
