"""Verbs that search: rows with words of a text, rows whose vectors are near to each other."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from typing import Any

import pyarrow as pa

from lance_nb.code_lines import Python
from lance_nb.dataset import LanceDataset, LanceScanner
from lance_nb.errors import InvalidInputError
from lance_nb.explorer import text
from lance_nb.explorer import version_refs as refs
from lance_nb.magic.context import MagicContext, label
from lance_nb.magic.verb import COLUMN, Result, argument, names_of, table_result, verb

REFINE_FACTOR = 10
_DISTANCE = "_distance"
_SCORE = "_score"
_COLUMNS = 6  # shown beside what was found, where none are named


_COMPARING = (
    argument("--by", metavar="COLUMN", completes=COLUMN, help="the column of vectors"),
    argument("-n", "--limit", type=int, default=20, help="how many rows are shown"),
    argument("--metric", choices=("cosine", "l2", "hamming"), help="the distance"),
    argument("--columns", metavar="A,B", completes=COLUMN, help="the columns to show"),
    argument("--where", "--filter", metavar="FILTER", help="only rows that pass an SQL filter"),
    argument("--exact", action="store_true", help="compare all pairs of rows"),
)


@verb(
    argument("text", help="the words; a phrase stands between quotation marks"),
    argument(
        "--in",
        dest="column",
        metavar="A,B",
        completes=COLUMN,
        help="the columns of texts (default: those with an INVERTED index)",
    ),
    argument("-n", "--limit", type=int, default=10, help="how many rows"),
    argument("--columns", metavar="A,B", completes=COLUMN, help="the columns to show"),
    argument("--where", "--filter", metavar="FILTER", help="only rows that pass an SQL filter"),
    example="search 'quick fox' --in label -n 5",
)
def search(context: MagicContext, args: Namespace) -> Result:
    """Show the rows that match a text, best first, by text index if there is one."""
    dataset = context.dataset
    column_names = names_of(args.column)
    query: dict[str, Any] = {"query": args.text}
    if column_names is not None:
        query["columns"] = column_names
    options: dict[str, Any] = {"full_text_query": query, "limit": args.limit}
    columns = names_of(args.columns)
    if columns is not None:
        options["columns"] = [*columns, _SCORE]
    if args.where is not None:
        options |= {"filter": args.where, "prefilter": True}
    scan = dataset.scanner(**options)
    rows = scan.to_table()
    shown = rows
    for place, field in enumerate(rows.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            texts = [_marked(scan, field.name, value) for value in rows.column(place).to_pylist()]
            shown = shown.set_column(place, field, pa.array(texts, field.type))
    line = refs.opened(dataset).attribute("to_table").call(**options)
    heading = f"Rows of {label(dataset)} that match {text.line(args.text)}"
    return replace(table_result(heading, shown, args.limit, lines=[line.line()]), value=rows)


def _marked(scan: LanceScanner, column: str, value: str | None) -> str | None:
    """Put marks around the words of the query; a column that is not searched stays as it is."""
    if value is None or column not in scan.searched_columns:
        return value
    for start, stop in reversed(scan.word_places(column, value)):
        value = f"{value[:start]}»{value[start:stop]}«{value[stop:]}"
    return value


@verb(
    argument("row", metavar="ID|COLUMN=VALUE", help="the row id, or a key such as id=7"),
    argument("--by", metavar="COLUMN", completes=COLUMN, help="the column of vectors"),
    argument("-n", "--limit", type=int, default=10, help="how many rows"),
    argument("--metric", choices=("l2", "cosine", "dot", "hamming"), help="the distance"),
    argument("--columns", metavar="A,B", completes=COLUMN, help="the columns to show"),
    argument("--where", "--filter", metavar="FILTER", help="only rows that pass an SQL filter"),
    argument("--exact", action="store_true", help="compare every row, without an index"),
    example="like id=7 --by vector -n 5",
)
def like(context: MagicContext, args: Namespace) -> Result:
    """Show the rows whose vectors are nearest to that of a row, by index if there is one."""
    dataset = context.dataset
    column = args.by if args.by is not None else _only_vectors(dataset)
    row, code = _vector(dataset, column, args.row)
    columns = names_of(args.columns)
    if columns is None:
        columns = [name for name in dataset.schema.names if name != column]
    nearest: dict[str, Any] = {"column": column, "k": args.limit}
    nearest |= {"use_index": False} if args.exact else {"refine_factor": REFINE_FACTOR}
    if args.metric is not None:
        nearest["metric"] = args.metric
    options: dict[str, Any] = {"columns": [*columns, _DISTANCE]}
    if args.where is not None:
        options |= {"filter": args.where, "prefilter": True}
    rows = dataset.to_table(nearest={**nearest, "q": row}, **options)
    search = Python("dict").call(q=code, **nearest)
    line = refs.opened(dataset).attribute("to_table").call(nearest=search, **options)
    heading = f"Rows of {label(dataset)} like {text.line(args.row)} by {text.name(column)}"
    return table_result(heading, rows, args.limit, lines=[line.line()])


@verb(
    *_COMPARING,
    argument(
        "--threshold",
        type=float,
        help="the largest distance that links two rows (default: 0.01 for cosine)",
    ),
    example="duplicates --by vector --threshold 0.005",
)
def duplicates(context: MagicContext, args: Namespace) -> Result:
    """Show groups of rows whose vectors are nearly the same."""
    dataset = context.dataset
    column = args.by if args.by is not None else _only_vectors(dataset)
    options = _compared(args) | {"threshold": args.threshold}
    options = {name: option for name, option in options.items() if option is not None}
    duplicate_table = dataset.near_duplicates(column, **options)
    groups = len(duplicate_table["group"].unique())
    counts = f"{text.plural(duplicate_table.num_rows, 'row')} in {text.plural(groups, 'group')}"
    more = text.plural(duplicate_table.num_rows - groups, "row")
    lines = [
        f"{counts}; {more} beside the first of each",
        refs.opened(dataset).attribute("near_duplicates").call(column, **options).line(),
    ]
    heading = f"Near duplicates of {label(dataset)} by {text.name(column)}"
    return _with_values(dataset, heading, duplicate_table, args=args, lines=lines)


@verb(
    argument("label", completes=COLUMN, help="the column of labels"),
    *_COMPARING,
    argument("-k", "--neighbours", type=int, help="how many have a say (default: 10)"),
    example="doubts label --by vector",
)
def doubts(context: MagicContext, args: Namespace) -> Result:
    """Show rows whose nearest neighbours mostly have another label."""
    dataset = context.dataset
    column = args.by if args.by is not None else _only_vectors(dataset)
    options = _compared(args) | {"k": args.neighbours}
    options = {name: option for name, option in options.items() if option is not None}
    rows = dataset.label_doubts(column, args.label, **options)
    lines = [
        f"{text.plural(rows.num_rows, 'row')} with another label than most of the neighbours",
        refs.opened(dataset).attribute("label_doubts").call(column, args.label, **options).line(),
    ]
    heading = f"Doubts about {text.name(args.label)} of {label(dataset)} by {text.name(column)}"
    return _with_values(dataset, heading, rows, args=args, lines=lines)


def _compared(args: Namespace) -> dict[str, Any]:
    return {"metric": args.metric, "filter": args.where, "exact": True if args.exact else None}


def _with_values(
    dataset: LanceDataset, heading: str, table: pa.Table, args: Namespace, lines: list[str]
) -> Result:
    """Show the first rows found beside what else they hold; the value is all of them."""
    shown = table.slice(0, args.limit)
    columns = names_of(args.columns)
    if columns is None:
        columns = [field.name for field in dataset.schema if not _is_long(field.type)][:_COLUMNS]
    columns = [name for name in columns if name not in shown.column_names]
    if columns:
        rows = dataset.take_rows(shown["_rowid"].combine_chunks(), columns)
        for name in columns:
            shown = shown.append_column(name, rows[name])
    result = table_result(heading, shown, args.limit, lines=lines)
    return replace(result, value=table)


def _is_long(kind: pa.DataType) -> bool:
    is_binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    return bool(is_binary or pa.types.is_nested(kind))


def _only_vectors(dataset: LanceDataset) -> str:
    """Return the column of vectors, if there is just one. Raises InvalidInputError."""
    names: list[str] = [
        field.name for field in dataset.schema if pa.types.is_fixed_size_list(field.type)
    ]
    if len(names) != 1:
        problem = "no column of vectors" if not names else "several columns of vectors"
        raise InvalidInputError(f"there is {problem}: name it with --by COLUMN")
    return names[0]


def _vector(dataset: LanceDataset, column: str, row: str) -> tuple[list[Any], Python]:
    """Return the vector of a row, and the code that reads it. Raises InvalidInputError."""
    name, equals, value = row.partition("=")
    opened = refs.opened(dataset)
    if equals:
        if name not in dataset.schema.names:
            raise InvalidInputError(f"there is no column {text.name(name)!r}")
        where = _equals(name, value, dataset.schema.field(name).type)
        vectors = dataset.to_table([column], filter=where, limit=1)
        read = opened.attribute("to_table").call([column], filter=where, limit=1)
    elif row.isdecimal():
        vectors = dataset.take_rows([int(row)], [column])
        read = opened.attribute("take_rows").call([int(row)], [column])
    else:
        raise InvalidInputError("expected a row id, or a key such as id=7")
    if not vectors.num_rows:
        raise InvalidInputError(f"there is no row {text.line(row)}")
    vector = vectors.column(0)[0]
    if not pa.types.is_fixed_size_list(vectors.column(0).type):
        raise InvalidInputError(f"column {text.name(column)!r} has no vectors")
    if not vector.is_valid:
        raise InvalidInputError(f"row {text.line(row)} has no vector")
    return vector.as_py(), Python(f"{read.code}[0][0].as_py()")


def _equals(name: str, value: str, kind: pa.DataType) -> str:
    """Return the filter of the rows with a value. Raises InvalidInputError for no such value."""
    column = "`" + name.replace("`", "``") + "`"
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return f"{column} = '" + value.replace("'", "''") + "'"
    try:
        return f"{column} = {pa.scalar(value).cast(kind).as_py()!r}"
    except pa.ArrowException as error:
        raise InvalidInputError(f"{text.line(value)} is not a value of {kind}") from error


VERBS = (search, like, duplicates, doubts)
