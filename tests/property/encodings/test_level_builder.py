"""Random nestings are striped to the entries of a slow reference, however Arrow lays them out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from lance_nb.encodings.base import DecodedPage, FixedWidth
from lance_nb.encodings.repdef import Shape, page_levels, stripe, unravel
from tests.support.examples import examples
from tests.support.shredding import nested_rows, rebuild, shred, values


def type_of(shape: list[str]) -> pa.DataType:
    if shape[0] == "leaf":
        return pa.int32()
    inner = type_of(shape[1:])
    return pa.struct([("x", inner)]) if shape[0] == "struct" else pa.list_(inner)


def arrow_rows(rows: list[Any], shape: list[str]) -> list[Any]:
    """The same values as Arrow wants them: structs are dictionaries."""

    def convert(value: Any, depth: int) -> Any:
        if value is None or shape[depth] == "leaf":
            return value
        if shape[depth] == "struct":
            return {"x": convert(value[0], depth + 1)}
        return [convert(one, depth + 1) for one in value]

    return [convert(row, 0) for row in rows]


def shape_of(shape: list[str]) -> Shape:
    return Shape() if shape[0] == "leaf" else Shape((shape_of(shape[1:]),))


def untidy(array: pa.Array, rng: np.random.Generator) -> pa.Array:
    """The same values, laid out as awkwardly as Arrow allows: gaps, full null slots, offsets."""
    type_ = array.type
    nulls = np.asarray(array.is_null())
    if pa.types.is_list(type_):
        offsets = np.asarray(array.offsets)
        starts, counts = offsets[:-1], np.diff(offsets)
        items = untidy(array.values, rng)
        filled = np.where(nulls, rng.integers(0, 3, len(array)), counts)
        new_offsets = np.concatenate(([2], 2 + np.cumsum(filled))).astype(np.int32)
        taken: list[int | None] = [None, None]
        for start, count, null, size in zip(starts, counts, nulls, filled, strict=True):
            taken += [None] * int(size) if null else range(int(start), int(start + count))
        children = items.take(pa.array([*taken, None], pa.int64()))
        mask = pa.array(nulls) if nulls.any() else None
        return pa.ListArray.from_arrays(pa.array(new_offsets), children, type=type_, mask=mask)
    if pa.types.is_struct(type_):
        child = untidy(array.field(0), rng)
        mask = pa.array(nulls) if nulls.any() else None
        return pa.StructArray.from_arrays([child], fields=list(type_), mask=mask)
    padded = pa.concat_arrays([pa.array([7, None, 9], type_), array, pa.array([1], type_)])
    return padded.slice(3, len(array))


def null_lists_below_null_structs(rows: list[Any], shape: list[str]) -> list[tuple[bool, bool]]:
    """Readers want what is below a null struct, down to the first list, to be nullable as well."""
    spare = [(False, False)] * len(shape)

    def walk(value: Any, depth: int) -> None:
        if value is None and shape[depth] == "struct":
            last = shape.index("list", depth) if "list" in shape[depth:] else len(shape) - 1
            spare[depth + 1 : last + 1] = [(True, False)] * (last - depth)
        if value is not None and shape[depth] == "struct":
            walk(value[0], depth + 1)
        if value is not None and shape[depth] == "list":
            for one in value:
                walk(one, depth + 1)

    for row in rows:
        walk(row, 0)
    return spare


def check(parts: list[pa.Array], rows: list[Any], shape: list[str]) -> None:
    leaves = [next(stripe(part, shape_of(shape))) for part in parts]
    levels = page_levels([leaf.entries for leaf in leaves])
    expected = shred(rows, shape, null_lists_below_null_structs(rows, shape))
    assert levels.layers == expected.layers
    entries = expected.entries
    assert levels.num_rows == len(rows)
    assert levels.num_entries == len(entries)
    if expected.num_lists:
        assert levels.repetition is not None
        assert levels.repetition.tolist() == [entry.rep for entry in entries]
    else:
        assert levels.repetition is None
    definitions = [entry.definition for entry in entries]
    found = [0] * len(entries) if levels.definition is None else levels.definition.tolist()
    assert found == definitions
    slots = pa.concat_arrays([leaf.values for leaf in leaves])
    assert len(slots) == sum(entry.visible for entry in entries)
    page = DecodedPage(
        FixedWidth(32, len(slots), np.zeros(4 * len(slots), np.uint8)),
        levels.repetition,
        levels.definition,
        levels.layers,
    )
    assert rebuild(unravel(page), slots.fill_null(0).to_pylist(), shape) == rows


@examples(150)
@given(nested_rows(), st.integers(0, 2**32))
def test_entries_are_those_of_the_reference(case: tuple[list[str], list[Any]], seed: int) -> None:
    shape, rows = case
    array = pa.array(arrow_rows(rows, shape), type_of(shape))
    check([array], rows, shape)
    check([untidy(array, np.random.default_rng(seed))], rows, shape)


@examples(80)
@given(nested_rows(), st.data())
def test_runs_of_rows_join_to_one_page(
    case: tuple[list[str], list[Any]], data: st.DataObject
) -> None:
    shape, rows = case
    more = data.draw(st.lists(values(shape), max_size=6))
    rows = rows + more
    array = pa.array(arrow_rows(rows, shape), type_of(shape))
    cut = data.draw(st.integers(0, len(rows)))
    check([array.slice(0, cut), array.slice(cut)], rows, shape)
