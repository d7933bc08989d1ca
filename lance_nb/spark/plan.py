"""Plan, tasks, commit: how large work is taken apart and put together again.

A plan pins a version and cuts the work into tasks. A task is a value that can be sent anywhere; it
reads the pinned version, writes only new files, and returns metadata, not data. An engine runs the
tasks. What all of them return becomes one transaction, with the pinned version as its read version
and the plan's ``operation_id`` as its uuid, so that committing it again commits nothing twice.

Files of tasks that failed or lost a race belong to no version; cleanup finds them. Nothing is ever
deleted after a commit was tried.

Source: lance_nb.transactions.staged (edits), lance_nb.transactions.commit (the three outcomes).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from lance_nb.dataset import LanceDataset
from lance_nb.dataset.verbs.committing import commit_staged
from lance_nb.spark.place import Place
from lance_nb.transactions.commit_options import CommitOptions
from lance_nb.transactions.environment import Environment
from lance_nb.transactions.operation import BuildOptions
from lance_nb.transactions.staged import StagedWrite, combine
from lance_nb.transactions.stream_mark import StreamMark

# Nothing is chosen: what the dataset has is kept.
KEPT = BuildOptions()


class Task(Protocol):
    """One piece of the work: a frozen value that pickles."""

    @property
    def size_bytes(self) -> int:
        """About how many bytes it reads and writes."""
        ...

    def run(self) -> Any:
        """Do it and return what is to be committed, None for nothing. Raises LanceError."""
        ...


@dataclass(frozen=True, slots=True)
class Label:
    """What a commit says about itself."""

    message: str | None = None
    properties: tuple[tuple[str, str], ...] = ()
    mark: StreamMark | None = None


class Finish(Protocol):
    """Commits what the tasks of a plan returned, as one transaction."""

    def __call__(self, plan: Plan, results: Sequence[Any], label: Label) -> LanceDataset: ...


def commit_edits(plan: Plan, results: Sequence[Any], label: Label) -> LanceDataset:
    """Commit edits: rows added, deleted and rewritten."""
    _, snapshot = plan.place.open()
    return commit_write(plan, combine(snapshot, results), label)


def commit_write(
    plan: Plan, staged: StagedWrite, label: Label, build: BuildOptions = KEPT
) -> LanceDataset:
    """Commit one staged write under the plan's operation id."""
    session = plan.place.session()
    environment = replace(Environment(), new_uuid=lambda: plan.operation_id)
    build = replace(build, mark=label.mark)
    options = CommitOptions(message=label.message, environment=environment, build=build)
    properties = dict(label.properties)
    return LanceDataset.from_opened(
        session, commit_staged(session, plan.place.branch, staged, options, properties)
    )


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done. ``verb`` names it, ``detail`` says more in one line.

    ``gather`` gets results in another way than by tasks: by a job of Spark's over a DataFrame.
    ``settle`` does here what can only be done when all tasks are: it may write files, and what it
    returns is committed. ``is_empty_too``: there is something to commit without any result.
    ``as_edits`` turns results that are no edits of a stage into such.
    """

    verb: str
    detail: str
    place: Place
    tasks: tuple[Task, ...]
    finish: Finish = commit_edits
    gather: Callable[[Any, Any], list[Any]] | None = None
    settle: Callable[[Plan, Sequence[Any]], list[Any]] | None = None
    is_empty_too: bool = False
    as_edits: Callable[[Plan, Sequence[Any]], list[Any]] | None = None
    operation_id: str = field(default_factory=lambda: str(uuid.uuid4()))

    @property
    def size_bytes(self) -> int:
        """About how many bytes all tasks read and write."""
        return sum(task.size_bytes for task in self.tasks)

    def settled(self, results: Sequence[Any]) -> list[Any]:
        """Turn what all tasks returned into what is committed."""
        return list(results) if self.settle is None else self.settle(self, results)

    def edits(self, results: Sequence[Any]) -> list[Any]:
        """Turn what ``run_edits`` returned into edits of a stage; of nothing comes nothing."""
        return (
            list(results) if self.as_edits is None or not results else self.as_edits(self, results)
        )

    def commit(self, results: Sequence[Any], label: Label = Label()) -> LanceDataset:
        """Commit what the tasks returned as one transaction; return the new version.

        Without any result nothing is committed and the pinned version is returned. Calling it
        again, after an unknown outcome too, commits nothing twice. Raises CommitConflictError,
        RetryableCommitConflictError, CommitStateUnknownError, StorageError; NotFoundError if
        another dataset is in its place now.
        """
        found = [one for one in results if one is not None]
        if not found and not self.is_empty_too:
            return self.place.dataset()
        self.place.check()
        return self.finish(self, found, label)
