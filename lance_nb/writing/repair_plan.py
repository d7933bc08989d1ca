"""Plan the repair of a dataset from the findings of a verification.

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

Limits: lost data is not made up: where files are missing or damaged there is no step. A manifest
that could not be read because the store failed, or because a newer release wrote it, is left alone.
Source: ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from datetime import UTC, datetime, timedelta

from lance_nb.errors import FormatError, LanceError
from lance_nb.format.layout import (
    HINT_PATH,
    ManifestName,
    NamingScheme,
    branch_path,
    branch_root,
    parse_manifest_name,
)
from lance_nb.format.transaction_summary import count_of
from lance_nb.storage.base import Store
from lance_nb.table.refs import Target
from lance_nb.table.survey import StoredFile, Survey, staged_version
from lance_nb.table.verification.findings import Finding
from lance_nb.transactions.operations.clone import Clone
from lance_nb.transactions.operations.restore import Restore
from lance_nb.transactions.ref_writer import PlaceOf
from lance_nb.transactions.version_slots import SlotKeeper
from lance_nb.transactions.version_source import VersionSource
from lance_nb.value_classes import dataclass
from lance_nb.writing.moved_bases import moved_branches

RESTORE, HINT, FINISH, RECORD, QUARANTINE, MOVED = (
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
            line.branch,
            files,
            files,
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
                yield RepairStep(QUARANTINE, text, why, line.branch, files, files)
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
            yield RepairStep(QUARANTINE, text, finding.message, finding.branch, files, files)

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
                HINT, text, finding.message, finding.branch, (path,), hint_files, version=newest
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
                    QUARANTINE, text, finding.message, None, record_files, record_files
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
            return RepairStep(QUARANTINE, text, finding.message, name, (path,), (path,))
        text = f"complete the creation of branch {name!r} from {fork}"
        return RepairStep(FINISH, text, finding.message, name, (path,), target=target)

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
                    RECORD, text, why, name, (manifest,), version=first.version, target=target
                )
        except LanceError:
            pass  # nobody can tell from where it started
        moved = f"move {count_of(len(files), 'file')} of branch {name!r} to quarantine"
        text = f"{moved}: nothing records where it started"
        return RepairStep(QUARANTINE, text, why, name, files, files, empties_branch=True)

    # --- the rest ---------------------------------------------------------------------------------

    def _leftovers(self) -> Iterator[RepairStep]:
        keeper = isinstance(self._survey.root, SlotKeeper)
        paths = [finding.path for finding in self._of("leftover-file")]
        staged = list(self._of("staged-manifest"))
        files = tuple(sorted({*paths, *self._temporary()}))
        if files:
            text = f"move {count_of(len(files), 'leftover file')} to quarantine"
            why = "interrupted writes left these files, and no version names them"
            yield RepairStep(QUARANTINE, text, why, None, files, files)
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
                QUARANTINE,
                text,
                finding.message,
                finding.branch,
                (finding.path,),
                (finding.path,),
                held_back=held,
            )

    def _temporary(self) -> Iterable[str]:
        return (file.path for file in self._survey.files if _is_temporary(file))

    def _moved(self) -> Iterator[RepairStep]:
        if not any(self._of("base-moved")):
            return
        try:
            moved = moved_branches(self._survey.root, self._place_of)
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
