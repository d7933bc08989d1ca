"""Verify a whole dataset: every version of every branch, every file, every value.

The order is from names to bytes: refs name existing versions; the versions of a branch are
complete; manifests can be read and are consistent in themselves, with their transactions and with
the version before; files they name exist; fragments are what the manifests say; every column
decodes; indices hold the rows that they cover. Each data file is decoded once, in the newest
version that has it, whatever the number of versions. Damage becomes a finding, and the verification
continues.

A new check belongs into the module of its object: names and folders in references.py, versions in
manifests.py and transactions.py, data files, deleted rows and row ids in fragments.py (whose
``Check`` has a code, a path and a call), indices in indexes.py. Its code goes into
``findings.CODES``.

Limits: files under base paths that were not allowed are reported as such and not read. See
fragments.py for the damage that values cannot show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from lance_nb.errors import LanceError, NotSupportedError, ObjectNotFoundError
from lance_nb.format.feature_flags import STABLE_ROW_IDS
from lance_nb.format.fragment import DataFile, Fragment
from lance_nb.format.layout import DETACHED_BIT
from lance_nb.format.manifest_history import (
    DATA,
    DELETION,
    INDEX,
    TRANSACTION,
    NamedFile,
)
from lance_nb.format.transaction_effects import TransactionEffects
from lance_nb.table.file_references import Line, References
from lance_nb.table.indices import read_indices
from lance_nb.table.snapshot import Snapshot
from lance_nb.table.verification.checksums import ChecksumChecks
from lance_nb.table.verification.findings import (
    Bounded,
    Finding,
    Sample,
    Verification,
    choose_sample,
)
from lance_nb.table.verification.fragments import (
    Check,
    cheap_checks,
    check_values,
    repeated_row_id,
    value_checks,
)
from lance_nb.table.verification.indexes import index_findings
from lance_nb.table.verification.manifests import manifest_findings, newest_findings
from lance_nb.table.verification.references import (
    Dataset,
    as_newest,
    file_findings,
    line_findings,
    missing_hint,
    ref_findings,
    unreferenced,
)
from lance_nb.table.verification.transactions import (
    Step,
    change_findings,
    step_findings,
    transaction_findings,
)

Tick = Callable[[], object]
_READ = (DATA, DELETION, INDEX)
_FILE_ONLY = "transaction-file-missing"
_MISSING = ("data-file-missing", "deletion-file-missing", "index-missing")


class _Progress:
    """What has been checked so far. ``done`` are the identities of files that were read."""

    def __init__(self) -> None:
        self.opened_version: int | None = None
        self.num_fragments = 0
        self.num_values = 0
        self.done: set[str] = set()
        self.fragments: set[int] = set()  # hashes of descriptions that were checked
        self.sums: ChecksumChecks | None = None
        self.sample: Sample | None = None

    def reads(self, identity: str) -> bool:
        """Tell whether the content of a file is checked."""
        return self.sample is None or identity in self.sample.chosen


def verify(
    dataset: Dataset,
    *,
    values: bool = True,
    checksums: bool = True,
    sample: float | None = None,
    seed: int | None = None,
    tick: Tick = lambda: None,
) -> Verification:
    """Verify everything; ``values`` False skips decoding. ``tick`` is called per version.

    ``checksums`` False leaves out comparing files with their sums. ``sample``: of which share
    of the bytes, or how many files, the content is read (see sample.py). Raises
    InvalidInputError for another number.
    """
    progress = _Progress()
    progress.sums = ChecksumChecks() if checksums else None
    progress.sample = None if sample is None else choose_sample(_sizes(dataset), sample, seed)
    findings = Bounded()
    missing = list(file_findings(dataset))
    findings.add(ref_findings(dataset.survey))
    for folder in dataset.survey.lines:
        findings.add(line_findings(dataset.survey, dataset.references, folder))
    findings.add(missing)
    missing_paths = {
        (finding.branch, finding.path) for finding in missing if finding.code in _MISSING
    }
    for folder, line in dataset.references.lines.items():
        if folder != line.home:
            continue  # a line that was read a second time
        histories = _history_findings(dataset, folder, line, progress)
        files = _file_contents(dataset, folder, line, progress, values=values, tick=tick)
        for group in (histories, files):
            findings.add(_without_echoes(group, missing_paths))
    if progress.sums is not None:
        findings.add(progress.sums.records(dataset.survey.root))
    return _report(dataset, progress, findings)


def _sizes(dataset: Dataset) -> dict[str, int]:
    """Return the sizes of files in bytes, by identity, as far as versions name them."""
    sizes: dict[str, int] = {}
    for line in dataset.references.lines.values():
        sizes.update(
            (named_file.identity, 0) for named_file in line.first_named if named_file.kind in _READ
        )
    for file in dataset.survey.files:
        if file.identity in sizes:
            sizes[file.identity] += file.size_bytes
    return sizes


def _report(dataset: Dataset, progress: _Progress, findings: Bounded) -> Verification:
    orphans = unreferenced(dataset)
    lines = dataset.references.lines.values()
    named: dict[str, set[str]] = {DATA: set(), DELETION: set(), INDEX: set(), TRANSACTION: set()}
    for file in (file for line in lines for file in line.first_named):
        named[file.kind].add(file.identity)
    return Verification(
        uri=dataset.survey.root.uri,
        opened_version=progress.opened_version,
        num_versions=sum(len(line.versions) for line in lines),
        num_fragments=progress.num_fragments,
        num_data_files=len(named[DATA]),
        num_deletion_files=len(named[DELETION]),
        num_indices=len(named[INDEX]),
        num_values=progress.num_values,
        num_orphans=len(orphans),
        orphan_bytes=sum(orphan.size_bytes for orphan in orphans),
        findings=tuple(findings.findings),
        left_out=findings.left_out,
        orphans=tuple(orphan.path for orphan in orphans),
        num_files_checked=0 if progress.sums is None else progress.sums.num_checked,
        num_files_without_checksum=0 if progress.sums is None else progress.sums.num_without,
        sample=progress.sample,
    )


def _without_echoes(
    findings: Iterable[Finding], missing_paths: set[tuple[str | None, str]]
) -> Iterator[Finding]:
    """Drop findings that only repeat that a file is missing."""
    folders = {(branch, path) for branch, path in missing_paths if path.startswith("_indices/")}
    for finding in findings:
        folder = "/".join(finding.path.split("/")[:2])
        is_echo = isinstance(finding.error, ObjectNotFoundError) and (
            (finding.branch, finding.path) in missing_paths or (finding.branch, folder) in folders
        )
        if not is_echo:
            yield finding


# --- manifests, one after the other ---------------------------------------------------------------


def _history_findings(
    dataset: Dataset, folder: str, line: Line, progress: _Progress
) -> Iterator[Finding]:
    """Check each version for consistency, and against the one before.

    A finding of several consecutive versions is reported once, with the newest of them.
    """
    branch = dataset.branch(folder)
    reported: dict[tuple[str, int | None, str], Finding] = {}
    before: Step | None = None
    fields = _Fields.of(dataset, folder)
    unreadable: list[Finding] = []
    good: int | None = None
    newest = max((version.version for version in dataset.survey.lines[folder].names), default=None)
    for version in sorted(line.versions, key=lambda version: version.version):
        try:
            snapshot = dataset.load(branch, version.version)
            findings = [*manifest_findings(snapshot), *fields.unknown(snapshot)]
            effects, more = transaction_findings(snapshot)
            # Clean-ups of pylance leave old versions that branches need without their files.
            findings += [
                each for each in more if version.version == newest or each.code != _FILE_ONLY
            ]
            findings += _mixed_branch(dataset, folder, snapshot, effects)
            follows = before is not None and before.version + 1 == version.version
            findings += change_findings(before if follows else None, snapshot, effects)
            step = Step.of(snapshot)
            if before is not None and step is not None and follows:
                findings += step_findings(before, step, snapshot, effects)
            before = step
        except LanceError as error:
            unreadable.append(_unreadable(branch, version.version, version.path, error))
            before = None
            continue
        if version.version < DETACHED_BIT:
            good = version.version
        for each in findings:
            path = "" if each.path.startswith("_versions/") else each.path
            reported[each.code, each.fragment, path] = each
    yield from reported.values()
    if folder == "":
        progress.opened_version = good
    for each in unreadable:
        yield as_newest(each, good) if each.version == newest else each


def _mixed_branch(
    dataset: Dataset, folder: str, snapshot: Snapshot, effects: TransactionEffects | None
) -> Iterator[Finding]:
    """Find a version that another creation of a branch left: pylance writes it before it looks."""
    record = dataset.survey.branches.get(snapshot.branch or "")
    if record is None or effects is None or effects.arm != "clone":
        return
    numbers = {name.version for name in dataset.survey.lines[folder].names}
    if snapshot.version in numbers - {record.parent_version} and record.parent_version in numbers:
        start = f"{record.parent_branch or 'main'}:{record.parent_version}"
        text = f"it is the copy of another creation of this branch, which started from {start}"
        path = snapshot.manifest.path.removeprefix(f"{snapshot.locations.home.uri}/")
        yield Finding("branch-mixed", text, path, snapshot.branch, snapshot.version)


def _unreadable(branch: str | None, version: int, path: str, error: LanceError) -> Finding:
    is_new = isinstance(error, NotSupportedError)
    code = "manifest-not-supported" if is_new else "manifest-unreadable"
    return Finding(code, str(error), path, branch, version, error=error)


class _Fields:
    """The field ids that any version ever had, if all versions exist.

    A data file may hold columns that have been dropped. It cannot hold one that never existed.
    Most fragments are the same in many versions: each description is decoded once.
    """

    def __init__(self, field_ids: set[int] | None) -> None:
        self._field_ids = field_ids
        self._lost: dict[int, tuple[DataFile, ...]] = {}  # by the hash of a description

    @classmethod
    def of(cls, dataset: Dataset, folder: str) -> _Fields:
        """Read the schemas of a branch; without its first versions, the ids are not known."""
        line = dataset.references.lines[folder]
        numbers = sorted(
            version.version for version in line.versions if version.version < DETACHED_BIT
        )
        if folder or numbers != list(range(1, len(numbers) + 1)):
            return cls(None)
        field_ids: set[int] = set()
        for number in numbers:
            try:
                schema = dataset.load(None, number).manifest.schema
            except LanceError:
                return cls(None)
            field_ids.update(field.id for field in schema.walk())
        return cls(field_ids)

    def unknown(self, snapshot: Snapshot) -> Iterator[Finding]:
        """Find data files that name a field that never existed."""
        if self._field_ids is None:
            return
        fragments = snapshot.manifest.fragments
        for position, raw in enumerate(fragments.raw):
            key = hash(raw)
            if key not in self._lost:
                self._lost[key] = tuple(filter(self._names_unknown, fragments[position].files))
            for file in self._lost[key]:
                field_id = max(set(file.fields) - self._field_ids)
                text = f"it holds field {field_id}, which no version has"
                path, fragment_id = f"data/{file.path}", fragments[position].id
                yield Finding("fields-unknown", text, path, None, snapshot.version, fragment_id)

    def _names_unknown(self, file: DataFile) -> bool:
        return max(set(file.fields) - (self._field_ids or set()), default=-1) >= 0


# --- files, the newest version first --------------------------------------------------------------


def _file_contents(
    dataset: Dataset, folder: str, line: Line, progress: _Progress, *, values: bool, tick: Tick
) -> Iterator[Finding]:
    branch = dataset.branch(folder)
    left = _newest_first(dataset.references, line)
    newest = max(
        (version.version for version in line.versions if version.version < DETACHED_BIT),
        default=None,
    )
    for index in range(len(line.versions) - 1, -1, -1):
        tick()
        identities = left.get(index, set()) - progress.done
        version = line.versions[index].version
        try:
            snapshot = dataset.load(branch, version)
            snapshot.manifest.fragments.counts()
        except LanceError:
            continue  # reported with the manifests
        yield from _located(snapshot, _snapshot_findings(snapshot, progress, values=values))
        read = set(filter(progress.reads, identities))
        if progress.sums is not None:
            yield from _index_sums(snapshot, read, progress.sums)
        yield from _whole_findings(
            snapshot, identities, read, is_newest=version == newest, contents=values
        )
        progress.done |= identities


def _newest_first(references: References, line: Line) -> Mapping[int, set[str]]:
    """Return the identities of files to read, by the last position that refers to them."""
    spans = line.spans()
    last = np.full(len(references), -1, np.int64)
    np.maximum.at(last, spans.identity, spans.stop - 1)
    by_position: dict[int, set[str]] = {}
    for file in line.first_named:
        if file.kind in _READ:
            position = int(last[references.identity(file.identity)])
            by_position.setdefault(position, set()).add(file.identity)
    return by_position


def _located(snapshot: Snapshot, findings: Iterable[Finding]) -> Iterator[Finding]:
    for finding in findings:
        yield replace(finding, branch=snapshot.branch, version=snapshot.version)


def _snapshot_findings(
    snapshot: Snapshot, progress: _Progress, *, values: bool
) -> Iterator[Finding]:
    fragments = snapshot.manifest.fragments
    for position, raw in enumerate(fragments.raw):
        key = hash((raw, snapshot.branch))
        if key in progress.fragments:
            continue
        progress.fragments.add(key)
        fragment = fragments[position]
        names = _identities(fragment)
        if progress.sums is not None:
            undone = {name for name in names - progress.done if progress.reads(name)}
            yield from progress.sums.fragment(snapshot, fragment, undone.__contains__)
        progress.num_fragments += not names <= progress.done
        files = {name for name in names if name.startswith(DATA)}
        decode = values and any(map(progress.reads, files - progress.done))
        progress.done.update(names)
        failed: set[str] = set()
        for check in cheap_checks(snapshot, fragment):
            if check.subject and check.subject in failed:
                continue
            error = _failure(check, progress)
            if error is not None:
                failed.add(check.subject or check.code)
                yield _failed(check, fragment, error)
        if not decode or failed & {file.path for file in fragment.files}:
            continue
        try:
            progress.num_values += check_values(snapshot, fragment)
            continue
        except LanceError:
            pass  # one of the columns is damaged: each is checked on its own
        for check in value_checks(snapshot, fragment):
            error = _failure(check, progress)
            if error is not None:
                yield _failed(check, fragment, error)


def _failed(check: Check, fragment: Fragment, error: LanceError) -> Finding:
    code = "file-not-supported" if isinstance(error, NotSupportedError) else check.code
    return Finding(code, str(error), check.path, None, None, fragment.id, error)


def _failure(check: Check, progress: _Progress) -> LanceError | None:
    try:
        progress.num_values += check.run()
    except LanceError as error:
        return error
    return None


def _identities(fragment: Fragment) -> set[str]:
    identities = {NamedFile(DATA, f"data/{file.path}").identity for file in fragment.files}
    if fragment.deletion_file is not None:
        path = fragment.deletion_file.location(fragment.id)
        identities.add(NamedFile(DELETION, path).identity)
    return identities


def _index_identity(uuid: str) -> str:
    return NamedFile(INDEX, f"_indices/{uuid}").identity


def _index_sums(
    snapshot: Snapshot, identities: set[str], sums: ChecksumChecks
) -> Iterator[Finding]:
    try:
        for index in read_indices(snapshot):
            if _index_identity(index.uuid) in identities:
                yield from sums.index(snapshot, index)
    except LanceError:
        return  # reported with the indices


def _whole_findings(
    snapshot: Snapshot, identities: set[str], read: set[str], *, is_newest: bool, contents: bool
) -> Iterator[Finding]:
    """Check a version as a whole: its numbers, repeated row ids, its indices."""
    try:
        if is_newest:
            yield from missing_hint(snapshot)
            yield from newest_findings(snapshot)
        yield from index_findings(
            snapshot,
            lambda uuid: _index_identity(uuid) in identities,
            contents=lambda uuid: contents and _index_identity(uuid) in read,
        )
    except (ObjectNotFoundError, NotSupportedError):
        pass  # reported with the files
    except LanceError as error:
        yield _unreadable(snapshot.branch, snapshot.version, snapshot.manifest.path, error)
    if not is_newest or not snapshot.manifest.reader_feature_flags & STABLE_ROW_IDS:
        return
    repeated = repeated_row_id(snapshot)
    if repeated is not None:
        row_id, first, other = repeated
        text = f"row id {row_id} is of live rows of fragments {first} and {other}"
        yield Finding("row-ids-repeated", text, "", snapshot.branch, snapshot.version, other)
