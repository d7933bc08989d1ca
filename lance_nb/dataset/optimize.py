"""ds.optimize: verbs that change how a dataset is stored, not what it holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lance_nb.dataset import verbs
from lance_nb.dataset.opened import OpenedVersion

if TYPE_CHECKING:
    from lance_nb.transactions.compaction import CompactionMetrics


class Optimize:
    """Maintenance of one dataset. Created by ``LanceDataset.optimize``."""

    def __init__(self, run: Callable[[Any, Any], CompactionMetrics]) -> None:
        self._run = run

    def compact_files(
        self,
        *,
        target_rows_per_fragment: int | None = None,
        materialize_deletions: bool | None = None,
        materialize_deletions_threshold: float | None = None,
        progress: Callable[[int, int], None] | None = None,
        **options: Any,
    ) -> CompactionMetrics:
        """Join small fragments and drop deleted rows, as one new version; rows stay in order.

        Fragments with fewer than ``target_rows_per_fragment`` live rows (default 1,048,576) join
        their neighbours; those with a larger share of deleted rows than the threshold (default
        0.1) are rewritten. ``progress`` (our own argument) is called with rows done and rows in
        all. Unlike pylance, files of indices are not rewritten: without stable row ids, compacted
        rows are no longer covered by them until they are optimized. Other arguments as pylance's,
        or refused. Raises NotSupportedError, CommitConflictError, TooMuchWriteContentionError.
        """
        wanted = verbs.compacting.options_of(
            {
                "target_rows_per_fragment": target_rows_per_fragment,
                "materialize_deletions": materialize_deletions,
                "materialize_deletions_threshold": materialize_deletions_threshold,
                **options,
            }
        )
        return self._run(wanted, progress)


class Optimizing(OpenedVersion):
    """Maintenance verbs."""

    @property
    def optimize(self) -> Optimize:
        """Compaction of this dataset."""
        return Optimize(self._compact)

    def _compact(self, options: Any, progress: Any) -> CompactionMetrics:
        self._snapshot, metrics = verbs.compacting.compact(
            self._session, self._snapshot, options, progress
        )
        return metrics
