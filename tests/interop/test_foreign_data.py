"""Data of other libraries in every verb that takes data: what is stored is what pylance stores.

A case is a library, a value of some type in some shape (rows, none, nulls only, sliced, in chunks)
and a verb. Either engine writes it, pylance reads both: schema, metadata and rows are equal, or
both refuse. What only lance_nb takes is stored as pylance stores the table of pyarrow. The cases of
a library run in a child process, which reports the signal that it died of and the case.

Intended differences: ``schema=`` is obeyed for every source (pylance ignores it for tables and
readers); a source without rows has to fit, too; of a dataset of Hugging Face the selected rows are
stored (pylance stores all rows); text that is not UTF-8 is refused (pylance makes files that
cannot be read); vectors of texts and lists are refused (pylance stores those without values);
files without rows are refused. Jobs of ``lance_nb.spark`` run on the local engine.
``LANCE_NB_TEST_SCALE`` multiplies the number of cases.
"""

from __future__ import annotations

import datetime as dt
import io
import itertools
import json
import random
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance.file import LanceFileReader, LanceFileWriter

import lance_nb
from lance_nb import spark
from lance_nb.errors import InvalidInputError, SchemaMismatchError
from tests.interop.matrix import SCALE
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop

NUM_ROWS = 5
DAY = dt.date(2024, 2, 29)
MOMENT = dt.datetime(2024, 2, 29, 1, 2, 3, 4)  # noqa: DTZ001
Build = Callable[[pa.Table], Any]


# --- values ---------------------------------------------------------------------------------------

LEAVES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "null": (pa.null(), [None] * NUM_ROWS),
    "bool": (pa.bool_(), [True, None, False, True, None]),
    "int8": (pa.int8(), [1, None, -128, 127, 0]),
    "uint16": (pa.uint16(), [1, None, 65535, 0, 5]),
    "int64": (pa.int64(), [2**53 + 1, None, -(2**63), 2**63 - 1, 0]),
    "uint64": (pa.uint64(), [2**64 - 1, None, 0, 1, 2]),
    "float16": (pa.float16(), [np.float16(0.1), None, np.float16("nan"), np.float16(-0.0), 1]),
    "float32": (pa.float32(), [0.1, None, float("nan"), -0.0, float("inf")]),
    "float64": (pa.float64(), [0.1, None, float("nan"), -0.0, float("-inf")]),
    "string": (pa.string(), ["x", None, "", "ä" * 40, "\0"]),
    "large_string": (pa.large_string(), ["x", None, "", "ä" * 40, "y"]),
    "string_view": (pa.string_view(), ["x", None, "", "ä" * 40, "y"]),
    "binary": (pa.binary(), [b"x", None, b"", b"\xff" * 40, b"\0"]),
    "large_binary": (pa.large_binary(), [b"x", None, b"", b"\xff" * 40, b"\0"]),
    "binary_view": (pa.binary_view(), [b"x", None, b"", b"\xff" * 40, b"\0"]),
    "fixed_binary": (pa.binary(3), [b"abc", None, b"\0\0\0", b"xyz", b"123"]),
    "decimal128": (pa.decimal128(10, 2), [Decimal("1.50"), None, Decimal("-0.01"), 0, 7]),
    "decimal256": (pa.decimal256(50, 3), [Decimal("1.500"), None, Decimal(10**40), 0, 7]),
    "decimal32": (pa.decimal32(5, 1), [Decimal("1.5"), None, 0, 1, 2]),
    "date32": (pa.date32(), [DAY, None, DAY, DAY, DAY]),
    "date64": (pa.date64(), [DAY, None, DAY, DAY, DAY]),
    "timestamp": (pa.timestamp("us"), [MOMENT, None, MOMENT, MOMENT, MOMENT]),
    "timestamp_zone": (pa.timestamp("ns", "Europe/Berlin"), [1, None, -1, 2**60, 0]),
    "time32": (pa.time32("ms"), [1, None, 0, 86_399_999, 5]),
    "time64": (pa.time64("ns"), [1, None, 0, 5, 86_399_999_999_999]),
    "duration": (pa.duration("us"), [1, None, -1, 2**60, 0]),
    "interval": (pa.month_day_nano_interval(), [(1, 2, 3), None, (0, 0, 0), (1, 1, 1), (2, 2, 2)]),
}
ITEMS = ("bool", "int8", "float32", "string", "large_binary", "string_view", "decimal128", "null")


