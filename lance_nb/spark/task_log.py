"""Record the results of tasks where they finish, so that an interrupted run can be resumed.

Every task writes its result as soon as its files are durable, from the process that ran it. When
the driver, the kernel or the cluster dies, ``lance_nb.spark.resume`` runs only the tasks without a
record. The tasks themselves are kept in the journal of the user (journal.py).

Layout: ``<dataset>/_lance_nb_jobs/<operation id>-<number>.json``, or the same below a folder that
the caller names. A record is two lines: an HMAC-SHA256 of number and result, then the result as
JSON (journal_json.py). Records are written in one piece; a retried task replaces its record.

Security: the key of the HMAC is in the journal, which only the user can read. A record of somebody
else, or a damaged one, counts as missing: its task runs again. Results hold no credentials.

Limits: a record above ``RECORD_BYTES_MAX`` counts as missing. A task that goes on after the run has
ended, as lost executors may, leaves a record behind; readers of Lance ignore the folder.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import field
from functools import partial
from pathlib import Path
from typing import Any

from lance_nb.errors import InvalidInputError, LanceError, ObjectNotFoundError
from lance_nb.format import layout
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.spark.journal_json import ResumeOptions, from_json, to_json
from lance_nb.spark.plan import PinnedVersion, Task
from lance_nb.storage.base import Store, write_unsynced
from lance_nb.storage.registry import open_store
from lance_nb.storage.sync_later import settle
from lance_nb.storage.threads import run_all
from lance_nb.value_classes import dataclass

FOLDER = "_lance_nb_jobs"
RECORD_BYTES_MAX = 64 * 1024**2
_NAME = re.compile(r"([A-Za-z0-9-]{1,64})-(\d{1,9})\.json")
_USER_INFO = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*://[^/]*@")


@dataclass(frozen=True, slots=True)
class TaskLog:
    """Where the tasks of one operation record their results.

    ``folder`` None is the dataset. It is a value that is sent to the workers.
    """

    pinned: PinnedVersion
    operation_id: str
    folder: str | None = None
    key: bytes = field(default_factory=partial(secrets.token_bytes, 32), repr=False)

    @classmethod
    def of(
        cls, pinned: PinnedVersion, operation_id: str, folder: str | os.PathLike[str] | bool | None
    ) -> TaskLog:
        """Return a new log. Raises InvalidInputError for a URL with a password."""
        if folder is None or isinstance(folder, bool):
            return cls(pinned, operation_id)
        path = os.fspath(folder)
        if _USER_INFO.match(path):
            raise InvalidInputError(
                "the URL of a journal must not have a user and password: its store is opened with "
                "the storage options of the dataset"
            )
        return cls(pinned, operation_id, path if "://" in path else str(Path(path).absolute()))

    def recorded(self, tasks: Sequence[Task], numbers: Sequence[int]) -> list[RecordedTask]:
        """Return tasks that record their results; ``numbers`` are those they have in the plan."""
        return [
            RecordedTask(task, number, self) for task, number in zip(tasks, numbers, strict=True)
        ]

    def record(self, number: int, result: Any) -> None:
        """Write the result of a task. Raises StorageError."""
        body = to_json(result)
        data = self._sum(number, body).encode() + b"\n" + body
        write_unsynced(self._store(), self._path(number), data)

    def results(self, num_tasks: int) -> dict[int, Any]:
        """Read the results of the finished tasks by number; what is not sound is left out.

        Raises StorageError.
        """
        store = self._store()
        numbers = [number for number in self._numbers(store) if number < num_tasks]
        results_by_task: dict[int, Any] = {}
        run_all([partial(self._read, store, number, results_by_task) for number in numbers])
        return dict(sorted(results_by_task.items()))

    def files(self, num_tasks: int) -> list[str]:
        """List the files of recorded results, relative to the folder of the branch."""
        return [
            path for result in self.results(num_tasks).values() for path, _ in _new_files(result)
        ]

    def remove(self) -> None:
        """Remove all records. Raises StorageError."""
        store = self._store()
        for number in self._numbers(store):
            store.delete(self._path(number))

    def _numbers(self, store: Store) -> list[int]:
        return recorded_numbers(store, self.operation_id)

    def _read(self, store: Store, number: int, results_by_task: dict[int, Any]) -> None:
        path = self._path(number)
        try:
            if store.size(path) > RECORD_BYTES_MAX:
                return
            digest, _, body = bytes(store.read(path)).partition(b"\n")
        except ObjectNotFoundError:  # removed by another process
            return
        if not hmac.compare_digest(digest, self._sum(number, body).encode()):
            return
        try:
            result = from_json(body, ResumeOptions())
        except InvalidInputError:  # written by another release
            return
        if missing_file(self.pinned, [result]) is None:
            results_by_task[number] = result

    def _store(self) -> Store:
        session = self.pinned.session()
        if self.folder is None:
            return session.root
        is_same = _scheme(self.folder) == _scheme(self.pinned.uri)
        return open_store(self.folder, session.storage_options if is_same else None)

    def _path(self, number: int) -> str:
        return f"{FOLDER}/{self.operation_id}-{number}.json"

    def _sum(self, number: int, body: bytes) -> str:
        data = f"{self.operation_id} {number}\n".encode() + body
        return hmac.new(self.key, data, hashlib.sha256).hexdigest()


def recorded_numbers(store: Store, operation_id: str) -> list[int]:
    """List the numbers of the tasks of an operation that have a record. Raises StorageError."""
    matches = (_NAME.fullmatch(name) for name in store.list_names(FOLDER))
    matches_of_job = (match for match in matches if match is not None and match[1] == operation_id)
    return sorted(int(match[2]) for match in matches_of_job)


@dataclass(frozen=True, slots=True)
class RecordedTask:
    """A task that records its result."""

    task: Task
    number: int
    log: TaskLog

    @property
    def size_bytes(self) -> int:
        """The estimated bytes of the task."""
        return self.task.size_bytes

    @property
    def calls_user_code(self) -> bool:
        """Whether the task calls a user function."""
        return bool(getattr(self.task, "calls_user_code", False))

    def run(self) -> Any:
        """Run the task; record its result once its files are durable."""
        result = self.task.run()
        settle()
        self.log.record(self.number, result)
        return result


def missing_file(pinned: PinnedVersion, results: Sequence[Any]) -> str | None:
    """Return a file of the results of tasks that is not there as it was written, None for no such.

    A clean-up removes files that no version names.
    """
    home = pinned.session().home(pinned.branch)
    missing: list[str] = []

    def look(path: str, size_bytes: int) -> None:
        try:
            is_there = home.size(path) == size_bytes
        except LanceError:
            is_there = False
        if not is_there:
            missing.append(path)

    files = [file for result in results for file in _new_files(result)]
    run_all([partial(look, path, size) for path, size in files if size])
    return min(missing, default=None)


def _new_files(result: Any) -> Iterator[tuple[str, int | None]]:
    """Yield the path and size of the files that a task has written, and of those beside them."""
    plan = getattr(result, "plan", result)  # of a part of an upsert
    for name in ("fragments", "new_fragments"):
        for fragment in getattr(plan, name, ()):
            for file in getattr(fragment, "files", ()):  # a deletion has no files
                if file.base_id is None:
                    yield file.location(), file.size_bytes
    index = getattr(result, "index", None)
    if isinstance(index, IndexMetadata):
        folder = layout.index_folder(index.uuid)
        yield from ((f"{folder}/{file.path}", file.size_bytes) for file in index.files)


def _scheme(uri: str) -> str:
    return uri.partition("://")[0] if "://" in uri else "file"
