"""Casts of empty, all-null and sliced values of every type stay within their memory.

Casts run in child processes, which report the signal and the case that they died of;
``LANCE_NB_TEST_SCALE`` above 1 tries every type with every other.
"""

from __future__ import annotations

import io
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.arrow_casts import cast_array, cast_table
from lance_nb.errors import LanceError
from lance_nb.format.schema import Schema
from lance_nb.merging.row_replay import _converted
from lance_nb.spark.tasks.bad_records import try_cast
from lance_nb.spark.types import from_spark, to_spark
from lance_nb.table.diff.row_compare import values_differ
from lance_nb.table.predicate.casts import cast_value
from lance_nb.writing.input_data import fitted, reader_of
from lance_nb.writing.rewriting import cast as cast_update
from lance_nb.writing.upsert_join import typed
from tests.support.examples import SCALE

MEMORY_BYTES = 6 << 30
FLOAT, FIXED = pa.float32(), pa.list_(pa.float32(), 2)
LISTS = {"list": pa.list_, "large_list": pa.large_list, "list_view": pa.list_view,
         "large_list_view": pa.large_list_view}  # fmt: skip

LEAVES = [
    pa.null(), pa.bool_(), pa.int8(), pa.uint64(), pa.float16(), FLOAT, pa.float64(), pa.string(),
    pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view(),
    pa.binary(3), pa.decimal128(10, 2), pa.decimal256(40, 2), pa.date32(), pa.date64(),
    pa.timestamp("us"), pa.timestamp("ns", "UTC"), pa.time32("s"), pa.time64("ns"),
    pa.duration("s"), pa.month_day_nano_interval(), pa.dictionary(pa.int8(), pa.string()),
    pa.run_end_encoded(pa.int32(), pa.string()), pa.uuid(), pa.json_(), pa.bool8(),
    pa.fixed_shape_tensor(FLOAT, (2,)),
]  # fmt: skip


def nested(kind: pa.DataType) -> Iterator[pa.DataType]:
    """Yield the types that hold values of a type."""
    yield from (make(kind) for make in LISTS.values())
    yield pa.list_(kind, 2)
    yield pa.struct([("part", kind)])
    yield pa.map_(pa.string(), kind)


def all_types() -> list[pa.DataType]:
    """Return the leaves, what holds some of them, and what holds that."""
    items = LEAVES if SCALE > 1 else [pa.bool_(), FLOAT, pa.large_string(), LEAVES[-6]]
    flat = [kind for item in items for kind in nested(item)]
    inner = flat if SCALE > 1 else [pa.list_(FLOAT), pa.large_list(FLOAT), FIXED]
    deep = [kind for item in inner for kind in nested(item)]
    encoded = [pa.dictionary(pa.int8(), pa.list_(FLOAT)), pa.dictionary(pa.int8(), FIXED),
               pa.run_end_encoded(pa.int32(), pa.list_(FLOAT))]  # fmt: skip
    return [*LEAVES, *flat, *deep, *encoded]


def through_ipc(values: pa.Array) -> pa.Array:
    """Return an array as it comes from another process: without empty buffers."""
    stream = io.BytesIO()
    table = pa.table({"x": values})
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    batches = list(pa.ipc.open_stream(stream.getvalue()))
    return batches[0].column(0) if batches else values


def shapes(kind: pa.DataType) -> Iterator[tuple[str, pa.Array]]:
    """Yield arrays without a value."""
    arrays = {"empty": pa.nulls(0, kind), "nulls": pa.nulls(3, kind)}
    arrays["sliced nulls"] = pa.nulls(9, kind).slice(4, 3)
    if isinstance(kind, pa.StructType):
        arrays["null parts"] = pa.array([{"part": None}] * 3, kind)
    if isinstance(kind, pa.MapType):
        arrays["null items"] = pa.array([[("key", None)], None], kind)
    if isinstance(kind, pa.FixedSizeListType):
        arrays["null items"] = pa.array([[None, None], None], kind)
    if isinstance(kind, tuple(type(make(FLOAT)) for make in LISTS.values())):
        rows = pa.array([[None, None], None, None, []], kind)
        arrays |= {"rows": rows, "sliced rows": rows.slice(1, 2), "empty lists": rows.slice(3)}
    for name, array in arrays.items():
        yield name, array
        yield f"{name} after IPC", through_ipc(array)


def check(source: pa.Array, result: Any) -> None:
    """Assert that a result holds no more than a source that has no value."""
    if isinstance(result, pa.Array | pa.ChunkedArray):
        result.validate(full=True)
        assert len(result) == len(source)
        if source.null_count == len(source) and not isinstance(result.type, pa.RunEndEncodedType):
            assert result.null_count == len(source)


def table_of(values: pa.Array) -> pa.Table:
    return pa.table({"x": values})


def batch_of(values: pa.Array) -> pa.RecordBatch:
    return pa.record_batch({"x": values})


def schema_of(kind: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field("x", kind)])


def frame_of(values: pa.Array) -> pd.DataFrame:
    return pd.DataFrame({"x": pd.Series(values, dtype=pd.ArrowDtype(values.type))})


def append_file(values: pa.Array, kind: pa.DataType) -> None:
    """Append an Arrow file to a dataset in this process, with casts."""
    with tempfile.TemporaryDirectory() as folder:
        with pa.ipc.new_file(f"{folder}/rows.arrow", schema_of(values.type)) as file:
            file.write_table(table_of(values))
        lance_nb.write_dataset(schema_of(kind).empty_table(), f"{folder}/x.lance")
        lance_nb.spark.append(
            f"{folder}/rows.arrow", f"{folder}/x.lance", cast=True, engine="local"
        )
        check(values, lance_nb.dataset(f"{folder}/x.lance").to_table()["x"])


