"""Compaction, in one call or in steps, and other changes of how a dataset is stored.

    ds.optimize.compact_files()

    plan = Compaction.plan(ds, {"target_rows_per_fragment": 1_000_000})
    results = [task.execute(ds) for task in plan.tasks]   # in threads, processes, on other machines
    Compaction.commit(ds, results)

Plans, tasks and results are values: they pickle, and their JSON is pylance's, so that either
library runs the tasks that the other planned.

Limits: a task needs the dataset at its ``uri`` and branch, at a version that still exists.
Source: ``lance.optimize`` and ``LanceDataset.optimize`` of pylance 14.0.2.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from lance_nb.errors import InvalidInputError
from lance_nb.format.fragment import Fragment
from lance_nb.indices.building import ProgressCallback
from lance_nb.value_classes import dataclass
from lance_nb.writing import compaction
from lance_nb.writing.compaction import CompactionMetrics, CompactionOptions, Rewritten
from lance_nb.writing.compaction import CompactionTask as _Task
from lance_nb.writing.progress import Progress

if TYPE_CHECKING:
    from lance_nb.dataset.dataset import LanceDataset

_NOT_OPTIONS = frozenset({"self", "progress"})


class DatasetOptimizer:
    """Maintenance of one dataset. Created by ``LanceDataset.optimize``.

    Examples:
        >>> metrics = ds.optimize.compact_files()
        >>> metrics.fragments_removed, metrics.fragments_added
        (2, 1)
    """

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
        """Merge small fragments and drop deleted rows, as one new version; rows stay in order.

        Defaults may stand in the dataset's configuration, under ``lance.compaction.`` and the name.
        An interrupt leaves the dataset as it was, and no new file.

        Unlike pylance, files of indices are not rewritten. Where an index needs it, the moves of
        rows are recorded in the fragment-reuse index (as pylance does with
        ``defer_index_remap=True``): indices stay in use, and two versions are made instead of one.
        Fragments with deleted rows stay as they are where an HNSW index covers them.

        Args:
            target_rows_per_fragment: fragments with fewer live rows join their neighbours
                (1,048,576).
            max_bytes_per_file: where a new file begins.
            materialize_deletions: rewrite fragments with many deleted rows (True).
            materialize_deletions_threshold: the share of deleted rows above which (0.1).
            defer_index_remap: False records no moves: the rows leave the coverage of indices until
                those are optimized, and a vector index that covers nothing any more is dropped.
            batch_size: rows read at a time.
            max_source_fragments, max_source_rows, max_source_bytes: the most that is rewritten.
            excluded_fragment_ids: fragments that stay.
            data_storage_version: of the new files; the dataset's own by default.
            progress: called with rows done and rows in all. Not in pylance.
            max_rows_per_group, num_threads, compaction_mode, binary_copy_read_batch_bytes: tune
                pylance's work and change nothing; a forced binary copy is refused.

        Raises InvalidInputError, NotSupportedError (blob columns, forced binary copies),
        CommitConflictError, TooMuchWriteContentionError.

        Examples:
            >>> ds.optimize.compact_files(target_rows_per_fragment=1000).fragments_removed
            2
            >>> len(ds.get_fragments())
            1
        """
        given_options = {
            name: value for name, value in locals().items() if name not in _NOT_OPTIONS
        }
        return self._dataset._compact(given_options, progress)  # noqa: SLF001

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

        Examples:
            >>> ds.optimize.plan_compaction(target_rows_per_fragment=1000).num_tasks()
            1
        """
        options = {name: value for name, value in locals().items() if name not in _NOT_OPTIONS}
        return Compaction.plan(self._dataset, options)

    def commit_compaction(
        self, rewrites: Iterable[RewriteResult], *, defer_index_remap: bool | None = None
    ) -> CompactionMetrics:
        """Commit what the tasks of a plan returned, all or some of them.

        Args:
            rewrites: the results.
            defer_index_remap: as for ``compact_files``.

        Raises RetryableCommitConflictError when others changed a fragment that was rewritten.

        Examples:
            >>> plan = ds.optimize.plan_compaction(target_rows_per_fragment=1000)
            >>> rewrites = [task.execute(ds) for task in plan.tasks]
            >>> ds.optimize.commit_compaction(rewrites).fragments_added
            1
        """
        options = {"defer_index_remap": defer_index_remap}
        return self._dataset._commit_compaction(rewrites, options)  # noqa: SLF001

    def cleanup_frag_reuse_index(self) -> int:
        """Remove row mappings that no index needs; return the number of removed compactions.

        Compactions record moves for indices built before them; an index that was built anew needs
        them no longer. pylance has this in its Rust library only.

        Examples:
            >>> ds.optimize.cleanup_frag_reuse_index()
            0
        """
        return self._dataset._cleanup_reuse()  # noqa: SLF001

    def enable_auto_cleanup(self, auto_cleanup_config: Mapping[str, int]) -> None:
        """Clean up old versions automatically.

        Whoever commits a version whose number is a multiple of the interval cleans up, also
        pylance.

        Args:
            auto_cleanup_config: "interval" in versions and "older_than_seconds"; see
                ``AutoCleanupConfig``.

        Raises InvalidInputError.

        Examples:
            >>> ds.optimize.enable_auto_cleanup({"interval": 20, "older_than_seconds": 3600})
            >>> ds.config()["lance.auto_cleanup.interval"]
            '20'
        """
        from lance_nb.table import retention

        self._dataset.update_config(retention.auto_cleanup_config(auto_cleanup_config))

    def disable_auto_cleanup(self) -> None:
        """Disable the automatic clean-up of old versions.

        Examples:
            >>> ds.optimize.disable_auto_cleanup()
            >>> "lance.auto_cleanup.interval" in ds.config()
            False
        """
        from lance_nb.table import retention

        keys = [retention.INTERVAL, retention.OLDER_THAN]
        self._dataset.delete_config_keys(keys)

    def optimize_indices(
        self,
        *,
        num_indices_to_merge: int | None = None,
        index_names: Sequence[str] | None = None,
        retrain: bool = False,
        progress_callback: ProgressCallback | None = None,
    ) -> None:
        """Extend indices to fragments that they do not cover; one commit for all of them.

        Args:
            num_indices_to_merge: how many of the last segments become one with the new fragments:
                1 by default; 0 makes a new segment of the new fragments alone. From 2 on segments
                are merged also when there are no new fragments.
            index_names: only these; all indices by default. One that cannot be built here is left
                as it is with a warning, or refused when it is named.
            retrain: build each index anew, as one segment, with the parameters that it has.
            progress_callback: called with ``IndexProgress`` events; what it raises ends the work,
                and no file is left.

        Raises IndexNotFoundError, InvalidInputError, NotSupportedError.

        Examples:
            >>> ds.create_scalar_index("id", "BTREE")
            >>> ds.insert(ds.to_table(limit=3))
            >>> ds.optimize.optimize_indices()
            >>> ds.index_statistics("id_idx")["num_unindexed_rows"]
            0
        """
        self._dataset._optimize_indices(  # noqa: SLF001
            index_names, num_indices_to_merge, retrain=retrain, progress=progress_callback
        )


