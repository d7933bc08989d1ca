"""Compact a dataset in one call: plan on the version that is open, rewrite, commit once.

Source: ``LanceDataset.optimize.compact_files`` of pylance 14.0.2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lance_nb.dataset.session import Session
from lance_nb.dataset.verbs.committing import commit_operation, place_of, replanned
from lance_nb.dataset.verbs.writing import file_version_of
from lance_nb.errors import InvalidInputError, NotSupportedError
from lance_nb.table.snapshot import Snapshot
from lance_nb.table.storage_version import storage_version
from lance_nb.transactions.compaction import (
    CompactionMetrics,
    CompactionOptions,
    metrics_of,
    plan_compaction,
    rewrite_of,
    run_task,
)
from lance_nb.transactions.version_source import VersionSource

Progress = Callable[[int, int], None]

# Arguments of pylance's that tune how it works and cannot change the rows.
_WITHOUT_EFFECT = frozenset({"max_rows_per_group", "num_threads", "batch_size"})
_REFUSED = frozenset({
    "defer_index_remap", "compaction_mode", "binary_copy_read_batch_bytes", "max_source_fragments",
    "max_source_rows", "max_source_bytes", "data_storage_version",
})  # fmt: skip


def options_of(given: dict[str, Any]) -> CompactionOptions:
    """Read the arguments of ``compact_files``; None means the default.

    Raises InvalidInputError, NotSupportedError.
    """
    known: dict[str, Any] = {}
    for name, value in given.items():
        if name in _REFUSED and value not in (None, False, "reencode"):
            raise NotSupportedError(f"compact_files: {name}={value!r} is not supported")
        if name in _WITHOUT_EFFECT or name in _REFUSED or value is None:
            continue
        if name not in CompactionOptions.__dataclass_fields__:
            raise InvalidInputError(f"compact_files takes no argument {name!r}")
        known[name] = frozenset(value) if name == "excluded_fragment_ids" else value
    return CompactionOptions(**known)


def compact(
    session: Session,
    snapshot: Snapshot,
    options: CompactionOptions,
    progress: Progress | None = None,
) -> tuple[Snapshot, CompactionMetrics]:
    """Compact and commit; nothing to do makes no version.

    Raises NotSupportedError, CommitConflictError, TooMuchWriteContentionError.
    """

    def attempt(base: Snapshot) -> tuple[Snapshot, CompactionMetrics]:
        indices = VersionSource(place_of(session, base.branch).slots).load(base.version).indices
        tasks = plan_compaction(base, indices, options)
        if not tasks:
            return base, CompactionMetrics()
        version = file_version_of(storage_version(base.manifest))
        told = _Told(sum(task.num_rows for task in tasks), progress)
        groups = [run_task(base, task, options, version, told.add) for task in tasks]
        return commit_operation(session, base, rewrite_of(groups)), metrics_of(groups)

    return replanned(session, snapshot, attempt)


class _Told:
    """Adds up rows and tells (rows done, rows in all)."""

    def __init__(self, num_rows: int, progress: Progress | None) -> None:
        self._num_rows = num_rows
        self._progress = progress
        self._done = 0

    def add(self, num_rows: int) -> None:
        """Count rows."""
        self._done += num_rows
        if self._progress is not None:
            self._progress(self._done, self._num_rows)
