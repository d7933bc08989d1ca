"""Verbs for the history: log and graph, bisect, diff, the history of a row.

The graph shows the versions of all branches as text, as ``git log --graph`` does. Newest first, by
time; one column per branch; a branch joins its parent at the version where it was created::

    *    main:9  2026-08-02 10:11  Append     +1,000
    | *  dev:8   2026-08-01 09:00  Delete     -12        (tag: tried)
    |/
    *    main:7  ...

Limits: the graph has ``MAX_BRANCHES`` branches, the newest ones.
"""

from __future__ import annotations

import re
from argparse import Namespace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa

from lance_nb.dataset import LanceDataset
from lance_nb.errors import InvalidInputError
from lance_nb.explorer import text
from lance_nb.explorer.static_rendering import StaticRendering, render_preformatted
from lance_nb.format.transaction_summary import operation_title
from lance_nb.magic.context import MagicContext, label
from lance_nb.magic.verb import (
    COLUMN,
    RANGE,
    REF,
    Result,
    argument,
    names_of,
    records_result,
    table_result,
    verb,
)
from lance_nb.value_classes import dataclass

if TYPE_CHECKING:
    from lance_nb.dataset.bisecting import Bisection
    from lance_nb.table.diff import Diff
    from lance_nb.table.history import VersionInfo


_RANGE = re.compile(r"(?P<a>.*?)(?P<dots>\.\.\.?)(?P<b>.*)")
LEVELS = ("transactions", "schema", "fragments", "files", "deletions", "indices", "config")


@verb(
    argument("ref", nargs="?", completes=REF, help="start at this version"),
    argument("-n", "--limit", type=int, help="the number of versions"),
    argument("--graph", action="store_true", help="draw all branches as a graph"),
    example="log -n 5",
)
def log(context: MagicContext, args: Namespace) -> Result:
    """List the versions, newest first."""
    if args.ref is not None and re.fullmatch(r"-\d+", args.ref):
        raise InvalidInputError(f"use -n {args.ref[1:]} for a number of versions")
    dataset = context.resolve(args.ref)
    limit = context.settings.versions_shown if args.limit is None else args.limit
    if limit < 0:
        raise InvalidInputError(f"-n {limit}: the number of versions must not be negative")
    if args.graph:
        return graph_of(dataset, limit)
    before = None if args.ref is None else dataset.version + 1
    infos = dataset.history(limit + 1, before)
    has_more = len(infos) > limit
    infos = infos[:limit]
    records = [
        {
            "version": f"{info.version}{' (shown)' if info.version == dataset.version else ''}",
            "time": info.timestamp and info.timestamp.astimezone(),
            "operation": operation_title(info.operation),
            "rows": info.num_rows,
            "deleted": info.num_deleted_rows,
            "fragments": info.num_fragments,
            "tags": ", ".join(map(text.name, info.tags)),
            "message": info.message if info.error is None else info.error,
        }
        for info in infos
    ]
    data = [
        {**record, "version": info.version, "operation": info.operation}
        for record, info in zip(records, infos, strict=True)
    ]
    lines = ["there are older versions: log -n NUMBER shows more"] if has_more else []
    return records_result(
        f"Versions of {label(dataset)}", records, value=infos, data=data, lines=lines
    )


@verb(
    argument(
        "statement",
        help="SQL: a filter that all rows should pass, or a query that should return true",
    ),
    argument("--good", completes=REF, metavar="REF", help="a version for which it holds"),
    argument("--bad", completes=REF, metavar="REF", help="a version for which it fails"),
    argument(
        "--nulls",
        choices=["pass", "fail"],
        default="pass",
        help="whether rows for which the filter is NULL pass, as in SQL CHECK, or fail",
    ),
    example="bisect 'label IS NOT NULL'",
)
def bisect(context: MagicContext, args: Namespace) -> Result:
    """Find the first version for which an expectation fails, by binary search."""
    dataset = context.resolve(args.bad)
    result = dataset.bisect(args.statement, good=args.good, bad=dataset.version, nulls=args.nulls)
    heading = f"bisect {text.line(args.statement)}"
    return bisection_result(heading, result, result.describe("--nulls fail"))


