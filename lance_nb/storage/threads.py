"""The one thread pool of the package, made when it is first needed.

Reads of remote ranges and decoding of independent columns share it, so that a process never has
more threads than ``THREADS_MAX`` because of us.

Limits: a task that runs in the pool and calls ``run_all`` runs its own tasks in line; waiting for
the pool from inside the pool could wait for ever. A forked child makes a pool of its own.
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
    # The child has the executor object but none of its threads: it would wait for ever.
    global _lock  # noqa: PLW0603
    _lock = threading.Lock()
    _pools.clear()


os.register_at_fork(after_in_child=_forget_after_fork)


def run_all(tasks: Sequence[Callable[[], T]]) -> list[T]:
    """Run tasks at the same time and return their results in order.

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
    """Begin a task in the pool; None where it must not wait for one or there are no threads."""
    if getattr(_inside, "pool", False):
        return None
    try:
        return _pool().submit(task)
    except RuntimeError:  # the interpreter is about to end and starts no threads any more
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
