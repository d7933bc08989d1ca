"""SQL over a version, run by DuckDB on our Arrow stream (extra ``sql``); builder as pylance's.

The statement sees the version as a table named ``dataset``, or as ``table_name`` says. Only the
columns that it names are read, all of them where it says ``*``; DuckDB filters what it gets, so a
selective question is answered faster by ``to_table(filter=...)``. Unlike pylance's, which is
DataFusion's, the SQL is DuckDB's. It reaches the version and nothing else: no files, no Python
variables, no extensions (see lance_nb.dataset.locked_duckdb).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lance_nb.dataset.locked_duckdb import duckdb_errors, open_duckdb
from lance_nb.errors import InvalidInputError, PredicateError

if TYPE_CHECKING:
    from lance_nb.dataset.dataset import LanceDataset

DEFAULT_BATCH_ROWS = 8192


class SqlQuery:
    """A statement that can be run, each time anew. Created by ``SqlQueryBuilder.build``."""

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

        Raises NotSupportedError without DuckDB, InvalidInputError for a wrong statement.
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
    """A statement that is being put together. Created by ``LanceDataset.sql``."""

    def __init__(self, dataset: LanceDataset, sql: str) -> None:
        self._dataset = dataset
        self._text = sql
        self._name = "dataset"
        self._options: dict[str, Any] = {}
        self._batch_rows = DEFAULT_BATCH_ROWS

    def table_name(self, table_name: str) -> SqlQueryBuilder:
        """Choose the name under which the statement sees the version."""
        self._name = table_name
        return self

    def with_row_id(self, with_row_id: bool = True) -> SqlQueryBuilder:
        """Add the column ``_rowid``."""
        self._options["with_row_id"] = with_row_id
        return self

    def with_row_addr(self, with_row_addr: bool = True) -> SqlQueryBuilder:
        """Add the column ``_rowaddr``."""
        self._options["with_row_address"] = with_row_addr
        return self

    def blob_handling(self, blob_handling: str) -> SqlQueryBuilder:
        """Choose how blobs are seen; as for ``LanceDataset.scanner``."""
        self._options["blob_handling"] = blob_handling
        return self

    def batch_size(self, batch_size: int) -> SqlQueryBuilder:
        """Limit the rows of a batch."""
        self._batch_rows = batch_size
        return self

    def batch_size_bytes(self, batch_size_bytes: int) -> SqlQueryBuilder:
        """Do nothing: an argument of pylance's that cannot change the result."""
        return self

    def build(self) -> SqlQuery:
        """Finish. Raises InvalidInputError for a scan that is not possible."""
        columns = _columns_of(self._text, self._dataset.schema.names)
        source = self._dataset.scanner(columns, **self._options)
        return SqlQuery(source, self._text, self._name, self._batch_rows)


def _columns_of(text: str, names: list[str]) -> list[str] | None:
    """Return the columns that a statement may need, None for all of them."""
    from sqlglot import expressions as sql
    from sqlglot.errors import SqlglotError

    from lance_nb.table.predicate.deep_calls import parse_duckdb

    try:
        trees = parse_duckdb(text)
    except (SqlglotError, PredicateError):
        return None  # DuckDB may understand it, or say better what is wrong
    if not trees:
        return None
    tree = trees[0]
    if any(not isinstance(star.parent, sql.Count) for star in tree.find_all(sql.Star)):
        return None
    named = {one.name.lower() for one in tree.find_all(sql.Identifier)}
    found = [name for name in names if name.lower() in named]
    return found or names[:1]


def _held(reader: pa.RecordBatchReader, connection: Any) -> Any:
    """Yield the batches; the connection must live as long."""
    with connection:
        yield from reader
