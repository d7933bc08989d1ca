"""How a driver creates an object exclusively, and what its errors say about the outcome.

One strategy per kind of object store (``drivers/*.py``, found by ``registry.py``). Each
sends one conditional request for the whole object: several servers check the condition on a single
upload only and ignore it when an upload in parts is completed.

Outcomes: drivers repeat requests by themselves, so "exists" may be the caller's own object whose
first reply was lost. Whoever commits has to read it back and look whose it is.

Limits: only what is certain counts as ``FAILED``; a server error, a timeout or a broken connection
is ``UNKNOWN``, because the server may have done the work before. A refusal (403, 404) counts as
certain although a lost reply before it is thinkable when the driver repeated the request.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any, Protocol

_CAUSES_MAX = 16


class Outcome(Enum):
    """What an error of a conditional request means for the object."""

    EXISTS = "exists"
    BUSY = "busy"  # refused because another request for the object is under way: try again
    FAILED = "failed"
    UNKNOWN = "unknown"


class ExclusiveCreate(Protocol):
    """Creates objects exclusively through one fsspec driver."""

    def put(self, filesystem: Any, full: str, data: bytes) -> None:
        """Create the object ``full`` by one request; any error is the driver's own."""
        ...

    def outcome(self, error: BaseException) -> Outcome:
        """Judge an error that ``put`` raised."""
        ...

    def place(self, filesystem: Any, full: str) -> str:
        """Name the server and bucket, for which one probe is enough."""
        ...


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what caused it: drivers hide the server's answer behind their own."""
    seen: BaseException | None = error
    for _ in range(_CAUSES_MAX):
        if seen is None:
            return
        yield seen
        seen = seen.__cause__ or seen.__context__


def by_class(error: BaseException) -> Outcome:
    """Judge an error by its Python class alone."""
    for one in causes(error):
        if isinstance(one, FileExistsError):
            return Outcome.EXISTS
        if isinstance(one, (PermissionError, FileNotFoundError, NotImplementedError)):
            return Outcome.FAILED
    return Outcome.UNKNOWN


def by_status(status: int, error: BaseException) -> Outcome:
    """Judge an error by the HTTP status of the answer, where that decides."""
    if status == 412:
        return Outcome.EXISTS
    if status in (400, 401, 403, 404, 405, 501):
        return Outcome.FAILED
    return by_class(error)


def first_segment(full: str) -> str:
    """Return the bucket or container of a driver's path."""
    return full.lstrip("/").partition("/")[0]
