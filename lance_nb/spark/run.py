"""Runs a plan: choose an engine, run the tasks, keep the results, commit once.

A retryable conflict plans again on the newest version; what the first tasks wrote is left to
cleanup. An unknown outcome leaves the entry in the journal: ``lance_nb.spark.resume(id)``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lance_nb.dataset import LanceDataset
from lance_nb.errors import CommitStateUnknownError, LanceError, RetryableCommitConflictError
from lance_nb.spark import journal
from lance_nb.spark.dispatch import choose
from lance_nb.spark.engine import Report, Stop, TaskProgress
from lance_nb.spark.plan import Label, Plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAX_PLANS = 4


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a plan is run; every field is an argument of the functions of ``lance_nb.spark``."""

    engine: str = "auto"
    spark: SparkSession | None = None
    progress: Report | None = None
    stop: Stop | None = None
    label: Label = field(default_factory=Label)


def run(
    dataset: LanceDataset, make: Callable[[LanceDataset], Plan], options: RunOptions
) -> LanceDataset:
    """Plan, run and commit; return the new version.

    Raises RunCancelledError, CommitConflictError, CommitStateUnknownError, and what tasks raise.
    """
    for _ in range(MAX_PLANS - 1):
        try:
            return run_once(make(dataset), options)
        except RetryableCommitConflictError:
            dataset = dataset.checkout_version((dataset.branch, None))
    return run_once(make(dataset), options)


def run_once(plan: Plan, options: RunOptions) -> LanceDataset:
    """Run the tasks of one plan and commit what they return."""
    engine = choose(plan, options.engine, options.spark).engine()
    results = (
        engine.run(plan.tasks, options.progress or _quiet, options.stop or _never)
        if plan.tasks
        else []
    )
    journal.keep(plan, results, options.label)
    try:
        made = plan.commit(results, options.label)
    except CommitStateUnknownError as error:
        error.add_note(f"to finish it: lance_nb.spark.resume({plan.operation_id!r})")
        raise
    except LanceError:  # known not to have happened; an interrupt leaves the entry
        journal.forget(plan.operation_id)
        raise
    journal.forget(plan.operation_id)
    return made


def _quiet(progress: TaskProgress) -> None:
    """Report to nobody."""


def _never() -> bool:
    return False
