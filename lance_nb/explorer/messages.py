"""The protocol between a view in the browser and its widget: one reply to every request.

Layout (JSON, sent as custom messages of the widget's comm)::

    request   {id, type, args}
    progress  {id, progress: [done, total]}         none or many, only of long work
    reply     {id, ok: true, result, io}            + binary buffers, then also ``num_buffers``;
                                                    or ``base64``, where a host loses buffers
    error     {id, ok: false, error: {title, message, where, hint, kind}, io}

``id`` is chosen by the browser and unique per page; ``io`` is the cost of the answer: requests to
the store, bytes, milliseconds. A view keeps one request of a kind running and one waiting: a newer
one replaces the waiting one, and a reply that is no longer needed is dropped.

Short work is done where the message arrives, one message after the other. Work of more than a
second would block all other messages, so a handler returns a ``Job`` for it: ``JobRunner`` runs it
in a thread of its own, sends its progress, and ends it when the browser sends
``{type: "cancel", args: {id}}``.

Limits: a request weighs at most ``MAX_REQUEST_WEIGHT`` (characters and values together).
``MAX_JOBS`` jobs run at the same time; progress is sent at most every ``PROGRESS_S`` seconds. A job
is cancelled only where it reports its progress: every long verb does so between two steps.
Not supported: streaming. A request that would need it asks for a window instead.
"""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Literal, NotRequired, TypedDict

from lance_nb.errors import CancelledError, InternalError, InvalidInputError, LanceError
from lance_nb.explorer.error_card import error_card
from lance_nb.shown_text import visible_lines
from lance_nb.storage import meter
from lance_nb.value_classes import dataclass

MAX_REQUEST_WEIGHT = 200_000
MAX_ID_CHARS = 64

_log = logging.getLogger(__name__)
MAX_JOBS = 4
PROGRESS_S = 0.1

Send = Callable[[Mapping[str, Any], list[bytes]], None]


class Request(TypedDict):
    """What the browser sends."""

    id: str
    type: str
    args: dict[str, Any]


class Reply(TypedDict):
    """The answer to a request that worked."""

    id: str
    ok: Literal[True]
    result: dict[str, Any]
    io: NotRequired[dict[str, int]]