def bisection_result(heading: str, result: Bisection, sentence: str) -> Result:
    """Return what a search found: the versions that were checked, and ``sentence`` about them."""
    has_nulls = any(trial.num_null for trial in result.tried)
    records = [
        {
            "version": trial.version,
            "holds": trial.holds,
            **({"null_rows": trial.num_null} if has_nulls else {}),
            "operation": trial.operation,
            "message": trial.message,
        }
        for trial in result.tried
    ]
    data = {
        "first_bad": result.first_bad, "last_good": result.last_good, "nulls": result.nulls,
        "num_null": result.num_null, "tried": records,
    }  # fmt: skip
    exit_code = 0 if result.first_bad is None else 1
    return records_result(
        heading, records, value=result, data=data, lines=(sentence,), exit_code=exit_code
    )


MAX_BRANCHES = 16
_OLDEST = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class _Node:
    """A version and its branch; ``forks`` are the columns of branches created at it."""

    branch: str | None
    info: VersionInfo
    column: int
    forks: tuple[int, ...]

    @property
    def label(self) -> str:
        return f"{text.name(self.branch or 'main')}:{self.info.version}"


def graph_of(dataset: LanceDataset, limit: int) -> Result:
    """Return the graph of the newest ``limit`` versions of all branches."""
    nodes = _nodes(dataset, limit)
    lines = _lines(nodes)
    heading = f"Versions of {text.name(dataset.name)}"
    picture: StaticRendering = render_preformatted(heading, lines)
    data = [
        {
            "branch": node.branch or "main",
            "version": node.info.version,
            "time": node.info.timestamp,
            "operation": node.info.operation,
            "rows": node.info.num_rows,
            "message": node.info.message,
            "tags": list(node.info.tags),
        }
        for node in nodes
    ]
    return Result(data, picture, data)


def _nodes(dataset: LanceDataset, limit: int) -> list[_Node]:
    # An unfinished branch has no versions.
    listed = [item for item in dataset.branches.list().items() if not item[1].get("is_unfinished")]
    branches = dict(listed[-MAX_BRANCHES:])
    columns: dict[str | None, int] = {None: 0}
    for name in sorted(branches, key=lambda name: branches[name]["parent_version"]):
        columns[name] = len(columns)
    forks: dict[tuple[str | None, int], list[int]] = {}
    for name, about in branches.items():
        place = (about["parent_branch"], about["parent_version"])
        forks.setdefault(place, []).append(columns[name])
    nodes = []
    for branch, column in columns.items():
        for info in dataset.checkout_version((branch, None)).history(limit):
            starts = tuple(sorted(forks.get((branch, info.version), ())))
            nodes.append(_Node(branch, info, column, starts))
    # Versions with equal times are ordered by number.
    nodes.sort(key=lambda node: (node.info.timestamp or _OLDEST, node.info.version), reverse=True)
    return nodes[:limit]


