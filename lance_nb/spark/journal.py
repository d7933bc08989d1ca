"""The journal: results of tasks, kept until their commit is known to have happened.

When the kernel dies, or a commit's outcome is unknown, the work of the tasks is not lost: the plan
and its results lie in the user's cache folder, and are committed again under the same operation id,
which commits nothing twice.

Layout: ``<cache>/lance_nb/jobs/<operation id>.pickle``, written to a temporary name and renamed.

Limits: readable only by the user who wrote it (the folder has mode 700), because it is a pickle.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lance_nb.dataset import LanceDataset
from lance_nb.errors import InvalidInputError
from lance_nb.spark.plan import Label, Plan


@dataclass(frozen=True, slots=True)
class Entry:
    """A plan whose tasks are done, and what they returned."""

    plan: Plan
    results: tuple[Any, ...]
    label: Label

    @property
    def operation_id(self) -> str:
        """The id of the operation, which is the uuid of its transaction."""
        return self.plan.operation_id

    def __str__(self) -> str:
        place = self.plan.place
        return f"{self.operation_id}: {self.plan.verb} {self.plan.detail} on {place.uri}"


def keep(plan: Plan, results: Sequence[Any], label: Label) -> Entry:
    """Write an entry, durably, before its commit is tried."""
    entry = Entry(plan, tuple(results), label)
    path = _path(plan.operation_id)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = path.with_suffix(".tmp")
    with temporary.open("wb") as file:
        pickle.dump(entry, file)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    return entry


def forget(operation_id: str) -> None:
    """Remove an entry: its commit happened, or is given up. Its files are left to cleanup."""
    _path(operation_id).unlink(missing_ok=True)


def unfinished() -> list[Entry]:
    """List the entries whose commit is not known to have happened, the oldest first."""
    folder = _folder()
    paths = sorted(folder.glob("*.pickle"), key=lambda one: one.stat().st_mtime)
    return [_read(path) for path in paths]


def resume(operation_id: str) -> LanceDataset:
    """Commit an entry, if it is not committed already, and return the version it made.

    Raises InvalidInputError when there is no such entry, and what ``Plan.commit`` raises.
    """
    path = _path(operation_id)
    if not path.is_file():
        known = ", ".join(one.operation_id for one in unfinished()) or "none"
        raise InvalidInputError(f"no unfinished operation {operation_id!r}; unfinished: {known}")
    entry = _read(path)
    made = entry.plan.commit(entry.results, entry.label)
    forget(operation_id)
    return made


def _read(path: Path) -> Entry:
    try:
        found = pickle.loads(path.read_bytes())  # noqa: S301 - the user's own file, mode 700
    except (OSError, pickle.UnpicklingError, EOFError, AttributeError, ImportError) as error:
        raise InvalidInputError(f"{path} is not an entry of the journal: {error}") from error
    if not isinstance(found, Entry):
        raise InvalidInputError(f"{path} is not an entry of the journal")
    return found


def _path(operation_id: str) -> Path:
    if not operation_id.replace("-", "").isalnum():
        raise InvalidInputError(f"{operation_id!r} is not an operation id")
    return _folder() / f"{operation_id}.pickle"


def _folder() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "lance_nb" / "jobs"
