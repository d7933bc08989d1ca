"""Values looked for in lists select the rows of pylance, whatever the types of the two are."""

from __future__ import annotations

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


@pytest.mark.parametrize("text", ["array_has(i8, true)", "array_remove(f32, '1') IS NULL"])
def test_values_of_another_kind_are_refused_like_in_pylance(tmp_path: Path, text: str) -> None:
    lance = require_pylance()
    theirs = lance.write_dataset(_table(), tmp_path / "lists")

    with pytest.raises(ValueError, match="planning"):
        theirs.to_table(filter=text)
    with pytest.raises(PredicateError, match="element"):
        lance_nb.dataset(tmp_path / "lists").to_table(filter=text)
