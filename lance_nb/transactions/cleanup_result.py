"""What a clean-up has done, or would do: values to read and to print.

Source: ``CleanupStats``, ``CleanupExplanation`` and the others of pylance 14.0.2, with the same
fields; ``reason``, ``version`` and ``to_table`` are ours. Paths are below the dataset's root (there
they begin at the root of the store).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from lance_nb.format.manifest_files import DATA, DELETION, INDEX, TRANSACTION
from lance_nb.table.cleanup_plan import Candidate, CleanupPlan
from lance_nb.table.stored_files import MANIFEST
from lance_nb.table.survey import Survey

CANDIDATES = pa.schema(
    [
        ("path", pa.string()),
        ("kind", pa.string()),
        ("size_bytes", pa.uint64()),
        ("unverified", pa.bool_()),
        ("version", pa.uint64()),
        ("reason", pa.string()),
    ]
)
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class CleanupStats:
    """What was deleted. Manifests count as old versions; blobs as data files."""

    bytes_removed: int = 0
    old_versions: int = 0
    data_files_removed: int = 0
    transaction_files_removed: int = 0
    index_files_removed: int = 0
    deletion_files_removed: int = 0
    failed_deletes: int = 0


@dataclass(frozen=True, slots=True)
class CleanupCandidateFile:
    """One file that would be deleted, and why.

    ``unverified``: no version that was read refers to it. ``version``: the newest version that
    does.
    """

    path: str
    kind: str
    unverified: bool
    size_bytes: int
    version: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class CleanupReferencedBranch:
    """A branch that started from a version of this one, which therefore stays."""

    name: str
    referenced_version: int
    cleanup_candidate: bool


@dataclass(frozen=True, slots=True, repr=False)
class CleanupExplanation:
    """What a clean-up would delete. ``stats`` counts all of it, listed or not."""

    read_version: int
    stats: CleanupStats
    candidate_files: list[CleanupCandidateFile] = field(default_factory=list)
    candidate_files_truncated: bool = False
    candidate_file_limit: int | None = None
    referenced_branches: list[CleanupReferencedBranch] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def to_table(self) -> pa.Table:
        """Return the listed files as Arrow: path, kind, bytes, unverified, version, reason."""
        rows = [
            {name: getattr(one, name) for name in CANDIDATES.names} for one in self.candidate_files
        ]
        return pa.Table.from_pylist(rows, schema=CANDIDATES)

    def __repr__(self) -> str:
        stats = self.stats
        files = sum(
            (
                stats.data_files_removed,
                stats.transaction_files_removed,
                stats.index_files_removed,
                stats.deletion_files_removed,
            )
        )
        freed = f"{stats.bytes_removed:,} bytes: {stats.old_versions} versions and {files} files"
        lines = [f"cleanup seen from version {self.read_version} would free {freed}"]
        lines += [
            f"  {one.size_bytes:>14,}  {one.path}  ({one.reason})"
            for one in self.candidate_files[:_SHOWN]
        ]
        left = len(self.candidate_files) - _SHOWN
        lines += [f"  ... and {left} more: to_table() lists them"] if left > 0 else []
        lines += [
            f"  version {one.referenced_version} stays: branch {one.name!r} started from it"
            for one in self.referenced_branches
        ]
        return "\n".join([*lines, *(f"  {text}" for text in self.warnings)])


def stats_of(deleted: Iterable[Candidate], num_failed: int = 0) -> CleanupStats:
    """Count what was deleted."""
    kinds: Counter[str] = Counter()
    size_bytes = 0
    for one in deleted:
        kinds[one.file.kind] += 1
        size_bytes += one.file.size_bytes
    return CleanupStats(
        size_bytes,
        kinds[MANIFEST],
        kinds[DATA],
        kinds[TRANSACTION],
        kinds[INDEX],
        kinds[DELETION],
        num_failed,
    )


def explanation_of(
    plan: CleanupPlan,
    survey: Survey,
    read_version: int,
    *,
    max_files: int | None = None,
    include_files: bool = True,
) -> CleanupExplanation:
    """Describe a plan, with at most ``max_files`` files (None: all of them)."""
    candidates = plan.candidates
    listed = candidates[:max_files] if include_files else ()
    is_truncated = include_files and len(listed) < len(candidates)
    forks = survey.fork_versions(survey.lines[plan.folder].branch)
    branches = [
        CleanupReferencedBranch(name, version, False)
        for version, names in sorted(forks.items())
        for name in names
    ]
    return CleanupExplanation(
        read_version,
        stats_of(candidates),
        [
            CleanupCandidateFile(
                one.file.path,
                one.file.kind,
                one.unverified,
                one.file.size_bytes,
                one.version,
                one.reason,
            )
            for one in listed
        ],
        is_truncated,
        max_files,
        branches,
        [f"candidate_files truncated to {max_files} entries"] if is_truncated else [],
    )
