"""Copy a version with all its files: tasks copy files, the first version of the copy comes last.

A copy is written under the same name by every attempt, so that trying again replaces it. Until the
commit the folder is no dataset.

Limits: tags, branches and older versions are not copied, as ``LanceDataset.deep_clone`` does.
Source: lance_nb.transactions.cloning.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lance_nb.dataset import LanceDataset
from lance_nb.dataset.session import open_session
from lance_nb.dataset.verbs.branching import clone_places
from lance_nb.format.checksums import wants_checksums
from lance_nb.spark.packing import TASK_BYTES
from lance_nb.spark.place import Place
from lance_nb.spark.plan import Label, Plan
from lance_nb.storage.registry import open_store
from lance_nb.table.refs import Target
from lance_nb.transactions.checksum_records import CopiedSums
from lance_nb.transactions.cloning import FileCopy, commit_clone, copy_file, files_to_copy
from lance_nb.transactions.commit_options import CommitOptions
from lance_nb.transactions.environment import Environment

_Options = tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Copied:
    """Files that were copied."""

    num_files: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class CopyFiles:
    """Copy some files; each is the URI of a store, a path in it, and a path below the target."""

    files: tuple[tuple[str, str, str], ...]
    source_options: _Options
    target: str
    target_options: _Options
    size_bytes: int
    allow_bases: tuple[str, ...] = ()
    checksums: bool = False

    def run(self) -> Copied:
        """Copy them, durably."""
        home = open_store(self.target, dict(self.target_options) or None)
        size = 0
        sums = CopiedSums() if self.checksums else None
        for uri, path, target in self.files:
            store = open_store(uri, dict(self.source_options) or None, self.allow_bases)
            size += copy_file(store, path, home, target, sums)
        if sums is not None:
            sums.write(home)
        return Copied(len(self.files), size)


@dataclass(frozen=True, slots=True)
class CommitCopy:
    """Makes the first version of the copy."""

    target: str
    target_options: _Options

    def __call__(self, plan: Plan, results: Sequence[Any], label: Label) -> LanceDataset:
        """Commit. Raises DatasetAlreadyExistsError."""
        session, _ = plan.place.open()
        stored = dict(self.target_options)
        pinned = Target(plan.place.branch, plan.place.version)
        source, version, place, made = clone_places(session, pinned, self.target, stored)
        environment = replace(Environment(), new_uuid=lambda: plan.operation_id)
        options = CommitOptions(message=label.message, environment=environment)
        done = commit_clone(source, version, place, options, is_shallow=False)
        return LanceDataset.from_opened(made, made.snapshot(done.manifest, None))


def plan_clone(
    dataset: LanceDataset,
    target: str | os.PathLike[str],
    storage_options: Mapping[str, Any] | None = None,
    *,
    task_bytes: int = TASK_BYTES,
) -> Plan:
    """Plan a deep clone. Raises DatasetAlreadyExistsError, InvalidInputError."""
    session, snapshot = dataset.opened
    options = session.storage_options if storage_options is None else storage_options
    pinned = Target(snapshot.branch, snapshot.version)
    source, version, place, _ = clone_places(session, pinned, target, options)
    place_of_copy = open_session(target, options).root.uri
    mine = tuple(sorted((session.storage_options or {}).items()))
    theirs = tuple(sorted((options or {}).items()))
    checksums = wants_checksums(snapshot.manifest.config)
    tasks = tuple(
        CopyFiles(files, mine, place_of_copy, theirs, size, session.trusted_bases, checksums)
        for files, size in _packed(files_to_copy(source, version, place), task_bytes)
    )
    finish = CommitCopy(place_of_copy, theirs)
    where = Place.of(dataset)
    return Plan("clone", f"to {place_of_copy}", where, tasks, finish, is_empty_too=True)


def _packed(
    copies: Sequence[FileCopy], task_bytes: int
) -> Iterator[tuple[tuple[tuple[str, str, str], ...], int]]:
    files: list[tuple[str, str, str]] = []
    size = 0
    for one in copies:
        weight = one.store.size(one.path)
        if files and size + weight > task_bytes:
            yield tuple(files), size
            files, size = [], 0
        files.append((one.store.uri, one.path, one.target))
        size += weight
    if files:
        yield tuple(files), size
