"""Runs a plan: choose an engine, run the tasks, keep the results, commit once.

A retryable conflict plans again on the newest version; what the first tasks wrote is left to
cleanup. An unknown outcome leaves the entry in the journal: ``lance_nb.spark.resume(id)``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeVar

from lance_nb.code_lines import Python
from lance_nb.dataset import LanceDataset
from lance_nb.errors import (
    CommitStateUnknownError,
    InvalidInputError,
    LanceError,
    RetryableCommitConflictError,
    RunCancelledError,
)
from lance_nb.spark import journal
from lance_nb.spark.dispatch import choose
from lance_nb.spark.engine import Stop
from lance_nb.spark.plan import Label, Plan
from lance_nb.spark.progress import COMMITTING, DONE, PLANNING, RUNNING, STARTING, Listener, Watch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAX_PLANS = 4

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a plan is run; every field is an argument of the functions of ``lance_nb.spark``."""

    engine: str = "auto"
    spark: SparkSession | None = None
    progress: Listener | None = None
    stop: Stop | None = None
    label: Label = field(default_factory=Label)

    @classmethod
    def of(cls, message: str | None, given: Mapping[str, Any]) -> RunOptions:
        """Check the arguments of a verb. Raises InvalidInputError for one that does not exist."""
        known = {one.name for one in fields(cls)} - {"label"}
        for name in given:
            if name not in known:
                raise InvalidInputError(f"no option {name!r}; options: {', '.join(sorted(known))}")
        return cls(label=Label(message), **given)

    def is_stopped(self) -> bool:
        """Whether somebody wants the run to end."""
        return self.stop is not None and self.stop()


def run(
    dataset: LanceDataset, make: Callable[[LanceDataset], Plan], options: RunOptions
) -> LanceDataset:
    """Plan, run and commit; return the new version.

    Raises RunCancelledError, CommitConflictError, CommitStateUnknownError, and what tasks raise.
    """
    watch = Watch(options.progress)

    def attempt(base: LanceDataset) -> LanceDataset:
        watch.phase(PLANNING)
        return _run_and_land(make(base), options, watch)

    return replanned(dataset, attempt)


def replanned(dataset: LanceDataset, attempt: Callable[[LanceDataset], T]) -> T:
    """Try something on a version; after a retryable conflict again, on the newest."""
    for _ in range(MAX_PLANS - 1):
        try:
            return attempt(dataset)
        except RetryableCommitConflictError:
            dataset = dataset.checkout_version((dataset.branch, None))
    return attempt(dataset)


def run_once(plan: Plan, options: RunOptions) -> LanceDataset:
    """Run the tasks of one plan and commit what they return."""
    return _run_and_land(plan, options, Watch(options.progress))


def _run_and_land(plan: Plan, options: RunOptions, watch: Watch) -> LanceDataset:
    journal.check()  # what cannot be kept is better told before the work
    return land(plan, run_tasks(plan, options, watch), options, watch)


def run_edits(plan: Plan, *, message: str | None = None, **options: Any) -> list[Any]:
    """Run the tasks of a plan and commit nothing; return the edits, for a stage.

    Options: ``engine``, ``spark``, ``progress``, ``stop``. Raises RunCancelledError, and what tasks
    raise.
    """
    wanted = RunOptions.of(message, options)
    watch = Watch(wanted.progress)
    found = run_tasks(plan, wanted, watch)
    watch.phase(DONE)
    return [one for one in found if one is not None]


def run_tasks(plan: Plan, options: RunOptions, watch: Watch) -> list[Any]:
    """Run the tasks where they shall run, and what is left to do here when they are done."""
    choice = choose(plan, options.engine, options.spark)
    results: list[Any] = []
    if plan.gather is not None:
        watch.phase(RUNNING, choice.name, choice.reason)
        results = plan.gather(options, watch)
    elif plan.tasks:
        is_new = choice.name == "spark" and choice.spark is None
        watch.phase(STARTING if is_new else RUNNING, choice.name, choice.reason)
        engine = choice.engine()
        watch.phase(RUNNING)
        results = engine.run(plan.tasks, watch.tasks, options.is_stopped)
    return plan.settled(results)


def land(plan: Plan, results: Sequence[Any], options: RunOptions, watch: Watch) -> LanceDataset:
    """Commit what tasks returned; until that is known to have happened the journal keeps it."""
    if options.is_stopped():
        raise RunCancelledError(len(results), len(results))
    watch.phase(COMMITTING)
    is_kept = journal.keep(plan, results, options.label) is not None
    try:
        made = plan.commit(results, options.label)
    except CommitStateUnknownError as error:
        resumed = Python("lance_nb.spark.resume").call(plan.operation_id)
        error.add_note(
            f"to finish it: {resumed.code}"
            if is_kept
            else "its results were too large to be kept: look in the history whether transaction "
            f"{plan.operation_id} is there, and do the work again if not"
        )
        raise
    except LanceError:  # known not to have happened; an interrupt leaves the entry
        journal.forget(plan.operation_id)
        raise
    journal.forget(plan.operation_id)
    watch.phase(DONE)
    return made
