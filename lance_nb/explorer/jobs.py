"""Long work beside the messages: one thread per job, progress on the way, an end when asked.

The kernel takes messages one after the other, so work of more than a second would hold all others.
A handler that returns a ``Job`` is run here instead. ``start`` returns at once; the reply is sent
when the work is done.

Limits: ``MAX_JOBS`` at the same time; progress is sent at most every ``PROGRESS_S`` seconds.
A job ends early only where it tells its progress: every long verb does so between two steps.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from lance_nb.errors import CancelledError, InvalidInputError
from lance_nb.explorer import messages
from lance_nb.explorer.messages import Answer, Job, Progress

MAX_JOBS = 4
PROGRESS_S = 0.1

Send = Callable[[Mapping[str, Any], list[bytes]], None]


def _refuse(_progress: Progress) -> Answer:
    raise InvalidInputError(f"{MAX_JOBS} long actions are under way; wait for one of them")


class Jobs:
    """The work under way for one widget; owns its threads. ``beside`` False does work at once."""

    def __init__(self, send: Send, *, beside: bool = True) -> None:
        self._send = send
        self._beside = beside
        self._lock = threading.Lock()
        self._cancelled: dict[str, threading.Event] = {}

    def start(self, request_id: str, job: Job) -> None:
        """Do the work and send its reply; when too much is under way, the reply says so."""
        with self._lock:
            full = len(self._cancelled) >= MAX_JOBS
            if not full:
                self._cancelled[request_id] = threading.Event()
        if full:
            self._send(*messages.finish(request_id, Job(_refuse)))
            return
        if not self._beside:
            self._run(request_id, job)
            return
        threading.Thread(
            target=self._run, args=(request_id, job), name="lance_nb job", daemon=True
        ).start()

    def cancel(self, request_id: str) -> bool:
        """Ask a job to end; tell whether it was still under way."""
        with self._lock:
            event = self._cancelled.get(request_id)
        if event is not None:
            event.set()
        return event is not None

    def close(self) -> None:
        """Ask every job to end."""
        with self._lock:
            for event in self._cancelled.values():
                event.set()

    def _run(self, request_id: str, job: Job) -> None:
        event = self._cancelled[request_id]
        last = 0.0

        def progress(done: int, total: int) -> None:
            nonlocal last
            if event.is_set():
                raise CancelledError("the action was cancelled; nothing was changed")
            now = time.monotonic()
            if now - last >= PROGRESS_S:
                last = now
                self._send({"id": request_id, "progress": [int(done), int(total)]}, [])

        reply, buffers = messages.finish(request_id, job, progress)
        with self._lock:
            del self._cancelled[request_id]
        self._send(reply, buffers)
