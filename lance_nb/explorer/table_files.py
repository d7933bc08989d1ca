"""Files of rows that are not Lance: read for an append, written by an export.

=====================  ==============================  ============
ending                 format                          read, write
=====================  ==============================  ============
``.parquet``           Parquet                         both
``.csv``               CSV with a head line            both
``.arrow .feather``    Arrow IPC file                  both
``.json .jsonl``       one JSON object per line        read
=====================  ==============================  ============

A spreadsheet takes a cell of CSV that begins with ``= + - @``, a tab, a carriage return or a line
feed for a formula, which can send what is on the sheet elsewhere. In CSV such texts and names of
columns get an apostrophe before them, and are then not what is stored: ``formulas=True`` leaves
them as they are, and so do the other formats. Numbers, dates and times are not changed.

Source: OWASP, "CSV Injection".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from lance_nb.errors import InvalidInputError, LanceError, StorageError

# Some spreadsheets take the wide forms of = + - @ for the same.
_FORMULA = r"^([=+\-@\t\r\n\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}])"
_FORMULA_BYTES = r"^([=+\-@\t\r\n]|\xEF\xBC[\x9D\x8B\x8D\xA0])"


def _parquet_table(path: str) -> pa.Table:
    from pyarrow import parquet

    return parquet.read_table(path)


def _csv_table(path: str) -> pa.Table:
    from pyarrow import csv

    return csv.read_csv(path)


def _json_table(path: str) -> pa.Table:
    from pyarrow import json

    return json.read_json(path)


def _arrow_table(path: str) -> pa.Table:
    from pyarrow import feather

    return feather.read_table(path)


READERS: Mapping[str, Callable[[str], pa.Table]] = {
    ".parquet": _parquet_table, ".csv": _csv_table, ".json": _json_table, ".jsonl": _json_table,
    ".arrow": _arrow_table, ".feather": _arrow_table,
}  # fmt: skip


def read_file(path: Path) -> pa.Table:
    """Read a file of rows. Raises InvalidInputError."""
    try:
        return READERS[path.suffix](str(path))
    except (OSError, pa.ArrowException) as error:
        raise InvalidInputError(f"{path} cannot be read: {error}") from error


def _parquet_writer(path: str, schema: pa.Schema) -> Any:
    from pyarrow import parquet

    return parquet.ParquetWriter(path, schema)


class _CsvWriter:
    """Writes CSV whose texts no spreadsheet takes for formulas."""

    def __init__(self, path: str, schema: pa.Schema) -> None:
        from pyarrow import csv

        names = without_formulas(pa.array(schema.names, pa.string())).to_pylist()
        self._schema = pa.schema(
            [one.with_name(name) for one, name in zip(schema, names, strict=True)]
        )
        self._writer = csv.CSVWriter(path, self._schema)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()

    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Write rows."""
        columns = [without_formulas(one) for one in batch.columns]
        self._writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=self._schema))


def without_formulas(column: pa.Array) -> pa.Array:
    """Return texts (and bytes) with an apostrophe before each that a spreadsheet would run.

    Columns of other types are returned as they are.
    """
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_dictionary(kind):
        values = without_formulas(column.dictionary)
        return pa.DictionaryArray.from_arrays(column.indices, values, ordered=kind.ordered)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        pattern = _FORMULA
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        pattern = _FORMULA_BYTES
    else:
        return column
    return pc.replace_substring_regex(column, pattern=pattern, replacement=r"'\1")


def _plain_csv_writer(path: str, schema: pa.Schema) -> Any:
    from pyarrow import csv

    return csv.CSVWriter(path, schema)


_WRITERS: Mapping[str, Callable[[str, pa.Schema], Any]] = {
    ".parquet": _parquet_writer, ".csv": _CsvWriter, ".arrow": pa.ipc.new_file,
    ".feather": pa.ipc.new_file,
}  # fmt: skip


def write_file(path: Path, batches: pa.RecordBatchReader, *, formulas: bool = False) -> int:
    """Write rows as they come and return how many. Raises InvalidInputError, StorageError.

    ``formulas``: texts in CSV stay as they are, also where a spreadsheet would run them.
    """
    if path.suffix not in _WRITERS:
        raise InvalidInputError(f"{path}: the file name must end with one of {', '.join(_WRITERS)}")
    writer_of = _plain_csv_writer if formulas and path.suffix == ".csv" else _WRITERS[path.suffix]
    rows = 0
    try:
        with writer_of(str(path), batches.schema) as writer:
            for batch in batches:
                writer.write_batch(batch)
                rows += batch.num_rows
    except LanceError:  # the rows cannot be read: what is written of them is worth nothing
        path.unlink(missing_ok=True)
        raise
    except OSError as error:
        raise StorageError(str(path), str(error)) from error
    except pa.ArrowException as error:
        raise InvalidInputError(f"{path.suffix} cannot hold these columns: {error}") from error
    return rows
