"""Rich display of single values: a version, a diff, a transaction, a fragment, a schema, a stage.

Each is a ``Picture`` (text and static HTML, short and escaped, see ``pictures``), made from what
the value knows without reading data. A diff, a fragment and a stage know their dataset, so that a
notebook shows them alive as well: ``widget_of``.

Limits: ``MAX_LINES`` lines of a table; values are one line.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lance_nb.dataset.display import VALUES
from lance_nb.errors import LanceError
from lance_nb.explorer.models import text
from lance_nb.explorer.models.schema_tree import schema_tree
from lance_nb.explorer.models.version_detail import entries
from lance_nb.explorer.pictures import Picture, picture_of_table
from lance_nb.explorer.registry import DeletionMap, DiffView, StagePanel
from lance_nb.explorer.widget import LanceWidget

MAX_LINES = 30
Rows = Sequence[tuple[str, str]]


def kind_of(value: object) -> str | None:
    """Return what a value is to be shown as, None for what shows itself."""
    return VALUES.get((type(value).__module__, type(value).__qualname__))


def picture_of_value(value: Any) -> Picture:
    """Picture a value that ``kind_of`` knows. Raises KeyError for others."""
    return _PICTURES[kind_of(value) or ""](value)


def widget_of(value: Any) -> LanceWidget | None:
    """Return the live form of a value, None where it does not know its dataset."""
    kind = kind_of(value)
    try:
        if kind == "diff":
            return DiffView(value)
        if kind == "fragment" and value.num_deletions:
            return DeletionMap(value._dataset, value.fragment_id)  # noqa: SLF001
        if kind == "stage" and value.edits:
            return StagePanel(value)
    except LanceError:
        return None  # the picture needs no data and still says what the value is
    return None


def _facts(heading: str, lines: Sequence[str], rows: Rows) -> Picture:
    shown = [(text.line(label, 160), text.line(value, 300)) for label, value in rows[:MAX_LINES]]
    note = f"{text.count(len(rows) - MAX_LINES)} more" if len(rows) > MAX_LINES else ""
    return picture_of_table(
        text.line(heading), tuple(text.line(line) for line in lines if line), (("", ""), shown),
        note=note,
    )  # fmt: skip


def _counted(value: Any, names: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(label, text.count(getattr(value, name))) for name, label in names.items()]


def _version(value: Any) -> Picture:
    tags = "".join(f" · tag {text.name(tag)}" for tag in value.tags[:MAX_LINES])
    done = f"{text.moment(value.timestamp)} · {value.operation or 'operation not recorded'}"
    rows = _counted(value, {
        "num_rows": "rows", "num_deleted_rows": "deleted rows", "num_fragments": "fragments",
        "num_data_files": "data files", "num_deletion_files": "deletion files",
    })  # fmt: skip
    rows.append(("size", "unknown" if value.size_bytes is None else text.size(value.size_bytes)))
    return _facts(f"Version {value.version}{tags}", (done, value.message or ""), rows)


def _diff(value: Any) -> Picture:
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


def _transaction(value: Any) -> Picture:
    about = (("read version", str(value.read_version)), ("transaction", value.uuid))
    details = [(one.label, one.value) for one in entries(value.details)]
    return _facts(f"Transaction: {value.operation}", (value.description,), [*about, *details])


def _fragment(value: Any) -> Picture:
    files = value.data_files()
    size = sum(one.size_bytes or 0 for one in files)
    rows = [
        ("rows", text.count(value.physical_rows - value.num_deletions)),
        ("deleted rows", text.count(value.num_deletions)),
        ("data files", text.count(len(files))),
        ("size", text.size(size) if size else "unknown"),
        *(("file", one.path) for one in files),
    ]
    return _facts(f"Fragment {value.fragment_id}", (), rows)


def _schema(value: Any) -> Picture:
    tree = schema_tree(value.to_arrow())
    rows = [(f"{'· ' * one.depth}{one.name}", one.type) for one in tree.lines]
    return _facts(text.plural(len(value.fields), "column"), (), rows)


def _edits(value: Any) -> Rows:
    return [
        ("rows added", text.count(value.num_added_rows)),
        ("rows deleted", text.count(value.num_deleted_rows)),
        ("rows updated among them", text.count(value.num_updated_rows)),
        ("size of the files", text.size(value.size_bytes)),
        ("made for version", str(value.read_version)),
    ]


def _preview(value: Any) -> Picture:
    rows = [("rows", f"{text.count(value.num_rows_before)} → {text.count(value.num_rows_after)}")]
    heading = f"What a commit would change: {value.operation}"
    return _facts(heading, (value.description,), [*rows, *_edits(value)])


def _write(value: Any) -> Picture:
    name = type(value.operation).__name__
    return _facts(f"Staged write: {name}", ("not committed",), _edits(value))


def _stage(value: Any) -> Picture:
    edits = [("edit", type(one).__name__) for one in value.edits]
    where = text.ref_label(value.branch, value.read_version)
    return _facts(f"Stage for {where}", (value.state,), edits)


_PICTURES: dict[str, Callable[[Any], Picture]] = {
    "version": _version,
    "diff": _diff,
    "transaction": _transaction,
    "fragment": _fragment,
    "schema": _schema,
    "stage": _stage,
    "preview": _preview,
    "write": _write,
}
