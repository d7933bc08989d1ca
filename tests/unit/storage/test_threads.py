"""The shared thread pool: order, errors, nesting, forking."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time

import pytest

from lance_nb.storage.threads import (
    THREADS_MAX,
    begin,
    cpu_count,
    run_all,
    run_reads,
    run_side_by_side,
)


def test_results_come_back_in_order():
    assert run_all([lambda n=n: n * n for n in range(100)]) == [n * n for n in range(100)]
    assert run_all([]) == []


def test_tasks_may_start_tasks_without_waiting_for_ever():
    def outer(number: int) -> int:
        return sum(run_all([lambda n=n: n for n in range(number)]))

    assert run_all([lambda n=n: outer(n) for n in range(60)])[-1] == sum(range(59))


def test_quick_reads_stay_in_the_thread_of_the_caller():
    names = run_reads([lambda: threading.current_thread().name for _ in range(300)])
    assert names == [threading.current_thread().name] * 300
    assert run_reads([lambda n=n: n for n in range(300)]) == list(range(300))
    assert run_reads([]) == []


def test_slow_reads_run_side_by_side_in_order():
    lock = threading.Lock()
    running = most = 0

    def read(number: int) -> int:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.002)
        with lock:
            running -= 1
        return number

    assert run_reads([lambda n=n: read(n) for n in range(100)]) == list(range(100))
    assert 1 < most <= THREADS_MAX


def test_the_first_error_of_slow_reads_is_raised():
    def read(number: int) -> None:
        time.sleep(0.002)
        if number in (20, 60):
            raise KeyError(number)

    with pytest.raises(KeyError, match="20"):
        run_reads([lambda n=n: read(n) for n in range(80)])


def test_the_pool_is_bounded():
    run_all([lambda: None for _ in range(200)])
    ours = [one for one in threading.enumerate() if one.name.startswith("lance-nb")]
    assert 0 < len(ours) <= THREADS_MAX


def test_an_error_reaches_the_caller():
    with pytest.raises(ZeroDivisionError):
        run_all([lambda: 1, lambda: 1 // 0, lambda: 2])


def _in_child(queue) -> None:
    queue.put(run_all([lambda: 1, lambda: 2]))


# Another test of this worker may have imported pylance, which warns of every fork.
@pytest.mark.filterwarnings("ignore:lance is not fork-safe:UserWarning")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_makes_a_pool_of_its_own():
    run_all([lambda: 1, lambda: 2])
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=_in_child, args=(queue,))
    child.start()
    child.join(30)
    assert child.exitcode == 0
    assert queue.get() == [1, 2]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_tasks_side_by_side_yield_in_order_and_few_run_at_once(threads: int) -> None:
    running: list[int] = []
    most: list[int] = []

    def task(number: int) -> int:
        running.append(number)
        most.append(len(running))
        time.sleep(0.001)
        running.remove(number)
        return number

    found = run_side_by_side((lambda n=n: task(n) for n in range(30)), threads)
    assert list(found) == list(range(30))
    assert max(most) <= threads + (threads > 1)


def test_the_first_error_in_order_ends_tasks_side_by_side() -> None:
    begun: list[int] = []

    def task(number: int) -> int:
        begun.append(number)
        return 1 // (number - 3)

    with pytest.raises(ZeroDivisionError):
        list(run_side_by_side((lambda n=n: task(n) for n in range(100)), 2))
    assert max(begun) < 10


def test_at_least_one_processor_is_ours() -> None:
    assert 1 <= cpu_count() <= (os.cpu_count() or 1)


def test_inside_the_pool_nothing_more_is_begun():
    assert run_all([lambda: begin(lambda: None)] * 2) == [None, None]
