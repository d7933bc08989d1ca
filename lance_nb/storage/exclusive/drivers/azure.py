"""Azure Blob Storage and Data Lake, by adlfs: an upload with ``overwrite=False``.

How: ``pipe_file(mode="create")``, which adlfs sends with ``If-None-Match: *``; a large blob is
staged in blocks and the condition holds for the request that commits the block list. adlfs tells
"exists" as FileExistsError.

Limits: tested against a stand-in for the driver only.
Source: "Specifying conditional headers" of the Blob service; adlfs 2026.8.0.
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

_EXISTS = frozenset({"BlobAlreadyExists", "PathAlreadyExists", "ConditionNotMet"})


class AzureCreate:
    """Creates blobs through adlfs."""

    def put(self, filesystem: Any, full: str, data: bytes) -> None:
        """Create a blob by one conditional upload."""
        filesystem.pipe_file(full, data, mode="create")

    def outcome(self, error: BaseException) -> Outcome:
        """Judge an error by the service's error code and status, else by its class."""
        for one in causes(error):
            if str(getattr(one, "error_code", "")) in _EXISTS:
                return Outcome.EXISTS
            status = getattr(one, "status_code", None)
            if isinstance(status, int):
                return by_status(status, one)
        return by_class(error)

    def place(self, filesystem: Any, full: str) -> str:
        """Name the account and the container."""
        account = getattr(filesystem, "account_url", None) or getattr(
            filesystem, "account_name", ""
        )
        return f"azure {account} {first_segment(full)}"
