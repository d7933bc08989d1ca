"""The one thread pool of the package, created when it is first needed.

Reads of remote ranges and decoding of independent columns share it, so that the package never adds
more than ``THREADS_MAX`` threads to a process.

Limits: a task that runs in the pool and calls ``run_all`` runs its own tasks inline; waiting for
the pool from inside the pool could deadlock. A forked child creates its own pool. Where no thread
can be started (WebAssembly, a limit of the system), the tasks run in the caller's thread.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from lance_nb.storage.system_calls import HAS_THREADS, call_in_forked_children, count_waits

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

THREADS_MAX = 16
_READS_WATCHED = 16

T = TypeVar("T")

_lock = threading.Lock()
_inside = threading.local()
_pools: list[ThreadPoolExecutor] = []


def _mark_inside() -> None:
    _inside.pool = True


def _pool() -> ThreadPoolExecutor:
    with _lock:
        if not _pools:
            _pools.append(_new_pool(min(THREADS_MAX, 4 * (os.cpu_count() or 1))))
        return _pools[0]


def _new_pool(workers: int) -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor  # loads logging: most reads need no thread

    class Pool(ThreadPoolExecutor):
        """A pool that goes on with the threads it has when no further one can be started."""

        def _adjust_thread_count(self) -> None:
            try:
                super()._adjust_thread_count()
            except RuntimeError:
                if not self._threads:
                    raise

    return Pool(workers, "lance-nb", initializer=_mark_inside)


def _forget_after_fork() -> None:
    # The child has the executor object but none of its threads: it would deadlock.
    global _lock  # noqa: PLW0603
    _lock = threading.Lock()
    _pools.clear()


call_in_forked_children(_forget_after_fork)


def run_all(tasks: Sequence[Callable[[], T]]) -> list[T]:
    """Run tasks in parallel and return their results in order.

    The first error in that order is raised, after every task has ended or been cancelled.
    """
    if len(tasks) <= 1 or not HAS_THREADS or getattr(_inside, "pool", False):
        return _run(tasks)
    started = [(task, begin(task)) for task in tasks]
    try:
        return [_result(task, future) for task, future in started]
    finally:
        for _, future in started:
            if future is not None:
                future.cancel()


def run_reads(tasks: Sequence[Callable[[], T]]) -> list[T]:
    """Run tasks that read something small, and return their results in order.

    One after the other while the system has in memory what they read: threads would only wait for
    the interpreter. Once most of them wait, the others run side by side. Raises as ``run_all``.
    """
    results: list[T] = []
    for start in range(0, len(tasks), _READS_WATCHED):
        before = count_waits()
        results += _run(tasks[start : start + _READS_WATCHED])
        later = tasks[start + _READS_WATCHED :]
        if len(later) > 1 and 2 * (count_waits() - before) > _READS_WATCHED:
            step = -(-len(later) // THREADS_MAX)
            blocks = [partial(_run, later[k : k + step]) for k in range(0, len(later), step)]
            return [*results, *chain.from_iterable(run_all(blocks))]
    return results


def _run(tasks: Sequence[Callable[[], T]]) -> list[T]:
    return [task() for task in tasks]


def begin(task: Callable[[], T]) -> Future[T] | None:
    """Start a task in the pool; None inside the pool, or if no thread can be started."""
    if not HAS_THREADS or getattr(_inside, "pool", False):
        return None
    pool = _pool()
    try:
        return pool.submit(task)
    except RuntimeError:  # a limit of the system, or the interpreter is shutting down
        with _lock:
            if pool in _pools:  # its queue holds the task, which must not run later
                _pools.remove(pool)
        return None


def cpu_count() -> int:
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_side_by_side(tasks: Iterable[Callable[[], T]], threads: int) -> Iterator[T]:
    """Run tasks, few more than ``threads`` at a time, and yield their results in order.

    For work that keeps processors busy. Tasks are asked for as they can begin; the first error in
    their order is raised, and no further task begins.
    """
    if threads <= 1 or not HAS_THREADS or getattr(_inside, "pool", False):
        yield from (task() for task in tasks)
        return
    from concurrent.futures import wait

    running: deque[tuple[Callable[[], T], Future[T] | None]] = deque()
    try:
        for task in tasks:
            if len(running) > threads:
                yield _result(*running.popleft())
            running.append((task, begin(task)))
        while running:
            yield _result(*running.popleft())
    finally:
        futures = [future for _, future in running if future is not None]
        for future in futures:
            future.cancel()
        wait(futures)


def _result(task: Callable[[], T], future: Future[T] | None) -> T:
    """Return the result of a task that was started; without a future, run it now."""
    return task() if future is None else future.result()
