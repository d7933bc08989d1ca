"""Carry out the steps of a repair plan, each only if its files are as they were.

Files are moved to quarantine, never lost. The order within a step is such that an interruption
leaves the dataset no worse: the new version is made before damaged manifests are quarantined, a
file is copied before its first copy is deleted. A version is created exclusively, so a commit that
is under way meanwhile makes the step fail, not the dataset.

Layout of the quarantine, in the folder of the dataset, where no reader looks::

    _quarantine/<id>/repair.json       what was moved, why, when, from where
    _quarantine/<id>/files/<path>      each file, below the path that it had
    _quarantine/<id>/made/<path>       a copy of a record that the repair wrote in its place

A file is moved by writing it to its new place, reading it back, and deleting the old one last: an
interruption leaves both. The record is written before anything is moved.

Limits: a step that fails is reported and the others are carried out; an outcome that is not known
ends the repair (CommitStateUnknownError), and nothing is moved after it. Files of more than
``FILE_BYTES_MAX`` bytes are not moved. The clean-ups of this library and of pylance leave the
folder alone: who no longer needs it deletes it by hand.
Source: ours; neither library reads a folder of that name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from lance_nb.errors import (
    CommitStateUnknownError,
    CorruptFileError,
    InvalidInputError,
    LanceError,
    ObjectExistsError,
    ObjectNotFoundError,
    RefConflictError,
    RefNotFoundError,
    RetryableCommitConflictError,
    describe_bytes,
)
from lance_nb.format.layout import (
    HINT_PATH,
    QUARANTINE,
    VERSIONS,
    ManifestName,
    branch_path,
    branch_root,
    parse_manifest_name,
)
from lance_nb.format.refs import Branch
from lance_nb.storage.base import Store, check_path, sync_folder
from lance_nb.table import refs
from lance_nb.table.refs import branch_store
from lance_nb.transactions.environment import Environment
from lance_nb.transactions.new_version import (
    build,
    prepare,
    with_message,
    write_hint,
    write_transaction_file,
)
from lance_nb.transactions.operation import ApplyContext
from lance_nb.transactions.operations.restore import Restore
from lance_nb.transactions.ref_writer import PlaceOf, create_record, locate, replace_record
from lance_nb.transactions.transaction import Transaction
from lance_nb.transactions.version_slots import claim
from lance_nb.transactions.version_source import VersionSource
from lance_nb.value_classes import dataclass
from lance_nb.writing.branch_writer import BranchWriter
from lance_nb.writing.moved_bases import repair_moved
from lance_nb.writing.repair_plan import (
    FINISH,
    HINT,
    MOVED,
    RECORD,
    RESTORE,
    RepairStep,
    changed_since,
)

RECORD_FILE = "repair.json"
FILE_BYTES_MAX = 1 << 30
_FILES = "files"
_MADE = "made"
_CHUNK_BYTES = 1 << 20
_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class RepairResult:
    """What was done. ``id`` is what ``undo_repair`` takes, "" where no file was quarantined.

    ``failed`` are steps with the reason why they were not done.

    Examples:
        >>> result = lance_nb.plan_repair(uri).run()
        >>> result.done, result.failed
        ((), ())
    """

    id: str
    done: tuple[RepairStep, ...]
    failed: tuple[tuple[RepairStep, str], ...] = ()

    def __str__(self) -> str:
        lines = [f"done: {step.what}" for step in self.done]
        lines += [f"not done: {step.what}: {reason}" for step, reason in self.failed]
        lines += [f"moved to quarantine under the id {self.id}"] if self.id else []
        return "\n".join(lines or ["nothing to do"])


@dataclass(frozen=True, slots=True)
class Repair:
    """Repairs one dataset. ``place_of`` gives the place of a branch."""

    root: Store
    place_of: PlaceOf
    environment: Environment

    def run(self, steps: Sequence[RepairStep]) -> RepairResult:
        """Carry out steps in their order. Raises CommitStateUnknownError, StorageError."""
        to_run = [step for step in steps if not step.held_back]
        failed = [(step, step.held_back) for step in steps if step.held_back]
        moved = [path for step in to_run for path in step.moved]
        quarantine = Quarantine(self.root, self._new_id()) if moved else None
        if quarantine is not None:
            quarantine.write_record(_record_of(quarantine.id, self.environment.clock(), to_run))
        done: list[RepairStep] = []
        for step in to_run:
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
            self._record(step, quarantine)
        elif step.kind == MOVED:
            repair_moved(self.place_of(step.branch))
        elif step.kind == HINT:
            self._hint(step, quarantine)
            return
        if quarantine is not None:
            for path in step.moved:
                quarantine.move(path)

    def _restore(self, step: RepairStep) -> None:
        """Create the version that restores the last good one, if its number is still free."""
        place = self.place_of(step.branch)
        if step.target is None or step.version is None or step.target.version is None:
            return
        source = VersionSource(place.slots, place.locations)
        head = source.head(0)
        if head is None or head.version + 1 != step.version:
            raise _overtaken(step.version)
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
            raise _overtaken(step.version)
        write_hint(place.home, step.version)

    def _hint(self, step: RepairStep, quarantine: Quarantine | None) -> None:
        """Rewrite the hint; the old one stays in quarantine."""
        place = self.place_of(step.branch)
        head = place.slots.latest()
        if head is None or head.version != step.version:
            raise _overtaken(step.version or 0)
        if quarantine is not None:
            for path in step.moved:
                quarantine.keep(path)
        branch_store(self.root, step.branch).write(HINT_PATH, b'{"version":%d}' % head.version)

    def _finish(self, step: RepairStep) -> None:
        if step.branch is not None and step.target is not None:
            BranchWriter(self.root, self.place_of, self.environment).create(
                step.branch, step.target
            )

    def _record(self, step: RepairStep, quarantine: Quarantine | None) -> None:
        """Write the record of a branch from the transaction that made its first version.

        In quarantine a copy of it is kept, by which undoing recognizes it.
        """
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
        time_ns = source.load(step.version).manifest.timestamp_ns or self.environment.clock()
        branch = Branch(
            step.target.branch, version, (*above, (version, uuid)), time_ns // _NS, size_bytes
        )
        path, data = branch_path(step.branch), branch.to_bytes()
        if quarantine is not None:
            self.root.write(quarantine.place(path, _MADE), data)
        create_record(self.root, path, data, f"branch {step.branch!r}")

    def _uuid(self) -> str:
        return self.environment.new_uuid()


def _overtaken(version: int) -> RetryableCommitConflictError:
    return RetryableCommitConflictError(
        f"another program has committed meanwhile, and this step was planned for version "
        f"{version}: make another plan"
    )


def undo(root: Store, identity: str) -> list[str]:
    """Move back what a repair has moved to quarantine; see ``Quarantine.put_back``."""
    return Quarantine(root, identity).put_back()


# --- quarantine -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Quarantine:
    """The folder of one repair for files in quarantine."""

    root: Store
    id: str

    def write_record(self, record: Mapping[str, Any]) -> None:
        """Record which files are going to be moved, before they are."""
        text = json.dumps(record, indent=2, ensure_ascii=False)
        self.root.write_if_absent(f"{QUARANTINE}/{self.id}/{RECORD_FILE}", text.encode())

    def keep(self, path: str) -> None:
        """Copy a file, and make sure that the copy is one.

        Raises ObjectNotFoundError, CorruptFileError (the copy differs), InvalidInputError (the file
        is too large).
        """
        size = self.root.size(path)
        if size > FILE_BYTES_MAX:
            raise InvalidInputError(f"{path} has {size} bytes, more than {FILE_BYTES_MAX}: move it")
        place = self.place(path)
        data = self.root.read(path)
        with suppress(ObjectExistsError):  # of an attempt that was interrupted: compared below
            self.root.write_if_absent(place, data)
        copy = self.root.read(place)
        if not _same(copy, data):
            actual = f"{describe_bytes(copy)}; of the file: {describe_bytes(data)}"
            raise CorruptFileError(f"{self.root.uri}/{place}", None, f"a copy of {path}", actual)

    def move(self, path: str) -> None:
        """Move a file to quarantine. Raises as ``keep``."""
        self.keep(path)
        self.root.delete(path)
        sync_folder(self.root, path.rpartition("/")[0])  # else a power failure undoes the repair

    def place(self, path: str, folder: str = _FILES) -> str:
        """Return where a file is put."""
        return f"{QUARANTINE}/{self.id}/{folder}/{check_path(path)}"

    def put_back(self) -> list[str]:
        """Move every file back, or none; return the paths.

        A hint is put back over another one, a record over the one that the repair wrote, if that is
        unchanged. What is back is no longer in quarantine. Raises RefNotFoundError when there is no
        such repair, RefConflictError when the place of a file is taken.
        """
        record = _read(self.root, self.id)
        # The others were never moved, or are back already.
        waiting = [path for path in record["files"] if self.root.exists(self.place(path))]
        taken = [path for path in waiting if self._is_taken(path)]
        taken += self._branches_made_anew(record, waiting)
        if taken:
            more = f" and {len(taken) - 3} more" if len(taken) > 3 else ""
            raise RefConflictError(
                f"repair {self.id!r} cannot be undone, and no file was moved back: "
                f"{', '.join(taken[:3])}{more} exists again, written after the repair; move it "
                f"away or delete it first, or take the files from {QUARANTINE}/{self.id}/{_FILES}"
            )
        for path in waiting:
            self._put_back(path)
        return waiting

    def _is_taken(self, path: str) -> bool:
        """Return whether something lies at a path that putting a file back would destroy."""
        if path.endswith(HINT_PATH):
            return False
        present = _read_if_exists(self.root, path)
        return present is not None and not (
            _same(present, self.root.read(self.place(path))) or self._is_made(path, present)
        )

    def _is_made(self, path: str, present: memoryview) -> bool:
        """Return whether the repair has written what lies at a path."""
        written = _read_if_exists(self.root, self.place(path, _MADE))
        return written is not None and _same(present, written)

    def _branches_made_anew(
        self, record: Mapping[str, Any], waiting: Sequence[str]
    ) -> Iterator[str]:
        """Return the folders of branches that the repair has emptied, and that hold others now."""
        mine = set(waiting)
        for name in record.get("branches", ()):
            folder = branch_root(name)
            versions = {
                f"{folder}/{VERSIONS}/{file}"
                for file in self.root.list_names(f"{folder}/{VERSIONS}")
                if parse_manifest_name(file) is not None
            }
            has_record = self.root.exists(branch_path(name)) and branch_path(name) not in mine
            is_waiting = any(path.startswith(f"{folder}/") for path in mine)
            if is_waiting and (has_record or not versions <= set(record["files"])):
                yield f"branch {name!r}"

    def _put_back(self, path: str) -> None:
        place = self.place(path)
        data = self.root.read(place)
        if path.endswith(HINT_PATH):
            self.root.write(path, data)
        else:
            try:
                self.root.write_if_absent(path, data)
            except ObjectExistsError:
                present = self.root.read(path)
                if not _same(present, data):  # the record that the repair has written
                    expected = bytes(self.root.read(self.place(path, _MADE)))
                    replace_record(self.root, path, expected, bytes(data), path)
        self.root.delete(place)
        self.root.delete(self.place(path, _MADE))


def repairs(root: Store) -> list[str]:
    """List the ids of the repairs that have moved files to quarantine, oldest first."""
    split_names = [entry.name.split("/") for entry in root.list_recursive(QUARANTINE)]
    return sorted({parts[0] for parts in split_names if parts[1:] == [RECORD_FILE]})


def _read(root: Store, identity: str) -> dict[str, Any]:
    try:
        record: Any = json.loads(
            bytes(root.read(f"{QUARANTINE}/{check_path(identity)}/{RECORD_FILE}"))
        )
    except (ObjectNotFoundError, InvalidInputError, ValueError, RecursionError) as error:
        raise RefNotFoundError("repair", identity, tuple(repairs(root))) from error
    # Earlier releases recorded no branches.
    absent: dict[str, list[str] | None] = {"files": None, "branches": []}
    for key, default in absent.items():
        names = record.get(key, default) if isinstance(record, dict) else None
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise CorruptFileError(
                f"{QUARANTINE}/{identity}/{RECORD_FILE}",
                None,
                f"a list of names under {key!r}",
                repr(record)[:80],
            )
    return dict(record)


def _record_of(identity: str, now_ns: int, steps: Sequence[RepairStep]) -> dict[str, Any]:
    """Return the record of a repair."""
    moment = datetime.fromtimestamp(now_ns // 1_000_000_000, UTC)
    return {
        "id": identity,
        "at": moment.isoformat(),
        "quarantined_by": "lance_nb doctor --repair; --undo moves the files back",
        "steps": [{"kind": step.kind, "what": step.what, "why": step.why} for step in steps],
        "files": [path for step in steps for path in step.moved],
        "branches": [step.branch for step in steps if step.empties_branch],
    }


def _read_if_exists(root: Store, path: str) -> memoryview | None:
    try:
        return root.read(path)
    except ObjectNotFoundError:
        return None


def _same(data: memoryview, other: memoryview) -> bool:
    if len(data) != len(other):
        return False
    steps = range(0, len(data), _CHUNK_BYTES)
    return all(
        bytes(data[offset : offset + _CHUNK_BYTES]) == bytes(other[offset : offset + _CHUNK_BYTES])
        for offset in steps
    )
