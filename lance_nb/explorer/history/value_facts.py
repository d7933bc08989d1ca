"""Describe a single value: a version, a diff, a transaction, a fragment, a schema, a stage.

One description serves every form of a value's display: the text and the static HTML are made of its
``rows`` (see ``display``), the widget of its ``nodes`` (see ``widgets.metadata``), which hold
what one line cannot: the decoded operation as a tree, some of the rows of a preview.

Layout of a node: as in ``row_detail``.

Limits: ``MAX_NODES`` nodes, ``MAX_CHILDREN`` of one and ``MAX_DEPTH`` levels; ``MAX_ROWS`` example
rows. Nothing here reads data; values that were read before are described.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from lance_nb.explorer import cells, text
from lance_nb.explorer.history.versions import entries
from lance_nb.explorer.schema_tree import SchemaTree, schema_tree
from lance_nb.format.transaction_summary import operation_title
from lance_nb.value_classes import dataclass

MAX_NODES = 600
MAX_CHILDREN = 100
MAX_DEPTH = 6
MAX_ROWS = 5
_VALUE_CHARS = 300

Rows = Sequence[tuple[str, str]]
Node = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ValueFacts:
    """A heading, lines of prose, labels with their values, and the same as a tree with more in it.

    ``operation`` gives the widget its colour and sign; ``schema`` is shown in place of the tree.
    ``is_whole``: the tree says all that the rows say.
    """

    heading: str
    lines: tuple[str, ...]
    rows: tuple[tuple[str, str], ...]
    nodes: tuple[Node, ...] = ()
    operation: str = ""
    schema: SchemaTree | None = None
    is_whole: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return what the widget shows as JSON-able values."""
        return {
            "heading": self.heading,
            "lines": list(self.lines),
            "rows": []
            if self.is_whole
            else [{"label": label, "value": value} for label, value in self.rows],
            "nodes": list(self.nodes),
            "operation": self.operation,
            "schema": None if self.schema is None else self.schema.to_json(),
        }


class _Tree:
    """Makes nodes until the budget is spent."""

    def __init__(self) -> None:
        self.left = MAX_NODES

    def node(self, name: object, value: Any, depth: int = 0) -> Node:
        """One value with what is inside it."""
        self.left -= 1
        shown = text.line(str(name), 160)
        inside = _inside(value)
        if inside is None or depth == MAX_DEPTH:
            return leaf(shown, text.ELLIPSIS if inside else value)
        some = inside[: max(0, min(MAX_CHILDREN, self.left))]
        children = [self.node(key, inner, depth + 1) for key, inner in some]
        return branch(shown, children, len(inside) - len(children))


def _inside(value: Any) -> list[tuple[object, Any]] | None:
    """Return what a value holds; None where one line says it better."""
    if isinstance(value, Mapping) and value:
        return list(value.items())
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], (Mapping, list, tuple)):
        return list(enumerate(value))
    return None


def leaf(name: str, value: Any) -> Node:
    """Return a node that is one text."""
    if isinstance(value, (list, tuple)):
        value = ", ".join(text.cut(str(item), 80) for item in value[:40]) or "none"
    nothing = value is None or value in ({}, "")
    shown = "none" if nothing else text.line(str(value), _VALUE_CHARS)
    return {"name": name, "type": "", "text": shown, "look": "null" if nothing else "value"}


def branch(name: str, children: list[Node], more: int = 0) -> Node:
    """Return a node that opens."""
    return {"name": name, "type": "", "children": children, "more": more}


def tree_of(values: Mapping[str, Any]) -> list[Node]:
    """Turn nested plain values into nodes."""
    tree = _Tree()
    return [tree.node(key, value) for key, value in values.items() if tree.left > 0]


def _rows_nodes(name: str, table: pa.Table) -> list[Node]:
    """Turn some rows of a table into nodes, each with its cells inside."""
    if not table.num_rows:
        return []
    shown = table.slice(0, MAX_ROWS).select(table.column_names[:MAX_CHILDREN])
    columns = [cells.cell_texts(column, _VALUE_CHARS) for column in shown.columns]
    nodes = [
        branch(f"row {row}", [
            leaf(text.name(column), values[row])
            for column, values in zip(shown.column_names, columns, strict=True)
        ])
        for row in range(shown.num_rows)
    ]  # fmt: skip
    return [branch(name, nodes, table.num_rows - len(nodes))]


def _facts(
    heading: str, lines: Sequence[str], rows: Rows, nodes: Sequence[Node] = (), operation: str = ""
) -> ValueFacts:
    facts = tuple((text.line(label, 160), text.line(value, _VALUE_CHARS)) for label, value in rows)
    texts = tuple(text.line(line) for line in lines if line)
    return ValueFacts(
        text.line(heading), texts, facts, nodes=tuple(nodes), operation=text.name(operation)
    )


def _counted(value: Any, names: Mapping[str, str]) -> list[tuple[str, str]]:
    counts = [(label, getattr(value, name)) for name, label in names.items()]
    return [
        (label, "not recorded" if count is None else text.count(count)) for label, count in counts
    ]


def _version(value: Any) -> ValueFacts:
    tags = "".join(f" · tag {text.name(tag)}" for tag in value.tags[:MAX_CHILDREN])
    operation = operation_title(value.operation)
    rows = _counted(value, {
        "num_rows": "rows", "num_deleted_rows": "deleted rows", "num_fragments": "fragments",
        "num_data_files": "data files", "num_deletion_files": "deletion files",
    })  # fmt: skip
    rows.append(("size", "unknown" if value.size_bytes is None else text.size(value.size_bytes)))
    lines = (f"{text.moment(value.timestamp)} · {operation}", value.message or "")
    nodes = tree_of({"properties": value.properties}) if value.properties else []
    return _facts(
        f"Version {value.version}{tags}", lines, rows, nodes=nodes, operation=value.operation or ""
    )


