"""Run SQL of Spark on datasets: at their newest version, reading only what a query needs.

::

    lance_spark.sql("SELECT label, count(*) FROM photos GROUP BY label", tables={"photos": uri})
    lance_spark.sql("SELECT * FROM photos VERSION AS OF 3")       a number, or a tag in quotes
    lance_spark.sql("SELECT * FROM photos TIMESTAMP AS OF '2026-11-24'")
    lance_spark.sql("SELECT sum(id) FROM lance.`s3://bucket/photos.lance`")
    lance_spark.sql("SELECT * FROM photos JOIN labels USING (id)", tables="datasets/")

PySpark's data source API has no column pruning, no pushdown of counts, and keeps what a view has
read for as long as the view exists. So the query is looked at before Spark gets it: every name of a
dataset in it becomes a DataFrame that reads one version, the columns that the query names, and the
rows that pass those of its conditions that lance_nb understands as Spark does. Spark evaluates the
whole query, conditions included.

======================  ==========================================================================
read                    when
======================  ==========================================================================
no column               the query names none, as ``SELECT count(*) FROM photos``: rows are counted
                        in the manifest
columns by name         no ``*`` except in ``count(*)``, no NATURAL JOIN, PIVOT or UNPIVOT, which
                        use columns without their names
rows by condition       ``column op literal``, IN, BETWEEN and IS NULL on integers, strings and
                        booleans, joined by AND, in a SELECT from this dataset alone; indices are
                        used
everything              otherwise
======================  ==========================================================================

Limits: a query that sqlglot can parse, not INSERT, MERGE or DDL (``lance_nb.spark.write``,
``merge``).
Source: time travel of Spark SQL; ``SparkSession.sql`` with DataFrames as arguments, PySpark 4.3.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
import sqlglot
from sqlglot import exp

from lance_nb.dataset import LanceDataset
from lance_nb.dataset import dataset as open_dataset
from lance_nb.dataset.database import Database, database
from lance_nb.errors import InvalidInputError
from lance_nb.spark.dataframes import read
from lance_nb.spark.row_writer import Destination
from lance_nb.spark.sessions import find_session, start_session
from lance_nb.table.filtered_scan import quoted
from lance_nb.value_classes import dataclass

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Tables = Mapping[str, Destination] | Database | str | os.PathLike[str]

_SCHEMAS = ("lance", "lance_nb")  # lance.`path` names a dataset by its path
_TRAVEL = re.compile(
    r"\s+(?:FOR\s+)?(?:(?P<version>VERSION|SYSTEM_VERSION)|TIMESTAMP|SYSTEM_TIME)\s+AS\s+OF\s+"
    r"(?:'(?P<text>[^']*)'|(?P<number>\d+))",
    re.IGNORECASE,
)
_UNNAMED = (exp.Pivot, exp.Unpivot) if hasattr(exp, "Unpivot") else (exp.Pivot,)
_INT64 = range(-(2**63), 2**63)


def sql(
    query: str,
    *,
    spark: SparkSession | None = None,
    tables: Tables | None = None,
) -> DataFrame:
    """Return the result of a query as a DataFrame, which is evaluated lazily.

    ``tables`` gives names to datasets: a URI is read at the newest version, an open dataset at its
    own. A catalog may be given instead: a folder of datasets, or what ``lance_nb.database``
    returns; only tables that the query names are opened. Names of ``register_views`` are known too,
    and ``lance.`path``` needs none. All other names are Spark's. One query reads one version of a
    dataset, that of this call. Without ``spark``, the running session is used; a local one is
    started if there is none.

    Raises InvalidInputError for what is not a query or cannot be parsed, VersionNotFoundError,
    DatasetNotFoundError, and the exceptions of Spark.
    """
    from lance_nb.spark.views import registered_views  # needs PySpark

    session = spark or find_session() or start_session()
    parsed = _parsed(query)
    destinations: dict[str, Destination] = {**registered_views(session), **_tables(tables, parsed)}
    references = list(
        _references(
            query, parsed, {name.lower(): destination for name, destination in destinations.items()}
        )
    )
    if not references:
        return session.sql(query)
    scans: dict[tuple[str, str], Scan] = {}
    pieces: list[str] = []
    frames: dict[str, DataFrame] = {}
    end = 0
    for reference in references:
        key = reference.key
        if key not in scans:
            same = [other for other in references if other.key == key]
            scans[key] = Scan(reference.open(), _columns(parsed), same)
        name = f"lance_{list(scans).index(key)}"
        if name not in frames:
            frames[name] = scans[key].frame(session)
        has_alias = bool(reference.table.args.get("alias"))
        alias = "" if has_alias else _literal(" AS `" + reference.name.replace("`", "``") + "`")
        pieces += [_literal(query[end : reference.start]), f"{{{name}}}{alias}"]
        end = reference.stop
    pieces.append(_literal(query[end:]))
    return session.sql("".join(pieces), None, **frames)


def _tables(given_tables: Tables | None, parsed: exp.Expr) -> Mapping[str, Destination]:
    """Return the tables by name; of a catalog, those that the query may mean."""
    if isinstance(given_tables, Mapping):
        return given_tables
    if given_tables is None:
        return {}
    catalog = given_tables if isinstance(given_tables, Database) else database(given_tables)
    table_names = {
        table.name.lower() for table in parsed.find_all(exp.Table) if not table.args.get("db")
    }
    return {
        name: catalog.dataset(name) for name in catalog.table_names() if name.lower() in table_names
    }


def _literal(text: str) -> str:
    """Protect braces, which ``SparkSession.sql`` would replace."""
    return text.replace("{", "{{").replace("}", "}}")


def _parsed(query: str) -> exp.Expr:
    try:
        parsed = sqlglot.parse_one(query, dialect="spark")
    except sqlglot.errors.SqlglotError as error:
        raise InvalidInputError(f"the query cannot be parsed: {error}") from error
    if not isinstance(parsed, exp.Query):
        raise InvalidInputError(
            "sql() runs queries; use lance_nb.spark.write, merge, update or delete to change rows"
        )
    return parsed


@dataclass(frozen=True, slots=True)
class Reference:
    """A dataset in a query: the text from ``start`` to ``stop``, with its time travel."""

    target: Destination
    table: exp.Table
    name: str
    start: int
    stop: int
    travel: str
    ref: int | str | None
    asof: str | None

    @property
    def key(self) -> tuple[str, str]:
        """What tells versions of datasets apart."""
        return str(self.target), self.travel

    def open(self) -> LanceDataset:
        """Open the version that the query reads. Raises VersionNotFoundError, RefNotFoundError."""
        if not isinstance(self.target, LanceDataset):
            return open_dataset(self.target, self.ref, asof=self.asof)
        if self.asof is not None:
            session, _ = self.target.opened
            return open_dataset(
                session.opening_uri, asof=self.asof, storage_options=session.storage_options
            )
        return self.target if self.ref is None else self.target.checkout_version(self.ref)


def _references(
    query: str, parsed: exp.Expr, destinations: Mapping[str, Destination]
) -> Iterator[Reference]:
    """Yield the datasets of a query, in the order of its text."""
    hidden = {table.alias.lower() for table in parsed.find_all(exp.CTE)}
    references = []
    for table in parsed.find_all(exp.Table):
        identifier = table.this
        if not isinstance(identifier, exp.Identifier) or table.args.get("catalog"):
            continue
        schema, name = table.args.get("db"), identifier.name
        if schema is None and name.lower() in destinations and name.lower() not in hidden:
            target, start = destinations[name.lower()], identifier.meta["start"]
        elif schema is not None and schema.name.lower() in _SCHEMAS:
            target, start, name = name, schema.meta["start"], schema.name
        else:
            continue
        stop = identifier.meta["end"] + 1
        travel = _TRAVEL.match(query, stop)
        ref: int | str | None = None
        asof = None
        if travel is not None:
            stop = travel.end()
            if travel["version"] is None:
                asof = travel["text"] or travel["number"]
            else:
                ref = travel["text"] if travel["number"] is None else int(travel["number"])
        text = "" if travel is None else travel[0]
        references.append(
            Reference(
                target=target,
                table=table,
                name=name,
                start=start,
                stop=stop,
                travel=text,
                ref=ref,
                asof=asof,
            )
        )
    yield from sorted(references, key=lambda reference: reference.start)


def _columns(parsed: exp.Expr) -> frozenset[str] | None:
    """Return the lower-case names in a query; None if it uses columns without their names."""
    for star in parsed.find_all(exp.Star):
        if not isinstance(star.parent, exp.Count):
            return None
    is_natural = any(
        (join.args.get("method") or "").upper() == "NATURAL" for join in parsed.find_all(exp.Join)
    )
    if is_natural or any(True for _ in parsed.find_all(*_UNNAMED)):
        return None
    return frozenset(identifier.name.lower() for identifier in parsed.find_all(exp.Identifier))


@dataclass(frozen=True, slots=True)
class Scan:
    """What a query reads of one version; ``references`` are all places that name it."""

    dataset: LanceDataset
    names: frozenset[str] | None
    references: list[Reference]

    def frame(self, session: SparkSession) -> DataFrame:
        """Return the rows as a DataFrame."""
        columns = self.columns
        if columns == []:
            return session.range(self.dataset.count_rows())
        return read(self.dataset, spark=session, columns=columns, filter=self.filter)

    @property
    def columns(self) -> list[str] | None:
        """The columns to read, None for all."""
        if self.names is None:
            return None
        columns = [name for name in self.dataset.schema.names if name.lower() in self.names]
        # The option ``columns`` separates names by commas.
        is_list = all("," not in name and name == name.strip() for name in columns)
        return columns if is_list else None

    @property
    def filter(self) -> str | None:
        """The conditions that rows have to meet wherever the dataset is read."""
        if len(self.references) != 1:
            return None
        table = self.references[0].table
        select = table.find_ancestor(exp.Select)
        if select is None or select.args.get("joins") or select.args.get("laterals"):
            return None
        source = select.args.get("from_") or select.args.get("from")
        where = select.args.get("where")
        if source is None or source.this is not table or where is None:
            return None
        if table.args.get("joins") or table.args.get("laterals") or table.args.get("sample"):
            return None
        names = {self.references[0].name.lower(), (table.alias or "").lower(), ""}
        fields = {field.name.lower(): field for field in self.dataset.schema}
        whole = where.this
        conditions = whole.flatten() if isinstance(whole, exp.And) else [whole]
        texts = [_condition(condition, fields, names) for condition in conditions]
        return " AND ".join(f"({text})" for text in texts if text is not None) or None


_OPERATORS: Mapping[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_MIRRORED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _condition(node: exp.Expr, fields: Mapping[str, pa.Field], tables: set[str]) -> str | None:
    """Return a condition in the SQL of filters, None if it may mean something else to Spark."""

    def column(node: exp.Expr | None) -> pa.Field | None:
        if not isinstance(node, exp.Column) or node.table.lower() not in tables:
            return None
        is_plain = not node.args.get("db") and isinstance(node.this, exp.Identifier)
        return fields.get(node.name.lower()) if is_plain else None

    node = node.unnest()
    if isinstance(node, exp.Not) and isinstance(node.this.unnest(), exp.Is):
        inner = _condition(node.this.unnest(), fields, tables)
        return None if inner is None else inner.removesuffix("NULL") + "NOT NULL"
    if isinstance(node, exp.Is):
        field = column(node.this)
        is_null = isinstance(node.expression, exp.Null)
        return f"{quoted([field.name])} IS NULL" if field is not None and is_null else None
    operator = _OPERATORS.get(type(node))
    if operator is not None:
        field, other = column(node.this), node.expression
        if field is None:
            field, other, operator = column(other), node.this, _MIRRORED[operator]
        text = None if field is None else _value(other, field.type)
        return (
            None if field is None or text is None else f"{quoted([field.name])} {operator} {text}"
        )
    field = column(node.this) if isinstance(node, exp.Between | exp.In) else None
    if field is None:
        return None
    if isinstance(node, exp.Between):
        low, high = (_value(node.args[name], field.type) for name in ("low", "high"))
        is_plain = low is not None and high is not None and not node.args.get("symmetric")
        return f"{quoted([field.name])} BETWEEN {low} AND {high}" if is_plain else None
    texts = [_value(expression, field.type) for expression in node.expressions]
    if not texts or None in texts or node.args.get("query"):
        return None
    return f"{quoted([field.name])} IN ({', '.join(map(str, texts))})"


def _value(node: exp.Expr | None, kind: pa.DataType) -> str | None:
    """Return a literal of the type of a column as SQL, None for anything else."""
    if isinstance(node, exp.Boolean) and pa.types.is_boolean(kind):
        return "true" if node.this else "false"
    sign = ""
    if isinstance(node, exp.Neg):
        sign, node = "-", node.this
    if not isinstance(node, exp.Literal):
        return None
    if node.is_string:
        is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        plain = not sign and "\\" not in node.this
        return "'" + node.this.replace("'", "''") + "'" if is_text and plain else None
    is_whole = pa.types.is_integer(kind) and node.this.isdecimal()
    return f"{sign}{node.this}" if is_whole and int(sign + node.this) in _INT64 else None
