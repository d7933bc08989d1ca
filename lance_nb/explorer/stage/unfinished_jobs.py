"""Jobs of a dataset that were interrupted: shown in the Stage tab, resumed, or forgotten.

A job whose kernel or cluster died has kept the results of its finished tasks
(lance_nb.spark.journal). Resuming it runs the tasks that are missing and commits all of them.

Limits: only jobs that this user started on this machine are known; those of another dataset are
not shown. How many tasks have finished is shown where they record it beside the dataset.
"""

from __future__ import annotations

from typing import Any

from lance_nb import spark
from lance_nb.code_lines import Python, magic, offered
from lance_nb.dataset import LanceDataset
from lance_nb.errors import InvalidInputError, LanceError
from lance_nb.explorer import text
from lance_nb.explorer.log.operations_log import operations_log_of
from lance_nb.explorer.log.undo import RestoreUndo
from lance_nb.explorer.stage.card import ProgressReporter
from lance_nb.shown_text import without_url_secrets
from lance_nb.spark.journal import Entry
from lance_nb.spark.plan import PinnedVersion
from lance_nb.spark.task_log import recorded_numbers

MAX_SHOWN = 5


def unfinished_jobs(dataset: LanceDataset) -> list[dict[str, Any]]:
    """Return the interrupted jobs of a dataset as JSON, oldest first.

    Keys: id, title, lines, problem (why it cannot be resumed, or None), code.
    """
    try:
        entries = _entries(dataset)
    except LanceError:  # the folder of the journal cannot be used: jobs say so when they run
        return []
    return [_json(dataset, entry) for entry in entries[:MAX_SHOWN]]


def resume_job(
    dataset: LanceDataset, operation_id: str, reporter: ProgressReporter
) -> LanceDataset:
    """Run the missing tasks of a job and commit; return the new version.

    Raises InvalidInputError if this dataset has no such job, and what ``spark.resume`` raises.
    """
    entry = _entry(dataset, operation_id)
    options = dataset.opened[0].storage_options
    result = spark.resume(operation_id, options, progress=reporter.run, stop=reporter.is_stopped)
    title = f"{_title(entry)} (resumed)"
    undo = RestoreUndo(result.branch, result.version, title)
    operations_log_of(dataset.uri).record(
        title, _code(entry), undo, (result.branch, result.version)
    )
    return result


def forget_job(dataset: LanceDataset, operation_id: str) -> None:
    """Remove a job; the files of its tasks are left to clean-ups. Raises InvalidInputError."""
    spark.forget(_entry(dataset, operation_id).operation_id)


def _entries(dataset: LanceDataset) -> list[Entry]:
    uri = without_url_secrets(PinnedVersion.of(dataset).uri)
    return [entry for entry in spark.unfinished() if entry.uri == uri and not entry.running_in]


def _entry(dataset: LanceDataset, operation_id: str) -> Entry:
    for entry in _entries(dataset):
        if entry.operation_id == operation_id:
            return entry
    raise InvalidInputError(
        "this job has ended or was resumed: its result is in the newest version"
    )


def _json(dataset: LanceDataset, entry: Entry) -> dict[str, Any]:
    lines = ["its results are complete, and only its commit is missing"]
    if entry.num_tasks:
        done = len(recorded_numbers(dataset.opened[0].root, entry.operation_id))
        lines = [f"interrupted: {done:,} of {text.plural(entry.num_tasks, 'task')} are done"]
    return {
        "id": entry.operation_id,
        "title": _title(entry),
        "lines": lines,
        "problem": entry.problem or None,
        "code": _code(entry),
    }


def _title(entry: Entry) -> str:
    return text.line(f"{entry.verb} {entry.detail}".strip())


def _code(entry: Entry) -> dict[str, str]:
    python = Python("lance_nb.spark.resume").call(entry.operation_id)
    return offered(python, magic("spark", options={"--resume": entry.operation_id[:8]}))