def _lines(nodes: list[_Node]) -> list[str]:
    width = max((node.column for node in nodes), default=0) * 2 + 1
    labels = max((len(node.label) for node in nodes), default=0)
    lines = []
    open_columns: set[int] = set()
    for node in nodes:
        for fork in node.forks:
            if fork in open_columns:
                lines.append(_joint(open_columns, node.column, fork))
                open_columns.discard(fork)
        open_columns.add(node.column)
        rail = " ".join(
            "*" if column == node.column else "|" if column in open_columns else " "
            for column in range((width + 1) // 2)
        )
        lines.append(f"{rail:<{width}}  {node.label:<{labels}}  {_about(node.info)}")
    return lines


def _joint(open_columns: set[int], parent: int, fork: int) -> str:
    """Draw the line where a branch joins its parent: ``|/``, or ``|_|/`` past other branches."""
    near, far = sorted((parent, fork))
    cells = [" "] * (2 * max(far, *open_columns) + 1)
    for column in (open_columns - {fork}) | {parent}:
        cells[2 * column] = "|"
    for position in range(2 * near + 1, 2 * far):
        if cells[position] == " ":
            cells[position] = "_"
    cells[2 * fork - 1 if fork > parent else 2 * fork + 1] = "/" if fork > parent else "\\"
    return "".join(cells).rstrip()


def _about(info: VersionInfo) -> str:
    time = f"{info.timestamp.astimezone():%Y-%m-%d %H:%M}" if info.timestamp else " " * 16
    tags = f"  (tag: {', '.join(map(text.name, info.tags))})" if info.tags else ""
    message = f"  {text.line(info.message, 60)}" if info.message else ""
    operation = text.line(operation_title(info.operation), 34)
    rows = "" if info.num_rows is None else text.plural(info.num_rows, "row")
    return f"{time}  {operation:<34} {rows:>14}{tags}{message}"


@verb(
    argument("range", completes=RANGE, metavar="A..B", help="the versions"),
    argument("other", nargs="?", completes=REF, metavar="B", help="the same as A..B: A B"),
    argument("--rows", action="store_true", help="the rows that differ"),
    argument("--all", action="store_true", help="with --rows: all of them"),
    argument("--key", completes=COLUMN, metavar="A,B", help="columns that identify a row"),
    *(
        argument(
            f"--{level}",
            dest="level",
            action="store_const",
            const=level,
            help=f"the {level} that differ",
        )
        for level in LEVELS
    ),
    example="diff HEAD~1..HEAD --rows",
)
def diff(context: MagicContext, args: Namespace) -> Result:
    """Compare two versions: A..B, A...B (since the merge base), or A (with the current one)."""
    key = names_of(args.key)
    a, b = _both_versions(context, args.range, args.other)
    diff = context.dataset.diff(a, b, key=key)
    heading = f"{label(a)} .. {label(b)}"
    shown = context.settings.rows_shown
    if args.rows:
        rows = diff.rows(limit=None if args.all else shown).read_all()
        lines = [f"rows are matched by {diff.identity}: {diff.reason}"]
        return table_result(f"Rows of {heading}", rows, shown, lines=lines)
    if args.level is not None:
        table = getattr(diff, args.level)
        return table_result(f"{args.level.capitalize()} of {heading}", table, shown)
    return _summary(diff, heading)


def _summary(diff: Diff, heading: str) -> Result:
    counts = diff.counts
    records = [
        {"what": name.replace("_", " "), "count": getattr(counts, name)}
        for name in type(counts).__dataclass_fields__
        if isinstance(getattr(counts, name), int) and not isinstance(getattr(counts, name), bool)
        and getattr(counts, name)
    ]  # fmt: skip
    lines = [f"rows are matched by {diff.identity}"]
    if counts.is_empty:
        lines = ["no difference"]
    return records_result(heading, records, value=diff, lines=lines)


def _both_versions(
    context: MagicContext, words: str, other: str | None
) -> tuple[LanceDataset, LanceDataset]:
    """Open the versions of ``A..B``, ``A...B`` (merge base and B), or ``A`` (A and current)."""
    match = _RANGE.fullmatch(words)
    if other is not None:
        if match is not None:
            raise InvalidInputError(f"use either {words} or A B")
        return context.resolve(words), context.resolve(other)
    if match is None:
        return context.resolve(words), context.dataset
    a = context.resolve(match["a"]) if match["a"] else context.dataset
    b = context.resolve(match["b"]) if match["b"] else context.dataset
    if match["dots"] == "..":
        return a, b
    ancestor = context.dataset.diff(a, b).ancestor
    if ancestor is None:
        raise InvalidInputError(f"{label(a)} and {label(b)} have no common ancestor")
    return context.dataset.checkout_version((ancestor.branch, ancestor.version)), b


@verb(
    argument("row", metavar="ID|COLUMN=VALUE", help="the row id, or a key such as id=7"),
    example="row id=7",
)
def row(context: MagicContext, args: Namespace) -> Result:
    """Show the history of one row: created, updated, moved, deleted."""
    column, equals, value = args.row.partition("=")
    dataset = context.dataset
    if equals:
        kind = dataset.schema.field(column).type if column in dataset.schema.names else None
        key = {column: _value(value, kind)}
        history = dataset.row_history(key=key)
    elif args.row.isdecimal():
        history = dataset.row_history(row_id=int(args.row))
    else:
        raise InvalidInputError("expected a row id, or a key such as id=7")
    records = [
        {
            "version": f"{step.branch or 'main'}:{step.version}",
            "event": step.event,
            "operation": step.operation,
            "fragment": step.fragment_id,
            "changed": ", ".join(map(text.name, step.columns)),
        }
        for step in history.steps()
    ]
    return records_result(f"History of row {text.line(args.row)}", records, value=history)


def _value(words: str, kind: pa.DataType | None) -> object:
    if kind is None:
        return words
    try:
        return pa.scalar(words).cast(kind).as_py()
    except pa.ArrowException as error:
        raise InvalidInputError(f"{words!r} is not a value of type {kind}") from error


VERBS = (log, bisect, diff, row)
