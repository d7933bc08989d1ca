"""A process that appends, updates and deletes rows of its own until it is told to stop.

It keeps in memory what was acknowledged. Who works on the dataset meanwhile (compaction, clean-up,
upserts) must lose nothing of it and double nothing: an update that was applied twice shows, because
each adds one.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

ROWS = 3  # of one append
PATIENCE_S = 180.0  # a busy machine may take long
PAUSE_S = 0.15  # between two changes, on average: who rewrites the same rows must get a turn
SCHEMA = pa.schema([("id", pa.int64()), ("count", pa.int64()), ("word", pa.string())])
# What pylance and we say when somebody else was faster; the change was not made, and may be again.
AGAIN = ("retry", "Retry", "concurrent", "Try again", "overtaken", "preempted", "Too many")


def rows(ids: list[int]) -> pa.Table:
    """New rows: each counts from 0."""
    return pa.table(
        {"id": ids, "count": [0] * len(ids), "word": [f"w{one % 3}" for one in ids]}, SCHEMA
    )


def until_done(change: Any) -> Any:
    """Make a change, again after a conflict that says so."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        try:
            return change()
        except OSError as error:
            if not any(word in str(error) for word in AGAIN):
                raise
    raise TimeoutError(f"{PATIENCE_S:.0f} s were not enough")


def write(uri: str, name: str, first: int, signals: tuple[Any, Any, Any]) -> None:
    """Write until it is told to stop; hand back the counts by id, or the error."""
    stop, ready, done = signals
    try:
        done.put(_written(_module(name), uri, first, stop, ready))
    except Exception as error:
        done.put(error)
        raise


def _written(module: Any, uri: str, first: int, stop: Any, ready: Any) -> dict[int, int]:
    counts: dict[int, int] = {}
    number = 0
    chance = random.Random(first)
    parent = os.getppid()  # a test that is killed leaves nobody to say stop
    while (not stop.is_set() or number < 6) and os.getppid() == parent:
        ids = [first + number * ROWS + at for at in range(ROWS)]
        kind = number % 3
        if kind == 0 or not counts:
            until_done(lambda ids=ids: module.write_dataset(rows(ids), uri, mode="append"))
            counts |= dict.fromkeys(ids, 0)
        elif kind == 1:
            chosen = sorted(counts)[-5:]
            text = ", ".join(map(str, chosen))
            until_done(
                lambda text=text: module.dataset(uri).update(
                    {"count": "count + 1"}, where=f"id IN ({text})"
                )
            )
            counts |= {one: counts[one] + 1 for one in chosen}
        else:
            victim = min(counts)
            until_done(lambda one=victim: module.dataset(uri).delete(f"id = {one}"))
            del counts[victim]
        number += 1
        ready.set()
        time.sleep(chance.expovariate(1 / PAUSE_S))
    return counts


def _module(name: str) -> Any:
    if name == "ours":
        import lance_nb

        return lance_nb
    import lance

    return lance


class RunningWriter:
    """The process, seen from outside."""

    def __init__(self, uri: str, name: str, first: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._stop, self._ready = context.Event(), context.Event()
        self._done = context.Queue()
        arguments = (uri, name, first, (self._stop, self._ready, self._done))
        self.process = context.Process(target=write, args=arguments, daemon=True)

    def finished(self) -> dict[int, int]:
        """Let it stop and return what it wrote. Raises what it raised."""
        self._stop.set()
        try:
            found = self._done.get(timeout=PATIENCE_S)
        except queue.Empty:
            raise TimeoutError("the writer did not stop") from None
        if isinstance(found, BaseException):
            raise found
        return found

    def wait(self) -> None:
        """Wait until it has written something."""
        assert self._ready.wait(PATIENCE_S), "the writer wrote nothing"


@contextmanager
def running(uri: str, name: str, first: int) -> Iterator[RunningWriter]:
    """Run a writer beside the body; it is at work when the body begins."""
    writer = RunningWriter(uri, name, first)
    writer.process.start()
    try:
        writer.wait()
        yield writer
    finally:
        writer._stop.set()
        writer.process.join(30)
        if writer.process.is_alive():
            writer.process.kill()
