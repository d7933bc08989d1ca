"""Several writers in one process, of which exactly one runs at a time; a seed says which.

Every step of a store is a place where the turn may pass to another writer, so that a run visits one
of all possible interleavings and the same seed visits it again.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable


class Turns:
    """Runs writers by turns until all have ended."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._waiting: dict[int, threading.Semaphore] = {}
        self._control = threading.Semaphore(0)
        self._local = threading.local()
        self._errors: list[BaseException] = []

    def step(self) -> None:
        """Pass the turn; called by a writer before each step of a store."""
        own = getattr(self._local, "number", None)
        if own is None:
            return
        self._control.release()
        self._waiting[own].acquire()

    def run(self, writers: list[Callable[[], None]]) -> None:
        """Run the writers to their ends; raise what one of them raised."""
        self._waiting = {number: threading.Semaphore(0) for number in range(len(writers))}
        threads = [
            threading.Thread(target=self._live, args=(number, writer), daemon=True)
            for number, writer in enumerate(writers)
        ]
        for thread in threads:
            thread.start()
        alive = dict(enumerate(threads))
        while alive:
            number = self._chance.choice(sorted(alive))
            self._waiting[number].release()
            self._control.acquire()
            if getattr(alive[number], "ended", False):
                alive.pop(number).join()
        if self._errors:
            raise self._errors[0]

    def _live(self, number: int, writer: Callable[[], None]) -> None:
        self._local.number = number
        self._waiting[number].acquire()
        try:
            writer()
        except BaseException as error:  # noqa: BLE001  handed to the thread that runs the test
            self._errors.append(error)
        threading.current_thread().ended = True
        self._control.release()
