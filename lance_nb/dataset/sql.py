"""SQL over one version, run by DuckDB on our Arrow stream (extra ``sql``).

The statement sees the version as a table named ``dataset``, or as ``table_name`` says. It is
translated first (``statements``), so that it means what it means in pylance and in filters: only
the columns that it names are read, and conditions of WHERE become the filters of scans, so that
indices answer them. Counts of values, and least and greatest values, come from indices where these
have them (``sql_statement``).

This is the one module that opens DuckDB. A statement reaches the registered datasets and nothing
else of the machine or the process:

===================================  ===========================================================
files, URLs, ``ATTACH``, ``COPY``    ``enable_external_access = false``
``INSTALL``, ``LOAD``, autoloading   the same, and both settings that load extensions by themselves
Python variables named as tables     ``python_enable_replacements = false``
secrets that stay on disk            ``allow_persistent_secrets = false``
``SET``, ``RESET``, ``PRAGMA``       ``lock_configuration = true``: none of these can be undone
===================================  ===========================================================

What does not fit in memory goes to a folder of its own in the system's temporary folder, mode 700,
that is removed with the connection.

Limits: DuckDB's own memory limit (80 % of the machine's, or of its container's); temporary files
take at most half of the disk space that is free when the connection is opened. A statement may
change what belongs to its connection alone: tables and views in memory, variables, the schema.
Source: duckdb.org, "Securing DuckDB"; tested with DuckDB 1.1 and 2.0.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lance_nb.dataset.sql_statement import indexed_statement
from lance_nb.errors import InvalidInputError, MissingPackageError
from lance_nb.value_classes import dataclass

if TYPE_CHECKING:
    from lance_nb.dataset.dataset import LanceDataset
    from lance_nb.dataset.scanner import LanceScanner
    from lance_nb.dataset.statements.translation import Translation

_LOCKED = {
    "enable_external_access": "false",
    "python_enable_replacements": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_persistent_secrets": "false",
    "lock_configuration": "true",
}
_FOLDER_PREFIX = "lance_nb-sql-"
DEFAULT_BATCH_ROWS = 8192
_ANSWERED = "Answered without a scan:"
_RAISED_BY_US = re.compile(r".*Python exception occurred while executing the UDF: \w+: ")
_REFUSED = re.compile(r"Permission Error|configuration has been locked|requires the extension")


def open_duckdb() -> Any:
    """Open a new database in memory that reaches nothing but what is registered in it.

    Keep the connection for as long as its results are read. Raises MissingPackageError without
    DuckDB.
    """
    import shutil
    import tempfile

    duckdb = _duckdb()
    folder = tempfile.mkdtemp(prefix=_FOLDER_PREFIX)  # mode 700; DuckDB's own would be readable
    remove = partial(shutil.rmtree, folder, ignore_errors=True)
    with ExitStack() as undo:
        undo.callback(remove)
        free = shutil.disk_usage(folder).free
        limits = {"temp_directory": folder, "max_temp_directory_size": f"{free // 2}B"}
        connection = duckdb.connect(config={**_LOCKED, **limits})
        weakref.finalize(connection, remove)
        undo.pop_all()
    return connection


def words_of(error: Exception) -> str:
    """Return what DuckDB says in one line, without the trace of our stream that it quotes."""
    message = " ".join(str(error).partition(" Detail: Python exception")[0].split())
    message = _RAISED_BY_US.sub("", message)
    if _REFUSED.search(message):
        message += (
            "; SQL on a dataset can read only that dataset, and cannot use files, URLs, "
            "extensions or settings. To use them, register the dataset on your own connection: "
            "duckdb.connect().register('dataset', ds)"
        )
    return message


@contextmanager
def duckdb_errors(describe: Callable[[Exception], str] = words_of) -> Iterator[None]:
    """Raise InvalidInputError with the words of ``describe`` for an error of DuckDB's."""
    duckdb = _duckdb()
    try:
        yield
    except duckdb.Error as error:
        raise InvalidInputError(f"SQL: {describe(error)}") from error


def _duckdb() -> Any:
    try:
        import duckdb
    except ImportError as error:
        raise MissingPackageError("SQL", "DuckDB", "lance-nb[sql]") from error
    return duckdb


