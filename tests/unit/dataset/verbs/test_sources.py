from __future__ import annotations

import pyarrow as pa
import pyarrow.dataset
import pytest

from lance_nb.dataset.verbs.sources import reader_of
from lance_nb.errors import InvalidInputError, SchemaMismatchError

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


def test_data_frames_leave_their_index_behind():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1, 2, 3]}, index=[7, 8, 9])
    found = reader_of(frame).read_all()
    assert found.schema.names == ["a"]
    assert not found.schema.metadata


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
