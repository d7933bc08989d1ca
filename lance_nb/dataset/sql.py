"""SQL over one version, run by DuckDB on our Arrow stream (extra ``sql``).

The statement sees the version as a table named ``dataset``, or as ``table_name`` says. Only the
columns that it names are read, all of them where it says ``*``. Of a statement on this one table,
comparisons of whole numbers and texts with constants in WHERE become the filter of the scan too, so
indices answer them; DuckDB computes them once more. Unlike pylance's, which is DataFusion's, the
SQL is DuckDB's.

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
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lance_nb.errors import InvalidInputError, MissingPackageError, PredicateError

if TYPE_CHECKING:
    from lance_nb.dataset.dataset import LanceDataset
    from lance_nb.dataset.scanner import LanceScanner

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
    said = " ".join(str(error).partition(" Detail: Python exception")[0].split())
    if _REFUSED.search(said):
        said += (
            "; SQL on a dataset can read only that dataset, and cannot use files, URLs, "
            "extensions or settings. To use them, register the dataset on your own connection: "
            "duckdb.connect().register('dataset', ds)"
        )
    return said


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


DEFAULT_BATCH_ROWS = 8192


class SqlQuery:
    """A statement that can be run, each time anew. Created by ``SqlQueryBuilder.build``.

    Examples:
        >>> query = ds.sql("SELECT max(id) AS top FROM dataset").build()
        >>> query.to_batch_records()[0].to_pylist()
        [{'top': 9}]
    """

    def __init__(self, source: object, text: str, name: str, batch_rows: int) -> None:
        self._source = source
        self._text = text
        self._name = name
        self._batch_rows = batch_rows

    def to_batch_records(self) -> list[pa.RecordBatch]:
        """Run the statement and return all batches."""
        return list(self.to_stream_reader())

    def to_stream_reader(self) -> pa.RecordBatchReader:
        """Run the statement and return its rows as a stream.

        Raises MissingPackageError without DuckDB, InvalidInputError for a wrong statement.

        Examples:
            >>> query = ds.sql("SELECT id FROM dataset WHERE id > 7").build()
            >>> query.to_stream_reader().read_all().num_rows
            2
        """
        connection = open_duckdb()
        with duckdb_errors():
            connection.register(self._name, self._source)
            result = connection.sql(self._text)
            if result is None:
                raise InvalidInputError("SQL: only statements that return rows can be run")
            # DuckDB has had two names for it.
            read = getattr(result, "to_arrow_reader", None) or result.fetch_arrow_reader
            reader = read(self._batch_rows)
        return pa.RecordBatchReader.from_batches(reader.schema, _held(reader, connection))


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
        source = source_of(self._dataset, self._text, self._name, **self._options)
        return SqlQuery(source, self._text, self._name, self._batch_rows)


def source_of(dataset: LanceDataset, text: str, name: str, **options: Any) -> LanceScanner:
    """Return the scan of a version that a statement needs, which sees it as the table ``name``.

    Raises InvalidInputError for a scan that is not possible.
    """
    trees = _statements_of(text)
    if not trees:
        return dataset.scanner(None, **options)
    schema = dataset.schema
    columns = _columns_of(trees[0], schema.names)
    condition = _filter_of(trees[0], name, schema) if len(trees) == 1 else None
    return dataset.scanner(columns, filter=condition, **options)


def _statements_of(text: str) -> list[Any]:
    from sqlglot.errors import SqlglotError

    from lance_nb.table.predicate.sql_text import parse_duckdb

    try:
        return parse_duckdb(text)
    except (SqlglotError, PredicateError):
        return []  # DuckDB may understand it, or say better what is wrong


def _columns_of(tree: Any, names: list[str]) -> list[str] | None:
    """Return the columns that a statement may need, None for all of them."""
    from sqlglot import expressions as sql

    if any(not isinstance(star.parent, sql.Count) for star in tree.find_all(sql.Star)):
        return None
    named = {one.name.lower() for one in tree.find_all(sql.Identifier)}
    found = [name for name in names if name.lower() in named]
    return found or names[:1]


def _filter_of(tree: Any, name: str, schema: pa.Schema) -> str | None:
    """Return conditions of WHERE that DuckDB and a scan answer alike, None without any.

    The statement is one SELECT of this table; a sample would be taken before WHERE.
    """
    from sqlglot import expressions as sql

    where = tree.args.get("where")
    tables = list(tree.find_all(sql.Table))
    is_single = len(tables) == 1 and tables[0].name.lower() == name.lower()
    if where is None or not isinstance(tree, sql.Select) or not is_single:
        return None
    others = (sql.Subquery, sql.Join, sql.Lateral, sql.TableSample, sql.CTE, sql.SetOperation)
    if any(one is not tree for one in tree.find_all(sql.Select, *others)):
        return None
    known = {tables[0].name.lower(), tables[0].alias_or_name.lower(), ""}
    parts = where.this.flatten() if isinstance(where.this, sql.And) else [where.this]
    found = [_condition_of(part.unnest(), known, schema) for part in parts]
    return " AND ".join(one for one in found if one is not None) or None


def _condition_of(part: Any, tables: set[str], schema: pa.Schema) -> str | None:
    """Return a comparison of a column with constants as a filter of ours, None for others."""
    from sqlglot import expressions as sql

    signs = {sql.EQ: "=", sql.LT: "<", sql.LTE: "<=", sql.GT: ">", sql.GTE: ">="}
    if isinstance(part, sql.In) and not (part.args.get("query") or part.args.get("unnest")):
        values = part.expressions
    elif isinstance(part, sql.Between):
        values = [part.args["low"], part.args["high"]]
    elif type(part) in signs:
        values = [part.expression]
    else:
        return None
    column = part.this
    if not isinstance(column, sql.Column) or column.table.lower() not in tables or not values:
        return None
    same = [field for field in schema if field.name.lower() == column.name.lower()]
    constants = [_constant_of(value, same[0].type) if same else None for value in values]
    listed = [one for one in constants if one is not None]
    if len(same) != 1 or len(listed) < len(values):
        return None
    from lance_nb.table.filtered_scan import quoted  # loads what filters need

    name = quoted([same[0].name])
    if isinstance(part, sql.In):
        return f"{name} IN ({', '.join(listed)})"
    if isinstance(part, sql.Between):
        return f"{name} BETWEEN {listed[0]} AND {listed[1]}"
    return f"{name} {signs[type(part)]} {listed[0]}"


def _constant_of(value: Any, kind: pa.DataType) -> str | None:
    """Return a constant that DuckDB compares in the type of the column, None for others."""
    from sqlglot import expressions as sql

    is_negative = isinstance(value, sql.Neg)
    literal = value.this if is_negative else value
    if not isinstance(literal, sql.Literal):
        return None
    if literal.is_string:
        is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        escaped = str(literal.this).replace("'", "''")
        return f"'{escaped}'" if is_text and not is_negative else None
    if not pa.types.is_integer(kind) or not str(literal.this).isdecimal():
        return None
    number = -int(literal.this) if is_negative else int(literal.this)
    lowest = 0 if pa.types.is_unsigned_integer(kind) else -(1 << (kind.bit_width - 1))
    return str(number) if lowest <= number < lowest + (1 << kind.bit_width) else None


def _held(reader: pa.RecordBatchReader, connection: Any) -> Any:
    """Yield the batches; the connection must live as long."""
    with connection:
        yield from reader