__all__ = [
    "Compaction",
    "CompactionMetrics",
    "CompactionOptions",
    "CompactionPlan",
    "CompactionTask",
    "RewriteResult",
]

# What pylance's JSON has beside the options, with the values it gives them.
_MORE_OPTIONS: Mapping[str, Any] = {
    "index_remap_mode": "Direct",
    "enable_binary_copy": False,
    "enable_binary_copy_force": False,
    "max_overlays_per_fragment": 10,
    "has_eager_remappable_index": None,
}


@dataclass(frozen=True, slots=True)
class RewriteResult:
    """The uncommitted files of a task. ``row_addrs`` records which rows moved.

    Examples:
        >>> task = ds.optimize.plan_compaction().tasks[0]
        >>> result = task.execute(ds)
        >>> result.read_version, result.metrics.fragments_removed
        (1, 2)
        >>> len(result.original_fragments), len(result.new_fragments)
        (2, 1)
        >>> lance_nb.RewriteResult.from_json(result.json()) == result
        True
    """

    rewritten: Rewritten

    @property
    def read_version(self) -> int:
        """The version the rows were read from."""
        return self.rewritten.read_version

    @property
    def metrics(self) -> CompactionMetrics:
        """The numbers of files and fragments that were replaced and written."""
        return self.rewritten.metrics

    @property
    def original_fragments(self) -> list[Fragment]:
        """The fragments that were rewritten."""
        return list(self.rewritten.old_fragments)

    @property
    def new_fragments(self) -> list[Fragment]:
        """The fragments that were written, with id 0."""
        return list(self.rewritten.new_fragments)

    def json(self) -> str:
        """Return it as JSON."""
        rows = self.rewritten.row_addrs
        value = {
            "metrics": {
                field.name: getattr(self.metrics, field.name) for field in fields(self.metrics)
            },
            "new_fragments": [
                new_fragment.to_json() for new_fragment in self.rewritten.new_fragments
            ],
            "read_version": self.read_version,
            "original_fragments": [
                old_fragment.to_json() for old_fragment in self.rewritten.old_fragments
            ],
            "row_addrs": None if rows is None else list(rows),
        }
        return json.dumps(value, separators=(",", ":"))

    @classmethod
    def from_json(cls, json: str) -> RewriteResult:
        """Read what ``json`` returned.

        Args:
            json: the text, which may come from another process; it is checked.

        Raises InvalidInputError.
        """
        value = _parsed(json, "original_fragments", "new_fragments", "read_version")
        rows = value.get("row_addrs")
        return cls(
            Rewritten(
                int(value["read_version"]),
                tuple(Fragment.from_dict(fragment) for fragment in value["original_fragments"]),
                tuple(Fragment.from_dict(fragment) for fragment in value["new_fragments"]),
                None if rows is None else bytes(rows),
            )
        )