def leaf(name: str) -> pa.Array:
    """Return the values of a type."""
    kind, values = LEAVES[name]
    return pa.array(values, kind)


def nested(name: str, items: pa.Array) -> Iterator[tuple[str, pa.Array]]:
    """Yield lists, structs and maps of some values."""
    offsets = pa.array([0, 2, 2, 3, 5, 5], pa.int32())
    valid = pa.array([False, True, False, False, False])
    rows = pa.ListArray.from_arrays(offsets, items, mask=valid)
    yield f"list<{name}>", rows
    yield f"large_list<{name}>", rows.cast(pa.large_list(items.type))
    yield (
        f"list_view<{name}>",
        pa.ListViewArray.from_arrays(offsets[:-1], pa.array([2, 0, 1, 2, 0], pa.int32()), items),
    )
    twice = pa.concat_arrays([items, items])
    yield f"vector<{name}>", pa.FixedSizeListArray.from_arrays(twice, 2, mask=valid)
    yield f"struct<{name}>", pa.StructArray.from_arrays([items, rows], ["x", "y"], mask=valid)
    keys = pa.array(["a", "b", "c", "d", "e"])
    yield f"map<{name}>", pa.MapArray.from_arrays(offsets, keys, items)


def encoded() -> Iterator[tuple[str, pa.Array]]:
    """Yield dictionaries and runs."""
    texts = pa.array(["x", None, "y", "x", "x"])
    yield "dictionary", texts.dictionary_encode()
    yield "dictionary<int8>", texts.dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string()))
    yield "dictionary<int64>", pa.array([7, None, 8, 7, 7]).dictionary_encode()
    yield "null in a dictionary", pa.DictionaryArray.from_arrays([0, 1, 0, 1, 0], ["x", None])
    yield (
        "ordered dictionary",
        pa.DictionaryArray.from_arrays([0, 1, 0, 1, 0], ["x", "y"], ordered=True),
    )
    yield (
        "list<dictionary>",
        pa.ListArray.from_arrays([0, 1, 2, 3, 4, 5], texts.dictionary_encode()),
    )
    yield "struct<dictionary>", pa.StructArray.from_arrays([texts.dictionary_encode()], ["x"])
    yield "runs", pa.RunEndEncodedArray.from_arrays([2, 5], ["x", "y"])


def extensions() -> Iterator[tuple[str, pa.Array]]:
    """Yield extension types, those of the format among them."""
    yield "bfloat16", lance_nb.bfloat16_array([1.5, None, 0.1, -2.0, 0.0])
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(10, dtype=np.float32)), 2)
    tensor = pa.fixed_shape_tensor(pa.float32(), (2, 1))
    yield "tensor", pa.ExtensionArray.from_storage(tensor, vectors)
    identifiers = [uuid.UUID(int=number).bytes for number in range(4)]
    yield "uuid", pa.array([*identifiers, None], pa.uuid())
    yield "json", pa.array(['{"a": 1}', None, "[]", "null", '"x"'], pa.json_())
    yield (
        "bool8",
        pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, None, 0, 1, 1], pa.int8())),
    )
    yield "opaque", pa.ExtensionArray.from_storage(pa.opaque(pa.int64(), "t", "v"), leaf("int64"))
    half = lance_nb.bfloat16_array([1.5, 0.1, -2.0, 0.0] * 3)[:10]
    yield "vector<bfloat16>", pa.FixedSizeListArray.from_arrays(half, 2)
    yield (
        "list<uuid>",
        pa.ListArray.from_arrays([0, 1, 2, 3, 4, 5], pa.array([*identifiers, None], pa.uuid())),
    )
    yield (
        "struct<json>",
        pa.StructArray.from_arrays([pa.array(["1", None, "2", "3", "{}"], pa.json_())], ["x"]),
    )


