"""Run a plan: choose an engine, run the tasks, journal the results, commit once.

==========================================  ==========================================
situation (``engine="auto"``)               engine
==========================================  ==========================================
one task                                    local
a session exists and the plan has           spark
``SESSION_BYTES`` or more
no session, SPARK_REMOTE names a server,    spark, connected to it
the plan has ``START_BYTES`` or more
otherwise                                   local
==========================================  ==========================================

The thresholds come from ``python -m tests.benchmarks.spark --dispatch`` (appends of Parquet files,
two cores): one process writes about 450 MB/s once it is warm; tasks on a warm session cost 0.2 s
more and take half as long, so both take equally long at about 130 MB. A process pool was two to
three times slower than this process for 0.7 to 1.5 GB, and would run the user's script again.

After a retryable conflict the work is planned again on the newest version; files of the first
attempt are left to cleanup. If the outcome of a commit is unknown, the journal keeps the results:
``lance_nb.spark.resume(id)``.
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
from lance_nb.spark.background_jobs import (
    COMMITTING,
    DONE,
    PLANNING,
    RUNNING,
    STARTING,
    Listener,
    ProgressReporter,
)
from lance_nb.spark.engine import Engine, LocalEngine, Stop
from lance_nb.spark.plan import Label, Plan
from lance_nb.spark.sessions import find_session, is_local, remote, start_session
from lance_nb.spark.spark_engine import SparkEngine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAX_PLANS = 4

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a plan is run; every field is an argument of the operations of ``lance_nb.spark``."""

    engine: str = "auto"
    spark: SparkSession | None = None
    progress: Listener | None = None
    stop: Stop | None = None
    label: Label = field(default_factory=Label)

    @classmethod
    def of(cls, message: str | None, given: Mapping[str, Any]) -> RunOptions:
        """Check the arguments of an operation. Raises InvalidInputError for an unknown one."""
        known = {one.name for one in fields(cls)} - {"label"}
        for name in given:
            if name not in known:
                raise InvalidInputError(
                    f"unknown option {name!r}; options: {', '.join(sorted(known))}"
                )
        return cls(label=Label(message), **given)

    def is_stopped(self) -> bool:
        """Whether the run is to be cancelled."""
        return self.stop is not None and self.stop()


def run(
    dataset: LanceDataset, make: Callable[[LanceDataset], Plan], options: RunOptions
) -> LanceDataset:
    """Plan, run and commit; return the new version.

    Raises RunCancelledError, CommitConflictError, CommitStateUnknownError, and the exceptions of
    tasks.
    """
    watch = ProgressReporter(options.progress)

    def attempt(base: LanceDataset) -> LanceDataset:
        watch.phase(PLANNING)
        return _run_and_commit(make(base), options, watch)

    return retry_on_conflict(dataset, attempt)


def retry_on_conflict(dataset: LanceDataset, attempt: Callable[[LanceDataset], T]) -> T:
    """Call ``attempt`` with a version; after a retryable conflict again, with the newest."""
    for _ in range(MAX_PLANS - 1):
        try:
            return attempt(dataset)
        except RetryableCommitConflictError:
            dataset = dataset.checkout_version((dataset.branch, None))
    return attempt(dataset)


def run_once(plan: Plan, options: RunOptions) -> LanceDataset:
    """Run the tasks of one plan and commit their results."""
    return _run_and_commit(plan, options, ProgressReporter(options.progress))


def _run_and_commit(plan: Plan, options: RunOptions, watch: ProgressReporter) -> LanceDataset:
    journal.check()  # fail before the work rather than after it
    return commit_results(plan, run_tasks(plan, options, watch), options, watch)


def run_edits(plan: Plan, *, message: str | None = None, **options: Any) -> list[Any]:
    """Run the tasks of a plan without a commit; return their results, for a stage.

    Options: ``engine``, ``spark``, ``progress``, ``stop``. Raises RunCancelledError, and the
    exceptions of tasks.
    """
    wanted = RunOptions.of(message, options)
    watch = ProgressReporter(wanted.progress)
    found = run_tasks(plan, wanted, watch)
    watch.phase(DONE)
    return [one for one in found if one is not None]


