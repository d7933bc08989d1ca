"""Processes of ours and of pylance that commit to one dataset at the same time.

    python -m tests.faults race 250 [--ours 4] [--pylance 4] [--keep]

Each process appends rows of its own, deletes and updates some of them, and sets a config key of
its own, until it has committed so often (or is told to stop); one of ours and one of pylance's
compact now and then. It keeps in memory what was acknowledged. A reader polls all the while and
reads every version it finds. Afterwards every version is read by both, and the rows and settings
are exactly those that were acknowledged: an update that was applied twice shows, as each adds one.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import queue
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.faults import command

ROWS = 4  # of one append
UPDATED = 5  # rows of one update
COMPACTS_EVERY = 24  # commits of a process that compacts
PATIENCE_S = 180.0  # for one change on a busy machine; conflicts are expected, endless ones not
PAUSE_S = 0.15  # on average between two changes of a writer beside which somebody else works
COMMITS_MIN = 6  # of a process that is told to stop
SCHEMA = pa.schema([("id", pa.int64()), ("n", pa.int64()), ("word", pa.string())])
MODULES = {"ours": "lance_nb", "pylance": "lance"}
# What pylance and we say when somebody else was faster; the change was not made, and may be again.
AGAIN = ("retry", "Retry", "concurrent", "Try again", "overtaken", "preempted", "Too many")


def rows(ids: list[int]) -> pa.Table:
    """New rows: each counts from 0."""
    words = [f"w{number % 3}" for number in ids]
    return pa.table({"id": ids, "n": [0] * len(ids), "word": words}, SCHEMA)


def may_be_repeated(error: OSError) -> bool:
    """Tell whether an error is a conflict with somebody who was faster."""
    return any(word in str(error) for word in AGAIN)


def until_done(change: Any) -> Any:
    """Make a change, again after a conflict that says so; return what it returns."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        try:
            return change()
        except OSError as error:
            if not may_be_repeated(error):
                raise
    raise TimeoutError(f"{PATIENCE_S:.0f} s were not enough")


@dataclass
class Writer:
    """One process: how it writes, and what was acknowledged."""

    uri: str
    engine: str
    worker: int
    commits: int = 0  # after which it ends; 0: when it is told to stop
    compacts: bool = False
    pause_s: float = 0.0
    rows: dict[int, int] = field(default_factory=dict)
    config: str | None = None
    done: int = 0
    compactions: int = 0

    def run(self, stop: Any, ready: Any) -> None:
        """Write until the end."""
        chance, parent = random.Random(self.worker), os.getppid()
        while os.getppid() == parent:  # a test that is killed leaves nobody to say stop
            if self.done >= (self.commits or COMMITS_MIN) and (self.commits or stop.is_set()):
                return
            self._change(self.done)
            self.done += 1
            ready.set()
            if self.compacts and self.done % COMPACTS_EVERY == 0:
                self._compact()
            if self.pause_s:
                time.sleep(chance.expovariate(1 / self.pause_s))

    def _dataset(self) -> Any:
        return importlib.import_module(MODULES[self.engine]).dataset(self.uri)

    def _change(self, number: int) -> None:
        kind = number % 4
        if kind in (0, 1) or not self.rows:
            first = (self.worker * 100_000 + number) * ROWS
            ids = list(range(first, first + ROWS))
            module = importlib.import_module(MODULES[self.engine])
            until_done(lambda: module.write_dataset(rows(ids), self.uri, mode="append"))
            self.rows |= dict.fromkeys(ids, 0)
        elif kind == 3:
            key, value = f"worker-{self.worker}", str(number)
            until_done(lambda: self._dataset().update_config({key: value}))
            self.config = value
        elif number % 8 == 2:
            victim = min(self.rows)
            until_done(lambda: self._dataset().delete(f"id = {victim}"))
            del self.rows[victim]
        else:
            chosen = sorted(self.rows)[-UPDATED:]
            where = f"id IN ({', '.join(map(str, chosen))})"
            until_done(lambda: self._dataset().update({"n": "n + 1"}, where=where))
            self.rows |= {number: self.rows[number] + 1 for number in chosen}

    def _compact(self) -> None:
        """Compact once; that others are in the way is no error, and changes no rows."""
        try:
            self._dataset().optimize.compact_files()
            self.compactions += 1
        except OSError as error:
            if not may_be_repeated(error):
                raise


def _write(writer: Writer, stop: Any, ready: Any, results: Any) -> None:
    try:
        writer.run(stop, ready)
        results.put(writer)
    except Exception as error:
        results.put(error)
        raise


