"""Which fields own columns, the options they get, and where pages end."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.encodings.repdef import Shape
from lance_nb.errors import InvalidInputError, NotSupportedError
from lance_nb.file.column_writer import plan_column, row_runs, without_surplus
from lance_nb.file.reader import FileReader
from lance_nb.file.versions import WRITABLE_VERSIONS
from lance_nb.file.writer import FileOptions, FileWriter
from lance_nb.format.schema import Schema
from lance_nb.storage.memory import MemoryStore, clear
from tests.support.reading import Columns, rows_of

LEAF = Shape()


def plan_of(field: pa.Field, version: tuple[int, int] = (2, 2)):
    return plan_column(Schema.from_arrow(pa.schema([field])).fields[0], version)


def test_only_leaves_own_columns():
    inner = pa.struct([("a", pa.int8()), ("b", pa.list_(pa.int8()))])
    plan = plan_of(pa.field("s", pa.list_(inner)))
    assert plan.shape == Shape((Shape((LEAF, Shape((LEAF,)))),))
    assert [leaf.field.id for leaf in plan.leaves] == [2, 4]


def test_a_packed_struct_owns_one_column():
    field = pa.field("s", pa.struct([("a", pa.int8())]), metadata={"lance-encoding:packed": "true"})
    plan = plan_of(field)
    assert plan.shape == LEAF
    assert plan.leaves[0].field.id == 0
    assert plan.leaves[0].options.is_packed


def test_an_empty_struct_owns_a_column():
    assert plan_of(pa.field("s", pa.struct([]))).shape == LEAF


def test_leaves_inherit_encoding_keys():
    inner = pa.struct(
        [
            pa.field("a", pa.int64()),
            pa.field("b", pa.int64(), metadata={"lance-encoding:compression": "lz4"}),
        ]
    )
    plan = plan_of(pa.field("s", inner, metadata={"lance-encoding:compression": "zstd"}))
    assert [leaf.options.compression for leaf in plan.leaves] == ["zstd", "lz4"]


def test_bad_keys_are_refused():
    with pytest.raises(InvalidInputError, match="compression"):
        plan_of(pa.field("a", pa.int8(), metadata={"lance-encoding:compression": "snappy"}))


def test_maps_need_2_2():
    field = pa.field("m", pa.map_(pa.string(), pa.int8()))
    assert len(plan_of(field).leaves) == 2
    with pytest.raises(NotSupportedError, match=r"'m'.*2\.2.*not 2\.1"):
        plan_of(field, (2, 1))


FIXED = pa.list_(pa.struct([("x", pa.int8())]), 2)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (pa.struct([("a", FIXED)]), "inside other fields"),
        (pa.list_(FIXED), "inside other fields"),
        (pa.list_(pa.struct([("x", pa.list_(pa.int8()))]), 2), "lists inside fixed-size"),
        (pa.struct([("a", pa.struct([])), ("b", pa.int8())]), "without fields"),
        (pa.list_(pa.struct([])), "without fields"),
        (pa.binary(0), "zero bytes"),
    ],
)
def test_what_no_reader_takes_is_refused(kind: pa.DataType, message: str):
    with pytest.raises(NotSupportedError, match=message):
        plan_of(pa.field("c", kind))


def test_fixed_size_lists_of_structs_need_2_2():
    assert len(plan_of(pa.field("c", FIXED)).leaves) == 1
    with pytest.raises(NotSupportedError, match=r"2\.2, not 2\.1"):
        plan_of(pa.field("c", FIXED), (2, 1))


def pages_of(table: pa.Table, page_bytes: int, batch_rows: int) -> list[list[int]]:
    """Return the rows of every page of every column."""
    clear("column-writer")
    store = MemoryStore("column-writer")
    options = FileOptions(page_bytes=page_bytes)
    writer = FileWriter(store, "x", Schema.from_arrow(table.schema), options=options)
    for batch in table.to_batches(max_chunksize=batch_rows):
        writer.write(batch)
    writer.finish()
    reader = FileReader(store, "x")
    columns = range(reader.num_columns)
    return [[page.num_rows for page in reader.column_metadata(one).pages] for one in columns]


def test_a_page_ends_when_enough_has_come():
    table = pa.table({"a": np.arange(1000), "b": np.arange(1000).astype("i1")})
    assert pages_of(table, 1600, 100) == [[200] * 5, [1000]]


def test_a_page_ends_at_its_last_byte():
    table = pa.table({"a": np.arange(900)})
    assert pages_of(table, 1601, 100) == [[300] * 3]


def test_levels_of_lists_count_too():
    # Empty lists have no bytes of values: only their levels, a quarter of a byte each, fill a page.
    table = pa.table({"l": pa.array([[]] * 16_000, pa.list_(pa.int8()))})
    assert pages_of(table, 2000, 400) == [[8000] * 2]


def test_long_arrays_are_cut():
    table = pa.table({"a": np.arange(1000)})
    assert pages_of(table, 750, 1000) == [[100] * 10]
    assert pages_of(table, 800, 1000) == [[111] * 8 + [112]]


def test_leaves_of_one_field_have_pages_of_their_own():
    table = pa.table({"s": pa.array([{"a": k, "b": "x" * 50} for k in range(1000)])})
    short, long = pages_of(table, 2000, 10)
    assert len(short) < len(long)
    assert sum(short) == sum(long) == 1000


def test_rows_are_never_split():
    table = pa.table({"l": pa.array([list(range(500))] * 4)})
    assert pages_of(table, 100, 4) == [[1, 1, 1, 1]]


def test_no_rows_have_no_pages():
    assert pages_of(pa.table({"a": pa.array([], pa.int8())}), 100, 10) == [[]]


def test_runs_hold_every_row_once():
    array = pa.array(np.arange(1003))
    runs = list(row_runs(array, 1000))
    assert len(runs) == 7
    assert all(run.nbytes >= 1000 for run in runs)
    assert pa.concat_arrays(runs).equals(array)
    assert list(row_runs(array.slice(0, 0), 10)) == []


def test_large_dictionaries_are_cut_to_what_is_used():
    words = pa.array([f"word {k}" for k in range(5000)])
    keys = pa.array([4999, None, 7, 7], pa.int16())
    array = pa.DictionaryArray.from_arrays(keys, words)
    small = without_surplus(array)
    assert small.to_pylist() == array.to_pylist()
    assert small.type == array.type
    assert small.dictionary.to_pylist() == ["word 4999", "word 7"]
    few = pa.DictionaryArray.from_arrays(keys.fill_null(1), words).slice(0, 4)
    assert len(without_surplus(few).dictionary) == 3


def test_a_large_dictionary_makes_no_pages():
    words = pa.array([f"word {k}" * 100 for k in range(2000)])
    keys = pa.array(np.arange(2000) % 2000, pa.int32())
    table = pa.table({"d": pa.DictionaryArray.from_arrays(keys, words)})
    assert len(pages_of(table, 1_000_000, 2000)[0]) == 1


@pytest.mark.parametrize("version", WRITABLE_VERSIONS)
@pytest.mark.parametrize("in_struct", [False, True])
def test_dictionaries_of_one_page_must_fit_their_keys(version: tuple[int, int], in_struct: bool):
    words = [pa.array([f"{letter}{k}" for k in range(100)]) for letter in "ab"]
    keys = pa.array(range(100), pa.int8())
    batches = []
    for items in words:
        column = pa.DictionaryArray.from_arrays(keys, items)
        if in_struct:
            column = pa.StructArray.from_arrays([column], names=["v"])
        batches.append(pa.record_batch({"c": column}))
    store = MemoryStore("column-writer")
    schema = Schema.from_arrow(batches[0].schema)
    with FileWriter(store, "y", schema, file_version=version) as writer:
        for batch in batches:
            writer.write(batch)
        with pytest.raises(
            NotSupportedError, match="more items than the keys can number"
        ) as caught:
            writer.finish()
    assert any("column" in note for note in caught.value.__notes__)


@pytest.mark.parametrize("version", WRITABLE_VERSIONS)
def test_batches_with_null_items_of_dictionaries_are_joined(version: tuple[int, int]):
    batches = [
        pa.record_batch({"c": pa.DictionaryArray.from_arrays(pa.array(keys, pa.int8()), items)})
        for keys, items in (([0, 1], pa.array(["a", None])), ([1, 0, None], pa.array(["b", "c"])))
    ]
    store = MemoryStore("column-writer")
    schema = Schema.from_arrow(batches[0].schema)
    with FileWriter(store, "z", schema, file_version=version) as writer:
        for batch in batches:
            writer.write(batch)
        writer.finish()
    read = Columns(batches[0].schema).read(FileReader(store, "z"), "c", rows_of((0, 5)))
    assert read.to_pylist() == ["a", None, "c", "b", None]