Cast = Callable[[pa.Array, pa.DataType], Any]


def rows_cast(cast: Callable[[Any, pa.Schema], Any]) -> Cast:
    """Return the cast of one array by a function that casts rows to a schema."""
    return lambda values, kind: cast(values, schema_of(kind))["x"]


def column_cast(cast: Callable[[pa.ChunkedArray, pa.Field], Any]) -> Cast:
    """Return the cast of one array by a function that casts a column to a field."""
    return lambda values, kind: cast(pa.chunked_array([values]), pa.field("x", kind))


def read(rows: Any, schema: pa.Schema) -> pa.Table:
    return reader_of(rows, schema).read_all()


def compare(values: pa.Array, kind: pa.DataType) -> None:
    nulls = pa.chunked_array([pa.nulls(len(values), kind)])
    assert len(values_differ(pa.chunked_array([values]), nulls)) == len(values)


def cast_scalars(values: pa.Array, kind: pa.DataType) -> None:
    for value in values:
        cast_array(value, kind)


DOORS: dict[str, Cast] = {
    "chunks": column_cast(lambda column, field: cast_array(column, field.type)),
    "scalars": cast_scalars,
    "tables": rows_cast(lambda values, schema: cast_table(table_of(values), schema)),
    "batches": rows_cast(lambda values, schema: read(table_of(values), schema)),
    "mappings": rows_cast(lambda values, schema: read({"x": values}, schema)),
    "pandas": rows_cast(lambda values, schema: read(frame_of(values), schema)),
    "frames": rows_cast(lambda values, schema: fitted(frame_of(values), schema)),
    "public cast": lance_nb.cast,
    "files": append_file,
    "files with bad records": lambda values, kind: try_cast(values, kind, "x")[0],
    "rows of Spark": rows_cast(lambda values, schema: from_spark(batch_of(values), schema)),
    "rows for Spark": rows_cast(lambda values, schema: to_spark(batch_of(values), schema)),
    "updates": column_cast(cast_update),
    "keys": rows_cast(lambda values, schema: typed(table_of(values), Schema.from_arrow(schema))),
    "merged rows": column_cast(_converted),
    "diff": compare,
    "filters": cast_value,
}


def matrix() -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield the casts of every type to every type."""
    kinds = all_types()
    for source in kinds:
        for name, values in shapes(source):
            for kind in kinds:

                def run(values: pa.Array = values, kind: pa.DataType = kind) -> None:
                    check(values, cast_array(values, kind))

                yield f"{name}: {source} to {kind}", run


def doors() -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield the casts that Arrow alone dies of, through every place that casts foreign values."""
    pairs = [(make(FLOAT), FIXED) for make in LISTS.values()]
    pairs += [
        *zip(nested(pa.list_(FLOAT)), nested(FIXED), strict=True),
        (pa.list_(pa.large_string()), pa.list_(pa.large_string(), 2)),
    ]
    for door, cast in DOORS.items():
        for source, kind in pairs:
            for name, values in shapes(source):

                def run(
                    cast: Any = cast, values: pa.Array = values, kind: pa.DataType = kind
                ) -> None:
                    if len(values):
                        check(values, cast(values, kind))

                yield f"{door}, {name}: {source} to {kind}", run


CASES = {"matrix": matrix, "doors": doors}


def run_cases(group: str, progress: Path) -> int:
    """Run the casts of a group; the file tells which is running. Return how many there were."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    count = 0
    with progress.open("r+b", buffering=0) as file:
        for name, run in CASES[group]():
            count += 1
            file.seek(0)
            file.write(f"{name}\n".encode())
            try:
                run()
            except MemoryError:
                raise
            except (pa.ArrowException, LanceError, NotImplementedError):
                pass  # a cast that Arrow refuses
    return count


def test_unions_of_lists_beside_a_list_are_left_alone() -> None:
    union = pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([[1]])])
    struct = pa.StructArray.from_arrays([union, pa.array([[1, 2]])], ["u", "l"])
    target = pa.struct([("u", union.type), ("l", pa.list_(pa.int64(), 2))])
    assert cast_array(struct, target).to_pylist() == [{"u": [1], "l": [1, 2]}]


def test_forms_of_an_extension_type_become_each_other() -> None:
    texts = pa.array(['{"a": 1}', None], pa.large_string())
    documents = pa.ExtensionArray.from_storage(pa.json_(pa.large_string()), texts)
    for values in (documents, pa.chunked_array([documents]), documents[0]):
        result = cast_array(values, pa.json_())
        assert result.type == pa.json_()
        is_scalar = isinstance(values, pa.Scalar)
        shown = [result.as_py()] if is_scalar else result.to_pylist()
        assert shown == ['{"a": 1}', None][: len(shown)]


@pytest.mark.parametrize("group", CASES)
def test_no_cast_leaves_its_memory(group: str, tmp_path: Path) -> None:
    progress = tmp_path / "case"
    progress.touch()
    command = [sys.executable, "-W", "ignore", "-m", __name__, group, str(progress)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False)
    case = progress.read_text().split("\n", 1)[0]
    if result.returncode < 0:
        pytest.fail(f"{case}: {signal.Signals(-result.returncode).name}")
    assert result.returncode == 0, f"{case}\n{result.stderr[-2000:]}"
    assert int(result.stdout) > 1000


if __name__ == "__main__":
    print(run_cases(sys.argv[1], Path(sys.argv[2])))
