"""Verbs that open a dataset and look at one version of it."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from lance_nb.dataset import LanceDataset
from lance_nb.errors import InvalidInputError
from lance_nb.explorer.models import text
from lance_nb.explorer.models.schema_tree import schema_tree
from lance_nb.explorer.table_files import write_file
from lance_nb.magic.answer import Answer, answer_of_lines, answer_of_records, answer_of_table
from lance_nb.magic.desk import Desk, label
from lance_nb.magic.verb import COLUMN, REF, URI, Verb, argument, names_of


def in_words(dataset: LanceDataset) -> Answer:
    """Say what a dataset is, where there is no browser to show it."""
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
    return answer_of_lines(label(dataset), [", ".join(facts)], value=dataset, data=data)


def open_dataset(desk: Desk, said: Namespace) -> object:
    """Take a dataset in hand and show it."""
    name = said.name
    if said.word is not None and (said.word != "as" or name is None):
        meant = f"; did you mean: as {said.word}?" if said.word.isidentifier() else ""
        raise InvalidInputError(f"usage: {desk.prog} open URI [as NAME]{meant}")
    if name is not None and not name.isidentifier():
        raise InvalidInputError(f"{text.name(name)!r} is not a variable name")
    return desk.show(desk.open(said.uri, name))


def show(desk: Desk, said: Namespace) -> object:
    """Show the dataset in hand again."""
    return desk.show(desk.dataset)


def at(desk: Desk, said: Namespace) -> object:
    """Go to another version and show it."""
    return desk.show(desk.hold(desk.at(said.ref)))


def schema(desk: Desk, said: Namespace) -> Answer:
    """List the fields, nested ones included."""
    dataset = desk.at(said.ref)
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
    return answer_of_records(
        f"Schema of {label(dataset)}", records, value=dataset.schema, lines=lines
    )


def head(desk: Desk, said: Namespace) -> Answer:
    """Show the first rows."""
    columns = names_of(said.columns)
    dataset = desk.at(said.ref)
    limit = said.limit if said.limit is not None else desk.settings.rows_shown
    table = dataset.to_table(columns=columns, filter=said.where, limit=limit)
    return answer_of_table(f"Rows of {label(dataset)}", table, limit)


def fragments(desk: Desk, said: Namespace) -> Answer:
    """List the fragments: rows, deleted rows, files."""
    dataset = desk.at(said.ref)
    table = dataset.inspect.fragments()
    return answer_of_table(f"Fragments of {label(dataset)}", table, desk.settings.rows_shown)


def indices(desk: Desk, said: Namespace) -> Answer:
    """List the indices and what they cover."""
    dataset = desk.at(said.ref)
    records = [
        {"name": one["name"], "type": one["type"], "fields": ", ".join(one["fields"]),
         "version": one["version"], "fragments": len(one["fragment_ids"] or ())}
        for one in dataset.list_indices()
    ]  # fmt: skip
    return answer_of_records(f"Indices of {label(dataset)}", records)


def export(desk: Desk, said: Namespace) -> Answer:
    """Write the rows of a version to a file."""
    columns = names_of(said.columns)
    dataset = desk.at(said.ref)
    path = Path(said.path)
    batches = dataset.scanner(columns=columns, filter=said.where).to_reader()
    rows = write_file(path, batches, formulas=said.formulas)
    line = f"{text.plural(rows, 'row')}, {text.size(path.stat().st_size)}"
    return answer_of_lines(f"Wrote {text.line(path)}", [line], value=path, data={"rows": rows})


_AT = argument("ref", nargs="?", means=REF, help="the version; the one in hand by default")
_COLUMNS = argument("--columns", metavar="A,B", means=COLUMN, help="only these columns")
_WHERE = argument("--where", metavar="FILTER", help="only rows that pass this SQL filter")

VERBS = (
    Verb(
        "open",
        "take a dataset in hand and explore it; the variable follows the version shown",
        open_dataset,
        (
            argument("uri", means=URI, help="a path, an fsspec URL, or a variable with a dataset"),
            argument("word", nargs="?", metavar="as", help="'as', before the name of a variable"),
            argument("name", nargs="?", help="the variable to bind the dataset to"),
        ),
        "open data/photos.lance as photos",
        needs_dataset=False,
    ),
    Verb("show", "explore the dataset in hand again", show),
    Verb(
        "at",
        "go to another version: 12, HEAD~2, main, exp:3, tag:v1, 2026-08-01",
        at,
        (argument("ref", means=REF, help="the version to go to"),),
        "at tag:v1",
    ),
    Verb("schema", "list the fields", schema, (_AT,), "schema HEAD~2"),
    Verb(
        "head",
        "show the first rows",
        head,
        (
            _AT,
            argument("-n", "--limit", type=int, help="how many rows"),
            _COLUMNS,
            _WHERE,
        ),
        "head -n 5 --where 'width > 100'",
    ),
    Verb("fragments", "list the fragments: rows, deleted rows, files", fragments, (_AT,)),
    Verb("indices", "list the indices and what they cover", indices, (_AT,)),
    Verb(
        "export",
        "write rows to a Parquet, CSV or Arrow file",
        export,
        (
            argument("path", help="the file; its ending says the format"),
            _AT,
            _COLUMNS,
            _WHERE,
            argument(
                "--formulas",
                action="store_true",
                help="CSV: no apostrophe before texts that spreadsheets run (= + - @)",
            ),
        ),
        "export photos.parquet tag:v1",
    ),
)
