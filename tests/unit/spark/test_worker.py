from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from lance_nb.spark.worker import settle


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    yield
    gc.unfreeze()


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


@pytest.mark.parametrize("name", ["pytest", "pyspark.worker", "ipykernel_launcher"])
def test_no_other_process_does(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run_by(name, monkeypatch)
    settle()
    assert gc.get_freeze_count() == 0


def test_a_process_without_a_main_module_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "__main__")
    settle()
    assert gc.get_freeze_count() == 0