@dataclass(frozen=True, slots=True)
class CompactionTask:
    """Fragments to rewrite together; a value that can be sent to a worker.

    Examples:
        >>> task = ds.optimize.plan_compaction().tasks[0]
        >>> task.read_version, len(task.fragments), task.num_rows
        (1, 2, 10)
        >>> lance_nb.CompactionTask.from_json(task.json()) == task
        True
        >>> task.execute(ds).metrics.fragments_added
        1
    """

    task: _Task
    options: CompactionOptions

    @property
    def read_version(self) -> int:
        """The version it was planned on."""
        return self.task.read_version

    @property
    def fragments(self) -> list[Fragment]:
        """The fragments to rewrite."""
        return list(self.task.fragments)

    @property
    def num_rows(self) -> int:
        """Rows that are read and written."""
        return self.task.num_rows

    def execute(self, dataset: LanceDataset, progress: Progress | None = None) -> RewriteResult:
        """Write the new files; nothing is committed.

        Args:
            dataset: the dataset, at any version of the same branch.
            progress: called with rows done and rows in all. Not in pylance.

        Raises InvalidInputError for another dataset, StorageError; no new file remains then.
        """
        session, snapshot = dataset.opened
        result = compaction.execute(
            session, snapshot, self.task, options=self.options, progress=progress
        )
        return RewriteResult(result)

    def json(self) -> str:
        """Return it as JSON."""
        value = {
            "task": {"fragments": [fragment.to_json() for fragment in self.task.fragments]},
            "read_version": self.read_version,
            "options": _options_json(self.options),
        }
        return json.dumps(value, separators=(",", ":"))

    @classmethod
    def from_json(cls, json: str) -> CompactionTask:
        """Read what ``json`` returned.

        Args:
            json: the text, which may come from another process; it is checked.

        Raises InvalidInputError.
        """
        value = _parsed(json, "task", "read_version", "options")
        return _task_of(value["task"], int(value["read_version"]), _options_of(value["options"]))


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """The tasks of a compaction.

    Examples:
        >>> plan = ds.optimize.plan_compaction()
        >>> plan.num_tasks(), plan.read_version
        (1, 1)
        >>> lance_nb.CompactionPlan.from_json(plan.json()) == plan
        True
    """

    read_version: int
    tasks: tuple[CompactionTask, ...]
    options: CompactionOptions

    def num_tasks(self) -> int:
        """Return how many tasks there are."""
        return len(self.tasks)

    def json(self) -> str:
        """Return it as JSON."""
        value = {
            "tasks": [
                {"fragments": [fragment.to_json() for fragment in task.task.fragments]}
                for task in self.tasks
            ],
            "read_version": self.read_version,
            "options": _options_json(self.options),
        }
        return json.dumps(value, separators=(",", ":"))

    @classmethod
    def from_json(cls, json: str) -> CompactionPlan:
        """Read what ``json`` returned.

        Args:
            json: the text, which may come from another process; it is checked.

        Raises InvalidInputError.
        """
        value = _parsed(json, "tasks", "read_version", "options")
        version, options = int(value["read_version"]), _options_of(value["options"])
        tasks = tuple(_task_of(task, version, options) for task in value["tasks"])
        return cls(version, tasks, options)


