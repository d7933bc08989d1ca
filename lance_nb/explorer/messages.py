"""The protocol between a view in the browser and its widget: one request, always one reply.

Layout (JSON, sent as custom messages of the widget's comm)::

    request  {id, type, args}
    reply    {id, ok: true, result}                + binary buffers
    error    {id, ok: false, error: {title, message, where, hint, kind}}

``id`` is chosen by the browser and unique per page. A view keeps one request of a kind under way
and one waiting: a newer one replaces the waiting one, and a reply nobody waits for any more is
dropped. That is all the cancellation there is, because the kernel takes messages one after the
other.

Limits: a request weighs at most ``MAX_REQUEST_WEIGHT`` (characters and values together).
Not supported: streaming. A request that would need it asks for a window instead.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict

from lance_nb.errors import InvalidInputError
from lance_nb.explorer.models.error_card import error_card

MAX_REQUEST_WEIGHT = 20_000
MAX_ID_CHARS = 64

_log = logging.getLogger(__name__)


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


class ErrorReply(TypedDict):
    """The answer to a request that did not work; ``error`` is an error card."""

    id: str
    ok: Literal[False]
    error: dict[str, str]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a handler returns: JSON-able values, and buffers that they refer to by position."""

    result: dict[str, Any] = field(default_factory=dict)
    buffers: tuple[bytes, ...] = ()


Handler = Callable[[Mapping[str, Any]], Answer]


def handle(
    request: object, handlers: Mapping[str, Handler]
) -> tuple[Reply | ErrorReply, list[bytes]]:
    """Answer ``request``, whatever it is. Faults of our own are logged with their trace as well."""
    request_id = ""
    try:
        checked = _checked(request)
        request_id = checked["id"]
        answer = _handler(checked["type"], handlers)(checked["args"])
    except Exception as error:
        card = error_card(error).to_json()
        if not isinstance(error, InvalidInputError):
            _log.warning("request %r failed", request_id, exc_info=error)
        return ErrorReply(id=request_id or _id_of(request), ok=False, error=card), []
    return Reply(id=request_id, ok=True, result=answer.result), list(answer.buffers)


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
        known = ", ".join(sorted(handlers))
        raise InvalidInputError(f"unknown request type {kind[:40]!r}; known: {known}")
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