def run_tasks(plan: Plan, options: RunOptions, watch: ProgressReporter) -> list[Any]:
    """Run the tasks on the chosen engine, then the final step on the driver."""
    choice = choose(plan, options.engine, options.spark)
    results: list[Any] = []
    if plan.run_job is not None:
        watch.phase(RUNNING, choice.name, choice.reason)
        results = plan.run_job(options, watch)
    elif plan.tasks:
        is_new = choice.name == "spark" and choice.spark is None
        watch.phase(STARTING if is_new else RUNNING, choice.name, choice.reason)
        engine = choice.engine()
        watch.phase(RUNNING)
        results = engine.run(plan.tasks, watch.tasks, options.is_stopped)
    return plan.finalized(results)


def commit_results(
    plan: Plan, results: Sequence[Any], options: RunOptions, watch: ProgressReporter
) -> LanceDataset:
    """Commit the results of tasks; the journal has them until the outcome is known."""
    if options.is_stopped():
        raise RunCancelledError(len(results), len(results))
    watch.phase(COMMITTING)
    is_kept = journal.keep(plan, results, options.label) is not None
    try:
        made = plan.commit(results, options.label)
    except CommitStateUnknownError as error:
        resumed = Python("lance_nb.spark.resume").call(plan.operation_id)
        error.add_note(
            f"the results are kept; commit them with {resumed.code}"
            if is_kept
            else "the results were too large to be kept: check the history for transaction "
            f"{plan.operation_id}, and repeat the operation if it is not there"
        )
        raise
    except LanceError:  # the commit has failed for certain; an interrupt keeps the entry
        journal.forget(plan.operation_id)
        raise
    journal.forget(plan.operation_id)
    watch.phase(DONE)
    return made


ENGINES = ("auto", "local", "spark")
SESSION_BYTES = 128 * 1024**2
START_BYTES = 4 * 1024**3


@dataclass(frozen=True, slots=True)
class EngineChoice:
    """The engine of a plan, and why it was chosen."""

    name: str
    reason: str
    spark: SparkSession | None = None

    def engine(self) -> Engine:
        """Return the engine; start a Spark session if it needs one and there is none."""
        if self.name == "spark":
            return SparkEngine(self.spark if self.spark is not None else start_session())
        return LocalEngine()


def choose(plan: Plan, engine: str = "auto", spark: SparkSession | None = None) -> EngineChoice:
    """Choose the engine of a plan. Raises InvalidInputError for an unknown name."""
    if engine == "pool":
        raise InvalidInputError(
            "engine 'pool' was removed: each of its processes ran a script without a __main__ "
            "guard again, commits included. Use engine='local', or engine='spark', which starts a "
            "local session if there is none"
        )
    if engine not in ENGINES:
        raise InvalidInputError(f"engine {engine!r} is not one of {', '.join(ENGINES)}")
    session = spark if spark is not None else find_session()
    if plan.run_job is not None:
        return EngineChoice("spark", "a DataFrame is processed by Spark", session)
    if engine != "auto":
        return EngineChoice(engine, "requested", session)
    if spark is not None:
        return EngineChoice("spark", "a session was passed", session)
    size = size_text(plan.size_bytes)
    if len(plan.tasks) < 2:
        return EngineChoice("local", f"{size} in {_tasks(plan)}")
    if session is not None and plan.size_bytes >= SESSION_BYTES:
        kind = "a session" if is_local(session) else "a cluster session"
        return EngineChoice("spark", f"{size}, and {kind} is running", session)
    if session is None and remote() is not None and plan.size_bytes >= START_BYTES:
        return EngineChoice("spark", f"{size}, and SPARK_REMOTE names a server")
    return EngineChoice("local", f"{size} in {_tasks(plan)}")


def explain(plan: Plan, engine: str = "auto", spark: SparkSession | None = None) -> str:
    """Describe a plan and the engine that it would run on."""
    choice = choose(plan, engine, spark)
    branch = plan.pinned.branch or "main"
    tasks = f"{len(plan.tasks)}, about {size_text(plan.size_bytes)}"
    if plan.run_job is not None:
        tasks = "one for each partition of the DataFrame; its size is not known"
    return (
        f"{plan.verb} {plan.detail}\n"
        f"read version: {branch}:{plan.pinned.version}\n"
        f"tasks: {tasks}\n"
        f"engine: {choice.name} ({choice.reason})"
    )


def size_text(size_bytes: int) -> str:
    """Format a size: 12 KB, 3.4 MB, 1,200.0 MB."""
    if size_bytes < 1_000_000:
        return f"{-(-size_bytes // 1000)} KB"
    return f"{size_bytes / 1_000_000:,.1f} MB"


def _tasks(plan: Plan) -> str:
    return "1 task" if len(plan.tasks) == 1 else f"{len(plan.tasks)} tasks"
