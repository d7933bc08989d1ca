"""S3 and what speaks like it, by s3fs: one PUT with ``If-None-Match: *``.

How: ``pipe_file(mode="create")`` with a part size that is never reached, so that it stays one PUT
(Ceph ignores the condition when an upload in parts is completed).

Outcomes: 412 is told as FileExistsError by some servers and as OSError 22 by others, so the
server's own answer is looked up behind the driver's error. 409 ``ConditionalRequestConflict``: two
requests met, neither counts.

Limits: 5 GiB, the largest single PUT. A refusal after botocore repeated the request is UNKNOWN.
Source: "Conditional writes" of the S3 user guide; s3fs 2026.9.0.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from typing import Any

from lance_nb.storage.exclusive.base import (
    Outcome,
    by_class,
    by_status,
    causes,
    first_segment,
)

_ONE_PUT = 5 << 30
_CODES = {
    "PreconditionFailed": Outcome.EXISTS,
    "ConditionalRequestConflict": Outcome.BUSY,
    "OperationAborted": Outcome.BUSY,
}


class S3Create:
    """Creates objects through s3fs."""

    def put(self, filesystem: Any, full: str, data: bytes) -> None:
        """Create an object by one PUT."""
        filesystem.pipe_file(full, data, mode="create", chunksize=_ONE_PUT)

    def outcome(self, error: BaseException) -> Outcome:
        """Judge an error by the server's answer, else by its class."""
        answer = _answer(error)
        if answer is None:
            return _without_answer(error)
        code = str(answer.get("Error", {}).get("Code", ""))
        if code in _CODES:
            return _CODES[code]
        meta = answer.get("ResponseMetadata", {})
        judged = by_status(int(meta.get("HTTPStatusCode") or 0), error)
        if judged is Outcome.FAILED and meta.get("RetryAttempts"):
            return Outcome.UNKNOWN
        return judged

    def place(self, filesystem: Any, full: str) -> str:
        """Name the endpoint and the bucket."""
        client = getattr(filesystem, "client_kwargs", None) or {}
        endpoint = getattr(filesystem, "endpoint_url", None) or client.get("endpoint_url") or "aws"
        return f"s3 {endpoint} {first_segment(full)}"


def _answer(error: BaseException) -> Mapping[str, Any] | None:
    for one in causes(error):
        answer = getattr(one, "response", None)
        if isinstance(answer, Mapping) and "Error" in answer:
            return answer
    return None


def _without_answer(error: BaseException) -> Outcome:
    text = str(error).lower()
    invalid = isinstance(error, OSError) and error.errno == errno.EINVAL
    if invalid and ("precondition" in text or "pre-condition" in text):
        return Outcome.EXISTS
    return by_class(error)