def all_values() -> dict[str, pa.Array]:
    """Return the arrays by the name of their type."""
    values = {name: leaf(name) for name in LEAVES}
    for name in ITEMS:
        values |= dict(nested(name, leaf(name)))
    for name in ("list<float32>", "vector<float32>", "struct<string>"):
        values |= dict(nested(name, values[name]))
    return {**values, **dict(encoded()), **dict(extensions())}


MARKS = {
    "blob": (leaf("large_binary"), {"lance-encoding:blob": "true"}),
    "marked": (leaf("string"), {"unit": "m", "lance-encoding:compression": "zstd"}),
    "json by name": (pa.array(['{"a": 1}', None, "[]"]), {"ARROW:extension:name": "arrow.json"}),
    "number as json": (leaf("int8"), {"ARROW:extension:name": "arrow.json"}),
    "uuid by name": (
        pa.array([b"0" * 16, None], pa.binary(16)),
        {"ARROW:extension:name": "arrow.uuid"},
    ),
    "unknown name": (leaf("int8"), {"ARROW:extension:name": "some.type"}),
    "vector marked": (None, {"logical": "embedding"}),
}


def columns() -> Iterator[tuple[str, pa.Field, pa.ChunkedArray]]:
    """Yield columns: each type in each shape."""
    for name, array in all_values().items():
        for shape, column in shapes(array):
            yield f"{name}, {shape}", pa.field("a", column.type), column
    for name, (marked, metadata) in MARKS.items():
        array = all_values()["vector<float32>"] if marked is None else marked
        for shape, column in shapes(array):
            yield f"{name}, {shape}", pa.field("a", column.type, metadata=metadata), column
    solid = pa.array([1, 2, 3, 4, 5])
    for shape, column in shapes(solid):
        if shape != "nulls":
            yield f"not null, {shape}", pa.field("a", pa.int64(), nullable=False), column


def shapes(array: pa.Array) -> Iterator[tuple[str, pa.ChunkedArray]]:
    """Yield values as they are, none, nulls only, from the middle, and in chunks."""
    yield "rows", pa.chunked_array([array])
    yield "empty", pa.chunked_array([array[:0]])
    if not pa.types.is_list_view(array.type):  # pyarrow 26 ends the process when it reads them
        yield "no chunk", pa.chunked_array([], array.type)
    yield "nulls", pa.chunked_array([through_ipc(pa.nulls(NUM_ROWS, array.type))])
    yield "sliced", pa.chunked_array([pa.concat_arrays([array, array])[3:8]])
    yield "chunks", pa.chunked_array([array[:2], array[2:2], array[2:]])


def through_ipc(array: pa.Array) -> pa.Array:
    """Return an array as it comes from another process: without empty buffers."""
    stream = io.BytesIO()
    batch = pa.record_batch({"a": array})
    with pa.ipc.new_stream(stream, batch.schema) as writer:
        writer.write_batch(batch)
    return next(iter(pa.ipc.open_stream(stream.getvalue()))).column(0)


def table_of(field: pa.Field, column: pa.ChunkedArray) -> pa.Table:
    """Return a column beside a key."""
    keys = pa.array(range(len(column)), pa.int64())
    schema = pa.schema([pa.field("key", pa.int64()), field], {"origin": "elsewhere"})
    return pa.Table.from_arrays([pa.chunked_array([keys]), column], schema=schema)


# --- libraries ------------------------------------------------------------------------------------


def _arrow_dataset(table: pa.Table) -> Any:
    from pyarrow import dataset

    return dataset.dataset(table)


def _duckdb(table: pa.Table) -> Any:
    import duckdb

    return duckdb.connect().from_arrow(table)


def _hugging_face(table: pa.Table) -> Any:
    import datasets

    return datasets.Dataset(table.replace_schema_metadata(None))