def _diff(value: Any) -> ValueFacts:
    (branch_a, a), (branch_b, b) = value.a, value.b
    counts = value.counts
    some = {
        "rows_in": "rows in, at most", "rows_out": "rows out, at most",
        "fragments_added": "fragments added", "fragments_removed": "fragments removed",
        "fragments_changed": "fragments changed", "files_added": "files added",
        "files_removed": "files removed", "fields_added": "columns added",
        "fields_removed": "columns removed", "fields_changed": "columns changed",
        "indices_added": "indices added", "indices_removed": "indices removed",
        "indices_changed": "indices changed",
    }  # fmt: skip
    if counts.rows_exact:
        some |= {"rows_in": "rows added", "rows_out": "rows removed"}
    changed = [(label, number) for label, number in _counted(counts, some) if number != "0"]
    rows = [("rows", f"{text.count(counts.rows_before)} → {text.count(counts.rows_after)}")]
    heading = f"Changes {text.ref_label(branch_a, a)} → {text.ref_label(branch_b, b)}"
    return _facts(heading, (f"rows are matched by {value.identity}",), rows + changed)


def _transaction(value: Any) -> ValueFacts:
    about = [("read version", str(value.read_version)), ("transaction", value.uuid)]
    details = [(entry.label, entry.value) for entry in entries(value.details)]
    nodes = tree_of({"read version": value.read_version, "transaction": value.uuid}
                    | dict(value.details) | {"properties": value.properties})  # fmt: skip
    heading = operation_title(value.operation)
    facts = _facts(
        heading, (value.description,), about + details, nodes=nodes, operation=value.operation
    )
    return replace(facts, is_whole=True)


def _fragment(value: Any) -> ValueFacts:
    files = value.data_files()
    size = sum(file.size_bytes or 0 for file in files)
    rows = [
        ("rows", text.count(value.physical_rows - value.num_deletions)),
        ("deleted rows", text.count(value.num_deletions)),
        ("data files", text.count(len(files))),
        ("size", text.size(size) if size else "unknown"),
        *(("file", file.path) for file in files),
    ]
    nodes = tree_of({"data files": {
        text.name(file.path): {
            "size": text.size(file.size_bytes) if file.size_bytes else "unknown",
            "field ids": list(file.fields),
        } for file in files
    }})  # fmt: skip
    return _facts(f"Fragment {value.fragment_id}", (), rows[:4] if len(files) > 9 else rows, nodes)


def _schema(value: Any) -> ValueFacts:
    tree = schema_tree(value.tree.to_arrow())
    rows = [(f"{'· ' * line.depth}{line.name}", line.type) for line in tree.lines]
    return replace(_facts(text.plural(len(value.names), "column"), (), rows), schema=tree)


def _edits(value: Any) -> list[tuple[str, str]]:
    return [
        ("rows added", text.count(value.num_added_rows)),
        ("rows deleted", text.count(value.num_deleted_rows)),
        ("rows updated among them", text.count(value.num_updated_rows)),
        ("size of the files", text.size(value.size_bytes)),
        ("made for version", str(value.read_version)),
    ]


def _preview(value: Any) -> ValueFacts:
    rows = [("rows", f"{text.count(value.num_rows_before)} → {text.count(value.num_rows_after)}")]
    heading = f"What a commit would change: {operation_title(value.operation)}"
    since = [
        leaf(
            f"version {meeting.version}: {operation_title(meeting.operation)}",
            f"{meeting.verdict} {meeting.overlap}".strip(),
        )
        for meeting in value.meetings[:MAX_CHILDREN]
    ]
    nodes = [
        *_rows_nodes("some rows before", value.removed),
        *_rows_nodes("some rows after", value.added),
        *_rows_nodes("fragments", value.fragments),
        *([branch("committed by others since", since)] if since else []),
    ]
    return _facts(
        heading, (value.description,), rows + _edits(value), nodes=nodes, operation=value.operation
    )


def _write(value: Any) -> ValueFacts:
    name = type(value.operation).__name__
    nodes = tree_of({
        "fragments changed": list(value.touched_fragments),
        "files written": list(value.data_files[:MAX_CHILDREN]),
    })  # fmt: skip
    return _facts(
        f"Staged write: {operation_title(name)}",
        ("not committed",),
        _edits(value),
        nodes=nodes,
        operation=name,
    )


_EDIT_WORDS = {
    "Addition": "append", "Replacement": "overwrite", "DeletionPlan": "delete",
    "RowRewrite": "update",
}  # fmt: skip


def _stage(value: Any) -> ValueFacts:
    names = [type(edit).__name__ for edit in value.edits]
    edits = [("edit", _EDIT_WORDS.get(edit_name, edit_name)) for edit_name in names]
    where = text.ref_label(value.branch, value.read_version)
    return _facts(f"Stage for {where}", (value.state,), edits)


FACTS: dict[str, Callable[[Any], ValueFacts]] = {
    "version": _version,
    "diff": _diff,
    "transaction": _transaction,
    "fragment": _fragment,
    "schema": _schema,
    "stage": _stage,
    "preview": _preview,
    "write": _write,
}
