"""The verb for Spark: session, background jobs, unfinished operations."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from lance_nb.errors import InvalidInputError
from lance_nb.explorer import text
from lance_nb.magic.context import MagicContext
from lance_nb.magic.verb import Result, argument, records_result, verb
from lance_nb.shown_text import without_url_secrets

# The package is loaded by the functions: this module is loaded for every line of a terminal.
if TYPE_CHECKING:
    from lance_nb import spark
    from lance_nb.spark.journal import Entry
    from lance_nb.storage.registry import StorageOptions

_ID_CHARS = 8


@verb(
    argument("--start", action="store_true", help="start a local session now"),
    argument("--cancel", metavar="JOB", help="cancel a job; nothing is committed"),
    argument("--resume", metavar="ID", help="commit an unfinished operation"),
    argument("--forget", metavar="ID", help="remove an unfinished operation"),
    name="spark",
    needs_dataset=False,
)
def status(context: MagicContext, args: Namespace) -> Result:
    """Show the Spark session, background jobs, and unfinished operations."""
    from lance_nb import spark
    from lance_nb.spark.run import SESSION_BYTES, START_BYTES

    if args.cancel is not None:
        _job(args.cancel).cancel()
    if args.resume is not None:
        entry = _entry(args.resume)
        dataset = spark.resume(entry.operation_id, _options(context, entry))
        return records_result("Finished", [{"version": dataset.version}], value=dataset)
    if args.forget is not None:
        spark.forget(_entry(args.forget).operation_id)
    session = spark.find_session(context.namespace)
    if session is None and args.start:
        session = spark.start_session()
    records = [
        {"what": "session", "is": _state(session)},
        {"what": "a running session is used from", "is": text.size(SESSION_BYTES)},
        {"what": "the server in SPARK_REMOTE is used from", "is": text.size(START_BYTES)},
    ]
    records += [{"what": f"job {job.id[:_ID_CHARS]}", "is": _progress(job)} for job in spark.jobs()]
    records += [{"what": "unfinished", "is": str(entry)} for entry in spark.unfinished()]
    return records_result("Spark", records, value=session)


def _state(session: Any) -> str:
    from lance_nb import spark

    if session is not None:
        return f"running (Spark {session.version})"
    return spark.why_not() or "none; engine='spark' or --start starts one"


def _progress(job: spark.Job) -> str:
    """Describe the progress of a job: operation, phase, tasks, rows, bytes, seconds."""
    now = job.progress
    parts = [f"{job.verb}: {now.phase}"]
    if now.engine:
        parts.append(f"on {now.engine}")
    if now.num_tasks:
        parts.append(f"{now.num_done} of {text.plural(now.num_tasks, 'task')}")
    if now.num_rows:
        parts.append(text.plural(now.num_rows, "row"))
    if now.total_bytes:
        parts.append(f"{text.size(now.done_bytes)} of {text.size(now.total_bytes)}")
    parts.append(f"{now.elapsed_s:.0f} s")
    if job.error is not None:
        parts.append(str(job.error))
    return ", ".join(parts)


def _job(named: str) -> spark.Job:
    from lance_nb import spark

    matching = [job for job in spark.jobs() if job.id.startswith(named)]
    if len(matching) != 1:
        ids = ", ".join(job.id[:_ID_CHARS] for job in spark.jobs()) or "none"
        raise InvalidInputError(f"no job {named!r}; jobs: {ids}")
    return matching[0]


def _entry(named: str) -> Entry:
    from lance_nb import spark

    entries = spark.unfinished()
    matching = [entry for entry in entries if entry.operation_id.startswith(named)]
    if len(matching) != 1:
        ids = ", ".join(entry.operation_id[:_ID_CHARS] for entry in entries) or "none"
        raise InvalidInputError(f"no unfinished operation {named!r}; unfinished: {ids}")
    return matching[0]


def _options(context: MagicContext, entry: Entry) -> StorageOptions | None:
    """Return the storage options of the current dataset if the entry belongs to it."""
    if not context.is_open or without_url_secrets(context.dataset.uri) != entry.uri:
        return None
    session, _ = context.dataset.opened
    return session.storage_options


VERBS = (status,)
