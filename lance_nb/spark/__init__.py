"""Run large operations as tasks, in this process or on Spark, and commit them once.

::

    from lance_nb import spark as lance_spark

    lance_spark.append(ds, "exports/*.parquet")           explain(plan) says on which engine
    lance_spark.delete(ds, "label IS NULL", engine="spark")
    lance_spark.write(frame, "photos.lance", mode="create")
    lance_spark.register(session)                         spark.read.format("lance_nb").load(uri)

Public names are imported on first use: every Python worker of Spark imports this package, and most
of its modules are needed on the driver only.

The engine "spark" and the data source need the extra ``spark`` and Java 17; the engine "local"
needs neither. No engine starts processes that run the user's script again.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lance_nb.spark.background_jobs import Job, RunProgress, jobs, submit
    from lance_nb.spark.dataframes import plan_frame, read, register
    from lance_nb.spark.engine import TaskProgress
    from lance_nb.spark.journal import forget, unfinished
    from lance_nb.spark.merge_insert import (
        MergeRun,
        merge,
        plan_merge,
        plan_upsert,
        update_columns,
        upsert,
    )
    from lance_nb.spark.operations import (
        append,
        backfill,
        clone,
        compact,
        count,
        create_index,
        create_scalar_index,
        delete,
        diff,
        diff_frame,
        orphans,
        statistics,
        update,
        write,
    )
    from lance_nb.spark.queries import sql
    from lance_nb.spark.run import choose, explain, resume, run_edits
    from lance_nb.spark.sessions import find_session, start_session, why_not
    from lance_nb.spark.tasks.columns import plan_cast, plan_columns
    from lance_nb.spark.tasks.files import SourceSettings, plan_append
    from lance_nb.spark.tasks.maintenance import plan_clone, plan_compaction, plan_index
    from lance_nb.spark.tasks.rows import plan_count, plan_delete, plan_diff, plan_update
    from lance_nb.spark.views import register_views

__all__ = [
    "Job",
    "MergeRun",
    "RunProgress",
    "SourceSettings",
    "TaskProgress",
    "append",
    "backfill",
    "choose",
    "clone",
    "compact",
    "count",
    "create_index",
    "create_scalar_index",
    "delete",
    "diff",
    "diff_frame",
    "explain",
    "find_session",
    "forget",
    "jobs",
    "merge",
    "orphans",
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
    "sql",
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

_EXPORTS = {
    "dataframes": "plan_frame read register",
    "engine": "TaskProgress",
    "background_jobs": "Job RunProgress jobs submit",
    "journal": "forget unfinished",
    "merge_insert": "MergeRun merge plan_merge plan_upsert update_columns upsert",
    "operations": (
        "append backfill clone compact count create_index create_scalar_index delete diff "
        "diff_frame orphans statistics update write"
    ),
    "queries": "sql",
    "run": "choose explain resume run_edits",
    "sessions": "find_session start_session why_not",
    "tasks.columns": "plan_cast plan_columns",
    "tasks.files": "SourceSettings plan_append",
    "tasks.maintenance": "plan_clone plan_compaction plan_index",
    "tasks.rows": "plan_count plan_delete plan_diff plan_update",
    "views": "register_views",
}
_MODULES = {name: module for module, names in _EXPORTS.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """Import the module of a public name when the name is first used."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    """List the public names."""
    return sorted({*globals(), *__all__})
