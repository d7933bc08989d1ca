"""Keep unfinished operations: their tasks while they run, their results until the commit is known.

If the kernel dies, or the outcome of a commit is unknown, the work of the tasks is not lost:
``lance_nb.spark.resume`` finishes it under the same operation id, which makes the commit
idempotent.

Layout: the folder ``<cache>/lance_nb/jobs`` has two kinds of files, both with a header line and the
SHA-256 of a second line of JSON (journal_json.py):

=========================  =======================================================================
``<operation id>.tasks``   written before the tasks run, for plans that are recorded task by task
                           (task_log.py): plan, tasks and label; the key of the records
``<operation id>.json``    written before the commit: plan, the results of all tasks, label
=========================  =======================================================================

Security: only the listed types are read, so an entry cannot choose code to run. Folder and files
are accessible to the user alone (private_folder.py). Credentials are not stored: ``resume`` takes
them as arguments or reads them from the environment. A damaged entry, or one of another release, is
listed with the reason and does not hide the others.

Limits: results above ``ENTRY_BYTES_MAX`` are not stored, and are committed without an entry. Plans
above it, and those whose tasks cannot be stored (a DataFrame of Spark, open stores), are not
recorded by task.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from lance_nb.code_lines import Python
from lance_nb.errors import InternalError, InvalidInputError, StorageError
from lance_nb.format.transaction_summary import count_of
from lance_nb.spark.journal_json import ResumeOptions, from_json, to_json
from lance_nb.spark.plan import Label, PinnedVersion, Plan
from lance_nb.spark.task_log import TaskLog
from lance_nb.storage.private_folder import PrivateFolder, cache_folder
from lance_nb.storage.system_calls import HAS_OWNERS
from lance_nb.value_classes import dataclass

ENTRY_BYTES_MAX = 256 * 1024**2
FORMAT = 3
_RESULTS, _TASKS = ".json", ".tasks"
_SPARK = Python("lance_nb.spark")
_ID = re.compile(r"[A-Za-z0-9-]{1,64}")
_USER_INFO = re.compile(r"//[^/@\s]*:[^/@\s]*@")


# Operations whose tasks run in this process.
_RUNNING: set[str] = set()


@dataclass(frozen=True, slots=True)
class Entry:
    """An operation whose commit is not known to have succeeded.

    ``num_tasks``: its tasks were interrupted, some of which may have finished; 0 if only the commit
    is missing. ``running_in``: the process that still runs the tasks, 0 for none. ``problem`` says
    why it cannot be resumed, and what to do instead; "" if it can be.
    """

    operation_id: str
    verb: str = ""
    detail: str = ""
    uri: str = ""
    problem: str = ""
    num_tasks: int = 0
    running_in: int = 0

    def __str__(self) -> str:
        if self.problem:
            return f"{self.operation_id}: {self.problem}"
        state = ""
        if self.num_tasks:
            state = f", interrupted while it ran {count_of(self.num_tasks, 'task')}"
        if self.running_in:
            state = f", running in process {self.running_in}"
        return f"{self.operation_id}: {self.verb} {self.detail} on {self.uri}{state}"


@dataclass(frozen=True, slots=True)
class KeptWork:
    """An unfinished operation, read from the journal.

    ``results`` are those of all tasks, ready to be committed; None if the tasks of the plan were
    interrupted, whose results are in ``log``.
    """

    plan: Plan
    label: Label
    results: tuple[Any, ...] | None = None
    log: TaskLog | None = None


def check() -> None:
    """Check the folder before the work whose results it will keep. Raises StorageError."""
    _folder().check()


def begin(plan: Plan, log: TaskLog, label: Label) -> bool:
    """Keep the tasks of a plan durably before they run; return False if they cannot be kept.

    Raises StorageError.
    """
    try:
        body = to_json((_plan_fields(plan), plan.tasks, plan.finalize, label))
    except InternalError:  # tasks with a function, an open store, a type of a caller's own
        return False
    about = {
        "num_tasks": len(plan.tasks), "pid": os.getpid(), "host": socket.gethostname(),
        "folder": log.folder, "key": log.key.hex(),
    }  # fmt: skip
    if not _write(plan, body, _TASKS, about):
        return False
    _RUNNING.add(plan.operation_id)
    return True


def pause(operation_id: str) -> None:
    """Say that the tasks of an operation do not run any more in this process."""
    _RUNNING.discard(operation_id)


def keep(plan: Plan, results: Sequence[Any], label: Label) -> bool:
    """Write an entry durably before its commit; return False if it is too large.

    Raises StorageError.
    """
    return _write(plan, to_json((_plan_fields(plan), tuple(results), label)), _RESULTS, {})


def _plan_fields(plan: Plan) -> dict[str, Any]:
    """Return the fields of a plan that its commit needs."""
    names = ("verb", "pinned", "finish", "commits_without_results", "operation_id")
    return {"detail": _shown_detail(plan), **{name: getattr(plan, name) for name in names}}


def _shown_detail(plan: Plan) -> str:
    return _USER_INFO.sub("//***@", plan.detail)


def _write(plan: Plan, body: bytes, suffix: str, about: dict[str, Any]) -> bool:
    head = {
        "format": FORMAT, "operation_id": plan.operation_id, "verb": plan.verb,
        "detail": _shown_detail(plan), "uri": plan.pinned.uri,
        "sha256": hashlib.sha256(body).hexdigest(), **about,
    }  # fmt: skip
    data = json.dumps(head).encode() + b"\n" + body
    if len(data) > ENTRY_BYTES_MAX:
        return False
    _folder().write(_name(plan.operation_id, suffix), data)
    return True


def forget(operation_id: str) -> None:
    """Remove an entry; cleanup removes its data files if they were not committed.

    Records of its tasks are removed if they can be reached without credentials. Raises
    InvalidInputError for a malformed operation id, StorageError.
    """
    resume_options = ResumeOptions()
    with suppress(InvalidInputError):  # damaged, or not recorded by task
        log = _read_work(operation_id, _TASKS, resume_options).log
        if log is not None and not resume_options.missing:
            log.remove()
    for suffix in (_RESULTS, _TASKS):
        _folder().remove(_name(operation_id, suffix))
    pause(operation_id)


def finish(plan: Plan, log: TaskLog | None) -> None:
    """Remove the entry of an operation that is over, and the records of its tasks."""
    with suppress(StorageError):  # the outcome counts; who resumes the entry finds the commit
        for suffix in (_RESULTS, _TASKS):
            _folder().remove(_name(plan.operation_id, suffix))
        pause(plan.operation_id)
    if log is not None:
        with suppress(StorageError):  # readers ignore the records
            log.remove()


def unfinished() -> list[Entry]:
    """List the operations whose commit is not known to have succeeded, oldest first.

    Entries that cannot be resumed are listed with the reason. Raises StorageError if other users
    can access the folder.
    """
    entries: dict[str, Entry] = {}
    for name in _folder().names():
        stem, dot, suffix = name.rpartition(".")
        if dot + suffix in (_RESULTS, _TASKS) and _ID.fullmatch(stem):
            read = _read(stem, dot + suffix)
            if read is not None and (stem not in entries or dot + suffix == _RESULTS):
                entries[stem] = read[0]
    return list(entries.values())


def recorded_files(pinned: PinnedVersion) -> dict[str, Entry]:
    """Return the data files in records of unfinished operations on a dataset, each with its entry.

    Paths begin at the folder of the branch. What needs credentials to be read is left out. Raises
    StorageError.
    """
    entries: dict[str, Entry] = {}
    for entry in unfinished():
        if entry.uri != pinned.uri or entry.problem or not entry.num_tasks:
            continue
        with suppress(InvalidInputError):  # removed meanwhile, or damaged and listed as such
            resume_options = ResumeOptions(pinned.location.storage_options)
            log = _read_work(entry.operation_id, _TASKS, resume_options).log
            if log is not None:
                entries |= dict.fromkeys(log.files(entry.num_tasks), entry)
    return entries


def open_work(operation_id: str, resume_options: ResumeOptions) -> KeptWork:
    """Read an unfinished operation, its results if there are some.

    Raises InvalidInputError if there is none, it runs elsewhere, it cannot be resumed, or options
    are missing.
    """
    work = _open(operation_id, _RESULTS, resume_options)
    work = work or open_tasks(operation_id, resume_options)
    if work is None:
        operation_ids = ", ".join(entry.operation_id for entry in unfinished()) or "none"
        raise InvalidInputError(
            f"no unfinished operation {operation_id!r}; unfinished: {operation_ids}"
        )
    return work


def open_tasks(operation_id: str, resume_options: ResumeOptions) -> KeptWork | None:
    """Read the tasks of an unfinished operation, None if they were not kept.

    Raises InvalidInputError as ``open_work`` does.
    """
    return _open(operation_id, _TASKS, resume_options)


def _open(operation_id: str, suffix: str, resume_options: ResumeOptions) -> KeptWork | None:
    read = _read(operation_id, suffix)
    if read is None:
        return None
    entry = read[0]
    if entry.running_in and not entry.problem:
        raise InvalidInputError(f"operation {entry}: wait until it is over, or end that process")
    work = _read_work(operation_id, suffix, resume_options)
    if resume_options.missing or resume_options.lacks_function:
        raise InvalidInputError(_missing(entry, resume_options))
    return work


def _read_work(operation_id: str, suffix: str, resume_options: ResumeOptions) -> KeptWork:
    """Read one file of an operation; ``resume_options`` records what is missing.

    Raises InvalidInputError if it cannot be resumed.
    """
    read = _read(operation_id, suffix)
    if read is None:
        raise InvalidInputError(f"no unfinished operation {operation_id!r}")
    entry, head, body = read
    if entry.problem:
        raise InvalidInputError(f"operation {entry}")
    content = from_json(body, resume_options)
    try:
        if suffix == _TASKS:
            plan_fields, tasks, finalize, label = content
            plan = Plan(**plan_fields, tasks=tuple(tasks), finalize=finalize)
            key = bytes.fromhex(head["key"])
            log = TaskLog(plan.pinned, operation_id, head["folder"], key)
            work = KeptWork(plan, label, log=log)
        else:
            plan_fields, results, label = content
            work = KeptWork(Plan(**plan_fields, tasks=()), label, tuple(results))
        plan = work.plan
        is_sound = isinstance(label, Label) and isinstance(plan.pinned, PinnedVersion)
        is_sound = is_sound and plan.operation_id == operation_id and callable(plan.finish)
    except (TypeError, ValueError, KeyError):
        is_sound = False
    if not is_sound:
        raise InvalidInputError(
            f"operation {operation_id}: {cannot_resume(operation_id, 'its content is invalid')}"
        )
    return work


def _read(operation_id: str, suffix: str) -> tuple[Entry, dict[str, Any], bytes] | None:
    """Read an entry, its header and its body; None if there is none."""

    def unusable(reason: str) -> tuple[Entry, dict[str, Any], bytes]:
        return Entry(operation_id, problem=cannot_resume(operation_id, reason)), {}, b""

    try:
        data = _folder().read(_name(operation_id, suffix), ENTRY_BYTES_MAX)
    except StorageError as error:
        return unusable(str(error))
    if data is None:
        return None
    line, _, body = data.partition(b"\n")
    try:
        head = json.loads(line)
        if head["format"] != FORMAT:
            return unusable(f"it has format {head['format']!r}, and this release writes {FORMAT}")
        is_whole = head["sha256"] == hashlib.sha256(body).hexdigest()
        is_whole = is_whole and head["operation_id"] == operation_id
        problem = "" if is_whole else cannot_resume(operation_id, "it is damaged")
        verb, detail, uri = (str(head[key]) for key in ("verb", "detail", "uri"))
        entry = Entry(operation_id, verb, detail, uri=uri, problem=problem)
        if suffix == _TASKS:
            running_in = _running_in(operation_id, head)
            entry = replace(entry, num_tasks=int(head["num_tasks"]), running_in=running_in)
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
        return unusable("it is damaged")
    return entry, head, body


def _running_in(operation_id: str, head: dict[str, Any]) -> int:
    """Return the process on this machine that runs the tasks, 0 for none."""
    process = int(head["pid"])
    if head["host"] != socket.gethostname() or process < 1:
        return 0
    if process == os.getpid():
        return process if operation_id in _RUNNING else 0
    if not HAS_OWNERS:  # on Windows, a signal ends the process
        return 0
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return 0
    except PermissionError:  # another user's: ours has ended, and the number was given again
        return 0
    return process


def cannot_resume(operation_id: str, reason: str) -> str:
    """Say why an operation cannot be resumed, and what to do instead."""
    removed = _SPARK.attribute("forget").call(operation_id)
    return (
        f"cannot be resumed: {reason}. Check the history for its transaction, repeat the operation "
        f"if it is not there, and remove the entry: {removed.code}"
    )


def _missing(entry: Entry, resume_options: ResumeOptions) -> str:
    """List the missing storage options, and how to pass them."""
    resumed = _SPARK.attribute("resume").call(entry.operation_id).code
    if not resume_options.missing:
        return (
            f"operation {entry} cannot be resumed yet: its function is not kept, because it would "
            f"be stored as code. Pass the same function as function=... to {resumed}"
        )
    listed = "; ".join(
        f"{subject} (or the environment variable {' or '.join(names)})"
        for subject, names in resume_options.missing.items()
    )
    return (
        f"operation {entry} cannot be resumed yet: credentials are not kept, and these are "
        f"missing: {listed}. Pass them as storage_options={{...}} to {resumed}, and as "
        "target_storage_options={...} for the copy that a clone makes, if it needs others"
    )


def _name(operation_id: str, suffix: str) -> str:
    if not _ID.fullmatch(operation_id):
        raise InvalidInputError(f"{operation_id!r} is not an operation id")
    return f"{operation_id}{suffix}"


def _folder() -> PrivateFolder:
    return cache_folder(os.environ.get("XDG_CACHE_HOME"), "jobs")
