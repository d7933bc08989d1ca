"""Verbs that open a dataset and show one version of it."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from lance_nb.dataset import LanceDataset
from lance_nb.errors import InvalidInputError
from lance_nb.explorer import text
from lance_nb.explorer.schema_tree import schema_tree
from lance_nb.explorer.static_rendering import render_tables
from lance_nb.magic.context import MagicContext, label
from lance_nb.magic.verb import (
    COLUMN,
    REF,
    URI,
    Result,
    argument,
    names_of,
    records_result,
    table_result,
    text_result,
    verb,
)

_AT = argument("ref", nargs="?", completes=REF, help="the version (default: the current one)")
_COLUMNS = argument("--columns", metavar="A,B", completes=COLUMN, help="the columns to read")
_WHERE = argument("--where", "--filter", metavar="FILTER", help="an SQL filter")


def dataset_summary(dataset: LanceDataset) -> Result:
    """Describe a dataset as text, for a terminal."""
    stats = dataset.stats()
    facts = [
        text.plural(stats.num_rows, "row"),
        text.plural(stats.num_fragments, "fragment"),
        "data files of unknown size"
        if stats.size_bytes is None
        else f"{text.size(stats.size_bytes)} of data files",
        f"file format {dataset.data_storage_version}",
    ]
    data = {"branch": dataset.branch or "main", "version": dataset.version, "rows": stats.num_rows}
    return text_result(label(dataset), [", ".join(facts)], value=dataset, data=data)


@verb(
    argument(
        "uri",
        completes=URI,
        help="a path, an fsspec URL, or a variable that holds a dataset",
    ),
    argument("word", nargs="?", metavar="as", help="'as', before the name of a variable"),
    argument("name", nargs="?", help="the variable to assign the dataset to"),
    example="open data/photos.lance as photos",
    name="open",
    needs_dataset=False,
)
def open_dataset(context: MagicContext, args: Namespace) -> object:
    """Open a dataset and explore it; the variable follows the version that is shown."""
    name = args.name
    if args.word is not None and (args.word != "as" or name is None):
        meant = f"; did you mean: as {args.word}?" if args.word.isidentifier() else ""
        raise InvalidInputError(f"usage: {context.prog} open URI [as NAME]{meant}")
    if name is not None and not name.isidentifier():
        raise InvalidInputError(f"{text.name(name)!r} is not a variable name")
    return context.show(context.open(args.uri, name))


@verb()
def show(context: MagicContext, args: Namespace) -> object:
    """Explore the current dataset."""
    return context.show(context.dataset)


@verb(argument("ref", completes=REF, help="the version to go to"), example="at tag:v1")
def at(context: MagicContext, args: Namespace) -> object:
    """Go to another version: 12, HEAD~2, main, exp:3, tag:v1, 2026-08-01."""
    return context.show(context.set_dataset(context.resolve(args.ref)))


@verb(_AT, example="schema HEAD~2")
def schema(context: MagicContext, args: Namespace) -> Result:
    """List the fields."""
    dataset = context.resolve(args.ref)
    tree = schema_tree(dataset.schema)
    records = [
        {
            "field": f"{'  ' * line.depth}{line.name}",
            "type": line.type,
            "nullable": line.nullable,
            "metadata": line.note,
        }
        for line in tree.lines
    ]
    lines = [f"{text.plural(tree.hidden, 'more field')}"] if tree.hidden else []
    return records_result(f"Schema of {label(dataset)}", records, value=dataset.schema, lines=lines)


@verb(
    _AT,
    argument("-n", "--limit", type=int, help="how many rows"),
    _COLUMNS,
    _WHERE,
    example="head -n 5 --where 'width > 100'",
)
def head(context: MagicContext, args: Namespace) -> Result:
    """Show the first rows."""
    columns = names_of(args.columns)
    dataset = context.resolve(args.ref)
    limit = args.limit if args.limit is not None else context.settings.rows_shown
    table = dataset.to_table(columns=columns, filter=args.where, limit=limit)
    return table_result(f"Rows of {label(dataset)}", table, limit)


@verb(_AT)
def fragments(context: MagicContext, args: Namespace) -> Result:
    """List the fragments: rows, deleted rows, files."""
    dataset = context.resolve(args.ref)
    table = dataset.inspect.fragments()
    return table_result(f"Fragments of {label(dataset)}", table, context.settings.rows_shown)


@verb(_AT)
def indices(context: MagicContext, args: Namespace) -> Result:
    """List the indices, their columns and fragments."""
    dataset = context.resolve(args.ref)
    records = [
        {"name": index["name"], "type": index["type"], "fields": ", ".join(index["fields"]),
         "version": index["version"], "fragments": len(index["fragment_ids"] or ())}
        for index in dataset.list_indices()
    ]  # fmt: skip
    return records_result(f"Indices of {label(dataset)}", records)


@verb(
    argument(
        "uri",
        completes=URI,
        help="a folder, an fsspec URL, or rest+http://HOST:PORT",
    ),
    example="tables data/photos_db",
    needs_dataset=False,
)
def tables(context: MagicContext, args: Namespace) -> Result:
    """List the tables of a folder (a LanceDB database) or of a Lance namespace."""
    from lance_nb.dataset.database import SUMMARY_FIELDS, database

    opened = database(args.uri)
    summaries = opened.summaries()
    data = [{name: getattr(summary, name) for name in SUMMARY_FIELDS} for summary in summaries]
    is_whole = all(summary.can_open for summary in summaries)
    picture = render_tables(opened, summaries, len(summaries))
    return Result(opened, picture, data, exit_code=0 if is_whole else 1)


@verb(
    argument("path", help="the file; its extension selects the format"),
    _AT,
    _COLUMNS,
    _WHERE,
    argument(
        "--since",
        metavar="REF",
        completes=REF,
        help="only the rows that differ from this version",
    ),
    argument("--overwrite", action="store_true", help="replace a file that exists"),
    argument(
        "--formulas",
        action="store_true",
        help="CSV: do not escape texts that spreadsheets run as formulas (= + - @)",
    ),
    example="export photos.parquet tag:v1",
)
def export(context: MagicContext, args: Namespace) -> Result:
    """Write rows to a Parquet, CSV or Arrow file, or to a new dataset."""
    columns = names_of(args.columns)
    dataset = context.resolve(args.ref)
    before = None if args.since is None else context.resolve(args.since)
    since = None if before is None else (before.branch, before.version)
    result = dataset.export(
        Path(args.path), columns, args.where, since=since, overwrite=args.overwrite,
        formulas=args.formulas,
    )  # fmt: skip
    line = f"{text.plural(result.num_rows, 'row')}, {text.size(result.size_bytes)}"
    data = {"rows": result.num_rows}
    return text_result(f"Wrote {text.line(result.path)}", [line], value=result.path, data=data)


VERBS = (open_dataset, tables, show, at, schema, head, fragments, indices, export)
