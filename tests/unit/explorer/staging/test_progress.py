from __future__ import annotations

from types import SimpleNamespace

import pytest

from lance_nb.errors import CancelledError
from lance_nb.explorer.staging.progress import ProgressReporter


def cancelled(_done: int, _total: int) -> None:
    raise CancelledError("cancelled")


def test_steps_and_runs_are_told() -> None:
    told: list[tuple[int, int]] = []
    teller = ProgressReporter("commit", lambda done, total: told.append((done, total)))
    teller.count(2, 5)
    assert (teller.now.what, teller.now.done, teller.now.total) == ("commit", 2, 5)
    run = SimpleNamespace(
        phase="running", engine="spark", num_done=3, num_tasks=4, num_rows=70, done_bytes=9
    )
    teller.run(run)
    assert (teller.now.engine, teller.now.rows, teller.now.size_bytes) == ("spark", 70, 9)
    teller.phase("committing")
    assert (teller.now.phase, teller.now.engine) == ("committing", "spark")
    assert told[:2] == [(2, 5), (3, 4)]
    assert not teller.is_stopped()


def test_a_cancel_ends_steps_and_is_told_to_runs() -> None:
    with pytest.raises(CancelledError):
        ProgressReporter("stage", cancelled).count(1, 2)
    teller = ProgressReporter("stage", cancelled)
    assert teller.is_stopped()
    with pytest.raises(CancelledError):
        teller.check()


def test_time_goes_on_while_nothing_is_told() -> None:
    teller = ProgressReporter("commit")
    first, then = teller.seen(), teller.seen()
    assert then.elapsed_s > first.elapsed_s > 0.0
    assert teller.now.elapsed_s == 0.0
