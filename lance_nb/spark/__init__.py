"""Large work leaves the notebook's process: plan, run tasks on an engine, commit once.

::

    from lance_nb import spark as lance_spark

    lance_spark.append(ds, "exports/*.parquet")           where: explain(plan) says, engine= decides
    lance_spark.delete(ds, "label IS NULL", engine="spark")
    lance_spark.write(frame, "photos.lance", mode="create")
    lance_spark.register(session)                         spark.read.format("lance_nb").load(uri)

Names are loaded when they are used: every Python worker of Spark imports this package.

Needs the extra ``spark`` and Java 17 for the engine "spark" and the data source; the engine "local"
needs neither. No engine starts processes that run the user's script again.
"""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lance_nb.spark.background import Job, jobs, submit
    from lance_nb.spark.dispatch import choose, explain
    from lance_nb.spark.engine import TaskProgress
    from lance_nb.spark.frames import plan_frame
    from lance_nb.spark.journal import forget, resume, unfinished
    from lance_nb.spark.merging import MergeRun, merge, plan_upsert, update_columns, upsert
    from lance_nb.spark.progress import RunProgress
    from lance_nb.spark.registration import read, register, register_views
    from lance_nb.spark.run import run_edits
    from lance_nb.spark.sessions import find_session, start_session, why_not
    from lance_nb.spark.tasks.casting import plan_cast
    from lance_nb.spark.tasks.clone import plan_clone
    from lance_nb.spark.tasks.columns import plan_columns
    from lance_nb.spark.tasks.compaction import plan_compaction
    from lance_nb.spark.tasks.counting import plan_count
    from lance_nb.spark.tasks.deletion import plan_delete
    from lance_nb.spark.tasks.differences import plan_diff
    from lance_nb.spark.tasks.files import plan_append
    from lance_nb.spark.tasks.indexing import plan_index
    from lance_nb.spark.tasks.merge import plan_merge
    from lance_nb.spark.tasks.update import plan_update
    from lance_nb.spark.verbs import (
        append,
        backfill,
        clone,
        compact,
        count,
        create_scalar_index,
        delete,
        diff,
        diff_frame,
        statistics,
        update,
        write,
    )

__all__ = [
    "Job",
    "MergeRun",
    "RunProgress",
    "TaskProgress",
    "append",
    "backfill",
    "choose",
    "clone",
    "compact",
    "count",
    "create_scalar_index",
    "delete",
    "diff",
    "diff_frame",
    "explain",
    "find_session",
    "forget",
    "jobs",
    "merge",
    "plan_append",
    "plan_cast",
    "plan_clone",
    "plan_columns",
    "plan_compaction",
    "plan_count",
    "plan_delete",
    "plan_diff",
    "plan_frame",
    "plan_index",
    "plan_merge",
    "plan_update",
    "plan_upsert",
    "read",
    "register",
    "register_views",
    "resume",
    "run_edits",
    "start_session",
    "statistics",
    "submit",
    "unfinished",
    "update",
    "update_columns",
    "upsert",
    "why_not",
    "write",
]

_WHERE = {
    "background": "Job jobs submit",
    "dispatch": "choose explain",
    "engine": "TaskProgress",
    "frames": "plan_frame",
    "journal": "forget resume unfinished",
    "merging": "MergeRun merge plan_upsert update_columns upsert",
    "progress": "RunProgress",
    "registration": "read register register_views",
    "run": "run_edits",
    "sessions": "find_session start_session why_not",
    "tasks.casting": "plan_cast",
    "tasks.clone": "plan_clone",
    "tasks.columns": "plan_columns",
    "tasks.compaction": "plan_compaction",
    "tasks.counting": "plan_count",
    "tasks.deletion": "plan_delete",
    "tasks.differences": "plan_diff",
    "tasks.files": "plan_append",
    "tasks.indexing": "plan_index",
    "tasks.merge": "plan_merge",
    "tasks.update": "plan_update",
    "verbs": (
        "append backfill clone compact count create_scalar_index delete diff diff_frame statistics "
        "update write"
    ),
}
_MODULES = {name: module for module, names in _WHERE.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """Load a name from its module."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_loaded(_MODULES[name]), name)


def _loaded(name: str) -> ModuleType:
    return import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    """List the names."""
    return sorted({*globals(), *__all__})
