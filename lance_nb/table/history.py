"""The versions of one branch and what has been read of them: numbers, counts, operations.

Manifests never change, so a version is read once and remembered; counts of fragments are taken from
the bytes of the fragments without decoding them, and only for fragments that the version before did
not have.

Limits: what is remembered of a version is small and fixed; fragment counts are kept for the fragments
of the versions read so far.
Source: messages Manifest and Transaction of lance.table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from lance_nb.errors import ObjectNotFoundError, VersionNotFoundError
from lance_nb.format.layout import ManifestName, manifest_path, transaction_path
from lance_nb.format.manifest import TAIL_BYTES
from lance_nb.format.manifest_summary import ManifestSummary, SummaryReader
from lance_nb.format.transaction_summary import TransactionSummary, summarize_transaction
from lance_nb.storage.base import Store
from lance_nb.table.versions import describe, version_names

VERSIONS_SCHEMA = pa.schema(
    [
        ("version", pa.uint64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("operation", pa.string()),
        ("message", pa.string()),
        ("num_rows", pa.uint64()),
        ("num_deleted_rows", pa.uint64()),
        ("num_fragments", pa.uint64()),
        ("num_data_files", pa.uint64()),
        ("num_deletion_files", pa.uint64()),
        ("size_bytes", pa.uint64()),
        ("tags", pa.list_(pa.string())),
    ]
)


@dataclass(frozen=True, slots=True)
class VersionInfo:
    """One version of a branch: when, what was done, and how much there is.

    ``timestamp`` is aware (UTC). ``size_bytes`` adds up the data files whose size is recorded.
    """

    version: int
    timestamp: datetime | None
    num_rows: int
    num_deleted_rows: int
    num_fragments: int
    num_data_files: int
    num_deletion_files: int
    size_bytes: int
    operation: str | None = None
    message: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    tags: tuple[str, ...] = ()

    def as_pylance(self) -> dict[str, Any]:
        """Return the dict that pylance's ``versions()`` has for it; the time is naive and local."""
        timestamp = self.timestamp or datetime.fromtimestamp(0, UTC)
        counts = {
            "total_data_file_rows": self.num_rows + self.num_deleted_rows,
            "total_data_files": self.num_data_files,
            "total_deletion_file_rows": self.num_deleted_rows,
            "total_deletion_files": self.num_deletion_files,
            "total_files_size": self.size_bytes,
            "total_fragments": self.num_fragments,
            "total_rows": self.num_rows,
        }
        return {
            "version": self.version,
            "timestamp": timestamp.astimezone().replace(tzinfo=None),
            "metadata": {name: str(count) for name, count in counts.items()},
        }
