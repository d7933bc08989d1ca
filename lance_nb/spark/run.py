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

After a retryable conflict the work is planned again on the newest version, for the fragments that
others have changed (rebase.py); files of the first attempt are left to cleanup.

Plans of ``RECORDED_BYTES`` or more are recorded: each task writes its result where it ran
(task_log.py), and an interrupted run is finished by ``lance_nb.spark.resume(id)``, which runs the
tasks without a result. If the outcome of a commit is unknown, the journal keeps all results, and
``resume`` repeats the commit.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import field, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from lance_nb.code_lines import Python
from lance_nb.dataset import LanceDataset
from lance_nb.errors import (
    CommitStateUnknownError,
    InvalidInputError,
    LanceError,
    RetryableCommitConflictError,
    RunCancelledError,
    VersionNotFoundError,
)
from lance_nb.format.transaction_summary import count_of
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
from lance_nb.spark.engine import (
    Engine,
    LocalEngine,
    Stop,
    TaskProgress,
    progress_of_results,
    rows_of,
)
from lance_nb.spark.journal_json import ResumeOptions
from lance_nb.spark.plan import Label, Plan, Task
from lance_nb.spark.rebase import is_movable, rebased
from lance_nb.spark.sessions import find_session, is_local, remote, start_session
from lance_nb.spark.spark_engine import SparkEngine
from lance_nb.spark.task_log import TaskLog, missing_file
from lance_nb.value_classes import dataclass

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lance_nb.storage.registry import StorageOptions

