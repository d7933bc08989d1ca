"""The one thread pool of the package, created when it is first needed.

Reads of remote ranges and decoding of independent columns share it, so that the package never adds
more than ``THREADS_MAX`` threads to a process.

Limits: a task that runs in the pool and calls ``run_all`` runs its own tasks inline; waiting for
the pool from inside the pool could deadlock. A forked child creates its own pool.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

THREADS_MAX = 16

T = TypeVar("T")

_lock = threading.Lock()
_inside = threading.local()
_pools: list[ThreadPoolExecutor] = []


def _mark_inside() -> None:
    _inside.pool = True


def _pool() -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor  # loads logging: most reads need no thread

    with _lock:
        if not _pools:
            workers = min(THREADS_MAX, 4 * (os.cpu_count() or 1))
            _pools.append(ThreadPoolExecutor(workers, "lance-nb", initializer=_mark_inside))
        return _pools[0]


def _forget_after_fork() -> None:
    # The child has the executor object but none of its threads: it would deadlock.
    global _lock  # noqa: PLW0603
    _lock = threading.Lock()
    _pools.clear()


os.register_at_fork(after_in_child=_forget_after_fork)


def run_all(tasks: Sequence[Callable[[], T]]) -> list[T]:
    """Run tasks in parallel and return their results in order.

    The first error in that order is raised, after every task has ended or been cancelled.
    """
    if len(tasks) <= 1 or getattr(_inside, "pool", False):
        return [task() for task in tasks]
    futures = [_pool().submit(task) for task in tasks]
    try:
        return [future.result() for future in futures]
    finally:
        for future in futures:
            future.cancel()


def begin(task: Callable[[], T]) -> Future[T] | None:
    """Start a task in the pool; None inside the pool, or if no thread can be started."""
    if getattr(_inside, "pool", False):
        return None
    try:
        return _pool().submit(task)
    except RuntimeError:  # the interpreter is shutting down and starts no more threads
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
    if threads <= 1 or getattr(_inside, "pool", False):
        yield from (task() for task in tasks)
        return
    from concurrent.futures import wait

    running: deque[Future[T]] = deque()
    try:
        for task in tasks:
            if len(running) > threads:
                yield running.popleft().result()
            running.append(_pool().submit(task))
        while running:
            yield running.popleft().result()
    finally:
        for future in running:
            future.cancel()
        wait(running)