@dataclass(frozen=True, slots=True)
class PreparedStatement:
    """A statement that was translated for DuckDB, with the scans that it needs, by name."""

    translation: Translation
    scans: dict[str, LanceScanner]

    def register(self, connection: Any) -> None:
        """Make what the statement reads and calls known to a connection."""
        from lance_nb.dataset.statements.carriers import ScanStream
        from lance_nb.dataset.statements.row_functions import ComputingScan

        for table_scan in self.translation.scans:
            scan: Any = self.scans[table_scan.name]
            if table_scan.computed:
                scan = ComputingScan(scan, table_scan.computed)
            connection.register(table_scan.name, ScanStream(scan))
        for function in self.translation.functions:
            function.register(connection)

    def run(self, connection: Any, batch_rows: int = DEFAULT_BATCH_ROWS) -> pa.RecordBatchReader:
        """Return the rows of the result; the connection must live as long.

        Errors are DuckDB's: call it, and read the rows, inside of ``duckdb_errors``.
        """
        self.register(connection)
        return _rows_of(connection, self.translation, batch_rows)


def prepare(datasets: Mapping[str, LanceDataset], text: str, **options: Any) -> PreparedStatement:
    """Translate a statement that sees datasets as tables; ``options`` are those of their scans.

    Raises InvalidInputError for a scan that is not possible.
    """
    from lance_nb.dataset.statements.translation import translate  # loads all functions

    schemas = {
        name: dataset.scanner(None, **options).projected_schema
        for name, dataset in datasets.items()
    }
    translation = translate(text, schemas)
    scans = {
        scan.name: datasets[scan.table].scanner(
            None if scan.columns is None else list(scan.columns), filter=scan.filter, **options
        )
        for scan in translation.scans
    }
    return PreparedStatement(translation, scans)


def _rows_of(connection: Any, translation: Translation, batch_rows: int) -> pa.RecordBatchReader:
    """Run a translated statement whose tables and functions the connection knows."""
    from lance_nb.dataset.statements.carriers import restored, restored_schema

    result = connection.sql(translation.text)
    if result is None:
        raise InvalidInputError("SQL: only statements that return rows can be run")
    # DuckDB has had two names for it.
    read = getattr(result, "to_arrow_reader", None) or result.fetch_arrow_reader
    reader = read(batch_rows)
    schema = reader.schema
    if translation.fields is not None:
        schema = restored_schema(schema, translation.fields)
    batches = _with_duckdb_errors(restored(reader, schema))
    return pa.RecordBatchReader.from_batches(schema, batches)


