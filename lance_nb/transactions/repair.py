"""Carry out the steps of a repair plan, each only if its files are as they were.

The order within a step is such that an interruption leaves the dataset no worse: the new version
is made before damaged manifests are put aside, a file is copied before it is deleted. A version is
created exclusively, so a commit that is under way meanwhile makes the step fail, not the dataset.

Limits: a step that fails is told and the others go on; an outcome that is not known ends the repair
(CommitStateUnknownError), and nothing is put aside after it.
Source: ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lance_nb.errors import (
    CommitStateUnknownError,
    LanceError,
    RetryableCommitConflictError,
)
from lance_nb.format.layout import HINT_PATH, ManifestName, branch_path
from lance_nb.format.refs import Branch
from lance_nb.storage.base import Store
from lance_nb.table import refs
from lance_nb.table.refs import branch_store
from lance_nb.transactions.branch_writer import BranchWriter
from lance_nb.transactions.environment import Environment
from lance_nb.transactions.moved_bases import repair_moved
from lance_nb.transactions.new_version import (
    build,
    prepare,
    with_message,
    write_hint,
    write_transaction_file,
)
from lance_nb.transactions.operation import ApplyContext
from lance_nb.transactions.operations.restore import Restore
from lance_nb.transactions.quarantine import Quarantine, record_of
from lance_nb.transactions.ref_record import create_record
from lance_nb.transactions.repair_plan import (
    FINISH,
    HINT,
    MOVED,
    RECORD,
    RESTORE,
    RepairStep,
    changed_since,
)
from lance_nb.transactions.tag_writer import PlaceOf, locate
from lance_nb.transactions.transaction import Transaction
from lance_nb.transactions.version_slots import claim
from lance_nb.transactions.version_source import VersionSource

_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class RepairResult:
    """What was done. ``id`` is what ``undo`` is given, "" where nothing was put aside.

    ``failed`` are steps with the reason why they were not done.
    """

    id: str
    done: tuple[RepairStep, ...]
    failed: tuple[tuple[RepairStep, str], ...] = ()

    def __str__(self) -> str:
        lines = [f"done: {one.what}" for one in self.done]
        lines += [f"not done: {one.what}: {reason}" for one, reason in self.failed]
        lines += [f"put aside under the id {self.id}"] if self.id else []
        return "\n".join(lines or ["nothing to do"])


@dataclass(frozen=True, slots=True)
class Repair:
    """Repairs one dataset. ``place_of`` gives the place of a branch."""

    root: Store
    place_of: PlaceOf
    environment: Environment

    def run(self, steps: Sequence[RepairStep]) -> RepairResult:
        """Carry out steps in their order. Raises CommitStateUnknownError, StorageError."""
        wanted = [one for one in steps if not one.held_back]
        failed = [(one, one.held_back) for one in steps if one.held_back]
        moved = [path for one in wanted for path in one.moved]
        quarantine = Quarantine(self.root, self._new_id()) if moved else None
        if quarantine is not None:
            told = [(one.kind, one.what, one.why) for one in wanted]
            record = record_of(quarantine.id, self.environment.clock(), told, moved)
            quarantine.write_record(record)
        done: list[RepairStep] = []
        for step in wanted:
            try:
                self._run(step, quarantine)
            except CommitStateUnknownError:
                raise
            except LanceError as error:
                failed.append((step, str(error)))
            else:
                done.append(step)
        return RepairResult("" if quarantine is None else quarantine.id, tuple(done), tuple(failed))

    def _new_id(self) -> str:
        seconds = self.environment.clock() // _NS
        return f"{seconds:011d}-{self.environment.new_uuid()[:8]}"

    def _run(self, step: RepairStep, quarantine: Quarantine | None) -> None:
        changed = changed_since(self.root, step)
        if changed:
            raise RetryableCommitConflictError(
                f"{changed} has changed since the plan was made: make another plan"
            )
        if step.kind == RESTORE:
            self._restore(step)
        elif step.kind == FINISH:
            self._finish(step)
        elif step.kind == RECORD:
            self._record(step)
        elif step.kind == MOVED:
            repair_moved(self.place_of(step.branch))
        elif step.kind == HINT:
            self._hint(step, quarantine)
            return
        if quarantine is not None:
            for path in step.moved:
                quarantine.move(path)

    def _restore(self, step: RepairStep) -> None:
        """Create the version that restores the last good one; somebody else's is a conflict."""
        place = self.place_of(step.branch)
        if step.target is None or step.version is None or step.target.version is None:
            return
        source = VersionSource(place.slots, place.locations)
        head = source.head(0)
        if head is None or head.version + 1 != step.version:
            raise _meanwhile(step.version)
        good = source.load(step.target.version)
        manifest, indices = source.snapshotted(step.target.version)
        transaction = with_message(
            Transaction(good.manifest.version, Restore(good.manifest.version), self._uuid()),
            f"Repair: {step.why}"[:400],
        )
        context = ApplyContext(manifest, indices, source.snapshotted, self.environment.clock())
        built = build(transaction, context, None)
        built = replace(built, manifest=replace(built.manifest, version=step.version))
        name = ManifestName(step.version, head.scheme)
        version = prepare(place.home, built, transaction, name)
        write_transaction_file(place.home, version)
        if not claim(place.slots, name, version.data, transaction.uuid, self.environment):
            raise _meanwhile(step.version)
        write_hint(place.home, step.version)

    def _hint(self, step: RepairStep, quarantine: Quarantine | None) -> None:
        """Write the hint anew; the old one stays in the quarantine."""
        place = self.place_of(step.branch)
        head = place.slots.latest()
        if head is None or head.version != step.version:
            raise _meanwhile(step.version or 0)
        if quarantine is not None:
            for path in step.moved:
                quarantine.keep(path)
        branch_store(self.root, step.branch).write(HINT_PATH, b'{"version":%d}' % head.version)

    def _finish(self, step: RepairStep) -> None:
        if step.branch is not None and step.target is not None:
            BranchWriter(self.root, self.place_of, self.environment).create(
                step.branch, step.target
            )

    def _record(self, step: RepairStep) -> None:
        """Write the record of a branch from the transaction that made its first version."""
        if step.branch is None or step.target is None or step.version is None:
            return
        place = self.place_of(step.branch)
        source = VersionSource(place.slots, place.locations)
        source.head(0)
        uuid = source.transaction(step.version).uuid.replace("-", "")
        above: tuple[tuple[int, str], ...] = ()
        if step.target.branch is not None:
            above = refs.read_branch(self.root, step.target.branch).identifier
        version, size_bytes = locate(self.place_of(step.target.branch), step.target.version)
        made = source.load(step.version).manifest.timestamp_ns or self.environment.clock()
        branch = Branch(
            step.target.branch, version, (*above, (version, uuid)), made // _NS, size_bytes
        )
        path = branch_path(step.branch)
        create_record(self.root, path, branch.to_bytes(), f"branch {step.branch!r}")

    def _uuid(self) -> str:
        return self.environment.new_uuid()


def _meanwhile(version: int) -> RetryableCommitConflictError:
    return RetryableCommitConflictError(
        f"somebody has committed meanwhile, version {version} is not the next any more: make "
        "another plan"
    )


def undo(root: Store, identity: str) -> tuple[list[str], list[str]]:
    """Move back what a repair has put aside; see ``Quarantine.put_back``."""
    return Quarantine(root, identity).put_back()