def _hugging_face_stream(table: pa.Table) -> Any:
    return _hugging_face(table).to_iterable_dataset()


def _polars(table: pa.Table) -> Any:
    return pytest.importorskip("polars").from_arrow(table)


def _arrays(table: pa.Table) -> dict[str, Any]:
    return {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}


def _structured(table: pa.Table) -> Any:
    arrays = _arrays(table)
    kinds = [(name, array.dtype) for name, array in arrays.items()]
    rows = np.empty(table.num_rows, kinds)
    for name, array in arrays.items():
        rows[name] = array
    return rows


def _single(table: pa.Table) -> dict[str, Any]:
    (batch,) = table.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]
    return dict(zip(batch.schema.names, batch.columns, strict=True))


LIBRARIES: dict[str, dict[str, Build]] = {
    "pyarrow": {
        "Table": lambda table: table,
        "RecordBatchReader": lambda table: table.to_reader(),
        "Dataset": _arrow_dataset,
        "Scanner": lambda table: _arrow_dataset(table).scanner(),
        "batches": lambda table: iter(table.to_batches()),
        "dict": _single,
        "list": lambda table: table.to_pylist(),
    },
    "duckdb": {
        "relation": _duckdb,
        "reader": lambda table: _duckdb(table).to_arrow_reader(),
        "table": lambda table: _duckdb(table).to_arrow_table(),
    },
    "datasets": {"Dataset": _hugging_face, "IterableDataset": _hugging_face_stream},
    "pandas": {
        "DataFrame": lambda table: table.to_pandas(),
        "DataFrame of Arrow": lambda table: table.to_pandas(types_mapper=_arrow_dtype),
    },
    "polars": {"DataFrame": _polars, "LazyFrame": lambda table: _polars(table).lazy()},
    "numpy": {"dict": _arrays, "structured": _structured, "lists": pa.Table.to_pydict},
}


def _arrow_dtype(kind: pa.DataType) -> Any:
    import pandas as pd

    return pd.ArrowDtype(kind)


# --- verbs ----------------------------------------------------------------------------------------


def _create(engine: Any, uri: str, source: Build, table: pa.Table) -> None:
    engine.write_dataset(source(table), uri)


def _create_with_schema(engine: Any, uri: str, source: Build, table: pa.Table) -> None:
    engine.write_dataset(source(table), uri, schema=table.schema)


def _append(engine: Any, uri: str, source: Build, table: pa.Table) -> None:
    lance.write_dataset(table, uri)
    engine.write_dataset(source(table), uri, mode="append")


def _insert(engine: Any, uri: str, source: Build, table: pa.Table) -> None:
    lance.write_dataset(table, uri)
    engine.dataset(uri).insert(source(table))


def _overwrite(engine: Any, uri: str, source: Build, table: pa.Table) -> None:
    lance.write_dataset(pa.table({"q": [1]}), uri)
    engine.write_dataset(source(table), uri, mode="overwrite")


def _upsert(engine: Any, uri: str, source: Build, table: pa.Table) -> None:
    lance.write_dataset(table[:2], uri)
    builder = engine.dataset(uri).merge_insert("key")
    builder.when_matched_update_all().when_not_matched_insert_all().execute(source(table))


def _merge(engine: Any, uri: str, source: Build, table: pa.Table) -> None:
    lance.write_dataset(pa.table({"key": range(NUM_ROWS + 1)}), uri)
    engine.dataset(uri).merge(source(table), "key")


def _add_columns(engine: Any, uri: str, source: Build, table: pa.Table) -> None:
    lance.write_dataset(pa.table({"q": range(table.num_rows)}), uri)
    engine.dataset(uri).add_columns(source(table))


def _update_columns(engine: Any, uri: str, source: Build, table: pa.Table) -> None:
    lance.write_dataset(pa.concat_tables([table[1:], table[:1]]), uri)
    dataset = engine.dataset(uri)
    (fragment,) = dataset.get_fragments()
    written, fields = fragment.update_columns(source(table), "key", "key")
    operation = engine.LanceOperation.Update(updated_fragments=[written], fields_modified=fields)
    engine.LanceDataset.commit(uri, operation, read_version=dataset.version)


