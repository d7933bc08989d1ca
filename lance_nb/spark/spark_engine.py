"""Run tasks on a Spark session, classic or Connect. Task descriptors are sent, data is not.

``spark.range(n, numPartitions=n)`` makes one partition per group of tasks, ``mapInArrow`` runs the
tasks in a Python worker, and ``collect`` returns the results to the driver, which commits.

Many tasks run as several Spark jobs of ``WAVE_PARTITIONS`` partitions, because every partition gets
the descriptors of its whole job: so neither what a partition costs nor what the JVM of the driver
holds grows with the number of tasks. A partition decodes its own tasks only, and the values that
all tasks share.

A task that raises a storage error does not fail the other tasks of its partition: it runs again in
a partition of its own, where Spark retries it as often as the session is configured to.

Progress: the status tracker of a classic session, filtered by job group. On Connect, progress
events of the whole session, so that concurrent actions are counted too. Rows come from an
accumulator, which Connect does not have.

Cancel: the job group on a classic session (``interruptTag`` does not reach ``mapInArrow`` there),
the tag on Connect. A request that arrives before Spark knows the job is lost, so it is repeated.

Limits: Connect does not report the number of cores, so only very small tasks share a partition
there. lance_nb must be installed where the executors run. LanceErrors are returned as values and
raised here unchanged; other exceptions arrive as text.
Source: PySpark 4.3 (``DataFrame.mapInArrow``, ``SparkContext.setJobGroup``, ``statusTracker``,
``registerProgressHandler``, ``interruptTag``).
"""

from __future__ import annotations

import importlib.util
import pickle
import re
import sys
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from lance_nb.encodings.kernels.memory import from_bytes, from_integers
from lance_nb.errors import LanceError, NotSupportedError, RunCancelledError, StorageError
from lance_nb.spark.engine import (
    Report,
    Stop,
    TaskProgress,
    progress_of_results,
    rows_of,
    run_task,
)
from lance_nb.spark.plan import Task, group_tasks
from lance_nb.spark.sessions import is_connect, no_pandas_warning, num_cores
from lance_nb.storage.sync_later import synced_together
from lance_nb.value_classes import dataclass

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WAVE_PARTITIONS = 4096
_SCHEMA = pa.schema([("task", pa.int64()), ("outcome", pa.binary())])


