from __future__ import annotations

import threading
from pathlib import Path

import pytest
from IPython.core.error import UsageError

import lance_nb
from lance_nb import spark
from lance_nb.spark.journal import keep
from lance_nb.spark.plan import Label
from tests.unit.magic.conftest import Lance


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_work_in_the_background_is_shown_and_cancelled(lance: Lance) -> None:
    stopped = threading.Event()

    def slow(*, progress: object, stop: object) -> bool:
        stopped.wait(60)
        return stop()  # type: ignore[operator]

    job = spark.submit(slow)
    assert f"job {job.id[:8]}" in lance("spark").picture.text
    lance(f"spark --cancel {job.id[:8]}")
    stopped.set()
    assert job.result(60) is True
    assert "slow: done" in lance("spark").picture.text
    with pytest.raises(UsageError, match="no job 'x'"):
        lance("spark --cancel x")


def test_unfinished_work_is_finished_or_given_up(lance: Lance, written: Path) -> None:
    plan = spark.plan_delete(lance_nb.dataset(str(written)), "id < 1000000")
    assert keep(plan, [], Label())
    assert plan.operation_id in lance("spark").picture.text
    lance(f"spark --forget {plan.operation_id[:8]}")
    assert spark.unfinished() == []
    with pytest.raises(UsageError, match="no unfinished operation 'x'"):
        lance("spark --resume x")
