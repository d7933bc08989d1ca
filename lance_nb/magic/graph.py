"""The versions of all branches as one graph of characters, as ``git log --graph`` draws it.

Newest first, by time; one column per branch; a branch leaves its parent at the version it was
forked from::

    *    main:9  2026-08-02 10:11  Append     +1,000
    | *  dev:8   2026-08-01 09:00  Delete     -12        (tag: tried)
    |/
    *    main:7  ...

Limits: ``MAX_BRANCHES`` branches, the newest by their fork.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from lance_nb.dataset import LanceDataset
from lance_nb.explorer.models import text
from lance_nb.explorer.static_rendering import StaticRendering, render_preformatted
from lance_nb.magic.answer import Answer
from lance_nb.table.history import VersionInfo

MAX_BRANCHES = 16
_OLDEST = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class _Node:
    """One version and the branch it is on; ``forks`` are the branches that begin at it."""

    branch: str | None
    info: VersionInfo
    column: int
    forks: tuple[int, ...]

    @property
    def label(self) -> str:
        return f"{text.name(self.branch or 'main')}:{self.info.version}"


def graph_of(dataset: LanceDataset, limit: int) -> Answer:
    """Draw the newest ``limit`` versions of all branches."""
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
    return Answer(data, picture, data)


def _nodes(dataset: LanceDataset, limit: int) -> list[_Node]:
    # A branch that is unfinished has no versions.
    listed = [one for one in dataset.branches.list().items() if not one[1].get("is_unfinished")]
    branches = dict(listed[-MAX_BRANCHES:])
    columns: dict[str | None, int] = {None: 0}
    for name in sorted(branches, key=lambda one: branches[one]["parent_version"]):
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
    # The number decides where clocks are too coarse: a fork is older than what followed it.
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
    """Draw how a branch comes back to its parent: ``|/``, or ``|_|/`` past others between."""
    near, far = sorted((parent, fork))
    cells = [" "] * (2 * max(far, *open_columns) + 1)
    for column in (open_columns - {fork}) | {parent}:
        cells[2 * column] = "|"
    for at in range(2 * near + 1, 2 * far):
        if cells[at] == " ":
            cells[at] = "_"
    cells[2 * fork - 1 if fork > parent else 2 * fork + 1] = "/" if fork > parent else "\\"
    return "".join(cells).rstrip()


def _about(info: VersionInfo) -> str:
    time = f"{info.timestamp.astimezone():%Y-%m-%d %H:%M}" if info.timestamp else " " * 16
    tags = f"  (tag: {', '.join(map(text.name, info.tags))})" if info.tags else ""
    message = f"  {text.line(info.message, 60)}" if info.message else ""
    operation = text.line(info.operation or "", 20)
    rows = "" if info.num_rows is None else text.plural(info.num_rows, "row")
    return f"{time}  {operation:<12} {rows:>14}{tags}{message}"
