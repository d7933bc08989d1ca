"""LanceFileWriter: one data file, as pylance's class."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import InvalidInputError, NotSupportedError, SchemaMismatchError

ROWS = pa.schema({"a": pa.int64(), "b": pa.int32(), "c": pa.float64(), "d": pa.uint16()})
TABLE = pa.table({"a": [1, 2, 3], "s": ["x", None, "z"]})


@pytest.fixture
def path(tmp_path: Path) -> str:
    return f"{tmp_path}/x.lance"


def read(path: str) -> pa.Table:
    return lance_nb.LanceFileReader(path).read_all().to_table()


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2", "stable", None])
def test_batches_and_tables_are_written(path: str, version: str | None):
    with lance_nb.LanceFileWriter(path, TABLE.schema, version=version) as writer:
        writer.write_batch(TABLE)
        writer.write_batch(TABLE.to_batches()[0])
    assert read(path).equals(pa.concat_tables([TABLE, TABLE]))
    assert writer.size_bytes == Path(path).stat().st_size


def test_the_first_batch_tells_the_schema(path: str):
    writer = lance_nb.LanceFileWriter(Path(path))
    assert writer.add_global_buffer(b"one") == 1
    writer.write_batch(TABLE)
    assert writer.add_global_buffer(b"two") == 2
    writer.add_schema_metadata("k", "v")
    assert writer.close() == 3
    assert writer.close() is None
    reader = lance_nb.LanceFileReader(path)
    assert reader.metadata().schema.metadata == {b"k": b"v"}
    assert (reader.read_global_buffer(1), reader.read_global_buffer(2)) == (b"one", b"two")


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("schema", [ROWS, None])
def test_threads_write_whole_batches(path: str, version: str, schema: pa.Schema | None):
    threads, rounds = 8, 20
    begin = Barrier(threads)
    with lance_nb.LanceFileWriter(path, schema, version=version, max_page_bytes=4000) as writer:

        def write(thread: int) -> None:
            begin.wait()
            for number in range(rounds):
                first = 100 * (thread * rounds + number)
                ids = pa.array(range(first, first + 100))
                batch = pa.record_batch([ids.cast(one.type) for one in ROWS], ROWS)
                table = pa.Table.from_batches([batch.slice(0, 40), batch.slice(40)])
                writer.write_batch(table if number % 2 else batch)
                writer.add_global_buffer(b"%d" % first)
                writer.add_schema_metadata(f"{first}", "written")

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(write, range(threads)))
    found = read(path)
    assert found.num_rows == 100 * threads * rounds
    ids = found["a"].to_numpy()
    assert all(np.array_equal(column.to_numpy(), ids) for column in found.itercolumns())
    batches = ids.reshape(-1, 100)
    assert bool((batches == batches[:, :1] + np.arange(100)).all())
    assert sorted(batches[:, 0].tolist()) == list(range(0, found.num_rows, 100))
    reader = lance_nb.LanceFileReader(path)
    buffers = {reader.read_global_buffer(1 + number) for number in range(threads * rounds)}
    assert buffers == {b"%d" % first for first in batches[:, 0]}
    assert len(found.schema.metadata) == threads * rounds


def test_a_table_is_written_whole_or_not_at_all(path: str):
    schema = pa.schema([pa.field("a", pa.int64(), nullable=False)])
    table = pa.table({"a": pa.chunked_array([[1, 2], [3, None]])})
    with lance_nb.LanceFileWriter(path, schema) as writer:
        writer.write_batch(pa.table({"a": [0]}))
        with pytest.raises(SchemaMismatchError, match="row 4"):
            writer.write_batch(table)
        writer.write_batch(pa.table({"a": [5]}))
    assert read(path)["a"].to_pylist() == [0, 5]


def test_no_rows_after_a_batch_that_was_written_in_part(path: str):
    words = [pa.array([f"{letter}{k}" for k in range(100)]) for letter in "ab"]
    keys = pa.array(range(100), pa.int8())
    first, second = (
        pa.table({"n": range(100), "d": pa.DictionaryArray.from_arrays(keys, items)})
        for items in words
    )
    writer = lance_nb.LanceFileWriter(path, first.schema, max_page_bytes=1000)
    writer.write_batch(first)
    with pytest.raises(NotSupportedError, match="more items than the keys"):
        writer.write_batch(second)  # a page of the second column ends, and cannot be encoded
    with pytest.raises(InvalidInputError, match="failed half-way"):
        writer.write_batch(first)
    with pytest.raises(InvalidInputError, match="failed half-way"):
        writer.close()
    assert writer.closed
    assert list(Path(path).parent.iterdir()) == []


def test_no_schema_and_no_rows_are_refused(path: str):
    with pytest.raises(InvalidInputError, match="no schema"):
        lance_nb.LanceFileWriter(path).close()
    assert not Path(path).exists()


def test_no_rows_make_an_empty_file(path: str):
    assert lance_nb.LanceFileWriter(path, TABLE.schema).close() == 0
    assert read(path).num_rows == 0


def test_an_error_inside_the_context_leaves_nothing(path: str, tmp_path: Path):
    with pytest.raises(RuntimeError), lance_nb.LanceFileWriter(path, TABLE.schema) as writer:
        writer.write_batch(TABLE)
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_a_closed_file_takes_no_more(path: str):
    writer = lance_nb.LanceFileWriter(path, TABLE.schema)
    writer.close()
    assert "closed" in repr(writer)
    with pytest.raises(InvalidInputError, match="is closed"):
        writer.write_batch(TABLE)
    with pytest.raises(InvalidInputError, match="is closed"):
        writer.add_global_buffer(b"")


def test_other_columns_are_refused(path: str):
    writer = lance_nb.LanceFileWriter(path, TABLE.schema)
    with pytest.raises(SchemaMismatchError, match="no column 's'"):
        writer.write_batch(TABLE.select(["a"]))
    with pytest.raises(SchemaMismatchError, match="'a' has type string"):
        writer.write_batch(pa.table({"a": ["x"], "s": ["y"]}))


def test_pages_can_be_made_small(path: str):
    table = pa.table({"a": range(10_000)})
    for options in ({"data_cache_bytes": 8000}, {"max_page_bytes": 8000}):
        with lance_nb.LanceFileWriter(path, table.schema, **options) as writer:
            writer.write_batch(table)
        assert len(lance_nb.LanceFileReader(path).metadata().columns[0].pages) == 9


def test_bad_arguments_are_refused(tmp_path: Path):
    with pytest.raises(NotSupportedError):
        lance_nb.LanceFileWriter(f"{tmp_path}/x", version="legacy")
    with pytest.raises(InvalidInputError):
        lance_nb.LanceFileWriter(f"{tmp_path}/x", version="9")
    with pytest.raises(InvalidInputError, match="does not name a file"):
        lance_nb.LanceFileWriter(f"{tmp_path}/")