MAX_PLANS = 4
RECORDED_BYTES = 256 * 1024**2  # about half a second of work of one process
_POLL_S = 0.2  # between looks whether a run was cancelled while a session starts


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a plan is run; every field is an argument of the operations of ``lance_nb.spark``.

    ``journal``: where tasks record their results, so that an interrupted run can be resumed. None:
    beside the dataset, for plans of several tasks and ``RECORDED_BYTES``; True: beside the dataset;
    False: nowhere; or the path or URL of a folder that the workers can write.
    """

    engine: str = "auto"
    spark: SparkSession | None = None
    progress: Listener | None = None
    stop: Stop | None = None
    journal: str | os.PathLike[str] | bool | None = None
    label: Label = field(default_factory=Label)

    @classmethod
    def of(cls, message: str | None, given_options: Mapping[str, Any]) -> RunOptions:
        """Check the arguments of an operation. Raises InvalidInputError for an unknown one."""
        names = {field.name for field in fields(cls)} - {"label"}
        for name in given_options:
            if name not in names:
                raise InvalidInputError(
                    f"unknown option {name!r}; options: {', '.join(sorted(names))}"
                )
        return cls(label=Label(message), **given_options)

    def is_stopped(self) -> bool:
        """Whether the run is to be cancelled."""
        return self.stop is not None and self.stop()


@dataclass(frozen=True, slots=True)
class Work:
    """A plan, the results of the tasks that are done, by number, and the log that has them too."""

    plan: Plan
    done: Mapping[int, Any] = field(default_factory=dict)
    log: TaskLog | None = None

    @property
    def results(self) -> list[Any]:
        """The results in the order of the tasks."""
        return [self.done[number] for number in sorted(self.done)]


def run(
    dataset: LanceDataset, make: Callable[[LanceDataset], Plan], options: RunOptions
) -> LanceDataset:
    """Plan, run and commit; return the new version.

    Raises RunCancelledError, CommitConflictError, CommitStateUnknownError, and the exceptions of
    tasks.
    """
    return run_with_results(dataset, make, options)[0]


def run_with_results(
    dataset: LanceDataset, make: Callable[[LanceDataset], Plan], options: RunOptions
) -> tuple[LanceDataset, list[Any]]:
    """Plan, run and commit as ``run`` does; return the new version and what was committed."""
    watch = ProgressReporter(options.progress)
    watch.phase(PLANNING)
    outcome = _run_plan(Work(make(dataset)), make, options, watch)
    watch.phase(DONE)
    return outcome


def _run_plan(
    work: Work,
    make: Callable[[LanceDataset], Plan] | None,
    options: RunOptions,
    watch: ProgressReporter,
) -> tuple[LanceDataset, list[Any]]:
    """Run the tasks that are not done and commit; plan again after a retryable conflict.

    What a rebase cannot keep is planned anew by ``make``; without it, the conflict is raised. The
    work of the last attempt is kept if its results can still be moved to a newer version.
    """
    for _ in range(MAX_PLANS - 1):
        work = run_tasks(work, options, watch)
        try:
            return commit_results(work, options, watch)
        except RetryableCommitConflictError:
            newest = work.plan.pinned.newest()
            moved = rebased(work.plan, work.done, newest)
            if moved is None and make is None:
                raise
            watch.phase(PLANNING)
            if moved is not None:
                work = Work(*moved)
            elif make is not None:
                work = Work(make(newest))
    work = run_tasks(work, options, watch)
    return commit_results(work, options, watch, keeps_conflict=is_movable(work.plan))


def run_parts(plans: Sequence[Plan], options: RunOptions) -> LanceDataset:
    """Run plans one after the other, each with a commit of its own; return the last version.

    The plans have one read version and do not touch the same fragments. After an error the parts
    before are committed, and a note says how many.
    """
    dataset = plans[0].pinned.dataset()
    watch = ProgressReporter(options.progress)
    progress = [progress_of_results(plan.tasks, {}) for plan in plans]
    watch.tasks(sum(progress, TaskProgress()))
    for number, plan in enumerate(plans):
        watch.other_parts = sum(progress[:number] + progress[number + 1 :], TaskProgress())
        try:
            dataset, results = _run_plan(Work(plan), None, options, watch)
        except LanceError as error:
            if number:
                error.add_note(
                    f"{number} of {len(plans)} parts are committed (version {dataset.version} is "
                    "the last of them); do the same again for the others"
                )
            raise
        progress[number] += TaskProgress(
            len(plan.tasks), 0, plan.size_bytes, total_bytes=0, num_rows=sum(map(rows_of, results))
        )
    watch.phase(DONE)
    return dataset


def run_once(plan: Plan, options: RunOptions) -> LanceDataset:
    """Run the tasks of one plan and commit their results."""
    watch = ProgressReporter(options.progress)
    dataset, _ = commit_results(run_tasks(Work(plan), options, watch), options, watch)
    watch.phase(DONE)
    return dataset


def run_edits(plan: Plan, *, message: str | None = None, **options: Any) -> list[Any]:
    """Run the tasks of a plan without a commit; return their results, for a stage.

    Options: ``engine``, ``spark``, ``progress``, ``stop``. Raises RunCancelledError, and the
    exceptions of tasks.
    """
    run_options = replace(RunOptions.of(message, options), journal=False)
    watch = ProgressReporter(run_options.progress)
    results = plan.finalized(run_tasks(Work(plan), run_options, watch, commits=False).results)
    watch.phase(DONE)
    return [result for result in results if result is not None]


def resume(
    operation_id: str,
    storage_options: StorageOptions | None = None,
    target_storage_options: StorageOptions | None = None,
    *,
    function: Callable[..., Any] | None = None,
    **options: Any,
) -> LanceDataset:
    """Finish an unfinished operation: run its missing tasks, commit, return the version.

    The call is idempotent. Tasks whose files a clean-up has removed run again, and after commits of
    others those on the fragments that they changed. Credentials are not kept: pass
    ``storage_options`` of the dataset, and for a clone ``target_storage_options`` of the copy if
    they differ. Other values are read from the environment. A ``function`` that computes columns is
    not kept either. Other options as in ``append``: ``engine``, ``spark``, ``progress``, ``stop``.
    Example::

        lance_nb.spark.resume(id, storage_options={"key": key, "secret": secret})

    Raises InvalidInputError if there is no such operation, it is still running, it cannot be
    resumed, or options are missing, and the exceptions of tasks and of ``Plan.commit``.
    """
    target = storage_options if target_storage_options is None else target_storage_options
    resume_options = ResumeOptions(storage_options, target, function)
    run_options = RunOptions.of(None, options)
    journaled = journal.open_work(operation_id, resume_options)
    watch = ProgressReporter(run_options.progress)
    try:
        if journaled.results is not None:
            outcome = _commit_kept(journaled.plan, journaled.results, journaled.label)
            if isinstance(outcome, LanceDataset):
                journal.forget(operation_id)
                watch.phase(DONE)
                return outcome
            journaled = _tasks_again(journaled.plan, resume_options, outcome)
        watch.phase(PLANNING)
        log = journaled.log
        done = {} if log is None else log.results(len(journaled.plan.tasks))
        folder = True if log is None else log.folder or True
        run_options = replace(run_options, label=journaled.label, journal=folder)
        dataset, _ = _run_plan(Work(journaled.plan, done, log), None, run_options, watch)
    except VersionNotFoundError as error:
        if error.version != journaled.plan.pinned.version:
            raise
        reason = f"version {error.version}, which it reads, was removed"
        raise _refused(operation_id, reason) from error
    watch.phase(DONE)
    return dataset


def _commit_kept(plan: Plan, results: Sequence[Any], label: Label) -> LanceDataset | LanceError:
    """Commit results that were kept; return what prevents it if other results may be committed."""
    committed = plan.committed()
    if committed is not None:
        return committed
    lost = missing_file(plan.pinned, results)
    if lost is not None:
        return _refused(plan.operation_id, f"its file {lost!r} was removed")
    try:
        return plan.commit(results, label)
    except RetryableCommitConflictError as error:
        return error


def _tasks_again(
    plan: Plan, resume_options: ResumeOptions, problem: LanceError
) -> journal.KeptWork:
    """Return the tasks whose results could not be committed; raise the problem if there are none.

    They do not run again if versions are missing: one of these may hold the change.
    """
    work = None
    if plan.pinned.has_all_later_versions():
        work = journal.open_tasks(plan.operation_id, resume_options)
    if work is None:
        if isinstance(problem, RetryableCommitConflictError):
            forgotten = Python("lance_nb.spark.forget").call(plan.operation_id)
            problem.add_note(f"its results cannot be committed any more: {forgotten.code}")
        raise problem
    return work


def _refused(operation_id: str, reason: str) -> InvalidInputError:
    text = journal.cannot_resume(operation_id, reason)
    return InvalidInputError(f"operation {operation_id} {text}")


def run_tasks(
    work: Work, options: RunOptions, watch: ProgressReporter, *, commits: bool = True
) -> Work:
    """Run the tasks that are not done on the chosen engine."""
    plan, done = work.plan, work.done
    if commits:
        journal.check()  # fail before the work rather than after it
    choice = choose(plan, options.engine, options.spark)
    if plan.run_job is not None:
        watch.phase(RUNNING, choice.name, choice.reason)
        return Work(plan, dict(enumerate(plan.run_job(options, watch))))
    numbers = [number for number in range(len(plan.tasks)) if number not in done]
    if not numbers:
        return work
    log = work.log or _log_of(plan, done, options)
    tasks: Sequence[Task] = [plan.tasks[number] for number in numbers]
    if log is not None:
        tasks = log.recorded(tasks, numbers)
    is_new = choice.name == "spark" and choice.spark is None
    watch.phase(STARTING if is_new else RUNNING, choice.name, choice.reason)
    progress = progress_of_results(plan.tasks, done)
    watch.tasks(progress)
    before = replace(progress, num_tasks=len(done), total_bytes=progress.done_bytes)
    with ExitStack() as stack:
        stack.push(partial(_end_tasks, plan, log))
        engine = _started(choice, options, len(numbers)) if is_new else choice.engine()
        watch.phase(RUNNING)
        results = engine.run(tasks, lambda now: watch.tasks(before + now), options.is_stopped)
    return Work(plan, {**done, **dict(zip(numbers, results, strict=True))}, log)


def _started(choice: EngineChoice, options: RunOptions, num_tasks: int) -> Engine:
    """Return the engine once its session has started. Raises RunCancelledError.

    A session that is no longer wanted goes on starting in its thread, and is there for the next
    run.
    """
    threads = ThreadPoolExecutor(1, thread_name_prefix="lance_nb-spark-start")
    starting = threads.submit(choice.engine)
    threads.shutdown(wait=False)
    while not wait([starting], timeout=_POLL_S).done:
        if options.is_stopped():
            raise RunCancelledError(0, num_tasks)
    return starting.result()


def _end_tasks(
    plan: Plan, log: TaskLog | None, _kind: object, error: BaseException | None, _trace: object
) -> None:
    """Remove the records of finished tasks, or say how to go on if the others did not finish.

    A run that the user cancelled is over.
    """
    journal.pause(plan.operation_id)
    if isinstance(error, RunCancelledError):
        journal.finish(plan, log)
    elif error is not None and log is not None:
        error.add_note(f"finished tasks are kept; run the others with {_resumed(plan)}")


def _log_of(plan: Plan, done: Mapping[int, Any], options: RunOptions) -> TaskLog | None:
    """Keep the tasks of a plan in the journal; return the log of their results, or None."""
    journal_option = options.journal
    if journal_option is False or (journal_option is None and plan.size_bytes < RECORDED_BYTES):
        return None
    ends_with_process = plan.pinned.uri.startswith("memory://")
    if len(plan.tasks) < 2 or ends_with_process:
        return None
    log = TaskLog.of(plan.pinned, plan.operation_id, journal_option)
    if not journal.begin(plan, log, options.label):
        return None
    for number, result in done.items():
        log.record(number, result)
    return log


def _resumed(plan: Plan) -> str:
    return Python("lance_nb.spark.resume").call(plan.operation_id).code


def commit_results(
    work: Work, options: RunOptions, watch: ProgressReporter, *, keeps_conflict: bool = False
) -> tuple[LanceDataset, list[Any]]:
    """Commit the results of tasks; return the version and the results as they were committed.

    The journal has them until the outcome is known. ``keeps_conflict``: work that is recorded by
    task is kept after a retryable conflict, to be resumed.
    """
    plan = work.plan
    if options.is_stopped():
        journal.finish(plan, work.log)
        raise RunCancelledError(len(work.done), len(work.done))
    results = plan.finalized(work.results)
    watch.phase(COMMITTING)
    is_kept = journal.keep(plan, results, options.label)
    try:
        dataset = plan.commit(results, options.label)
    except CommitStateUnknownError as error:
        error.add_note(
            f"the results are kept; commit them with {_resumed(plan)}"
            if is_kept or work.log is not None
            else "the results were too large to be kept: check the history for transaction "
            f"{plan.operation_id}, and repeat the operation if it is not there"
        )
        raise
    except LanceError as error:  # it has failed for certain; an interrupt keeps the entry
        if keeps_conflict and work.log and isinstance(error, RetryableCommitConflictError):
            error.add_note(f"finished tasks are kept; try again with {_resumed(plan)}")
        else:
            journal.finish(plan, work.log)
        raise
    journal.finish(plan, work.log)
    return dataset, results


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
        return EngineChoice("local", f"{size} in {count_of(len(plan.tasks), 'task')}")
    if session is not None and plan.size_bytes >= SESSION_BYTES:
        kind = "a session" if is_local(session) else "a cluster session"
        return EngineChoice("spark", f"{size}, and {kind} is running", session)
    if session is None and remote() is not None and plan.size_bytes >= START_BYTES:
        return EngineChoice("spark", f"{size}, and SPARK_REMOTE names a server")
    return EngineChoice("local", f"{size} in {count_of(len(plan.tasks), 'task')}")


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
