"""Columns of random types and nulls, written in batches and small pages: any rows read back."""

from __future__ import annotations

from itertools import count
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given
from hypothesis import strategies as st

from lance_nb.file.reader import FileReader
from lance_nb.file.writer import FileOptions, FileWriter
from lance_nb.format.schema import Schema
from lance_nb.storage.memory import MemoryStore
from tests.support.examples import examples
from tests.support.reading import Columns, first_difference, positions_of, rows_of, same

_NUMBERS = count()
FLOATS = st.floats(width=32, allow_nan=False)
FLAT: dict[pa.DataType, Any] = {
    pa.int8(): st.integers(-128, 127),
    pa.int32(): st.sampled_from([0, 1, -1, 2**31 - 1]) | st.integers(0, 3),
    pa.uint64(): st.integers(0, 2**64 - 1) | st.integers(0, 9),
    pa.float32(): FLOATS,
    pa.float64(): st.floats(allow_nan=False) | st.sampled_from([0.5, 1.5]),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(max_size=8) | st.sampled_from(["", "a" * 60, "spam", "eggs"]),
    pa.large_binary(): st.binary(max_size=40),
    pa.binary(3): st.binary(min_size=3, max_size=3),
    pa.timestamp("us"): st.integers(0, 10**15),
    pa.decimal128(20, 2): st.decimals(-(10**9), 10**9, places=2),
    pa.list_(pa.float32(), 3): st.lists(FLOATS, min_size=3, max_size=3),
    pa.dictionary(pa.int8(), pa.string()): st.sampled_from(["red", "green", "blue"]),
    pa.null(): st.none(),
}  # fmt: skip
OLD = [one for one in FLAT if one != pa.null()]  # what version 2.0 is tried with

Column = tuple[pa.DataType, Any]


def nullable(values: Any, is_nullable: bool) -> Any:
    return st.none() | values if is_nullable else values


def below(inner: Any) -> Any:
    """Return types of one more level, each with its values."""

    def struct(parts: list[tuple[Column, bool]]) -> Column:
        fields = [pa.field(f"f{at}", kind, null) for at, ((kind, _), null) in enumerate(parts)]
        values = {f"f{at}": nullable(one, null) for at, ((_, one), null) in enumerate(parts)}
        return pa.struct(fields), st.fixed_dictionaries(values)

    def lists(item: tuple[Column, bool, bool]) -> Column:
        (kind, values), null, is_large = item
        made = pa.large_list if is_large else pa.list_
        field = pa.field("item", kind, null)
        return made(field), st.lists(nullable(values, null), max_size=4)

    return st.one_of(
        st.lists(st.tuples(inner, st.booleans()), min_size=1, max_size=3).map(struct),
        st.tuples(inner, st.booleans(), st.booleans()).map(lists),
    )


leaves = st.sampled_from([(kind, values) for kind, values in FLAT.items() if kind != pa.null()])
columns = st.recursive(leaves, below, max_leaves=4)
layouts = st.tuples(
    st.sampled_from([(2, 1), (2, 2), (2, 2)]),
    st.sampled_from([64, 300, 1 << 20]),
    st.sampled_from([1, 7, 1000]),
)


def some_rows(data: st.DataObject, num_rows: int) -> Any:
    cuts = sorted(data.draw(st.sets(st.integers(0, num_rows), max_size=8)))
    return rows_of(*zip(cuts[::2], cuts[1::2], strict=False))


def check(
    data: st.DataObject, column: Column, layout: tuple[tuple[int, int], int, int], is_nullable: bool
) -> None:
    """Write and read a column beside one of numbers; a missing value repeats now and then."""
    kind, values = column
    version, page_bytes, batch_rows = layout
    rows = data.draw(st.lists(nullable(values, is_nullable), max_size=30))
    rows *= data.draw(st.sampled_from([1, 1, 2, 20]))
    schema = pa.schema([pa.field("c", kind, is_nullable), ("n", pa.int32())])
    table = pa.Table.from_arrays([pa.array(rows, kind), pa.array(range(len(rows)), pa.int32())],
                                 schema=schema)  # fmt: skip
    store = MemoryStore(f"round-trip/{next(_NUMBERS)}")
    options = FileOptions(page_bytes=page_bytes)
    with FileWriter(
        store, "x", Schema.from_arrow(schema), file_version=version, options=options
    ) as writer:
        for batch in table.to_batches(batch_rows):
            writer.write(batch)
        written = writer.finish()
    assert (written.num_rows, written.size_bytes) == (len(rows), store.size("x"))
    reader = FileReader(store, "x")
    assert reader.num_rows == len(rows)
    found = Columns(schema, old=version < (2, 1))
    every = rows_of((0, len(rows))) if rows else rows_of()
    for wanted in (every, some_rows(data, len(rows)), rows_of()):
        positions = list(positions_of(wanted))
        for name in schema.names:
            made = found.read(reader, name, wanted)
            expected = pc.take(table[name], pa.array(positions, pa.int64()))
            for chunk in made.chunks:
                chunk.validate(full=True)
            assert same(made, expected), first_difference(made, expected)


@examples(60)
@given(st.data(), columns, layouts, st.booleans())
def test_any_rows_of_any_column_read_back(
    data: st.DataObject,
    column: Column,
    layout: tuple[tuple[int, int], int, int],
    is_nullable: bool,
) -> None:
    check(data, column, layout, is_nullable)


@examples(25)
@given(
    st.data(), st.sampled_from([(one, FLAT[one]) for one in OLD]), layouts, st.booleans(),
)  # fmt: skip
def test_flat_columns_of_version_2_0_read_back(
    data: st.DataObject,
    column: Column,
    layout: tuple[tuple[int, int], int, int],
    is_nullable: bool,
) -> None:
    check(data, column, ((2, 0), *layout[1:]), is_nullable)
