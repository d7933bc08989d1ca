from __future__ import annotations

import pyarrow as pa
import pyarrow.dataset
import pytest

from lance_nb.errors import InvalidInputError, SchemaMismatchError
from lance_nb.writing.input_data import reader_of, without_views

TABLE = pa.table({"a": [1, 2, 3], "b": ["x", None, "z"]})


class _Stream:
    """Something of another library that offers the Arrow C stream."""

    def __arrow_c_stream__(self, requested_schema=None):
        return TABLE.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize(
    "source",
    [
        TABLE,
        TABLE.to_batches()[0],
        TABLE.to_reader(),
        _Stream(),
        pyarrow.dataset.dataset(TABLE),
        pyarrow.dataset.dataset(TABLE).scanner(),
        TABLE.to_pydict(),
        TABLE.to_pylist(),
        iter(TABLE.to_batches()),
        [TABLE, TABLE.slice(0, 0)],
    ],
    ids=lambda source: type(source).__name__,
)
def test_whatever_streams_is_read(source):
    assert reader_of(source).read_all().equals(TABLE)


def test_the_index_of_a_data_frame_is_a_column():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1, 2, 3]}, index=[7, 8, 9])
    table = reader_of(frame).read_all()
    assert table.to_pydict() == {"a": [1, 2, 3], "__index_level_0__": [7, 8, 9]}
    assert table.to_pandas().equals(frame)
    schema = pa.Schema.from_pandas(frame)
    assert reader_of(frame, schema).read_all().to_pandas().equals(frame)


def test_a_data_frame_without_a_column_of_the_schema_is_refused():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(SchemaMismatchError, match="no column 'b', which the schema requires"):
        reader_of(pandas.DataFrame({"a": [1]}), pa.schema([("b", pa.int64())]))


@pytest.mark.parametrize("library", ["dict", "pandas", "polars", "pyarrow"])
def test_only_columns_that_may_be_null_may_be_missing(library):
    columns = {"a": [1]}
    if library == "pyarrow":
        rows = pa.table(columns)
    else:
        rows = columns if library == "dict" else pytest.importorskip(library).DataFrame(columns)
    schema = pa.schema([("a", pa.int64()), ("b", pa.string())])
    assert reader_of(rows, schema, partial=True).read_all().to_pydict() == columns
    with pytest.raises(SchemaMismatchError, match="no column 'b', which the schema requires"):
        reader_of(rows, schema)
    required = schema.set(1, pa.field("b", pa.string(), nullable=False))
    with pytest.raises(SchemaMismatchError, match="no column 'b', which the schema requires"):
        reader_of(rows, required, partial=True)


def test_a_data_frame_that_pandas_cannot_convert_is_refused():
    pandas = pytest.importorskip("pandas")
    required = pa.schema([pa.field("a", pa.int64(), nullable=False)])
    with pytest.raises(SchemaMismatchError, match=r"does not fit the schema: .* non-nullable"):
        reader_of(pandas.DataFrame({"a": pandas.array([1, None], "Int64")}), required)
    with pytest.raises(SchemaMismatchError, match="cannot be converted: Duplicate column names"):
        reader_of(pandas.DataFrame([[1, 2]], columns=["a", "a"]))


def test_data_frames_take_the_schema_that_is_given():
    pandas = pytest.importorskip("pandas")
    schema = pa.schema([("a", pa.int32())])
    assert reader_of(pandas.DataFrame({"a": [1]}), schema).read_all().schema == schema


def test_rows_are_cast_to_the_schema_that_is_given():
    schema = pa.schema([("b", pa.large_string()), ("a", pa.int32())])
    found = reader_of(TABLE, schema).read_all()
    assert found.schema == schema
    assert found["a"].to_pylist() == [1, 2, 3]


def test_no_batches_need_a_schema():
    assert reader_of(iter([]), TABLE.schema).read_all().num_rows == 0
    with pytest.raises(InvalidInputError, match="no batch and no schema"):
        reader_of(iter([]))


