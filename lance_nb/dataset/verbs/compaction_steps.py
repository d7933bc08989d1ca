"""Compaction in steps: plan here, run the tasks anywhere, commit here.

    plan = Compaction.plan(ds, {"target_rows_per_fragment": 1_000_000})
    results = [task.execute(ds) for task in plan.tasks]   # in threads, processes, on other machines
    Compaction.commit(ds, results)

Plans, tasks and results are values: they pickle, and their JSON is pylance's, so that either
library runs the tasks that the other planned.

Limits: a task needs the dataset at its ``uri`` and branch, at a version that is still there.
Source: ``lance.optimize`` of pylance 14.0.2.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from lance_nb.dataset.session import Session
from lance_nb.dataset.verbs import compacting
from lance_nb.errors import InvalidInputError
from lance_nb.format.fragment import Fragment
from lance_nb.table.snapshot import Snapshot
from lance_nb.transactions.compaction import CompactionTask as _Task
from lance_nb.transactions.compaction_options import CompactionOptions
from lance_nb.transactions.compaction_run import CompactionMetrics, Rewritten

if TYPE_CHECKING:
    from lance_nb.dataset.dataset import LanceDataset

__all__ = [
    "Compaction",
    "CompactionMetrics",
    "CompactionOptions",
    "CompactionPlan",
    "CompactionTask",
    "RewriteResult",
]

Progress = Callable[[int, int], object]

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
    """What a task wrote; not committed yet. ``row_addrs`` tells which rows moved."""

    rewritten: Rewritten

    @property
    def read_version(self) -> int:
        """The version the rows were read from."""
        return self.rewritten.read_version

    @property
    def metrics(self) -> CompactionMetrics:
        """What it replaces."""
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
            "metrics": {one.name: getattr(self.metrics, one.name) for one in fields(self.metrics)},
            "new_fragments": [one.to_json() for one in self.rewritten.new_fragments],
            "read_version": self.read_version,
            "original_fragments": [one.to_json() for one in self.rewritten.old_fragments],
            "row_addrs": None if rows is None else list(rows),
        }
        return json.dumps(value, separators=(",", ":"))

    @classmethod
    def from_json(cls, json: str) -> RewriteResult:
        """Read what ``json`` returned. Raises InvalidInputError."""
        value = _parsed(json, "original_fragments", "new_fragments", "read_version")
        rows = value.get("row_addrs")
        return cls(
            Rewritten(
                int(value["read_version"]),
                tuple(Fragment.from_dict(one) for one in value["original_fragments"]),
                tuple(Fragment.from_dict(one) for one in value["new_fragments"]),
                None if rows is None else bytes(rows),
            )
        )


@dataclass(frozen=True, slots=True)
class CompactionTask:
    """Fragments to rewrite together; a value that can be sent to a worker."""

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

        ``progress`` (our own argument) is called with rows done and rows in all. Raises
        InvalidInputError for another dataset, StorageError; no new file remains then.
        """
        session, snapshot = dataset.opened
        made = compacting.execute(session, snapshot, self.task, self.options, progress)
        return RewriteResult(made)

    def json(self) -> str:
        """Return it as JSON."""
        value = {
            "task": {"fragments": [one.to_json() for one in self.task.fragments]},
            "read_version": self.read_version,
            "options": _options_json(self.options),
        }
        return json.dumps(value, separators=(",", ":"))

    @classmethod
    def from_json(cls, json: str) -> CompactionTask:
        """Read what ``json`` returned. Raises InvalidInputError."""
        value = _parsed(json, "task", "read_version", "options")
        return _task_of(value["task"], int(value["read_version"]), _options_of(value["options"]))


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """The tasks of a compaction."""

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
                {"fragments": [one.to_json() for one in task.task.fragments]} for task in self.tasks
            ],
            "read_version": self.read_version,
            "options": _options_json(self.options),
        }
        return json.dumps(value, separators=(",", ":"))

    @classmethod
    def from_json(cls, json: str) -> CompactionPlan:
        """Read what ``json`` returned. Raises InvalidInputError."""
        value = _parsed(json, "tasks", "read_version", "options")
        version, options = int(value["read_version"]), _options_of(value["options"])
        tasks = tuple(_task_of(one, version, options) for one in value["tasks"])
        return cls(version, tasks, options)


