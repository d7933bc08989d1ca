"""Verify and repair a dataset by its URI, also one that cannot be opened.

A repair has two calls: ``plan_repair`` looks and changes nothing; the plan's ``run`` does what it
says. What stands in the way is moved into ``_quarantine`` in the folder of the dataset, which no
reader looks into, and can be moved back with ``undo_repair``. Nothing is deleted.

Limits: see lance_nb/writing/repair.py for what can be mended.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import field
from datetime import timedelta

from lance_nb.errors import DatasetNotFoundError, InvalidInputError, RefNotFoundError
from lance_nb.session.opening import NO_URI
from lance_nb.session.session import Session, open_session
from lance_nb.storage.registry import StorageOptions
from lance_nb.table.survey import take_survey
from lance_nb.table.verification.findings import Verification
from lance_nb.transactions.environment import Environment
from lance_nb.value_classes import dataclass
from lance_nb.writing.progress import Progress
from lance_nb.writing.repair import (
    DEFAULT_AGE,
    Repair,
    RepairResult,
    RepairStep,
    plan_steps,
    repairs,
    undo,
)

_FOLDERS = ("_versions", "data", "_transactions", "_refs/tags", "_refs/branches", "_deletions")
_DEEP_FOLDERS = ("tree", "_indices", "_mem_wal")  # of folders only; all that a drop may have left


def verify(
    uri: str | os.PathLike[str],
    *,
    values: bool = True,
    checksums: bool | None = None,
    sample: float | None = None,
    seed: int | None = None,
    raise_on_error: bool = False,
    progress: Progress | None = None,
    storage_options: StorageOptions | None = None,
    allow_bases: Sequence[str] = (),
) -> Verification:
    """Read everything below a URI and report what is wrong; as ``LanceDataset.verify``.

    No version needs to be whole: where the newest cannot be read, the report says which is the last
    that can (``opened_version``).

    Args:
        uri: root of the dataset.
        storage_options, allow_bases: as for ``lance_nb.dataset``.

    The other arguments are those of ``LanceDataset.verify``. Raises DatasetNotFoundError where
    nothing of a dataset is there, StorageError.

    Examples:
        >>> report = lance_nb.verify(uri)
        >>> report.ok, report.findings
        (True, ())
    """
    from lance_nb.dataset import verifying

    session = session_at(uri, storage_options, allow_bases)
    return verifying.verify(
        session,
        progress,
        values=values,
        checksums=checksums,
        sample=sample,
        seed=seed,
        raise_on_error=raise_on_error,
    )


def session_at(
    uri: str | os.PathLike[str],
    storage_options: StorageOptions | None,
    allow_bases: Sequence[str],
) -> Session:
    """Return the session of a dataset of which something is there. Raises DatasetNotFoundError."""
    if uri is None:
        raise InvalidInputError(NO_URI)
    session = open_session(uri, storage_options, allow_bases)
    root = session.root
    has_files = any(root.list_names(folder) for folder in _FOLDERS)
    if not has_files and not any(root.list_recursive(folder) for folder in _DEEP_FOLDERS):
        raise DatasetNotFoundError(root.uri, "the folder has none of the files of a dataset")
    return session


@dataclass(frozen=True, slots=True, repr=False)
class RepairPlan:
    """What a repair would do; see ``plan_repair``. ``steps`` in the order in which they are done.

    ``verification`` is what the plan was made from.

    Examples:
        >>> plan = lance_nb.plan_repair(uri)
        >>> plan.steps, plan.ready
        ((), ())
    """

    uri: str
    steps: tuple[RepairStep, ...]
    verification: Verification
    _session: Session = field(compare=False)

    @property
    def ready(self) -> tuple[RepairStep, ...]:
        """The steps that can be done now; the others say in ``held_back`` why not."""
        return tuple(step for step in self.steps if not step.held_back)

    def run(self, steps: Sequence[RepairStep] | None = None) -> RepairResult:
        """Carry out the plan; what is held back is not done.

        Args:
            steps: carry out only these; all by default.

        A step is not done either when its files have changed since the plan was made. Raises
        CommitStateUnknownError, StorageError.

        Examples:
            >>> lance_nb.plan_repair(uri).run().done
            ()
        """
        chosen = self.steps if steps is None else tuple(steps)
        if any(step not in self.steps for step in chosen):
            raise InvalidInputError("a step does not belong to this plan: create a new plan")
        session = self._session
        repair = Repair(session.root, session.place, Environment())
        return repair.run(chosen)

    def __repr__(self) -> str:
        if not self.steps:
            left = "" if self.verification.ok else f"; remaining: {self.verification.verdict}"
            return f"{self.uri}: no repair steps{left}"
        lines = [f"{self.uri}: {len(self.ready)} of {len(self.steps)} steps can be run now"]
        return "\n".join([*lines, *map(str, self.steps)])


def plan_repair(
    uri: str | os.PathLike[str],
    *,
    older_than: timedelta = DEFAULT_AGE,
    storage_options: StorageOptions | None = None,
    allow_bases: Sequence[str] = (),
) -> RepairPlan:
    """Look what of a dataset can be mended, and return a plan; changes nothing.

    The newest version that cannot be read, hints, unfinished branches, records that cannot be
    read, leftovers of interrupted commits, base paths of a dataset that was moved. Missing data is
    not made up.

    Args:
        uri: root of the dataset.
        older_than: files that changed later may belong to a commit that is under way, and steps
            that touch them are held back; ``timedelta(0)`` says that nobody writes.
        storage_options, allow_bases: as for ``lance_nb.dataset``.

    Raises DatasetNotFoundError, InvalidInputError, StorageError.

    Examples:
        >>> lance_nb.plan_repair(uri).steps
        ()
    """
    from lance_nb.dataset import verifying

    if not isinstance(older_than, timedelta) or older_than < timedelta(0):
        raise InvalidInputError(f"older_than must be a timedelta of at least 0, not {older_than!r}")
    session = session_at(uri, storage_options, allow_bases)
    verification = verifying.verify(session, None, values=False, raise_on_error=False)
    steps = plan_steps(
        take_survey(session.root, tolerant=True),
        verification.findings,
        session.place,
        now_ns=Environment().clock(),
        older_than=older_than,
    )
    return RepairPlan(session.root.uri, tuple(steps), verification, session)


def undo_repair(
    uri: str | os.PathLike[str],
    repair_id: str | None = None,
    *,
    storage_options: StorageOptions | None = None,
) -> list[str]:
    """Move back what a repair has moved to quarantine; return the paths.

    Versions that the repair has made stay, and so does a record that it has written, unless another
    one was moved from its place. Where the place of a file was taken since, nothing is moved.

    Args:
        uri: root of the dataset.
        repair_id: ``RepairResult.id`` of the repair; the last one by default.
        storage_options: as for ``lance_nb.dataset``.

    Raises RefNotFoundError when there is no such repair, RefConflictError, StorageError.

    Examples:
        >>> import os
        >>> from datetime import timedelta
        >>> ds.tags.create("first")
        >>> os.truncate(f"{uri}/_refs/tags/first.json", 9)
        >>> _ = lance_nb.plan_repair(uri, older_than=timedelta(0)).run()
        >>> lance_nb.undo_repair(uri)
        ['_refs/tags/first.json']
    """
    session = session_at(uri, storage_options, ())
    stored_repairs = repairs(session.root)
    if repair_id is None and not stored_repairs:
        raise RefNotFoundError("repair", "(the last)")
    return undo(session.root, stored_repairs[-1] if repair_id is None else repair_id)
