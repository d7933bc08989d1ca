from __future__ import annotations

from types import SimpleNamespace

import pytest

from lance_nb.errors import CancelledError
from lance_nb.explorer.staging.progress import ProgressReporter


def cancelled(_done: int, _total: int) -> None:
    raise CancelledError("cancelled")


def test_steps_and_runs_are_told() -> None:
    told: list[tuple[int, int]] = []
    reporter = ProgressReporter("commit", lambda done, total: told.append((done, total)))
    reporter.count(2, 5)
    assert (reporter.now.what, reporter.now.done, reporter.now.total) == ("commit", 2, 5)
    run = SimpleNamespace(
        phase="running", engine="spark", num_done=3, num_tasks=4, num_rows=70, done_bytes=9
    )
    reporter.run(run)
    assert (reporter.now.engine, reporter.now.rows, reporter.now.size_bytes) == ("spark", 70, 9)
    reporter.phase("committing")
    assert (reporter.now.phase, reporter.now.engine) == ("committing", "spark")
    assert told[:2] == [(2, 5), (3, 4)]
    assert not reporter.is_stopped()


def test_a_cancel_ends_steps_and_is_told_to_runs() -> None:
    with pytest.raises(CancelledError):
        ProgressReporter("stage", cancelled).count(1, 2)
    reporter = ProgressReporter("stage", cancelled)
    assert reporter.is_stopped()
    with pytest.raises(CancelledError):
        reporter.check()


def test_time_goes_on_while_nothing_is_told() -> None:
    reporter = ProgressReporter("commit")
    first, then = reporter.seen(), reporter.seen()
    assert then.elapsed_s > first.elapsed_s > 0.0
    assert reporter.now.elapsed_s == 0.0
