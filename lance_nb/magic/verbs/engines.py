"""Verbs about where large work runs, and about the work that runs."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from lance_nb import spark
from lance_nb.dataset.public_location import public_uri
from lance_nb.errors import InvalidInputError
from lance_nb.explorer.models import text
from lance_nb.magic.answer import Answer, answer_of_records
from lance_nb.magic.desk import Desk
from lance_nb.magic.verb import Verb, argument
from lance_nb.spark.journal import Entry
from lance_nb.spark.run import SESSION_BYTES, START_BYTES
from lance_nb.storage.registry import StorageOptions

_ID_CHARS = 8


def status(desk: Desk, said: Namespace) -> Answer:
    """Say whether Spark is there, when it is used, what runs, and what is unfinished."""
    if said.cancel is not None:
        _job(said.cancel).cancel()
    if said.resume is not None:
        entry = _entry(said.resume)
        made = spark.resume(entry.operation_id, _options(desk, entry))
        return answer_of_records("Finished", [{"version": made.version}], value=made)
    if said.forget is not None:
        spark.forget(_entry(said.forget).operation_id)
    session = spark.find_session(desk.namespace)
    if session is None and said.start:
        session = spark.start_session()
    records = [
        {"what": "session", "is": _state(session)},
        {"what": "a session that is there is used from", "is": text.size(SESSION_BYTES)},
        {"what": "a server that SPARK_REMOTE names is used from", "is": text.size(START_BYTES)},
    ]
    records += [{"what": f"job {job.id[:_ID_CHARS]}", "is": _progress(job)} for job in spark.jobs()]
    records += [{"what": "unfinished", "is": str(one)} for one in spark.unfinished()]
    return answer_of_records("Spark", records, value=session)


def _state(session: Any) -> str:
    if session is not None:
        return f"a session is there (Spark {session.version})"
    return spark.why_not() or "none yet; one starts for work that asks for it, or with --start"


def _progress(job: spark.Job) -> str:
    """Say how far a job is: what, phase, tasks, rows, bytes, seconds."""
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
    found = [job for job in spark.jobs() if job.id.startswith(named)]
    if len(found) != 1:
        known = ", ".join(job.id[:_ID_CHARS] for job in spark.jobs()) or "none"
        raise InvalidInputError(f"no job {named!r}; jobs: {known}")
    return found[0]


def _entry(named: str) -> Entry:
    found = spark.unfinished()
    matching = [one for one in found if one.operation_id.startswith(named)]
    if len(matching) != 1:
        known = ", ".join(one.operation_id[:_ID_CHARS] for one in found) or "none"
        raise InvalidInputError(f"no unfinished operation {named!r}; unfinished: {known}")
    return matching[0]


def _options(desk: Desk, entry: Entry) -> StorageOptions | None:
    """Return the options of the dataset in hand if the entry is of it: credentials are not kept."""
    if not desk.is_open or public_uri(desk.dataset.uri) != entry.uri:
        return None
    session, _ = desk.dataset.opened
    return session.storage_options


VERBS = (
    Verb(
        "spark",
        "say whether Spark is there, what runs in the background, and what is unfinished",
        status,
        (
            argument("--start", action="store_true", help="start a local session now"),
            argument("--cancel", metavar="JOB", help="end a job; it commits nothing"),
            argument("--resume", metavar="ID", help="finish the commit of unfinished work"),
            argument("--forget", metavar="ID", help="give unfinished work up"),
        ),
        needs_dataset=False,
    ),
)
