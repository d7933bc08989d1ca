from __future__ import annotations

import threading

import pytest

from lance_nb import spark
from lance_nb.dataset import LanceDataset
from lance_nb.errors import InvalidInputError, PredicateError, RunCancelledError
from lance_nb.spark.background_jobs import OVER, RunProgress


def test_a_job_tells_how_far_it_is_and_what_came_of_it(dataset: LanceDataset) -> None:
    told: list[RunProgress] = []
    job = spark.submit(spark.delete, dataset, "id < 5", engine="local", message="why")
    job.watch(told.append)
    made = job.result(60)
    assert (made.version, made.history(1)[0].message) == (2, "why")
    assert (job.state, job.error, job.verb) == ("done", None, "delete")
    now = job.progress
    assert (now.engine, now.reason) == ("local", "requested")
    assert (now.num_done, now.num_tasks, now.num_rows) == (1, 1, 5)
    assert now.done_bytes == now.total_bytes > 0
    assert told[-1].phase in {"committing", "done"}
    assert spark.jobs()[0] is job
    assert "delete: done, 1 of 1 tasks" in repr(job)


def test_a_job_is_cancelled_and_commits_nothing(dataset: LanceDataset) -> None:
    held = threading.Event()

    def slow(*, progress: object, stop: object) -> LanceDataset:
        held.wait(60)
        return spark.delete(dataset, "id < 5", engine="local", progress=progress, stop=stop)

    job = spark.submit(slow)
    assert job.state not in OVER
    job.cancel()
    held.set()
    with pytest.raises(RunCancelledError):
        job.result(60)
    assert job.state == "cancelled"
    assert dataset.checkout_version((None, None)).version == 1


def test_what_fails_is_raised_where_the_result_is_taken(dataset: LanceDataset) -> None:
    job = spark.submit(spark.delete, dataset, "nope = 1")
    with pytest.raises(PredicateError):
        job.result(60)
    assert job.state == "failed"
    assert isinstance(job.error, PredicateError)


def test_any_function_runs_in_the_background() -> None:
    assert spark.submit(spark.why_not).result(60) == spark.why_not()
    with pytest.raises(InvalidInputError, match=r"watch\(\) and cancel\(\)"):
        spark.submit(spark.delete, progress=print)
    with pytest.raises(InvalidInputError, match="expects a function"):
        spark.submit("delete")
