"""ds.optimize: verbs that change how a dataset is stored, not what it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from lance_nb import table
from lance_nb.code_lines import Python
from lance_nb.dataset import verbs
from lance_nb.errors import NotSupportedError

if TYPE_CHECKING:
    from lance_nb.dataset.dataset import LanceDataset
    from lance_nb.dataset.verbs.compaction_steps import CompactionPlan, RewriteResult
    from lance_nb.transactions.compaction_run import CompactionMetrics

Progress = Callable[[int, int], object]

_NOT_OPTIONS = frozenset({"self", "progress"})


class DatasetOptimizer:
    """Maintenance of one dataset. Created by ``LanceDataset.optimize``."""

    def __init__(self, dataset: LanceDataset) -> None:
        self._dataset = dataset

    def compact_files(
        self,
        *,
        target_rows_per_fragment: int | None = None,
        max_rows_per_group: int | None = None,
        max_bytes_per_file: int | None = None,
        materialize_deletions: bool | None = None,
        materialize_deletions_threshold: float | None = None,
        defer_index_remap: bool | None = None,
        num_threads: int | None = None,
        batch_size: int | None = None,
        compaction_mode: str | None = None,
        binary_copy_read_batch_bytes: int | None = None,
        max_source_fragments: int | None = None,
        max_source_rows: int | None = None,
        max_source_bytes: int | None = None,
        excluded_fragment_ids: Sequence[int] | None = None,
        data_storage_version: str | None = None,
        progress: Progress | None = None,
    ) -> CompactionMetrics:
        """Join small fragments and drop deleted rows, as one new version; rows stay in order.

        Fragments with fewer than ``target_rows_per_fragment`` live rows (default 1,048,576) join
        their neighbours; those with a larger share of deleted rows than the threshold (default
        0.1) are rewritten. Defaults may stand in the dataset's configuration, under
        ``lance.compaction.`` and the name. ``progress`` (our own argument) is called with rows done
        and rows in all; an interrupt leaves the dataset as it was, and no new file.

        Unlike pylance, files of indices are not rewritten. Where an index needs it, the moves of
        rows are recorded in the fragment-reuse index (as pylance does with
        ``defer_index_remap=True``): indices stay in use, and two versions are made instead of one.
        Fragments with deleted rows stay as they are where an HNSW index covers them.
        ``defer_index_remap=False`` records nothing: the rows leave the coverage of indices until
        those are optimized, and a vector index that covers nothing any more is dropped. Arguments
        that only tune pylance's own work change nothing here.

        Raises InvalidInputError, NotSupportedError (blob columns, files of another version, forced
        binary copies), CommitConflictError, TooMuchWriteContentionError.
        """
        given = {name: value for name, value in locals().items() if name not in _NOT_OPTIONS}
        return self._dataset._compact(given, progress)  # noqa: SLF001

    def plan_compaction(
        self,
        *,
        target_rows_per_fragment: int | None = None,
        max_rows_per_group: int | None = None,
        max_bytes_per_file: int | None = None,
        materialize_deletions: bool | None = None,
        materialize_deletions_threshold: float | None = None,
        defer_index_remap: bool | None = None,
        num_threads: int | None = None,
        batch_size: int | None = None,
        compaction_mode: str | None = None,
        binary_copy_read_batch_bytes: int | None = None,
        max_source_fragments: int | None = None,
        max_source_rows: int | None = None,
        max_source_bytes: int | None = None,
        excluded_fragment_ids: Sequence[int] | None = None,
        data_storage_version: str | None = None,
    ) -> CompactionPlan:
        """Plan a compaction without running it; the arguments are those of ``compact_files``.

        Example::

            plan = ds.optimize.plan_compaction(target_rows_per_fragment=1000)
            plan.num_tasks()
        """
        options = {name: value for name, value in locals().items() if name not in _NOT_OPTIONS}
        return verbs.compaction_steps.Compaction.plan(self._dataset, options)

    def commit_compaction(
        self, rewrites: Iterable[RewriteResult], *, defer_index_remap: bool | None = None
    ) -> CompactionMetrics:
        """Commit what the tasks of a plan returned, all or some of them.

        ``defer_index_remap``: as for ``compact_files``. Raises RetryableCommitConflictError when
        others changed a fragment that was rewritten.
        """
        options = {"defer_index_remap": defer_index_remap}
        return self._dataset._commit_compaction(rewrites, options)  # noqa: SLF001

    def cleanup_frag_reuse_index(self) -> int:
        """Forget moves of rows that no index needs any more; return how many compactions' moves.

        Compactions record moves for indices built before them; an index that was built anew needs
        them no longer. pylance has this in its Rust library only.
        """
        return self._dataset._cleanup_reuse()  # noqa: SLF001

    def enable_auto_cleanup(self, auto_cleanup_config: Mapping[str, int]) -> None:
        """Clean up old versions by itself: every ``interval`` versions those that are older.

        ``auto_cleanup_config`` has "interval" and "older_than_seconds". Whoever commits a version
        whose number is a multiple of the interval cleans up, also pylance.
        """
        self._dataset.update_config(table.auto_cleanup.settings(auto_cleanup_config))

    def disable_auto_cleanup(self) -> None:
        """Clean up only when asked to."""
        keys = [table.auto_cleanup.INTERVAL, table.auto_cleanup.OLDER_THAN]
        self._dataset.delete_config_keys(keys)

    def optimize_indices(self, **_parameters: Any) -> NoReturn:
        """Raise NotSupportedError: indices are built and extended by pylance."""
        opened = Python("lance.dataset").call(self._dataset.uri)
        made = opened.attribute("optimize.optimize_indices").call()
        raise NotSupportedError(
            "indices cannot be extended here yet; rows they do not cover are found by scanning "
            "(ds.index_coverage() shows which). Where pylance is installed, "
            f"{made.code} extends them"
        )
