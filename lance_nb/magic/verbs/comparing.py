"""Verbs that compare: two versions, and the life of one row."""

from __future__ import annotations

import re
from argparse import Namespace

import pyarrow as pa

from lance_nb.dataset import LanceDataset
from lance_nb.errors import InvalidInputError
from lance_nb.explorer.models import text
from lance_nb.magic.answer import Answer, answer_of_records, answer_of_table
from lance_nb.magic.desk import Desk, label
from lance_nb.magic.verb import COLUMN, RANGE, REF, Verb, argument, names_of
from lance_nb.table.diff import Diff

_RANGE = re.compile(r"(?P<a>.*?)(?P<dots>\.\.\.?)(?P<b>.*)")
LEVELS = ("transactions", "schema", "fragments", "files", "deletions", "indices", "config")


def diff(desk: Desk, said: Namespace) -> Answer:
    """Compare two versions: numbers first, or one level as a table."""
    key = names_of(said.key)
    a, b = _ends(desk, said.range, said.other)
    found = desk.dataset.diff(a, b, key=key)
    heading = f"{label(a)} .. {label(b)}"
    shown = desk.settings.rows_shown
    if said.rows:
        rows = found.rows(limit=None if said.all else shown).read_all()
        lines = [f"matched by {found.identity}: {found.reason}"]
        return answer_of_table(f"Rows of {heading}", rows, shown, lines=lines)
    if said.level is not None:
        table = getattr(found, said.level)
        return answer_of_table(f"{said.level.capitalize()} of {heading}", table, shown)
    return _summary(found, heading)


def _summary(found: Diff, heading: str) -> Answer:
    counts = found.counts
    records = [
        {"what": name.replace("_", " "), "count": getattr(counts, name)}
        for name in type(counts).__dataclass_fields__
        if isinstance(getattr(counts, name), int) and not isinstance(getattr(counts, name), bool)
        and getattr(counts, name)
    ]  # fmt: skip
    lines = [f"rows are matched by {found.identity}"]
    if counts.is_empty:
        lines = ["no difference"]
    return answer_of_records(heading, records, value=found, lines=lines)


def _ends(desk: Desk, words: str, other: str | None) -> tuple[LanceDataset, LanceDataset]:
    """Open both ends of ``A..B``; ``A...B`` begins where B's branch left A's; ``A`` ends here."""
    match = _RANGE.fullmatch(words)
    if other is not None:
        if match is not None:
            raise InvalidInputError(f"write {words} or A B, not both")
        return desk.at(words), desk.at(other)
    if match is None:
        return desk.at(words), desk.dataset
    a = desk.at(match["a"]) if match["a"] else desk.dataset
    b = desk.at(match["b"]) if match["b"] else desk.dataset
    if match["dots"] == "..":
        return a, b
    past = desk.dataset.diff(a, b).ancestor
    if past is None:
        raise InvalidInputError(f"{label(a)} and {label(b)} have no common past")
    return desk.dataset.checkout_version((past.branch, past.version)), b


def row(desk: Desk, said: Namespace) -> Answer:
    """Tell the life of one row."""
    column, equals, value = said.row.partition("=")
    dataset = desk.dataset
    if equals:
        kind = dataset.schema.field(column).type if column in dataset.schema.names else None
        key = {column: _value(value, kind)}
        found = dataset.row_history(key=key)
    elif said.row.isdecimal():
        found = dataset.row_history(row_id=int(said.row))
    else:
        raise InvalidInputError("name the row by its id, or by a key: id=7")
    records = [
        {
            "version": f"{one.branch or 'main'}:{one.version}",
            "event": one.event,
            "operation": one.operation,
            "fragment": one.fragment_id,
            "changed": ", ".join(map(text.name, one.columns)),
        }
        for one in found.steps()
    ]
    return answer_of_records(f"The life of {text.line(said.row)}", records, value=found)


def _value(words: str, kind: pa.DataType | None) -> object:
    if kind is None:
        return words
    try:
        return pa.scalar(words).cast(kind).as_py()
    except pa.ArrowException as error:
        raise InvalidInputError(f"{words!r} is not a value of type {kind}") from error


VERBS = (
    Verb(
        "diff",
        "compare two versions: A..B, A...B (since the fork), or A (with the one in hand)",
        diff,
        (
            argument("range", means=RANGE, metavar="A..B", help="the versions"),
            argument("other", nargs="?", means=REF, metavar="B", help="the same as A..B: A B"),
            argument("--rows", action="store_true", help="the rows that differ"),
            argument("--all", action="store_true", help="with --rows: all of them"),
            argument("--key", means=COLUMN, metavar="A,B", help="columns that tell rows apart"),
            *(
                argument(f"--{level}", dest="level", action="store_const", const=level,
                         help=f"the {level} that differ")
                for level in LEVELS
            ),
        ),
        "diff HEAD~1..HEAD --rows",
    ),
    Verb(
        "row",
        "tell the life of one row: created, updated, moved, deleted",
        row,
        (argument("row", metavar="ID|COLUMN=VALUE", help="its row id, or a key such as id=7"),),
        "row id=7",
    ),
)  # fmt: skip