@dataclass(frozen=True, slots=True)
class RunTasks:
    """The function that a Python worker runs: groups of tasks, given by their numbers.

    Each group is a pickle of its own, which refers to the values that tasks share by number.
    """

    shared: bytes
    groups: tuple[bytes, ...]
    counter: RowCounter

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run the tasks of each group and yield their outcomes.

        Raises StorageError if files cannot be made durable: Spark then retries the partition.
        """
        with synced_together():  # a partition that fails here returns no outcomes
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    yield self._outcomes(unpack_group(self.shared, self.groups[number]))

    def _outcomes(self, group: Sequence[tuple[int, Task]]) -> pa.RecordBatch:
        """Run the tasks of a group; their outcomes are one batch, as each batch costs the JVM."""
        outcomes_of_group = [_outcome(task, is_alone=len(group) == 1) for _, task in group]
        self.counter.add(sum(map(rows_of, outcomes_of_group)))
        numbers = from_integers(np.array([number for number, _ in group], np.int64))
        outcomes = from_bytes(list(map(pickle.dumps, outcomes_of_group)))
        return pa.RecordBatch.from_arrays([numbers, outcomes], schema=_SCHEMA)


def pack_groups(groups: Sequence[Sequence[tuple[int, Any]]]) -> tuple[bytes, tuple[bytes, ...]]:
    """Pickle groups of numbered tasks; return their shared values, and a pickle for each group."""
    seen: Counter[int] = Counter()
    for group in groups:
        for _, task in group:
            seen.update(map(id, _values_of(task)))
    places: dict[int, int] = {}
    shared: list[Any] = []
    for group in groups:
        for _, task in group:
            for value in _values_of(task):
                if seen[id(value)] > 1 and id(value) not in places:
                    places[id(value)] = len(shared)
                    shared.append(value)

    stripped = ([(number, _stripped(task, places)) for number, task in group] for group in groups)
    return pickle.dumps(shared), tuple(map(pickle.dumps, stripped))


def unpack_group(shared: bytes, group: bytes) -> Sequence[tuple[int, Any]]:
    """Unpickle one group of tasks."""
    values = _shared_values(shared)
    tasks = pickle.loads(group)  # noqa: S301 - the driver's own
    return [(number, _restored(task, values)) for number, task in tasks]


class _Shared(NamedTuple):
    """Stands for a shared value."""

    place: int


class _Stripped(NamedTuple):
    """A task without its shared values."""

    kind: type
    values: dict[str, Any]


def _stripped(task: Any, places: Mapping[int, int]) -> Any:
    if not is_dataclass(task):
        return task
    values: dict[str, Any] = {}
    for field in fields(task):
        value = getattr(task, field.name)
        if _is_nested(field.name, value):
            values[field.name] = _stripped(value, places)
        elif id(value) in places:
            values[field.name] = _Shared(places[id(value)])
        else:
            values[field.name] = value
    return _Stripped(type(task), values)


def _restored(task: Any, shared: Sequence[Any]) -> Any:
    if isinstance(task, _Shared):
        return shared[task.place]
    if not isinstance(task, _Stripped):
        return task
    return task.kind(**{name: _restored(value, shared) for name, value in task.values.items()})


@lru_cache(maxsize=2)
def _shared_values(shared: bytes) -> list[Any]:
    values: list[Any] = pickle.loads(shared)  # noqa: S301 - the driver's own
    return values


def _values_of(task: Any) -> Iterator[Any]:
    """Yield the values in the fields of a task, and of tasks and sources inside of it."""
    for field in fields(task) if is_dataclass(task) else ():
        value = getattr(task, field.name)
        if value is None or isinstance(value, bool | int | float | str | tuple | Enum):
            continue
        if _is_nested(field.name, value):
            yield from _values_of(value)
        else:
            yield value


_NESTED = ("task", "part")  # fields with descriptors of their own


def _is_nested(name: str, value: Any) -> bool:
    """Tell whether the fields of a field are looked at; a schema makes some of them itself."""
    return name in _NESTED and is_dataclass(value) and all(field.init for field in fields(value))


def _outcome(task: Task, *, is_alone: bool) -> Any:
    try:
        return run_task(task)
    except StorageError as error:
        if is_alone:
            raise  # possibly transient: Spark retries the task
        return error  # retried without the other tasks of the partition
    except LanceError as error:
        return error


class SparkEngine:
    """Run tasks on a session. The settings of the session are not changed."""

    name = "spark"

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def run(self, tasks: Sequence[Task], report: Report, stop: Stop) -> list[Any]:
        """Run the tasks, small ones together; retry each that raised a storage error alone."""
        counter = RowCounter(self._spark)
        groups = group_tasks([task.size_bytes for task in tasks], num_cores(self._spark))
        outcomes = self._outcomes(tasks, groups, counter, report=report, stop=stop)
        failed = [
            (number,) for number, outcome in outcomes.items() if isinstance(outcome, StorageError)
        ]
        if failed:
            outcomes |= self._outcomes(tasks, failed, counter, report=report, stop=stop)
        for outcome in outcomes.values():
            if isinstance(outcome, LanceError):
                raise outcome
        report(progress_of_results(tasks, outcomes))
        return [outcomes[number] for number in range(len(tasks))]

    def _outcomes(
        self,
        tasks: Sequence[Task],
        groups: Sequence[tuple[int, ...]],
        counter: RowCounter,
        report: Report,
        stop: Stop,
    ) -> dict[int, Any]:
        """Run each group of tasks in a partition of its own; return the outcomes by task number."""
        from pyspark.sql.pandas.types import from_arrow_schema  # PySpark may be missing

        whole = progress_of_results(tasks, {})
        num_others = len(tasks) - sum(map(len, groups))
        name = type(getattr(tasks[0], "task", tasks[0])).__name__
        outcomes: dict[int, Any] = {}
        for first in range(0, len(groups), WAVE_PARTITIONS):
            wave = groups[first : first + WAVE_PARTITIONS]
            ends = np.cumsum([len(group) for group in wave])
            before = num_others + len(outcomes)

            def tell(partitions: TaskProgress, ends: Any = ends, before: int = before) -> None:
                done = partitions.num_done
                num_done = before + int(ends[done - 1] if done else 0)
                done_bytes = whole.total_bytes * num_done // len(tasks)
                report(
                    whole
                    + TaskProgress(
                        num_done, 0, done_bytes, total_bytes=0, num_rows=partitions.num_rows
                    )
                )

            packed = pack_groups([[(number, tasks[number]) for number in group] for group in wave])
            numbers = self._spark.range(0, len(wave), 1, numPartitions=len(wave))
            with no_pandas_warning():
                job = numbers.mapInArrow(RunTasks(*packed, counter), from_arrow_schema(_SCHEMA))
            description = f"lance_nb: {int(ends[-1])} x {name}"
            rows = SparkJob(self._spark, description, job.collect).finish(counter, tell, stop)
            for row in rows:
                outcomes[row["task"]] = pickle.loads(bytes(row["outcome"]))  # noqa: S301
        return outcomes


_FIRST_S = 0.5  # a status request costs the driver some milliseconds
_POLL_S = 0.25
# Skips a handled import error, which precedes the exception that it caused.
_NO_MODULE = re.compile(
    r"ModuleNotFoundError: No module named '([\w.]{1,80})'(?!\s+(?:During handling|The above))"
)
_OWN = ("lance_nb", "pyarrow", "numpy", "google", "pyroaring")  # imported by every task


def _cannot_import(module: str) -> str:
    """Explain a missing module: one that lance_nb needs, or one that a user function needs."""
    top = module.partition(".")[0]
    is_importable = top in sys.modules or importlib.util.find_spec(top) is not None
    problem = f"Spark's Python workers cannot import {module!r}"
    python = "Set os.environ['PYSPARK_PYTHON'] = sys.executable before the session is started"
    if top in _OWN:
        return (
            f"{problem}: they run a different Python. {python}; on a cluster, install "
            "lance_nb where the executors run"
        )
    if is_importable:
        return (
            f"{problem}, which your function imports and which is installed here. For a package: "
            f"{python}; on a cluster, install {top} where the executors run. For a module of your "
            "own: send it with "
            "spark.addArtifacts(path, pyfile=True)"
        )
    return (
        f"{problem}, which your function uses, and this Python cannot either. Install {top} where "
        "the executors run, or correct the import"
    )


class RowCounter:
    """Counts rows where tasks run; ``value`` here is what finished tasks have counted.

    On Connect it counts nothing.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._sum: Any = None if is_connect(spark) else spark.sparkContext.accumulator(0)

    def add(self, num_rows: int) -> None:
        """Count rows; for tasks."""
        if self._sum is not None:
            self._sum.add(num_rows)

    @property
    def value(self) -> int:
        """The rows counted; for the driver."""
        return 0 if self._sum is None else int(self._sum.value)