def _stage(engine: Any, uri: str, source: Build, table: pa.Table) -> None:
    if engine is not lance_nb:
        _append(engine, uri, source, table)
        return
    lance.write_dataset(table, uri)
    stage = lance_nb.dataset(uri).stage()
    stage.append(source(table))
    stage.commit()


def _spark_create(engine: Any, uri: str, source: Build, table: pa.Table) -> None:
    if engine is not lance_nb:
        _create(engine, uri, source, table)
        return
    spark.write(source(table), uri, engine="local")


def _spark_overwrite(engine: Any, uri: str, source: Build, table: pa.Table) -> None:
    if engine is not lance_nb:
        _overwrite(engine, uri, source, table)
        return
    lance.write_dataset(pa.table({"q": [1]}), uri)
    spark.write(source(table), uri, "overwrite", engine="local")


def _spark_append(engine: Any, uri: str, source: Build, table: pa.Table) -> None:
    if engine is not lance_nb:
        _append(engine, uri, source, table)
        return
    lance.write_dataset(table, uri)
    spark.append(uri, source(table), engine="local")


def _spark_replace(engine: Any, uri: str, source: Build, table: pa.Table) -> None:
    lance.write_dataset(table, uri)
    if engine is lance_nb:
        spark.write(source(table), uri, "overwrite", where="key >= 0", engine="local")
        return
    engine.dataset(uri).delete("key >= 0")
    engine.write_dataset(source(table), uri, mode="append")


def _spark_copy(engine: Any, uri: str, source: Build, table: pa.Table) -> None:
    if engine is not lance_nb:
        _append(engine, uri, source, table)
        return
    lance.write_dataset(table, uri)
    rows = lance_nb.write_dataset(source(table), f"{uri}.rows")
    spark.append(uri, rows, engine="local")


def _spark_file(engine: Any, uri: str, source: Build, table: pa.Table) -> None:
    """Append a file of Arrow; a source that is no table as it is."""
    rows = source(table)
    if engine is not lance_nb or not isinstance(rows, pa.Table):
        _spark_append(engine, uri, source, table)
        return
    lance.write_dataset(table, uri)
    with pa.ipc.new_file(f"{uri}.arrow", rows.schema) as writer:
        writer.write(rows)
    spark.append(uri, f"{uri}.arrow", engine="local")


Verb = Callable[[Any, str, Build, pa.Table], None]
VERBS: tuple[Verb, ...] = (
    _create, _create_with_schema, _append, _insert, _overwrite, _upsert, _merge, _add_columns,
    _update_columns, _stage,
)  # fmt: skip
# The way in for jobs, on the local engine.
SPARK_VERBS: tuple[Verb, ...] = (
    _spark_create, _spark_overwrite, _spark_append, _spark_replace, _spark_copy, _spark_file,
)  # fmt: skip


# --- comparison -----------------------------------------------------------------------------------


def stored(uri: str) -> Any:
    """Return fields, metadata and rows as pylance reads them."""
    dataset = lance.dataset(uri)
    table = dataset.to_table()
    fields = [
        (field.name, str(field.type), field.nullable, field.metadata) for field in table.schema
    ]
    rows = table.to_pylist()
    if rows and "a" in table.schema.names and "position" in str(table.schema.field("a").type):
        blobs = dataset.take_blobs("a", indices=range(len(rows)))
        for row, blob in zip(rows, blobs, strict=True):
            row["a"] = None if blob is None else blob.readall()
    return fields, sorted((table.schema.metadata or {}).items()), sorted(map(repr, rows))


REFUSALS = (
    OSError,
    ValueError,
    TypeError,
    RuntimeError,
    OverflowError,
    NotImplementedError,
    KeyError,
)


