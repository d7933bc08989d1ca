"""Repair a dataset: plan steps from the findings of a verification, and carry them out.

=================  =================================================================================
step               for
=================  =================================================================================
restore            a newest version that cannot be read: the last good one becomes the newest, under
                   a number of its own; the damaged manifests are moved to quarantine (also
                   by the next repair, when one was interrupted before that)
hint               a hint to the latest version that is wrong or missing: it is rewritten
finish branch      a branch with a record and no versions: its creation is completed
branch record      a branch with versions and no record: the record is written from its first
                   version
quarantine         records that cannot be read, branches that cannot be completed, leftovers of
                   interrupted commits, manifests of a second naming scheme: they are moved to
                   quarantine, and can be moved back
moved              base paths of a dataset that was moved: a version that names the present ones
=================  =================================================================================

Files that changed a short time ago may belong to a commit that is under way: their steps are held
back, with the reason.

A step is carried out only if its files are as they were. Files are moved to quarantine, never lost.
The order within a step is such that an interruption leaves the dataset no worse: the new version is
made before damaged manifests are quarantined, a file is copied before its first copy is deleted. A
version is created exclusively, so a commit that is under way meanwhile makes the step fail, not the
dataset.

Layout of the quarantine, in the folder of the dataset, where no reader looks::

    _quarantine/<id>/repair.json       what was moved, why, when, from where
    _quarantine/<id>/files/<path>      each file, below the path that it had
    _quarantine/<id>/made/<path>       a copy of a record that the repair wrote in its place

A file is moved by writing it to its new place, reading it back, and deleting the old one last: an
interruption leaves both. The record is written before anything is moved.

Limits: lost data is not made up: where files are missing or damaged there is no step. A manifest
that could not be read because the store failed, or because a newer release wrote it, is left alone.
A step that fails is reported and the others are carried out; an outcome that is not known ends the
repair (CommitStateUnknownError), and nothing is moved after it. Files of more than
``FILE_BYTES_MAX`` bytes are not moved. The clean-ups of this library and of pylance leave the
folder alone: who no longer needs it deletes it by hand.
Source: ours; neither library reads a folder of that name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from lance_nb.errors import (
    CommitStateUnknownError,
    CorruptFileError,
    FormatError,
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
    NamingScheme,
    branch_path,
    branch_root,
    parse_manifest_name,
)
from lance_nb.format.refs import Branch
from lance_nb.format.transaction_summary import count_of
from lance_nb.storage.base import Store, check_path, sync_folder
from lance_nb.table import refs
from lance_nb.table.refs import Target, branch_store
from lance_nb.table.survey import StoredFile, Survey, staged_version
from lance_nb.table.verification.findings import Finding
from lance_nb.transactions.environment import Environment
from lance_nb.transactions.new_version import (
    build,
    prepare,
    with_message,
    write_hint,
    write_transaction_file,
)
from lance_nb.transactions.operation import ApplyContext
from lance_nb.transactions.operations.clone import Clone
from lance_nb.transactions.operations.restore import Restore
from lance_nb.transactions.ref_writer import PlaceOf, create_record, locate, replace_record
from lance_nb.transactions.transaction import Transaction
from lance_nb.transactions.version_slots import SlotKeeper, VersionSource, claim
from lance_nb.value_classes import dataclass
from lance_nb.writing.branching import BranchWriter
from lance_nb.writing.cloning import find_moved_branches, repair_moved

RESTORE, HINT, FINISH, RECORD, SET_ASIDE, MOVED = (
    "restore", "hint", "finish branch", "branch record", "quarantine", "moved",
)  # fmt: skip
DEFAULT_AGE = timedelta(hours=1)
_TEMPORARY = ".tmp"


@dataclass(frozen=True, slots=True)
class RepairStep:
    """One step: what is done and why, and which files it writes, moves or makes up for.

    ``files`` are paths below the root, ``moved`` those that go to quarantine; ``empties_branch``:
    they are all files of ``branch``. ``version`` and ``target`` are what the step needs.
    ``held_back``: why it is not done now, "" if it can be.

    Examples:
        >>> [step.what for step in lance_nb.plan_repair(uri).steps]
        []
    """

    kind: str
    what: str
    why: str
    branch: str | None = None
    files: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    version: int | None = None
    target: Target | None = None
    held_back: str = ""
    empties_branch: bool = False
    state: Mapping[str, tuple[int, datetime | None]] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        lines = [f"{self.kind}: {self.what}", f"  because {self.why}"]
        lines += [f"  file {file}" for file in self.files]
        lines += [f"  held back: {self.held_back}"] if self.held_back else []
        return "\n".join(lines)


def plan_steps(
    survey: Survey,
    findings: Sequence[Finding],
    place_of: PlaceOf,
    now_ns: int,
    older_than: timedelta = DEFAULT_AGE,
) -> list[RepairStep]:
    """Return the steps, in the order in which they are done."""
    planner = _Planner(survey, findings, place_of)
    now = datetime.fromtimestamp(now_ns / 1e9, UTC)
    stored = {file.path: (file.size_bytes, file.modified) for file in survey.files}
    steps = []
    for step in planner.steps():
        state = {path: stored[path] for path in step.files if path in stored}
        steps.append(replace(step, state=state, held_back=_held_back(step, state, now, older_than)))
    return steps


def _held_back(
    step: RepairStep,
    state: Mapping[str, tuple[int, datetime | None]],
    now: datetime,
    older_than: timedelta,
) -> str:
    if step.held_back or step.kind in (HINT, MOVED) or older_than <= timedelta(0):
        return step.held_back
    times = [modified for _, modified in state.values()]
    if None in times:
        return "the store does not say when these files changed: a commit may be under way"
    ages = [now - modified for modified in times if modified is not None]
    if ages and min(ages) < older_than:
        return (
            f"it changed {max(int(min(ages).total_seconds()), 0)} s ago and a commit may be under "
            f"way: wait until it is {_words(older_than)} old, or say that nobody writes"
        )
    return ""


def _words(span: timedelta) -> str:
    seconds = int(span.total_seconds())
    return f"{seconds // 3600} h" if seconds % 3600 == 0 else f"{seconds} s"


class _Planner:
    def __init__(self, survey: Survey, findings: Sequence[Finding], place_of: PlaceOf) -> None:
        self._survey = survey
        self._findings = findings
        self._place_of = place_of

    def steps(self) -> Iterator[RepairStep]:
        mixed = list(self._mixed())
        yield from mixed
        restored: set[str | None] = set()
        for folder, line in self._survey.lines.items():
            step = (
                self._restore(folder)
                if not any(finding.branch == line.branch for finding in mixed)
                else None
            )
            if step is not None:
                restored.add(line.branch)
                yield step
            else:
                yield from self._restored_over(folder)
        yield from self._records()
        yield from self._branches()
        yield from self._hints(restored)
        yield from self._leftovers()
        if not restored and not mixed:
            yield from self._moved()

    def _of(self, *codes: str) -> Iterator[Finding]:
        reported: set[tuple[str, str | None, str]] = set()
        for finding in self._findings:
            key = (finding.code, finding.branch, finding.path)
            if finding.code in codes and key not in reported:
                reported.add(key)
                yield finding

    # --- versions ---------------------------------------------------------------------------------

    def _restore(self, folder: str) -> RepairStep | None:
        """Plan to make the last good version of a line the newest."""
        line = self._survey.lines[folder]
        unreadable = [
            finding for finding in self._of("newest-unreadable") if finding.branch == line.branch
        ]
        if not unreadable or not isinstance(unreadable[0].error, FormatError):
            return None
        source = self._source(line.branch)
        bad: list[ManifestName] = []
        good: int | None = None
        for name in reversed(line.names):
            try:
                source.load(name.version)
            except FormatError:
                bad.append(name)
                continue
            except LanceError:
                return None  # of a newer release, or the store failed: nothing is certain
            good = name.version
            break
        if good is None or not bad:
            return None
        files = tuple(_inside(folder, name.path) for name in bad)
        newest = line.names[-1].version
        shown = f"{line.branch or 'main'}:{good}"
        return RepairStep(
            RESTORE,
            f"restore {shown}, the last version that can be read, as version {newest + 1}, and "
            f"move {count_of(len(bad), 'damaged manifest')} to quarantine; data files that only "
            "these name stay until a clean-up",
            unreadable[0].message,
            branch=line.branch,
            files=files,
            moved=files,
            version=newest + 1,
            target=Target(line.branch, good),
        )

    def _restored_over(self, folder: str) -> Iterator[RepairStep]:
        """Plan to end a repair that was interrupted after it had made the version that restores."""
        line = self._survey.lines[folder]
        damaged = {
            finding.version: finding
            for finding in self._of("manifest-unreadable")
            if finding.branch == line.branch and isinstance(finding.error, FormatError)
        }
        if not damaged:
            return
        source = self._source(line.branch)
        bad: list[ManifestName] = []
        for name in line.names:
            if name.version in damaged:
                bad.append(name)
                continue
            if bad and _goes_back(source, name.version, bad[0].version):
                files = tuple(_inside(folder, name.path) for name in bad)
                text = (
                    f"move {count_of(len(bad), 'damaged manifest')} to quarantine: version "
                    f"{name.version} has already restored an older version"
                )
                why = damaged[bad[-1].version].message
                yield RepairStep(SET_ASIDE, text, why, branch=line.branch, files=files, moved=files)
            bad = []

    def _source(self, branch: str | None) -> VersionSource:
        place = self._place_of(branch)
        source = VersionSource(place.slots, place.locations)
        with suppress(LanceError):  # loading tells
            source.head(0)
        return source

    def _mixed(self) -> Iterator[RepairStep]:
        """Plan to quarantine the manifests of the naming scheme that fewer versions have."""
        for finding in self._of("naming-mixed"):
            folder = "" if finding.branch is None else branch_root(finding.branch)
            paths: dict[NamingScheme, list[str]] = {scheme: [] for scheme in NamingScheme}
            for file in self._survey.files:
                name = parse_manifest_name(file.path.rpartition("/")[2])
                is_mine = file.home == folder and file.path in self._survey.manifests
                if is_mine and name is not None and not name.detached:
                    paths[name.scheme].append(file.path)
            fewer = min(paths, key=lambda scheme: (len(paths[scheme]), scheme is NamingScheme.V2))
            files = tuple(paths[fewer])
            manifests = count_of(len(files), "manifest")
            text = f"move {manifests} with {fewer.value.upper()} names to quarantine"
            yield RepairStep(
                SET_ASIDE, text, finding.message, branch=finding.branch, files=files, moved=files
            )

    def _hints(self, restored: set[str | None]) -> Iterator[RepairStep]:
        # The hint is right where the version that it names waits for its manifest store.
        done = {*restored, *(finding.branch for finding in self._of("staged-manifest"))}
        for finding in self._of("newest-missing", "hint-unreadable", "hint-stale", "hint-missing"):
            folder = "" if finding.branch is None else branch_root(finding.branch)
            line = self._survey.lines.get(folder)
            if finding.branch in done or line is None or not line.names:
                continue
            done.add(finding.branch)
            newest = line.names[-1].version
            path = _inside(folder, HINT_PATH)
            hint_files = (path,) if finding.code != "hint-missing" else ()
            verb = "write" if finding.code == "hint-missing" else "rewrite"
            text = f"{verb} the hint: the newest version is {newest}"
            if finding.code == "newest-missing":
                text += "; versions after it cannot be brought back without a copy"
            yield RepairStep(
                HINT,
                text,
                finding.message,
                branch=finding.branch,
                files=(path,),
                moved=hint_files,
                version=newest,
            )

    # --- tags and branches ------------------------------------------------------------------------

    def _records(self) -> Iterator[RepairStep]:
        for finding in self._of("tag-unreadable", "branch-unreadable"):
            kind = finding.code.partition("-")[0]
            record_files = tuple(
                file.path for file in self._survey.files if file.path == finding.path
            )
            if record_files and isinstance(finding.error, FormatError):
                text = (
                    f"move the record of a {kind} to quarantine, so that the others can be listed"
                )
                yield RepairStep(
                    SET_ASIDE,
                    text,
                    finding.message,
                    branch=None,
                    files=record_files,
                    moved=record_files,
                )

    def _branches(self) -> Iterator[RepairStep]:
        for finding in self._of("branch-without-versions"):
            yield self._unfinished(str(finding.branch), finding)
        unreadable = {finding.path for finding in self._of("branch-unreadable")}
        lost = {finding.branch: finding.message for finding in self._of("branch-without-record")}
        for folder, line in self._survey.lines.items():
            name = line.branch
            if name is None or name in self._survey.branches or not line.names:
                continue
            if name in lost:
                yield self._without_record(folder, name, lost[name])
            elif branch_path(name) in unreadable:
                yield self._without_record(folder, name, "its record cannot be read")

    def _unfinished(self, name: str, finding: Finding) -> RepairStep:
        branch = self._survey.branches[name]
        target = Target(branch.parent_branch, branch.parent_version)
        fork = f"{target.branch or 'main'}:{target.version}"
        path = branch_path(name)
        try:
            self._source(target.branch).load(branch.parent_version)
        except LanceError as error:
            text = (
                f"move the record of branch {name!r} to quarantine: {fork} does not exist ({error})"
            )
            return RepairStep(
                SET_ASIDE, text, finding.message, branch=name, files=(path,), moved=(path,)
            )
        text = f"complete the creation of branch {name!r} from {fork}"
        return RepairStep(FINISH, text, finding.message, branch=name, files=(path,), target=target)

    def _without_record(self, folder: str, name: str, why: str) -> RepairStep:
        """Plan to write the record from the first version; else the folder goes to quarantine."""
        line = self._survey.lines[folder]
        files = tuple(file.path for file in self._survey.files if file.home == folder)
        first = line.names[0]
        try:
            operation = self._source(name).transaction(first.version).operation
            if (
                isinstance(operation, Clone)
                and operation.branch_name == name
                and operation.is_shallow
            ):
                self._source(operation.ref_name).load(operation.ref_version)
                target = Target(operation.ref_name, operation.ref_version)
                fork = f"{operation.ref_name or 'main'}:{operation.ref_version}"
                text = f"write the record of branch {name!r}, which started from {fork}"
                manifest = _inside(folder, line.names[-1].path)
                return RepairStep(
                    RECORD,
                    text,
                    why,
                    branch=name,
                    files=(manifest,),
                    version=first.version,
                    target=target,
                )
        except LanceError:
            pass  # nobody can tell from where it started
        moved = f"move {count_of(len(files), 'file')} of branch {name!r} to quarantine"
        text = f"{moved}: nothing records where it started"
        return RepairStep(
            SET_ASIDE, text, why, branch=name, files=files, moved=files, empties_branch=True
        )

    # --- the rest ---------------------------------------------------------------------------------

    def _leftovers(self) -> Iterator[RepairStep]:
        keeper = isinstance(self._survey.root, SlotKeeper)
        paths = [finding.path for finding in self._of("leftover-file")]
        staged = list(self._of("staged-manifest"))
        files = tuple(sorted({*paths, *self._temporary()}))
        if files:
            text = f"move {count_of(len(files), 'leftover file')} to quarantine"
            why = "interrupted writes left these files, and no version names them"
            yield RepairStep(SET_ASIDE, text, why, branch=None, files=files, moved=files)
        for finding in staged:
            held = (
                ""
                if keeper
                else (
                    "an external manifest store may have committed it: open the dataset with that "
                    "store, which finishes it"
                )
            )
            text = "move a staged manifest to quarantine: the manifest store does not know it"
            yield RepairStep(
                SET_ASIDE,
                text,
                finding.message,
                branch=finding.branch,
                files=(finding.path,),
                moved=(finding.path,),
                held_back=held,
            )

    def _temporary(self) -> Iterable[str]:
        return (file.path for file in self._survey.files if _is_temporary(file))

    def _moved(self) -> Iterator[RepairStep]:
        if not any(self._of("base-moved")):
            return
        try:
            moved = find_moved_branches(self._survey.root, self._place_of)
        except LanceError:
            return
        for branch in moved:
            text = "make a version that names the present places of its files"
            yield RepairStep(MOVED, text, str(branch), branch.branch, version=branch.version)


def _goes_back(source: VersionSource, version: int, before: int) -> bool:
    """Return whether a version restores one that is older than ``before``."""
    try:
        operation = source.transaction(version).operation
    except LanceError:
        return False
    return isinstance(operation, Restore) and operation.version < before


def _is_temporary(file: StoredFile) -> bool:
    name = file.path.rpartition("/")[2]
    return name.startswith(_TEMPORARY) and staged_version(name) is None


def _inside(folder: str, path: str) -> str:
    return f"{folder}/{path}" if folder else path


def changed_since(root: Store, step: RepairStep) -> str:
    """Return the file of a step that is not as it was when the plan was made, "" if all are."""
    folders = {path.rpartition("/")[0] for path in step.state}
    now = {
        f"{folder}/{entry.name}": (entry.size_bytes, entry.modified)
        for folder in folders
        for entry in root.list(folder)
    }
    return next((path for path, state in step.state.items() if now.get(path) != state), "")


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
        if not claim(
            place.slots, name, version.data, uuid=transaction.uuid, environment=self.environment
        ):
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
            step.target.branch,
            version,
            (*above, (version, uuid)),
            create_at=time_ns // _NS,
            manifest_size_bytes=size_bytes,
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
                    replace_record(self.root, path, expected, data=bytes(data), subject=path)
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
