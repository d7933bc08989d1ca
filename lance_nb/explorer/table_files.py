"""Files of rows that are not Lance: read for an append, written by an export.

=====================  ==============================  ============
ending                 format                          read, write
=====================  ==============================  ============
``.parquet``           Parquet                         both
``.csv``               CSV with a head line            both
``.arrow .feather``    Arrow IPC file                  both
``.json .jsonl``       one JSON object per line        read
=====================  ==============================  ============
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from lance_nb.errors import InvalidInputError, LanceError, StorageError


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


def _csv_writer(path: str, schema: pa.Schema) -> Any:
    from pyarrow import csv

    return csv.CSVWriter(path, schema)


_WRITERS: Mapping[str, Callable[[str, pa.Schema], Any]] = {
    ".parquet": _parquet_writer, ".csv": _csv_writer, ".arrow": pa.ipc.new_file,
    ".feather": pa.ipc.new_file,
}  # fmt: skip


def write_file(path: Path, batches: pa.RecordBatchReader) -> int:
    """Write rows as they come and return how many. Raises InvalidInputError, StorageError."""
    if path.suffix not in _WRITERS:
        raise InvalidInputError(f"{path}: the ending says the format: {', '.join(_WRITERS)}")
    rows = 0
    try:
        with _WRITERS[path.suffix](str(path), batches.schema) as writer:
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