def _with_duckdb_errors(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches; what fails after the first is DuckDB's error too, and not Arrow's."""
    try:
        yield from batches
    except (OSError, pa.ArrowException) as error:
        raise _duckdb().Error(str(error)) from error


class SqlQuery:
    """A statement that can be run, each time anew. Created by ``SqlQueryBuilder.build``.

    Examples:
        >>> query = ds.sql("SELECT max(id) AS top FROM dataset").build()
        >>> query.to_batch_records()[0].to_pylist()
        [{'top': 9}]
    """

    def __init__(
        self,
        dataset: LanceDataset,
        statement: PreparedStatement,
        text: str,
        name: str,
        batch_rows: int,
    ) -> None:
        self._dataset = dataset
        self._statement = statement
        self._text = text
        self._name = name
        self._batch_rows = batch_rows

    def to_batch_records(self) -> list[pa.RecordBatch]:
        """Run the statement and return all batches; without rows, one that has the schema."""
        reader = self.to_stream_reader()
        return list(reader) or [pa.RecordBatch.from_pylist([], reader.schema)]

    def to_stream_reader(self) -> pa.RecordBatchReader:
        """Run the statement and return its rows as a stream.

        Raises MissingPackageError without DuckDB, InvalidInputError for a wrong statement.

        Examples:
            >>> query = ds.sql("SELECT id FROM dataset WHERE id > 7").build()
            >>> query.to_stream_reader().read_all().num_rows
            2
        """
        connection = open_duckdb()
        indexed = indexed_answer(connection, self._dataset, self._text, self._name)
        if indexed is not None:
            batches = indexed.to_batches(self._batch_rows)
            return pa.RecordBatchReader.from_batches(indexed.schema, batches)
        with duckdb_errors():
            reader = self._statement.run(connection, self._batch_rows)
        return pa.RecordBatchReader.from_batches(reader.schema, _held(reader, connection))

    def explain_plan(self) -> str:
        """Describe what the statement reads of the dataset: the scan, or which indices answer it.

        Indices are searched for it, and what they do not cover is read. Not in pylance.

        Examples:
            >>> query = ds.sql("SELECT label, count(*) FROM dataset WHERE id > 7 GROUP BY label")
            >>> print(query.build().explain_plan())
            LanceScan: version 1, 2 fragments
              filter: `id` > 7
              decoded first, for every row: id
              decoded for the rows that are left: label
              result: id, label
        """
        indexed = indexed_statement(self._dataset, self._text, self._name)
        if indexed is not None:
            return f"{_ANSWERED}\n  {indexed.words}"
        return "\n".join(scan.explain_plan() for scan in self._statement.scans.values())


class SqlQueryBuilder:
    """A statement that is being put together. Created by ``LanceDataset.sql``.

    Examples:
        >>> query = ds.sql("SELECT count(*) AS n FROM points").table_name("points").build()
        >>> query.to_batch_records()[0].to_pylist()
        [{'n': 10}]
    """

    def __init__(self, dataset: LanceDataset, sql: str) -> None:
        self._dataset = dataset
        self._text = sql
        self._name = "dataset"
        self._options: dict[str, Any] = {}
        self._batch_rows = DEFAULT_BATCH_ROWS

    def table_name(self, table_name: str) -> SqlQueryBuilder:
        """Choose the name under which the statement sees the version.

        Args:
            table_name: "dataset" by default.
        """
        self._name = table_name
        return self

    def with_row_id(self, with_row_id: bool = True) -> SqlQueryBuilder:
        """Add the column ``_rowid``.

        Args:
            with_row_id: whether to.

        Examples:
            >>> query = ds.sql("SELECT max(_rowid) AS top FROM dataset").with_row_id().build()
            >>> query.to_batch_records()[0].to_pylist()
            [{'top': 9}]
        """
        self._options["with_row_id"] = with_row_id
        return self

    def with_row_addr(self, with_row_addr: bool = True) -> SqlQueryBuilder:
        """Add the column ``_rowaddr``: ``fragment id << 32 | offset in the fragment``.

        Args:
            with_row_addr: whether to.

        Examples:
            >>> query = ds.sql("SELECT min(_rowaddr) AS low FROM dataset").with_row_addr().build()
            >>> query.to_batch_records()[0].to_pylist()
            [{'low': 0}]
        """
        self._options["with_row_address"] = with_row_addr
        return self

    def blob_handling(self, blob_handling: str) -> SqlQueryBuilder:
        """Choose how blobs are seen; as for ``LanceDataset.scanner``.

        Args:
            blob_handling: "all_binary" for their bytes, else descriptions.

        Examples:
            >>> query = photos.sql("SELECT octet_length(image) AS n FROM dataset LIMIT 1")
            >>> query.blob_handling("all_binary").build().to_batch_records()[0].to_pylist()
            [{'n': 11}]
        """
        self._options["blob_handling"] = blob_handling
        return self

    def batch_size(self, batch_size: int) -> SqlQueryBuilder:
        """Limit the rows of a batch.

        Args:
            batch_size: the most rows.

        Examples:
            >>> query = ds.sql("SELECT id FROM dataset").batch_size(4).build()
            >>> sum(batch.num_rows for batch in query.to_batch_records())
            10
        """
        self._batch_rows = batch_size
        return self

    def batch_size_bytes(self, batch_size_bytes: int) -> SqlQueryBuilder:
        """Do nothing: an argument of pylance's that cannot change the result."""
        return self

    def build(self) -> SqlQuery:
        """Finish. Raises InvalidInputError for a scan that is not possible."""
        statement = prepare({self._name: self._dataset}, self._text, **self._options)
        return SqlQuery(
            self._dataset, statement, self._text, name=self._name, batch_rows=self._batch_rows
        )


def indexed_answer(connection: Any, dataset: LanceDataset, text: str, name: str) -> pa.Table | None:
    """Run a statement on what indices say, where that is all it needs; None where it is not.

    Raises InvalidInputError for a wrong statement.
    """
    indexed = indexed_statement(dataset, text, name)
    if indexed is None:
        return None
    from lance_nb.dataset.statements.translation import translate

    expected = translate(text, {name: dataset.schema}).fields
    translation = translate(indexed.text, {name: indexed.rows.schema}, has_filters=False)
    if expected is None or translation.fields is None or len(expected) != len(translation.fields):
        return None
    with duckdb_errors():
        connection.register(translation.scans[0].name, indexed.rows)
        for function in translation.functions:
            function.register(connection)
        answer = replace(translation, fields=expected)
        table = _rows_of(connection, answer, DEFAULT_BATCH_ROWS).read_all()
        connection.unregister(translation.scans[0].name)
    types = zip(expected, table.schema.types, strict=True)
    return table if all(type_ in (None, kind) for (_, type_), kind in types) else None


def _held(reader: pa.RecordBatchReader, connection: Any) -> Any:
    """Yield the batches; the connection must live as long."""
    with connection, duckdb_errors():
        yield from reader