class ErrorReply(TypedDict):
    """The answer to a request that did not work; ``error`` is an error card."""

    id: str
    ok: Literal[False]
    error: dict[str, str]
    io: NotRequired[dict[str, int]]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a handler returns: JSON-able values, and buffers that they refer to by position."""

    result: dict[str, Any] = field(default_factory=dict)
    buffers: tuple[bytes, ...] = ()


Progress = Callable[[int, int], object]


@dataclass(frozen=True, slots=True)
class Job:
    """Long work: a function that takes a progress callback (done, total) and returns the answer.

    The callback raises when the browser has cancelled, which ends the work.
    """

    work: Callable[[Progress], Answer]


Handler = Callable[[Mapping[str, Any]], Answer | Job]
Replied = tuple[Reply | ErrorReply, list[bytes]]


def handle(request: object, handlers: Mapping[str, Handler]) -> Replied:
    """Answer ``request``, whatever it is; long work is done on the spot."""
    result = begin(request, handlers)
    return finish(*result) if isinstance(result[1], Job) else result


def begin(request: object, handlers: Mapping[str, Handler]) -> Replied | tuple[str, Job]:
    """Answer ``request``, whatever it is; or return its id and the long work that answers it."""
    request_id = _id_of(request)
    jobs: list[Job] = []

    def work() -> Answer:
        checked = _checked(request)
        answer = _handler(checked["type"], handlers)(checked["args"])
        if isinstance(answer, Job):
            jobs.append(answer)
            return Answer()
        return answer

    replied = _replied(request_id, work)
    return (request_id, jobs[0]) if jobs else replied


def finish(request_id: str, job: Job, progress: Progress | None = None) -> Replied:
    """Do long work and return its reply."""
    return _replied(request_id, lambda: job.work(progress or _quiet))


def _quiet(done: int, total: int) -> None:
    """Ignore progress."""


def _replied(request_id: str, work: Callable[[], Answer]) -> Replied:
    """Make the reply. Expected errors are logged in one line, internal ones with their trace."""
    before, started = meter.reading(), time.perf_counter()
    reply: Reply | ErrorReply
    try:
        answer = work()
    except Exception as error:
        answer = Answer()
        reply = ErrorReply(id=request_id, ok=False, error=error_card(error).to_json())
        if isinstance(error, LanceError) and not isinstance(error, InternalError):
            _log.info("request %r was refused: %s", request_id, type(error).__name__)
        else:
            trace = "".join(traceback.format_exception(error))
            _log.warning("request %r failed\n%s", request_id, visible_lines(trace))
    else:
        reply = Reply(id=request_id, ok=True, result=answer.result)
    reply["io"] = cost_since(before, started)
    return reply, list(answer.buffers)


def cost_since(before: meter.Reading, started: float) -> dict[str, int]:
    """Return requests, bytes and milliseconds since the meter and the clock were read."""
    now = meter.reading()
    return {
        "requests": now.requests - before.requests,
        "bytes": now.size_bytes - before.size_bytes,
        "ms": round((time.perf_counter() - started) * 1000),
    }


def _checked(request: object) -> Request:
    if not isinstance(request, Mapping):
        raise InvalidInputError("a request must be an object {id, type, args}")
    if _weight(request) > MAX_REQUEST_WEIGHT:
        raise InvalidInputError(f"the request is larger than {MAX_REQUEST_WEIGHT:,}")
    request_id, kind, args = request.get("id"), request.get("type"), request.get("args", {})
    if not isinstance(request_id, str) or not 0 < len(request_id) <= MAX_ID_CHARS:
        raise InvalidInputError(f"a request needs an id of 1 to {MAX_ID_CHARS} characters")
    if not isinstance(kind, str):
        raise InvalidInputError("a request needs a type")
    if not isinstance(args, Mapping):
        raise InvalidInputError("the args of a request must be an object")
    return Request(id=request_id, type=kind, args=dict(args))


def _id_of(request: object) -> str:
    """Return the id of a request that is otherwise wrong: the browser matches the error by it."""
    request_id = request.get("id") if isinstance(request, Mapping) else None
    return request_id[:MAX_ID_CHARS] if isinstance(request_id, str) else ""


def _weight(value: object) -> int:
    """Characters and values in ``value``; stops counting when it is too much anyway."""
    weight, todo = 0, [value]
    while todo and weight <= MAX_REQUEST_WEIGHT:
        item = todo.pop()
        weight += 1
        if isinstance(item, (str, bytes)):
            weight += len(item)
        elif isinstance(item, Mapping):
            weight += len(item)
            todo += [*item.keys(), *item.values()] if len(item) <= MAX_REQUEST_WEIGHT else []
        elif isinstance(item, (list, tuple)):
            weight += len(item)
            todo += item if len(item) <= MAX_REQUEST_WEIGHT else []
    return weight


def _handler(kind: str, handlers: Mapping[str, Handler]) -> Handler:
    if kind not in handlers:
        kinds = ", ".join(sorted(handlers))
        raise InvalidInputError(f"unknown request type {kind[:40]!r}; known: {kinds}")
    return handlers[kind]


def integer(args: Mapping[str, Any], key: str, *, low: int, high: int) -> int:
    """Take a whole number between ``low`` and ``high`` from the arguments of a request."""
    value = args.get(key)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidInputError(f"{key} must be a whole number from {low:,} to {high:,}")
    return value


def words(args: Mapping[str, Any], key: str, max_chars: int) -> str:
    """Take a text of at most ``max_chars`` from the arguments of a request."""
    value = args.get(key)
    if not isinstance(value, str) or len(value) > max_chars:
        raise InvalidInputError(f"{key} must be a text of at most {max_chars} characters")
    return value


def _refuse_job(_progress: Progress) -> Answer:
    raise InvalidInputError(f"{MAX_JOBS} long actions are in progress; wait until one of them ends")


class JobRunner:
    """The running jobs of one widget; owns their threads. Without ``beside`` a job runs at once."""

    def __init__(self, send: Send, *, beside: bool = True) -> None:
        self._send = send
        self._beside = beside
        self._lock = threading.Lock()
        self._cancelled: dict[str, threading.Event] = {}

    def start(self, request_id: str, job: Job) -> None:
        """Run a job and send its reply; with too many running jobs, the reply is an error."""
        with self._lock:
            full = len(self._cancelled) >= MAX_JOBS
            if not full:
                self._cancelled[request_id] = threading.Event()
        if full:
            self._send(*finish(request_id, Job(_refuse_job)))
            return
        if not self._beside:
            self._run(request_id, job)
            return
        threading.Thread(
            target=self._run, args=(request_id, job), name="lance_nb job", daemon=True
        ).start()

    def cancel(self, request_id: str) -> bool:
        """Request a job to end, and return whether it was still running."""
        with self._lock:
            event = self._cancelled.get(request_id)
        if event is not None:
            event.set()
        return event is not None

    def close(self) -> None:
        """Request every job to end."""
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

        reply, buffers = finish(request_id, job, progress)
        with self._lock:
            del self._cancelled[request_id]
        self._send(reply, buffers)