class Writers:
    """Processes that write, seen from outside."""

    def __init__(self, *writers: Writer) -> None:
        context = multiprocessing.get_context("spawn")
        self.stop, self._results = context.Event(), context.Queue()
        self._ready = [context.Event() for _ in writers]
        self.processes = [
            context.Process(
                target=_write, args=(writer, self.stop, ready, self._results), daemon=True
            )
            for writer, ready in zip(writers, self._ready, strict=True)
        ]

    def start(self) -> None:
        """Start them; each has written something when this returns."""
        for process in self.processes:
            process.start()
        for ready in self._ready:
            assert ready.wait(PATIENCE_S), "a writer wrote nothing"

    def finished(self) -> list[Writer]:
        """Let them stop and return what they wrote. Raises what one of them raised."""
        self.stop.set()
        try:
            results = [self._results.get(timeout=600) for _ in self.processes]
        except queue.Empty:
            raise TimeoutError("a writer did not stop") from None
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return results

    def close(self) -> None:
        """End them."""
        self.stop.set()
        for process in self.processes:
            process.join(30)
            if process.is_alive():
                process.kill()


@contextmanager
def running(*writers: Writer) -> Iterator[Writers]:
    """Run writers beside the body; they are at work when the body begins."""
    processes = Writers(*writers)
    try:
        processes.start()
        yield processes
    finally:
        processes.close()


def _poll(uri: str, stop: Any, results: Any) -> None:
    """Read the newest version again and again; every one must be whole and none older."""
    import lance_nb

    newest = polls = 0
    while not stop.is_set():
        dataset = lance_nb.dataset(uri)
        if dataset.version < newest:
            raise RuntimeError(f"version {dataset.version} after {newest}")
        newest = dataset.version
        ids = dataset.to_table()["id"].to_pylist()
        if len(ids) != len(set(ids)) or len(ids) != dataset.count_rows():
            raise RuntimeError(f"version {newest} has {len(ids)} rows, {len(set(ids))} different")
        polls += 1
        time.sleep(0.01)
    results.put(polls)


def run(uri: str, commits: int, ours: int, pylance: int) -> dict[str, Any]:
    """Run the processes and check everything. Raises AssertionError."""
    import lance

    lance.write_dataset(rows([0]), uri)
    engines = ["ours"] * ours + ["pylance"] * pylance
    writers = [
        Writer(uri, engine, number + 1, commits, compacts=number in (0, ours))
        for number, engine in enumerate(engines)
    ]
    context = multiprocessing.get_context("spawn")
    polled, stop = context.Queue(), context.Event()
    reader = context.Process(target=_poll, args=(uri, stop, polled), daemon=True)
    began = time.perf_counter()
    reader.start()
    with running(*writers) as processes:
        results = processes.finished()
        seconds = time.perf_counter() - began
        stop.set()
        polls = polled.get(timeout=240)
    reader.join(30)
    assert all(process.exitcode == 0 for process in (reader, *processes.processes))
    check(uri, {0: 0}, results)
    return {
        "commits": commits * len(writers),
        "seconds": round(seconds, 1),
        "compactions": sum(writer.compactions for writer in results),
        "polls": polls,
    }


def check(uri: str, others: dict[int, int], writers: list[Writer]) -> None:
    """Compare rows, settings and versions with what was acknowledged. Raises AssertionError."""
    import lance

    import lance_nb

    ours, theirs = lance_nb.dataset(uri), lance.dataset(uri)
    newest = ours.version
    assert newest == theirs.version
    expected = dict(others)
    for writer in writers:
        expected |= writer.rows
        assert writer.config is None or ours.config()[f"worker-{writer.worker}"] == writer.config
    theirs.validate()
    assert ours.verify(values=False).ok
    for dataset in (ours, theirs):
        table = dataset.to_table().sort_by("id")
        pairs = list(zip(table["id"].to_pylist(), table["n"].to_pylist(), strict=True))
        assert pairs == sorted(expected.items()), "rows were lost, are there twice, or are old"
    numbers = ours.version_numbers()
    assert numbers == list(range(numbers[0], newest + 1)) or numbers[0] > 1
    uuids = [ours.transaction(number).uuid for number in numbers]
    assert len(set(uuids)) == len(uuids)
    for number in numbers[:: max(1, len(numbers) // 50)]:
        table = ours.checkout_version(number).to_table()
        assert table == theirs.checkout_version(number).to_table()
        assert len(set(table["id"].to_pylist())) == table.num_rows


def main(arguments: list[str]) -> int:
    """Let the processes race; return the exit code."""
    parser = command.parser_of("race", "commits of each process", 250)
    parser.add_argument("--ours", type=int, default=4)
    parser.add_argument("--pylance", type=int, default=4)

    def work(asked: command.Run) -> command.Counts:
        counts: command.Counts = {"commits": 0, "polls": 0}
        with command.memory_folder() as folder:
            path = str(Path(folder) / "t.lance")
            try:
                counts = run(path, asked.size, asked.options.ours, asked.options.pylance)
            except (AssertionError, RuntimeError, OSError, queue.Empty) as error:
                asked.fail(f"{type(error).__name__}: {error}")
        return asked.result(counts)

    return command.run("races", parser, arguments, work)