NO_PROPERTIES: Mapping[str, str] = {}


class SparkJob:
    """A Spark action that was not started. ``description`` is its description in the Spark UI.

    ``properties`` are local properties of its job, on a classic session.
    """

    def __init__(
        self,
        spark: SparkSession,
        description: str,
        action: Callable[[], Any],
        properties: Mapping[str, str] = NO_PROPERTIES,
    ) -> None:
        self._spark = spark
        self._description = description
        self._action = action
        self._properties = properties
        self._group = f"lance_nb-{uuid.uuid4()}"
        self._stages: dict[int, tuple[int, int]] = {}

    def finish(self, counter: RowCounter, report: Report, stop: Stop) -> Any:
        """Run the action in a thread, report its progress in partitions, and return its result.

        Raises RunCancelledError, NotSupportedError if the workers cannot import a module, and
        the exceptions of the action.
        """
        reported = TaskProgress()
        with ExitStack() as stack:
            self._listen(stack)
            threads = stack.enter_context(ThreadPoolExecutor(1, thread_name_prefix=self._group))
            job = threads.submit(self._run)
            patience = _FIRST_S
            try:
                while not wait([job], timeout=patience).done:
                    patience = _POLL_S
                    now = TaskProgress(*self._num_done(), num_rows=counter.value)
                    if now != reported:
                        reported = now
                        report(now)
                    if stop():
                        raise RunCancelledError(now.num_done, now.num_tasks)
            finally:
                if not job.done():  # stopped, or KeyboardInterrupt
                    self._cancel(job)
            missing = _NO_MODULE.search(str(job.exception()))
            if missing is None:
                return job.result()
            raise NotSupportedError(_cannot_import(missing.group(1))) from job.exception()

    def _run(self) -> Any:
        # Job groups, tags and properties are per thread, so the thread of the action sets them.
        if is_connect(self._spark):
            self._spark.addTag(self._group)
            return self._action()
        context: Any = self._spark.sparkContext
        context.setJobGroup(self._group, self._description, interruptOnCancel=True)
        try:
            for name, value in self._properties.items():
                context.setLocalProperty(name, value)
            return self._action()
        finally:  # with PYSPARK_PIN_THREAD=false all threads share the properties
            for name in self._properties:
                context.setLocalProperty(name, None)

    def _listen(self, stack: ExitStack) -> None:
        """Collect progress events on Connect, which has no status tracker."""
        if not is_connect(self._spark):
            return
        session: Any = self._spark

        def note(stages: Any, *_: Any, **_more: Any) -> None:
            for stage in stages or ():
                self._stages[stage.stage_id] = stage.num_completed_tasks, stage.num_tasks

        session.registerProgressHandler(note)
        stack.callback(session.removeProgressHandler, note)

    def _num_done(self) -> tuple[int, int]:
        if not is_connect(self._spark):
            tracker = self._spark.sparkContext.statusTracker()
            for job in tracker.getJobIdsForGroup(self._group):
                about = tracker.getJobInfo(job)
                for stage in about.stageIds if about else ():
                    info = tracker.getStageInfo(stage)
                    if info is not None:
                        self._stages[stage] = info.numCompletedTasks, info.numTasks
        counts = list(self._stages.values())
        return sum(done for done, _ in counts), sum(of for _, of in counts)

    def _cancel(self, job: Future[Any]) -> None:
        """Cancel the job; repeat the request, because one sent too early is lost."""
        while not job.done():
            if is_connect(self._spark):
                self._spark.interruptTag(self._group)
            else:
                self._spark.sparkContext.cancelJobGroup(self._group)
            wait([job], timeout=_POLL_S)
