from __future__ import annotations

import gc
import os
import pickle
import socket
import statistics
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from lance_nb.spark import worker
from lance_nb.spark.engines.session import RunTasks
from lance_nb.spark.frames import ReadParts, WritePartition
from lance_nb.spark.shuffle import MergeBucket
from lance_nb.spark.source import data_source, streaming
from lance_nb.spark.worker import ARRIVAL, acknowledge, settle

ROUNDS = 9
LATE_S = 0.03  # Linux puts acknowledging off for 40 ms


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


def waits(done_between: Callable[[], None]) -> list[float]:
    """Let one side send two messages at a time; how long does the other wait for the second?"""
    with socket.create_server(("127.0.0.1", 0)) as server:
        sending = socket.create_connection(server.getsockname())
        receiving, _ = server.accept()

    def send() -> None:
        while sending.recv(1) == b"?":
            sending.sendall(b"function")
            sending.sendall(b"rows")  # by Nagle's algorithm not before the other was acknowledged

    thread = threading.Thread(target=send)
    thread.start()
    found = []
    with sending, receiving:
        for _ in range(ROUNDS):
            receiving.sendall(b"?")
            assert receiving.recv(8, socket.MSG_WAITALL) == b"function"
            begin = time.perf_counter()
            done_between()
            assert receiving.recv(4, socket.MSG_WAITALL) == b"rows"
            found.append(time.perf_counter() - begin)
        receiving.sendall(b".")
        thread.join()
    return found


def test_rows_come_at_once_after_the_function() -> None:
    if statistics.median(waits(lambda: None)) < LATE_S:
        pytest.skip("this system acknowledges everything at once")
    assert statistics.median(waits(acknowledge)) < LATE_S / 2


def test_what_is_no_socket_of_tcp_is_left_alone() -> None:
    one, other = socket.socketpair()
    reading, writing = os.pipe()
    with one, other, os.fdopen(reading, "rb") as out, os.fdopen(writing, "wb") as into:
        acknowledge()
        one.sendall(b"a")
        into.write(b"b")
        into.flush()
        assert (other.recv(1), out.read(1)) == (b"a", b"b")


def test_it_does_nothing_where_the_system_has_no_such_option(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(socket, "TCP_QUICKACK", raising=False)
    monkeypatch.setattr(worker, "_acknowledge", None)
    acknowledge()


SENT: dict[str, Callable[[], Any]] = {
    "tasks": lambda: RunTasks(b"", (), Any),  # type: ignore[arg-type]
    "partition": lambda: WritePartition(Any, Any),  # type: ignore[arg-type]
    "parts": lambda: ReadParts(()),
    "bucket": lambda: MergeBucket(Any, Any, Any),  # type: ignore[arg-type]
    "reader": lambda: data_source.LanceReader(Any),  # type: ignore[arg-type]
    "table": lambda: data_source.TableReader(None),
    "writer": lambda: data_source.LanceWriter(Any),  # type: ignore[arg-type]
    "changes": lambda: streaming.ChangeReader(Any, 0, 1),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", SENT)
def test_everything_that_spark_sends_to_workers_says_that_it_arrived(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    monkeypatch.setattr(worker, "acknowledge", lambda: calls.append(name))
    sent = pickle.dumps(SENT[name]())
    run_by("pyspark.daemon", monkeypatch)
    pickle.loads(sent)  # noqa: S301 - pickled above
    assert calls == [name]


def test_no_process_but_a_worker_acknowledges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "acknowledge", None)
    assert pickle.loads(pickle.dumps(ARRIVAL)) is ARRIVAL  # noqa: S301 - its own
