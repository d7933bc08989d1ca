"""Execute an edit: choose where it runs, plan it as tasks if it can be split, or stage it here.

Whatever reads or writes data has a plan first: deletions, updates, upserts, appends from files and
datasets, new and cast columns, compactions. A plan can run in this process or on Spark, and returns
the edits of a stage. Everything else is done in this process with the verbs of ``ds.stage()``, as
are upserts, compactions and columns that run here, because these report their progress by rows.

Limits: an upsert that runs elsewhere holds its rows in memory.
Source: lance_nb.dataset.staging, lance_nb.spark (``run_edits``), lance_nb.spark.run
(``choose``), lance_nb.spark.sessions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lance_nb import spark
from lance_nb.dataset import LanceDataset
from lance_nb.dataset.staging import Stage
from lance_nb.errors import ColumnNotFoundError, InvalidInputError
from lance_nb.explorer import text
from lance_nb.explorer.messages import Progress
from lance_nb.explorer.stage.edit_forms import VERBS, EditForm, type_of
from lance_nb.explorer.stage.row_sources import (
    Namespace,
    find_rows,
    is_spark_frame,
    streamed_source,
)
from lance_nb.spark.sessions import require as require_spark
from lance_nb.value_classes import dataclass
from lance_nb.writing import deleting, schema_evolution, updating
from lance_nb.writing.input_data import fitted
from lance_nb.writing.schema_evolution import values_of

if TYPE_CHECKING:
    from lance_nb.spark.plan import Plan


# In this process these report progress by rows, as a plan by tasks.
BY_ROWS = ("upsert", "compact", "add_column", "cast_column")
LOCAL, SPARK = "local", "spark"
LARGE_BYTES = 1536 * 1024**2  # from here on a card says how much work it is before it is done
_STAYS = "a DataFrame stays on Spark"


def plan_of(dataset: LanceDataset, form: EditForm, namespace: Namespace) -> Plan | None:
    """Plan an edit for any engine; None if it runs in this process. Raises LanceError."""
    make = _PLANS.get(form.verb)
    return None if make is None else make(dataset, form, namespace)


def rough_plan_of(dataset: LanceDataset, form: EditForm, namespace: Namespace) -> Plan | None:
    """Plan without reading rows, to estimate the work. Raises LanceError."""
    if form.verb != "upsert":
        return plan_of(dataset, form, namespace)
    held = namespace.get(form.args["source"])
    if is_spark_frame(held) or isinstance(held, pa.RecordBatchReader):
        return None
    nothing = pa.Table.from_batches([], dataset.schema)
    return spark.plan_upsert(dataset, nothing, form.args["on"])


def local_reason(form: EditForm) -> str:
    """Return why work that has no plan is done in this process."""
    if form.verb in ("append", "overwrite"):
        return "its rows are in this process"
    is_heavy = form.verb in VERBS and VERBS[form.verb].is_heavy
    return "runs in this process" if is_heavy and "type" not in form.args else "no data is read"


def _append(dataset: LanceDataset, form: EditForm, namespace: Namespace) -> Plan | None:
    name = form.args["source"]
    if is_spark_frame(namespace.get(name)):
        return spark.plan_frame(dataset, namespace[name])
    source = streamed_source(name, namespace)
    return None if source is None else spark.plan_append(dataset, source)


def _upsert(dataset: LanceDataset, form: EditForm, namespace: Namespace) -> Plan | None:
    rows = fitted(find_rows(form.args["source"], namespace), dataset.schema)
    if isinstance(rows, pa.RecordBatchReader):
        return None  # it can be read once
    session = spark.find_session(namespace) if form.engine == "spark" else None
    return spark.plan_upsert(dataset, rows, form.args["on"], engine=form.engine, spark=session)


def _columns(dataset: LanceDataset, form: EditForm, _: Namespace) -> Plan | None:
    if "sql" not in form.args:
        return None
    return spark.plan_columns(dataset, {form.args["name"]: form.args["sql"]})


_PLANS: dict[str, Callable[[LanceDataset, EditForm, Namespace], Plan | None]] = {
    "delete": lambda ds, form, _: spark.plan_delete(ds, form.args["where"]),
    "update": lambda ds, form, _: spark.plan_update(ds, form.args["set"], form.args.get("where")),
    "append": _append,
    "upsert": _upsert,
    "add_column": _columns,
    "cast_column": lambda ds, form, _: spark.plan_cast(
        ds, {form.args["column"]: type_of(form.args["type"])}
    ),
    "compact": lambda ds, form, _: spark.plan_compaction(ds, **form.args),
}


def stage_of(
    dataset: LanceDataset, form: EditForm, namespace: Namespace, progress: Progress
) -> Stage:
    """Execute an edit in this process, and return it staged. Raises LanceError."""
    stage, args = dataset.stage(), form.args
    if form.verb == "delete":
        return stage.delete(args["where"])
    if form.verb == "update":
        return stage.update(args["set"], args.get("where"))
    if form.verb == "append":
        return stage.append(find_rows(args["source"], namespace))
    if form.verb == "overwrite":
        return stage.overwrite(_held(find_rows(args["source"], namespace)))
    if form.verb == "upsert":
        builder = stage.merge_insert(args["on"]).when_matched_update_all()
        rows = _held(find_rows(args["source"], namespace))
        return builder.when_not_matched_insert_all().stage(rows, progress=progress)
    if form.verb == "restore":
        return stage.restore(_older(dataset, args["version"]))
    if form.verb == "compact":
        return stage.compact(progress=progress, **args)
    if form.verb == "drop_columns":
        return stage.drop_columns(args["columns"])
    if form.verb == "add_column":
        return stage.add_columns(_new_column(args), progress=progress)
    return stage.alter_columns(_alteration(args), progress=progress)


def _held(rows: Any) -> Any:
    """Bring a DataFrame of Spark's into this process; all else is there."""
    return rows.toArrow() if is_spark_frame(rows) else rows


