"""Files of rows that are not Lance: read for an append, written by an export.

=====================  ==============================  ============
ending                 format                          read, write
=====================  ==============================  ============
``.parquet``           Parquet                         both
``.csv``               CSV with a head line            both
``.arrow .feather``    Arrow IPC file                  both
``.json .jsonl``       one JSON object per line        read
``.lance``             a Lance dataset                 write
=====================  ==============================  ============

Rows are written in a folder beside the place where they belong, and moved there when they are
complete, so that a name never holds a part of them. What is there already stays unless the caller
says otherwise.

A spreadsheet takes a cell of CSV that begins with ``= + - @``, a tab, a carriage return or a line
feed for a formula, which can send what is on the sheet elsewhere. In CSV such texts and names of
columns get an apostrophe before them, and are then not what is stored: ``formulas=True`` leaves
them as they are, and so do the other formats. Numbers, dates and times are not changed.

Source: OWASP, "CSV Injection".
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from lance_nb import arrow_compute as pc
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
            [field.with_name(name) for field, name in zip(schema, names, strict=True)]
        )
        self._writer = csv.CSVWriter(path, self._schema)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()

    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Write rows."""
        columns = [without_formulas(column) for column in batch.columns]
        self._writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=self._schema))


def without_formulas(column: pa.Array) -> pa.Array:
    """Return texts (and bytes) with an apostrophe before each that a spreadsheet would run.

    Columns of other types are returned as they are.
    """
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


_LANCE = ".lance"
ENDINGS = (*_WRITERS, _LANCE)
Progress = Callable[[int, int], object]


def write_file(
    path: Path,
    batches: pa.RecordBatchReader,
    *,
    formulas: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
    num_rows: int = 0,
) -> int:
    """Write rows as they come and return how many. Raises InvalidInputError, StorageError.

    ``formulas``: texts in CSV stay as they are, also where a spreadsheet would run them.
    ``overwrite``: a file that is there is replaced; a dataset is not. ``progress`` is called with
    the rows written and ``num_rows``, those expected (0: not known); what it raises ends the work,
    and nothing is left of it.
    """
    _check_target(path, batches.schema, overwrite=overwrite)
    try:
        folder = Path(tempfile.mkdtemp(prefix=f".{path.name[:80]}-", dir=path.parent))
    except OSError as error:
        raise StorageError(str(path), str(error)) from error
    counted = _Counted(batches, progress, num_rows)
    try:
        work = folder / path.name
        if path.suffix == _LANCE:
            _write_dataset(work, counted)
        else:
            _write_batches(work, counted, formulas=formulas)
        _publish(work, path, overwrite=overwrite)
    except LanceError:
        raise  # of the rows that are read; some are an OSError too
    except OSError as error:
        raise StorageError(str(path), str(error)) from error
    except pa.ArrowException as error:
        raise InvalidInputError(f"{path.suffix} cannot hold these columns: {error}") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return counted.rows


def _check_target(path: Path, schema: pa.Schema, *, overwrite: bool) -> None:
    if path.suffix not in ENDINGS:
        raise InvalidInputError(f"{path}: the file name must end with one of {', '.join(ENDINGS)}")
    if overwrite and path.suffix == _LANCE:
        raise InvalidInputError(
            f"{path}: a dataset is not overwritten by an export; write_dataset(mode='overwrite') "
            "makes a version of it"
        )
    if not overwrite and os.path.lexists(path):
        raise _exists(path)
    nested = [field.name for field in schema if pa.types.is_nested(field.type)]
    if path.suffix == ".csv" and nested:
        shown = ", ".join(map(repr, nested[:5])) + (", ..." if len(nested) > 5 else "")
        raise InvalidInputError(
            f"CSV has no lists and structs: leave out {shown}, or write .parquet, .arrow or .lance"
        )


def _exists(path: Path) -> InvalidInputError:
    return InvalidInputError(f"{path} exists already: choose another name")


class _Counted:
    """Batches that are counted and reported on their way."""

    def __init__(
        self, batches: pa.RecordBatchReader, progress: Progress | None, num_rows: int
    ) -> None:
        self.schema = batches.schema
        self.rows = 0
        self._batches, self._progress, self._num_rows = batches, progress, num_rows

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            if self._progress is not None:
                self._progress(self.rows, max(self._num_rows, self.rows))
            yield batch
            self.rows += batch.num_rows


def _write_batches(path: Path, batches: _Counted, *, formulas: bool) -> None:
    writer_of = _plain_csv_writer if formulas and path.suffix == ".csv" else _WRITERS[path.suffix]
    with writer_of(str(path), batches.schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def _write_dataset(path: Path, batches: _Counted) -> None:
    from lance_nb.session.opening import destination
    from lance_nb.writing import writing

    session, current = destination(path, None)
    rows = pa.RecordBatchReader.from_batches(batches.schema, batches)
    writing.write(session, current, rows, writing.WriteRequest(), mode="create")


def _publish(work: Path, path: Path, *, overwrite: bool) -> None:
    """Give complete rows their name. Nobody's file is replaced unless ``overwrite``."""
    if overwrite:
        work.replace(path)
        return
    if work.is_file():
        try:
            path.hardlink_to(work)
        except FileExistsError as error:
            raise _exists(path) from error
        except OSError:
            pass  # a file system without hard links
        else:
            return
    if os.path.lexists(path):
        raise _exists(path)
    work.rename(path)