def outcome(engine: Any, verb: Verb, uri: str, source: Build, table: pa.Table) -> Any:
    """Return what is stored, or the error as text."""
    try:
        verb(engine, uri, source, table)
    except REFUSALS as error:
        return f"{type(error).__name__}: {error}"
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        return f"panic: {error}"
    try:
        return stored(uri)
    except REFUSALS as error:
        return f"cannot be read: {error}"


def compare(verb: Verb, folder: str, source: Build, table: pa.Table) -> str | None:
    """Return how what lance_nb stores differs, None if it does not."""

    def result(engine: Any, used: Build) -> Any:
        return outcome(engine, verb, f"{folder}/{next(names)}", used, table)

    names = itertools.count()
    shutil.rmtree(folder, ignore_errors=True)
    ours, theirs = result(lance_nb, source), result(lance, source)
    if isinstance(ours, str):
        is_refused = isinstance(theirs, str) or verb is _create_with_schema
        is_refused |= not table.num_rows and ours.startswith("SchemaMismatchError")
        is_refused |= "fixed-size lists of" in ours
        is_refused |= verb is _spark_file and not table.num_rows and "they have no rows" in ours
        # a dataset that pylance created and cannot read itself: a number with the name of JSON
        is_refused &= not ours.startswith("cannot be read") or "Invalid storage type" in ours
        return None if is_refused else f"{ours} | pylance: {theirs}"
    if ours == theirs:
        return None
    substitute = None if verb is _create_with_schema else SUBSTITUTES.get(source)
    plain = result(lance, substitute or (lambda table: table))
    if isinstance(theirs, str):
        # pandas has nulls for NaN inside of lists
        is_same = isinstance(plain, str) or without_nan(ours) == without_nan(plain)
        return None if is_same else f"{ours} | {theirs} | {plain}"
    is_obeyed = verb is _create_with_schema and ours[::2] == plain[::2]
    return None if is_obeyed else f"{ours} | pylance: {theirs}"


def without_nan(result: Any) -> list[str]:
    """Return the rows with null for NaN."""
    return sorted(row.replace("nan", "None") for row in result[2])


# source of lance_nb only -> the source whose rows pylance stores
SUBSTITUTES: dict[Build, Build] = {
    _duckdb: lambda table: _duckdb(table).to_arrow_table(),
    _arrays: lambda table: pa.table(_arrays(table)),
    pa.Table.to_pydict: lambda table: pa.table(table.to_pydict()),
}


Case = tuple[str, Verb, Build, pa.Table]