class Compaction:
    """The steps of a compaction as functions; ``ds.optimize`` has them as methods."""

    @staticmethod
    def plan(dataset: LanceDataset, options: Mapping[str, Any] | None = None) -> CompactionPlan:
        """Plan a compaction. ``options`` as the arguments of ``ds.optimize.compact_files``.

        Raises InvalidInputError, NotSupportedError.
        """
        snapshot = dataset.opened[1]
        wanted = CompactionOptions.of(options or {}, snapshot.manifest.config)
        tasks = tuple(CompactionTask(one, wanted) for one in compacting.plan(snapshot, wanted))
        return CompactionPlan(snapshot.version, tasks, wanted)

    @staticmethod
    def execute(
        dataset: LanceDataset, options: Mapping[str, Any] | None = None
    ) -> CompactionMetrics:
        """Plan, run and commit, as ``ds.optimize.compact_files`` does."""
        return dataset._compact(options or {}, None)  # noqa: SLF001 - the same floor

    @staticmethod
    def commit(
        dataset: LanceDataset,
        rewrites: Iterable[RewriteResult],
        options: Mapping[str, Any] | None = None,
    ) -> CompactionMetrics:
        """Commit results, all of a plan or some; ``dataset`` moves to the new version.

        Of ``options`` only ``defer_index_remap`` matters here. Raises RetryableCommitConflictError
        when others changed a fragment that was rewritten: plan again.
        """
        return dataset._commit_compaction(rewrites, options or {})  # noqa: SLF001 - the same floor


def compact(
    session: Session, snapshot: Snapshot, given: Mapping[str, Any], progress: Progress | None
) -> tuple[Snapshot, CompactionMetrics]:
    """Compact with options as users give them."""
    options = CompactionOptions.of(given, snapshot.manifest.config)
    return compacting.compact(session, snapshot, options, progress)


def commit(
    session: Session,
    snapshot: Snapshot,
    rewrites: Iterable[RewriteResult],
    given: Mapping[str, Any],
) -> tuple[Snapshot, CompactionMetrics]:
    """Commit results with options as users give them."""
    options = CompactionOptions.of(given, snapshot.manifest.config)
    results = [one.rewritten for one in rewrites]
    return compacting.commit(session, snapshot.branch, results, options)


def _task_of(value: Any, version: int, options: CompactionOptions) -> CompactionTask:
    try:
        found = value["fragments"]
    except (KeyError, TypeError) as error:
        raise InvalidInputError(f"not the JSON of a compaction task: {value!r:.200}") from error
    fragments = tuple(Fragment.from_dict(one) for one in found)
    return CompactionTask(_Task(version, fragments), options)


def _options_json(options: CompactionOptions) -> dict[str, Any]:
    known = {one.name: getattr(options, one.name) for one in fields(options)}
    known["excluded_fragment_ids"] = sorted(options.excluded_fragment_ids)
    known["defer_index_remap"] = bool(options.defer_index_remap)
    mode = options.compaction_mode
    known["compaction_mode"] = (
        None if mode is None else "".join(part.capitalize() for part in mode.split("_"))
    )
    return known | dict(_MORE_OPTIONS)


def _options_of(value: Any) -> CompactionOptions:
    if not isinstance(value, dict):
        raise InvalidInputError(f"options of a compaction are an object, not {value!r:.200}")
    known = {key: one for key, one in value.items() if key not in _MORE_OPTIONS}
    known["defer_index_remap"] = (
        known.get("defer_index_remap") or None
    )  # false is the default there
    mode = known.get("compaction_mode")
    if isinstance(mode, str):
        known["compaction_mode"] = "".join(
            f"_{one.lower()}" if one.isupper() else one for one in mode
        ).lstrip("_")
    return CompactionOptions.of(known, {})


def _parsed(text: str, *keys: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise InvalidInputError(f"not JSON: {error}") from error
    if not isinstance(value, dict) or any(key not in value for key in keys):
        raise InvalidInputError(f"expected an object with the keys {', '.join(keys)}")
    return value
