"""Google Cloud Storage, by gcsfs: one upload with ``ifGenerationMatch=0``.

How: ``pipe_file(mode="create")`` with a part size that is never reached, so that it stays one
request. gcsfs tells 412 as FileExistsError and refusals as OSError "Forbidden".

Limits: tested against a stand-in for the driver only.
Source: "Request preconditions" of the Cloud Storage documentation; gcsfs 2026.10.1.
"""

from __future__ import annotations

from typing import Any

from lance_nb.storage.exclusive.base import (
    Outcome,
    by_class,
    by_status,
    causes,
    first_segment,
)

_ONE_UPLOAD = 5 << 30


class GcsCreate:
    """Creates objects through gcsfs."""

    def put(self, filesystem: Any, full: str, data: bytes) -> None:
        """Create an object by one upload."""
        filesystem.pipe_file(full, data, mode="create", chunksize=_ONE_UPLOAD)

    def outcome(self, error: BaseException) -> Outcome:
        """Judge an error by its status code, else by its class and gcsfs' own words."""
        for one in causes(error):
            code = getattr(one, "code", None)
            if isinstance(code, int):
                return by_status(code, one)
            if isinstance(one, OSError) and str(one).startswith("Forbidden"):
                return Outcome.FAILED
        return by_class(error)

    def place(self, filesystem: Any, full: str) -> str:
        """Name the endpoint and the bucket."""
        return f"gcs {getattr(filesystem, '_location', '')} {first_segment(full)}"