def cases(library: str, count: int) -> Iterator[Case]:
    """Yield some of all combinations."""
    forms = LIBRARIES[library].items()
    for verbs, number in ((VERBS, count), (SPARK_VERBS, count // 3)):
        every = list(itertools.product(columns(), forms, verbs))
        for (name, field, column), (form, source), verb in random.Random(SEED).sample(
            every, min(number, len(every))
        ):
            yield f"{form}: {name}: {verb.__name__}", verb, source, table_of(field, column)


def can_hold(source: Build, table: pa.Table) -> bool:
    """Tell whether a library has such values."""
    try:
        source(table)
    except BaseException as error:  # whatever a library raises, panics of polars among it
        if isinstance(error, KeyboardInterrupt):
            raise
        return False
    return True


def check_library(library: str, folder: str, count: int) -> dict[str, Any]:
    """Return the number of cases and the differences; a file tells which case is running."""
    number, differences = 0, []
    for name, verb, source, table in cases(library, count):
        Path(f"{folder}.case").write_text(name)
        if can_hold(source, table):
            number += 1
            if difference := compare(verb, folder, source, table):
                differences.append(f"{name}: {difference}")
    return {"cases": number, "differences": differences}


SEED = 20_261
COUNT = round(50 * SCALE)


@pytest.mark.parametrize("library", LIBRARIES)
def test_data_is_stored_as_pylance_stores_it(library: str, tmp_path: Path) -> None:
    require_pylance()
    pytest.importorskip(library)
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        __name__,
        library,
        f"{tmp_path}/rows",
        str(COUNT),
    ]
    result = subprocess.run(command, capture_output=True, text=True, timeout=3600, check=False)
    where = (tmp_path / "rows.case").read_text()
    if result.returncode < 0:
        pytest.fail(f"seed {SEED}, {where}: {signal.Signals(-result.returncode).name}")
    assert result.returncode == 0, f"{where}\n{result.stderr[-2000:]}"
    report = json.loads(result.stdout.splitlines()[-1])
    assert report["differences"] == [], f"seed {SEED}"
    assert report["cases"] > COUNT // 3


def test_selected_rows_of_a_hugging_face_dataset_are_stored(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    labels = datasets.Features(
        {"n": datasets.Value("int32"), "c": datasets.ClassLabel(names=["p", "q"])}
    )
    rows = datasets.Dataset.from_dict({"n": [1, 2, 3], "c": [0, 1, 0]}, features=labels)
    for name, data, expected in (
        ("all", rows, [1, 2, 3]),
        ("selected", rows.select([2, 0]), [3, 1]),
        ("stream", rows.to_iterable_dataset().skip(1), [2, 3]),
        ("as numpy", rows.with_format("numpy"), [1, 2, 3]),
        ("none", rows.select([]), []),
    ):
        table = lance_nb.write_dataset(data, tmp_path / name).to_table()
        assert table["n"].to_pylist() == expected, name
        assert datasets.Features.from_arrow_schema(table.schema) == labels
    with pytest.raises(InvalidInputError, match="several datasets"):
        lance_nb.write_dataset(datasets.DatasetDict({"train": rows}), tmp_path / "dict")
    stream = datasets.IterableDataset.from_generator(lambda: iter([{"n": 1}]))
    with pytest.raises(InvalidInputError, match="pass schema"):
        lance_nb.write_dataset(stream, tmp_path / "generator")
    schema = pa.schema([("n", pa.int64())])
    table = lance_nb.write_dataset(stream, tmp_path / "generator", schema=schema).to_table()
    assert table.to_pylist() == [{"n": 1}]


def _not_utf8() -> Iterator[pa.Array]:
    text = pa.array([b"ok", b"\xff"]).view(pa.string())
    yield text
    yield text.cast(pa.large_string())
    yield text.dictionary_encode()
    yield text.cast(pa.string_view())
    yield pa.ListArray.from_arrays([0, 1, 2], text)
    yield pa.StructArray.from_arrays([text], ["part"])


def test_text_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    good = lance_nb.write_dataset(pa.table({"a": ["x"]}), tmp_path / "text")
    for number, column in enumerate(_not_utf8()):
        with pytest.raises(SchemaMismatchError, match="'a' has text that is not UTF-8"):
            lance_nb.write_dataset(pa.table({"a": column}), f"{tmp_path}/{number}")
    with pytest.raises(SchemaMismatchError, match="not UTF-8"):
        good.insert(pa.table({"a": next(_not_utf8())}))
    mixed = pa.table({"key": [1, 2], "a": [[("x", "y")], [("x", b"\xff")]]})  # as pandas has maps
    keys = lance_nb.write_dataset(pa.table({"key": [1, 2]}), tmp_path / "keys")
    with pytest.raises(SchemaMismatchError, match="not UTF-8"):
        keys.merge(mixed, "key")
    assert lance_nb.dataset(good.uri).version == 1


def test_texts_with_the_name_of_json_are_stored_as_json(tmp_path: Path) -> None:
    named = {"ARROW:extension:name": "arrow.json"}
    inner = pa.field("j", pa.string(), metadata=named)
    texts = pa.array(['{"a": 1}', None])
    columns = {
        "a": (texts, pa.field("a", pa.string(), metadata=named)),
        "s": (pa.StructArray.from_arrays([texts], fields=[inner]), None),
        "l": (pa.ListArray.from_arrays([0, 1, 2], texts).cast(pa.list_(inner)), None),
        "k": (pa.array([1, 2]), None),
    }
    fields = [field or pa.field(name, array.type) for name, (array, field) in columns.items()]
    table = pa.Table.from_arrays([array for array, _ in columns.values()], schema=pa.schema(fields))
    for engine in (lance_nb, lance):
        uri = f"{tmp_path}/{engine.__name__}"
        engine.write_dataset(table, uri)
        engine.dataset(uri).insert(table)
        (fragment, _) = engine.dataset(uri).get_fragments()
        pieces = [*table[:1].to_batches(), *table[1:].to_batches()]
        pieces.insert(1, pieces[1][1:])  # an empty slice
        fragment.update_columns(pa.Table.from_batches(pieces), "k", "k")
    ours, theirs = (lance.dataset(f"{tmp_path}/{name}") for name in ("lance_nb", "lance"))
    assert ours.schema == theirs.schema
    assert ours.to_table() == theirs.to_table()
    assert ours.count_rows("json_get_int(a, 'a') = 1") == 2


def _named_table(name: str, kind: pa.DataType) -> pa.Table:
    """Texts, also inside of structs and lists, whose fields only carry a name of JSON."""
    texts = pa.array(['{"a":1}', None, "[1]"], kind)
    column = pa.field("a", kind, metadata={"ARROW:extension:name": name})
    structs = pa.StructArray.from_arrays([texts], fields=[column])
    lists = pa.ListArray.from_arrays([0, 1, 1, 3], texts).cast(pa.list_(column))
    fields = [column, pa.field("s", structs.type), pa.field("l", lists.type)]
    return pa.Table.from_arrays([texts, structs, lists], schema=pa.schema(fields))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
@pytest.mark.parametrize("name", ["arrow.json", "lance.json"])
def test_schemas_with_a_name_of_json_mean_what_they_mean_in_pylance(
    tmp_path: Path, name: str, kind: pa.DataType
) -> None:
    table = _named_table(name, kind)
    writers = {
        "lance": (lance, lance.fragment.write_fragments, LanceFileWriter),
        "lance_nb": (lance_nb, lance_nb.write_fragments, lance_nb.LanceFileWriter),
    }
    for label, (engine, write_fragments, writer_class) in writers.items():
        uri = str(tmp_path / label)
        fragments = write_fragments(table, uri)
        overwrite = engine.LanceOperation.Overwrite(table.schema, fragments)
        engine.LanceDataset.commit(uri, overwrite)
        for schema in (table.schema, None):
            with writer_class(f"{uri}-{schema is None}.lance", schema) as writer:
                writer.write_batch(table[:1])
                writer.write_batch(table[1:])
    for reader in (lance, lance_nb):
        ours, theirs = (reader.dataset(tmp_path / label) for label in ("lance_nb", "lance"))
        assert ours.schema.equals(theirs.schema, check_metadata=True)
        assert ours.to_table() == theirs.to_table()
        assert ours.to_table()["a"].to_pylist() == table["a"].to_pylist()
        assert (ours.schema.field("a").type == pa.json_()) == (name == "arrow.json")
    for reader_class in (LanceFileReader, lance_nb.LanceFileReader):
        for suffix in ("True", "False"):
            paths = (str(tmp_path / f"{label}-{suffix}.lance") for label in ("lance_nb", "lance"))
            ours, theirs = (reader_class(path).read_all().to_table() for path in paths)
            assert ours.schema.equals(theirs.schema, check_metadata=True)
            assert ours == theirs


def test_views_inside_of_maps_are_joined(tmp_path: Path) -> None:
    views = pa.array(["a", "b"], pa.string_view())
    maps = pa.MapArray.from_arrays([0, 1, 2], pa.array(["k", "l"]), views)
    right = pa.table({"key": [1, 2], "m": maps})
    for engine in (lance_nb, lance):
        engine.write_dataset(pa.table({"key": [2, 1, 3]}), tmp_path / engine.__name__)
        engine.dataset(tmp_path / engine.__name__).merge(right, "key")
    ours, theirs = (lance.dataset(tmp_path / name).to_table() for name in ("lance_nb", "lance"))
    assert ours.schema == theirs.schema
    assert ours.to_pylist() == theirs.to_pylist()


if __name__ == "__main__":
    print(json.dumps(check_library(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
