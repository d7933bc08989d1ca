from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from lance_nb.spark import worker
from lance_nb.spark.worker import settle


@pytest.fixture(autouse=True)
def thawed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(worker, "_aside", type(worker._aside)())
    yield
    gc.unfreeze()


class Ring:
    own: Ring


def run_by(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    main = SimpleNamespace(__spec__=SimpleNamespace(name=name))
    monkeypatch.setitem(sys.modules, "__main__", main)  # type: ignore[arg-type]


def test_a_worker_puts_aside_what_is_there_once(monkeypatch: pytest.MonkeyPatch) -> None:
    run_by("pyspark.daemon", monkeypatch)
    settle()
    count = gc.get_freeze_count()
    assert count > 10_000
    later = [[] for _ in range(100)]
    settle()
    assert gc.get_freeze_count() <= count
    assert any(one is later for one in gc.get_objects())  # still looked at


def test_a_worker_puts_aside_what_later_tasks_import(monkeypatch: pytest.MonkeyPatch) -> None:
    run_by("pyspark.daemon", monkeypatch)
    settle()
    later: list[object] = [[] for _ in range(100)]
    later.append(later)
    monkeypatch.setitem(sys.modules, "imported_later", SimpleNamespace(rows=later))  # type: ignore[arg-type]
    settle()
    assert not any(one is later for one in gc.get_objects())


def test_a_worker_asks_the_collector_nothing_when_nothing_is_new(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run_by("pyspark.daemon", monkeypatch)
    settle()
    monkeypatch.setattr(worker, "gc", None)  # asking takes as long as a collection
    settle()


def test_garbage_is_not_put_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    run_by("pyspark.daemon", monkeypatch)
    ring = Ring()
    ring.own = ring
    gone = weakref.ref(ring)
    del ring
    settle()
    assert gone() is None


@pytest.mark.parametrize("name", ["pytest", "pyspark.worker", "ipykernel_launcher"])
def test_no_other_process_does(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run_by(name, monkeypatch)
    settle()
    assert gc.get_freeze_count() == 0


def test_a_process_without_a_main_module_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "__main__")
    settle()
    assert gc.get_freeze_count() == 0