class Compaction:
    """The steps of a compaction as functions; ``ds.optimize`` has them as methods.

    Examples:
        >>> plan = lance_nb.Compaction.plan(ds, {"target_rows_per_fragment": 1000})
        >>> rewrites = [task.execute(ds) for task in plan.tasks]
        >>> lance_nb.Compaction.commit(ds, rewrites).fragments_removed
        2
        >>> lance_nb.Compaction.execute(ds).fragments_removed
        0
    """

    @staticmethod
    def plan(dataset: LanceDataset, options: Mapping[str, Any] | None = None) -> CompactionPlan:
        """Plan a compaction.

        Args:
            dataset: the dataset.
            options: as the arguments of ``ds.optimize.compact_files``.

        Raises InvalidInputError, NotSupportedError.
        """
        snapshot = dataset.opened[1]
        compaction_options = CompactionOptions.of(options or {}, snapshot.manifest.config)
        tasks = tuple(
            CompactionTask(task, compaction_options)
            for task in compaction.plan(snapshot, compaction_options)
        )
        return CompactionPlan(snapshot.version, tasks, compaction_options)

    @staticmethod
    def execute(
        dataset: LanceDataset, options: Mapping[str, Any] | None = None
    ) -> CompactionMetrics:
        """Plan, run and commit, as ``ds.optimize.compact_files`` does.

        Args:
            dataset: the dataset, which moves to the new version.
            options: as the arguments of ``ds.optimize.compact_files``.

        Raises as it does.
        """
        return dataset._compact(options or {}, None)  # noqa: SLF001 - the same floor

    @staticmethod
    def commit(
        dataset: LanceDataset,
        rewrites: Iterable[RewriteResult],
        options: Mapping[str, Any] | None = None,
    ) -> CompactionMetrics:
        """Commit results, all of a plan or some.

        Args:
            dataset: the dataset, which moves to the new version.
            rewrites: the results.
            options: only ``defer_index_remap`` matters here.

        Raises RetryableCommitConflictError when others changed a fragment that was rewritten: plan
        again.
        """
        return dataset._commit_compaction(rewrites, options or {})  # noqa: SLF001 - the same floor


def _task_of(value: Any, version: int, options: CompactionOptions) -> CompactionTask:
    try:
        described = value["fragments"]
    except (KeyError, TypeError) as error:
        raise InvalidInputError(f"not the JSON of a compaction task: {value!r:.200}") from error
    fragments = tuple(Fragment.from_dict(fragment) for fragment in described)
    return CompactionTask(_Task(version, fragments), options)


def _options_json(options: CompactionOptions) -> dict[str, Any]:
    values = {field.name: getattr(options, field.name) for field in fields(options)}
    values["excluded_fragment_ids"] = sorted(options.excluded_fragment_ids)
    values["defer_index_remap"] = bool(options.defer_index_remap)
    mode = options.compaction_mode
    values["compaction_mode"] = (
        None if mode is None else "".join(part.capitalize() for part in mode.split("_"))
    )
    return values | dict(_MORE_OPTIONS)


def _options_of(value: Any) -> CompactionOptions:
    if not isinstance(value, dict):
        raise InvalidInputError(
            f"the options of a compaction must be a JSON object, not {value!r:.200}"
        )
    values = {key: option for key, option in value.items() if key not in _MORE_OPTIONS}
    values["defer_index_remap"] = (
        values.get("defer_index_remap") or None
    )  # false is the default there
    mode = values.get("compaction_mode")
    if isinstance(mode, str):
        values["compaction_mode"] = "".join(
            f"_{character.lower()}" if character.isupper() else character for character in mode
        ).lstrip("_")
    return CompactionOptions.of(values, {})


def _parsed(text: str, *keys: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise InvalidInputError(f"not JSON: {error}") from error
    if not isinstance(value, dict) or any(key not in value for key in keys):
        raise InvalidInputError(f"expected an object with the keys {', '.join(keys)}")
    return value