@pytest.mark.parametrize("source", [7, "rows", b"rows", None, [1, 2]])
def test_what_is_no_rows_is_refused_by_its_type(source):
    with pytest.raises(
        InvalidInputError, match=type(source).__name__ if source != [1, 2] else "int"
    ):
        reader_of(source)


def test_a_schema_that_does_not_fit_is_refused():
    with pytest.raises(SchemaMismatchError, match="no column 'c'"):
        reader_of(TABLE, pa.schema([("c", pa.int64())]))
    wrong = pa.schema([("a", pa.int64()), ("b", pa.list_(pa.int64()))])
    with pytest.raises(SchemaMismatchError, match="cast"):
        reader_of(TABLE, wrong).read_all()


def batches(*columns: pa.Array) -> list[pa.RecordBatch]:
    return [pa.RecordBatch.from_arrays([one], ["a"]) for one in columns]


WIDE = pa.schema([("a", pa.int64())])


@pytest.mark.parametrize(
    "rows",
    [
        iter(batches(pa.array([1], pa.int32()), pa.array([2], pa.int64()))),
        batches(pa.array([1], pa.int8()), pa.array(["2"])),
        (pa.table({"a": [one]}) for one in (1, 2.0)),
        pa.RecordBatchReader.from_batches(
            pa.schema([("a", pa.int32())]), batches(*[pa.array([n], pa.int32()) for n in (1, 2)])
        ),
        [{"a": 1}, {"a": 2}],
    ],
)
def test_every_batch_is_cast_to_the_schema(rows):
    found = reader_of(rows, WIDE).read_all()
    assert found == pa.table({"a": [1, 2]})


def test_later_batches_are_cast_to_the_first():
    found = reader_of(batches(pa.array([1]), pa.array([2], pa.int32()))).read_all()
    assert found == pa.table({"a": [1, 2]})
    with pytest.raises(
        SchemaMismatchError, match=r"'a' of batch 1 .* without losing values: .*0.5"
    ):
        reader_of(batches(pa.array([1]), pa.array([0.5]))).read_all()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"a": [2**40]}, r"'a' of batch 0 cannot be cast from int64 to int32 without losing .*2"),
        ({"a": ["x"]}, "from string to int32 without losing values"),
        ({"a": [[1]]}, "from list<.*> to int32$"),
        ({"b": [1]}, "batch 0 has no column 'a'"),
        ({"a": [1], "b": [1]}, "batch 0 has a column 'b' that is not in the schema"),
    ],
)
def test_batches_that_do_not_fit_are_refused_by_column(columns, message):
    with pytest.raises(SchemaMismatchError, match=message):
        reader_of([pa.RecordBatch.from_pydict(columns)], pa.schema([("a", pa.int32())])).read_all()


def test_columns_given_twice_are_refused():
    twice = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"])
    with pytest.raises(SchemaMismatchError, match="more than one column 'a'"):
        reader_of([twice], WIDE).read_all()


def test_what_follows_a_batch_is_a_batch():
    with pytest.raises(InvalidInputError, match="not int"):
        reader_of([*batches(pa.array([1])), 7]).read_all()


def test_columns_that_may_be_null_may_be_missing_where_it_is_said():
    schema = pa.schema([("a", pa.int64()), ("b", pa.string())])
    assert reader_of(pa.table({"a": [1]}), schema, partial=True).schema.names == ["a"]
    needed = pa.schema([("a", pa.int64()), pa.field("b", pa.string(), nullable=False)])
    with pytest.raises(SchemaMismatchError, match="no column 'b'"):
        reader_of(pa.table({"a": [1]}), needed, partial=True)


def test_views_become_plain_arrays():
    kind = pa.struct([("t", pa.string_view()), ("l", pa.list_(pa.binary_view()))])
    plain = pa.struct([("t", pa.string()), ("l", pa.list_(pa.binary()))])
    values = [{"t": "x", "l": [b"1"]}, None]
    table = pa.table({"s": pa.array(values, kind), "n": [1, 2]})
    found = without_views(reader_of(table)).read_all()
    assert found.schema.field("s").type == plain
    assert found["s"].to_pylist() == values