def _new_column(args: dict[str, Any]) -> Any:
    """Return what ``add_columns`` takes: an expression, or a field of nulls."""
    if "sql" in args:
        return {args["name"]: args["sql"]}
    if "type" not in args:
        raise InvalidInputError(
            "enter an expression for the column, or the type of a column of nulls"
        )
    return pa.field(args["name"], type_of(args["type"]))


def _alteration(args: dict[str, Any]) -> dict[str, Any]:
    changed = {"data_type": type_of(args["type"])} if "type" in args else {"name": args["name"]}
    return {"path": args["column"], **changed}


def _older(dataset: LanceDataset, ref: str) -> int:
    """Return the number of a version of the branch that the dataset stands on."""
    resolved = dataset.checkout_version(ref)
    if resolved.branch != dataset.branch:
        raise InvalidInputError(
            f"{ref!r} is a version of another branch; only versions of the current branch can be "
            "restored"
        )
    return resolved.version


def check_edit(dataset: LanceDataset, form: EditForm) -> str:
    """Check an edit before anything is read, and return a note about it. Raises LanceError."""
    snapshot, args = dataset.opened[1], form.args
    if form.verb == "delete":
        deleting.check(snapshot, args["where"])
    elif form.verb == "update":
        updating.check(snapshot, args["set"], args.get("where"))
    elif form.verb == "add_column":
        return _check_new(dataset, args)
    elif form.verb in ("rename_column", "cast_column"):
        schema_evolution.alterations_of([_alteration(args)])
        _check_columns(dataset, [args["column"]])
    elif form.verb in ("drop_columns", "upsert"):
        _check_columns(dataset, args["columns"] if form.verb == "drop_columns" else args["on"])
    elif form.verb == "restore":
        return f"version {_older(dataset, args['version'])} becomes the newest again"
    return ""


def _check_new(dataset: LanceDataset, args: dict[str, Any]) -> str:
    if args["name"] in dataset.schema.names:
        raise InvalidInputError(f"column {args['name']!r} already exists")
    new_column = _new_column(args)
    if isinstance(new_column, pa.Field):
        return f"a column of nulls, {new_column.type}: no data is written"
    values = values_of(
        dataset.opened[1], new_column, columns=None, batch_size=None, reader_schema=None
    )
    return f"a column of type {values.schema.field(0).type}"


def _check_columns(dataset: LanceDataset, names: list[str]) -> None:
    schema = dataset.lance_schema.tree
    for name in names:
        if name not in schema.names and not any(
            schema.path_of(field.id) == name for field in schema.walk()
        ):
            raise ColumnNotFoundError(name, tuple(schema.names))


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the work runs, or ran, and why. ``is_movable``: it could run on another engine.

    ``plan`` is the work cut into tasks, where that is known without reading a row.
    """

    name: str = LOCAL
    reason: str = "runs in this process"
    size_bytes: int = 0
    num_tasks: int = 0
    is_movable: bool = False
    plan: Plan | None = field(default=None, repr=False, compare=False)

    @property
    def is_put_off(self) -> bool:
        """Whether the work waits until it is asked for: because of where it runs, or its size."""
        return self.name != LOCAL or self.size_bytes >= LARGE_BYTES

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON-able values."""
        return {
            "name": self.name,
            "reason": text.line(self.reason),
            "size": text.size(self.size_bytes),
            "tasks": self.num_tasks,
            "movable": self.is_movable,
        }


def placement_of(dataset: LanceDataset, form: EditForm, namespace: Namespace) -> Placement:
    """Choose where an edit would run, without reading rows.

    Raises LanceError: NotSupportedError when Spark is asked for and cannot be had.
    """
    if form.verb == "upsert" and is_spark_frame(namespace.get(form.args["source"])):
        is_open = form.engine == "auto"
        return Placement(SPARK if is_open else form.engine, _STAYS if is_open else "asked for",
                     is_movable=True)  # fmt: skip
    plan = rough_plan_of(dataset, form, namespace)
    if plan is None:
        return Placement(LOCAL, local_reason(form))
    session = spark.find_session(namespace) if form.engine == SPARK else None
    choice = spark.choose(plan, form.engine, session)
    reason = choice.reason
    if choice.name == SPARK and spark.find_session(namespace) is None:
        require_spark()
        reason = f"{reason}; a session is started for it, which takes some seconds"
    size, count = plan.size_bytes, len(plan.tasks)
    return Placement(choice.name, reason, size, count, is_movable=True, plan=plan)
