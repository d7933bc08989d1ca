"""What users hand in to be written: anything that Arrow can stream.

Tables, record batches, readers, datasets and scanners of pyarrow, DataFrames of pandas and polars,
DuckDB relations, our own datasets and scanners, lists of dicts, dicts of lists, iterators of
batches. What offers the Arrow C stream is read as one, so that memory holds a batch, not the data.

Not supported: Hugging Face datasets with features of their own (hand in ``ds.with_format("arrow")``
or ``ds.data.table``).
Source: ``ReaderLike`` of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from lance_nb.errors import InvalidInputError, SchemaMismatchError


def reader_of(data: Any, schema: pa.Schema | None = None) -> pa.RecordBatchReader:
    """Return a reader over ``data``; ``schema`` is needed for an iterator of batches.

    Raises InvalidInputError for what cannot be streamed, SchemaMismatchError for another schema.
    """
    try:
        reader = _reader(data, schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as exc:
        raise SchemaMismatchError(f"the data does not fit the schema: {exc}") from exc
    return reader if schema is None else _checked(reader, schema)


def _reader(data: Any, schema: pa.Schema | None) -> pa.RecordBatchReader:
    if isinstance(data, pa.RecordBatchReader):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.RecordBatchReader.from_batches(data.schema, [data])
    if schema is not None and is_frame(data, ("pandas",)):
        return pa.Table.from_pandas(data, schema, preserve_index=False).to_reader()
    if hasattr(data, "to_reader"):
        return data.to_reader()
    if hasattr(data, "__arrow_c_stream__"):
        return _without_index(pa.RecordBatchReader.from_stream(data))
    if hasattr(data, "to_batches") and hasattr(data, "schema"):
        return pa.RecordBatchReader.from_batches(data.schema, data.to_batches())
    if isinstance(data, Mapping):
        return pa.table(data, schema=schema).to_reader()
    if isinstance(data, list) and data and isinstance(data[0], Mapping):
        return pa.Table.from_pylist(data, schema=schema).to_reader()
    if isinstance(data, Iterable) and not isinstance(data, str | bytes):
        return _from_batches(iter(data), schema)
    raise InvalidInputError(
        f"cannot read rows from {type(data).__name__}: hand in a pyarrow Table, RecordBatch or "
        "RecordBatchReader, a DataFrame, or anything else with __arrow_c_stream__"
    )


def fitted(rows: Any, schema: pa.Schema) -> Any:
    """Give the columns of a DataFrame the types of a dataset, where no value is lost by it.

    Who has a DataFrame did not choose between string and large_string. What cannot be cast, and all
    that is no DataFrame of pandas or polars, is returned as it is: the writer says what is wrong.
    """
    if not is_frame(rows):
        return rows
    table = reader_of(rows).read_all()
    known = set(schema.names)
    wanted = [schema.field(one.name) if one.name in known else one for one in table.schema]
    try:
        return table.cast(pa.schema([one.with_nullable(True) for one in wanted]))
    except pa.ArrowException:
        return table


def is_frame(data: object, kinds: tuple[str, ...] = ("pandas", "polars")) -> bool:
    """Whether a value is a DataFrame of such a library; told without importing it."""
    kind = type(data)
    return kind.__name__ == "DataFrame" and kind.__module__.split(".")[0] in kinds


def _without_index(reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """Drop what pandas adds to the schema; its index columns stay out, as pylance leaves them."""
    metadata = dict(reader.schema.metadata or {})
    if metadata.pop(b"pandas", None) is None:
        return reader
    names = [name for name in reader.schema.names if not name.startswith("__index_level_")]
    schema = pa.schema([reader.schema.field(name) for name in names], metadata or None)
    batches = (
        pa.RecordBatch.from_arrays([batch.column(name) for name in names], schema=schema)
        for batch in reader
    )
    return pa.RecordBatchReader.from_batches(schema, batches)


def _from_batches(batches: Iterator[Any], schema: pa.Schema | None) -> pa.RecordBatchReader:
    first = next(batches, None)
    if first is None and schema is None:
        raise InvalidInputError("no batch and no schema: there is nothing to tell the columns by")
    if first is not None and not isinstance(first, pa.RecordBatch | pa.Table):
        raise InvalidInputError(
            f"an iterator of rows yields record batches, not {type(first).__name__}"
        )
    known = schema if first is None or schema is not None else first.schema

    def flow() -> Iterator[pa.RecordBatch]:
        for one in () if first is None else _chain(first, batches):
            yield from one.to_batches() if isinstance(one, pa.Table) else [one]

    return pa.RecordBatchReader.from_batches(known, flow())


def _chain(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest


def _checked(reader: pa.RecordBatchReader, schema: pa.Schema) -> pa.RecordBatchReader:
    if reader.schema.equals(schema):
        return reader
    missing = [name for name in schema.names if name not in reader.schema.names]
    if missing:
        raise SchemaMismatchError(f"the data has no column {missing[0]!r}, which the schema names")
    try:
        return reader.cast(schema) if reader.schema.names == schema.names else _cast(reader, schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as exc:
        raise SchemaMismatchError(f"the data cannot be cast to the schema: {exc}") from exc


def _cast(reader: pa.RecordBatchReader, schema: pa.Schema) -> pa.RecordBatchReader:
    batches = (batch.select(schema.names).cast(schema) for batch in reader)
    return pa.RecordBatchReader.from_batches(schema, batches)
