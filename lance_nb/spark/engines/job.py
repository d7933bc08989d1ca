"""One action of Spark's: run in a thread of its own, watched and stopped from here.

Progress: the status tracker of a classic session, asked for the stages of the job's group; progress
events on Connect, which belong to the session, so that a second action at the same time is counted
as well. Rows come from an accumulator, which Connect does not have.

Cancel: a job group on a classic session (``interruptTag`` does not reach ``mapInArrow`` there), the
tag on Connect. A request that comes before the job is known is lost, so it is repeated.

Source: PySpark 4.3 (``SparkContext.setJobGroup``, ``statusTracker``, ``registerProgressHandler``,
``interruptTag``).
"""

from __future__ import annotations

import importlib.util
import re
import sys
import uuid
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from lance_nb.errors import NotSupportedError, RunCancelledError
from lance_nb.spark.engine import Stop
from lance_nb.spark.sessions import is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FIRST_S = 0.5  # asking Spark takes its driver some milliseconds, which short jobs do without
_POLL_S = 0.25
# Not one that was handled, and whose text stands before that of the error that came of it.
_NO_MODULE = re.compile(
    r"ModuleNotFoundError: No module named '([\w.]{1,80})'(?!\s+(?:During handling|The above))"
)
_OWN = ("lance_nb", "pyarrow", "numpy", "google", "pyroaring")  # what tasks need to begin
# Told the tasks that are done, those that are known, and the rows that were counted.
Tell = Callable[[int, int, int], None]


def _cannot_import(module: str) -> str:
    """Say what the workers lack: what lance_nb needs, or what only the user's function does."""
    top = module.partition(".")[0]
    here = top in sys.modules or importlib.util.find_spec(top) is not None
    said = f"Spark's Python workers cannot import {module!r}"
    python = "Set os.environ['PYSPARK_PYTHON'] = sys.executable before the session is started"
    if top in _OWN:
        return (
            f"{said}: they run another Python than this one. {python}; on a cluster, install "
            "lance_nb where the executors run"
        )
    if here:
        return (
            f"{said}, which your function uses and this Python has. A package: {python}; on a "
            f"cluster, install {top} where the executors run. A file of your own: send it with "
            "spark.addArtifacts(path, pyfile=True)"
        )
    return (
        f"{said}, which your function uses, and this Python cannot either. Install {top} where the "
        "executors run, or correct the import"
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


class SparkJob:
    """An action that has not begun. ``what`` is shown in Spark's own user interface."""

    def __init__(self, spark: SparkSession, what: str, action: Callable[[], Any]) -> None:
        self._spark = spark
        self._what = what
        self._action = action
        self._group = f"lance_nb-{uuid.uuid4()}"
        self._stages: dict[int, tuple[int, int]] = {}

    def finish(self, counter: RowCounter, tell: Tell, stop: Stop) -> Any:
        """Run the action and return its result.

        Raises RunCancelledError, NotSupportedError when the workers lack a module, and what the
        action raises.
        """
        told = (0, 0, 0)
        with ExitStack() as stack:
            self._listen(stack)
            threads = stack.enter_context(ThreadPoolExecutor(1, thread_name_prefix=self._group))
            job = threads.submit(self._run)
            patience = _FIRST_S
            try:
                while not wait([job], timeout=patience).done:
                    patience = _POLL_S
                    now = (*self._num_done(), counter.value)
                    if now != told:
                        told = now
                        tell(*now)
                    if stop():
                        raise RunCancelledError(now[0], now[1])
            finally:
                if not job.done():  # stopped, or an interrupt of the kernel
                    self._cancel(job)
            missing = _NO_MODULE.search(str(job.exception()))
            if missing is None:
                return job.result()
            raise NotSupportedError(_cannot_import(missing.group(1))) from job.exception()

    def _run(self) -> Any:
        # Spark keeps groups and tags per thread, so they are set in the one that runs the action.
        if is_connect(self._spark):
            self._spark.addTag(self._group)
        else:
            self._spark.sparkContext.setJobGroup(self._group, self._what, interruptOnCancel=True)
        return self._action()

    def _listen(self, stack: ExitStack) -> None:
        """Take note of progress events, where there is no tracker to ask."""
        if not is_connect(self._spark):
            return
        session: Any = self._spark

        def note(stages: Any, *_: Any, **_more: Any) -> None:
            for one in stages or ():
                self._stages[one.stage_id] = one.num_completed_tasks, one.num_tasks

        session.registerProgressHandler(note)
        stack.callback(session.removeProgressHandler, note)

    def _num_done(self) -> tuple[int, int]:
        if not is_connect(self._spark):
            tracker = self._spark.sparkContext.statusTracker()
            for job in tracker.getJobIdsForGroup(self._group):
                about = tracker.getJobInfo(job)
                for stage in about.stageIds if about else ():
                    found = tracker.getStageInfo(stage)
                    if found is not None:
                        self._stages[stage] = found.numCompletedTasks, found.numTasks
        counts = list(self._stages.values())
        return sum(done for done, _ in counts), sum(of for _, of in counts)

    def _cancel(self, job: Future[Any]) -> None:
        """Stop the job; a request that comes before Spark knows it is lost, so it is repeated."""
        while not job.done():
            if is_connect(self._spark):
                self._spark.interruptTag(self._group)
            else:
                self._spark.sparkContext.cancelJobGroup(self._group)
            wait([job], timeout=_POLL_S)
