"""Verify a whole dataset: every version of every branch, every file, every value.

The order is from names to bytes: refs point at versions; manifests can be read; files they name are
there; fragments are what the manifests say; every column decodes. Each data file is decoded once,
in the newest version that has it, whatever the number of versions.

Limits: files under base paths that were not allowed are reported as unreachable and not read. See
fragment_checks.py for what values can and cannot tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from lance_nb.errors import InvalidInputError, LanceError, ObjectNotFoundError
from lance_nb.format.feature_flags import STABLE_ROW_IDS
from lance_nb.format.fragment import Fragment
from lance_nb.format.layout import branch_root
from lance_nb.format.manifest_files import (
    DATA,
    DELETION,
    INDEX,
    TRANSACTION,
    NamedFile,
    VersionFiles,
)
from lance_nb.table.cleanup_plan import needed_identities
from lance_nb.table.file_references import Line, References
from lance_nb.table.fragment_checks import DATA_FILE, LINEAGE, Check, cheap_checks, value_checks
from lance_nb.table.indices import read_indices
from lance_nb.table.locations import Locations
from lance_nb.table.row_id_index import live_ids
from lance_nb.table.snapshot import Snapshot
from lance_nb.table.stored_files import StoredFile
from lance_nb.table.survey import Survey
from lance_nb.table.verification_report import Problem, Verification

Load = Callable[[str | None, int], Snapshot]
Place = Callable[[str, VersionFiles], Locations]
Tick = Callable[[], object]
MISSING = "missing file"
_READ = (DATA, DELETION)


@dataclass(frozen=True, slots=True)
class Dataset:
    """What is verified: the survey, the references, and how to load a version and find files."""

    survey: Survey
    references: References
    load: Load
    place: Place

    def branch(self, folder: str) -> str | None:
        """Return the branch in a folder."""
        return self.survey.lines[folder].branch


@dataclass(slots=True, frozen=True)
class _Counts:
    """What was looked at, by name; ``done`` are the identities of files that were read."""

    numbers: dict[str, int] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)

    def add(self, name: str, count: int = 1) -> None:
        """Count."""
        self.numbers[name] = self.numbers.get(name, 0) + count


def verify(dataset: Dataset, *, values: bool = True, tick: Tick = lambda: None) -> Verification:
    """Look at everything; ``values`` False leaves out decoding. ``tick`` is called per version."""
    counts = _Counts()
    problems = [
        *_ref_problems(dataset.survey),
        *_manifest_problems(dataset),
        *_file_problems(dataset),
    ]
    for folder, line in dataset.references.lines.items():
        problems += _line_problems(dataset, folder, line, counts, values=values, tick=tick)
    problems = _without_echoes(problems)
    orphans = _orphans(dataset)
    lines = dataset.references.lines.values()
    named: dict[str, set[str]] = {DATA: set(), DELETION: set(), INDEX: set(), TRANSACTION: set()}
    for one in (file for line in lines for file in line.first_named):
        named[one.kind].add(one.identity)
    return Verification(
        uri=dataset.survey.root.uri,
        num_versions=sum(len(line.versions) for line in lines),
        num_fragments=counts.numbers.get("fragments", 0),
        num_data_files=len(named[DATA]),
        num_deletion_files=len(named[DELETION]),
        num_indices=len(named[INDEX]),
        num_values=counts.numbers.get("values", 0),
        num_orphans=len(orphans),
        orphan_bytes=sum(one.size_bytes for one in orphans),
        problems=tuple(problems),
        orphans=tuple(one.path for one in orphans),
    )


def _without_echoes(problems: list[Problem]) -> list[Problem]:
    """Leave out what only says once more that a file is missing."""
    missing = {(one.branch, one.path) for one in problems if one.kind == MISSING}
    return [
        one
        for one in problems
        if not (isinstance(one.error, ObjectNotFoundError) and (one.branch, one.path) in missing)
    ]


# --- names ----------------------------------------------------------------------------------------


def _ref_problems(survey: Survey) -> Iterator[Problem]:
    for name, tag in survey.tags.items():
        if not _has_version(survey, tag.branch, tag.version):
            place = f"{tag.branch or 'main'}:{tag.version}"
            yield Problem("tag", None, None, name, f"it points at {place}, which does not exist")
    for name, branch in survey.branches.items():
        if not survey.lines[branch_root(name)].names:
            yield Problem("branch", None, None, name, "it has a record and no versions")
        if not _has_version(survey, branch.parent_branch, branch.parent_version):
            place = f"{branch.parent_branch or 'main'}:{branch.parent_version}"
            text = f"it started from {place}, which does not exist any more: it cannot be merged"
            yield Problem("branch", None, None, name, text)


def _has_version(survey: Survey, branch: str | None, version: int) -> bool:
    line = survey.lines.get("" if branch is None else branch_root(branch))
    if line is None:
        return False
    return any(one.version == version for one in (*line.names, *line.detached))


def _manifest_problems(dataset: Dataset) -> Iterator[Problem]:
    for folder, line in dataset.references.lines.items():
        for name, error in line.damaged:
            branch = dataset.branch(folder)
            yield Problem("manifest", branch, name.version, name.path, str(error), error)


def _file_problems(dataset: Dataset) -> Iterator[Problem]:
    """Find files that versions name and that are not there."""
    there = {one.path for one in dataset.survey.files}
    folders = {one.path.rpartition("/")[0] for one in dataset.survey.files}
    for folder, line in dataset.references.lines.items():
        for file, at in line.first_named.items():
            if file.kind in (DATA, DELETION) or (file.kind == INDEX and file.size_bytes):
                version = line.versions[at]
                text = _missing(dataset, folder, version, file, there | folders)
                if text is not None:
                    kind, message = text
                    branch = dataset.branch(folder)
                    yield Problem(kind, branch, version.version, file.path, message)


def _missing(
    dataset: Dataset, folder: str, version: VersionFiles, file: NamedFile, there: set[str]
) -> tuple[str, str] | None:
    try:
        store, path = dataset.place(folder, version).locate(file.path, file.base_id)
    except InvalidInputError as error:
        return "unreachable", str(error)
    except LanceError as error:
        return "manifest", str(error)
    root = dataset.survey.root.uri
    if store.uri == root or store.uri.startswith(f"{root}/"):
        inside = store.uri[len(root) :].lstrip("/")
        whole = f"{inside}/{path}" if inside else path
        found = whole in there or (file.kind != INDEX and store.exists(path))  # behind a link
    else:
        found = bool(store.list_recursive(path)) if file.kind == INDEX else store.exists(path)
    return None if found else (MISSING, "versions from this one on refer to it")


def _orphans(dataset: Dataset) -> list[StoredFile]:
    files = dataset.survey.files
    known = dataset.references.known([one.identity for one in files]).tolist()
    needed = needed_identities(dataset.references, {})
    return [
        one
        for one, key in zip(files, known, strict=True)
        if one.kind in (DATA, DELETION, INDEX) and not (key >= 0 and needed[key])
    ]


# --- bytes ----------------------------------------------------------------------------------------


def _line_problems(
    dataset: Dataset, folder: str, line: Line, counts: _Counts, *, values: bool, tick: Tick
) -> Iterator[Problem]:
    branch = dataset.branch(folder)
    left = _newest_first(dataset.references, line)
    for at in range(len(line.versions) - 1, -1, -1):
        tick()
        wanted = left.get(at, set()) - counts.done
        is_newest = at == len(line.versions) - 1
        if not wanted and not is_newest:
            continue
        version = line.versions[at].version
        try:
            snapshot = dataset.load(branch, version)
            snapshot.manifest.fragments.counts()
        except LanceError as error:
            yield Problem("manifest", branch, version, line.versions[at].path, str(error), error)
            continue
        found = [*_snapshot_errors(snapshot, counts, values=values)]
        found += _newest_errors(snapshot) if is_newest else ()
        yield from (
            Problem(kind, branch, version, path, str(one), one) for kind, path, one in found
        )


def _newest_first(references: References, line: Line) -> Mapping[int, set[str]]:
    """Return the identities of files to read, by the last position that refers to them."""
    spans = line.spans()
    last = np.full(len(references), -1, np.int64)
    np.maximum.at(last, spans.identity, spans.stop - 1)
    found: dict[int, set[str]] = {}
    for file in line.first_named:
        if file.kind in _READ:
            at = int(last[references.identity(file.identity)])
            found.setdefault(at, set()).add(file.identity)
    return found


def _snapshot_errors(
    snapshot: Snapshot, counts: _Counts, *, values: bool
) -> Iterator[tuple[str, str, LanceError]]:
    for fragment in snapshot.manifest.fragments:
        names = _identities(fragment)
        if names <= counts.done:
            continue
        counts.add("fragments")
        files = {name for name in names if name.startswith(DATA)}
        decode = values and not files <= counts.done
        counts.done.update(names)
        yield from _fragment_errors(snapshot, fragment, counts, values=decode)


def _fragment_errors(
    snapshot: Snapshot, fragment: Fragment, counts: _Counts, *, values: bool
) -> Iterator[tuple[str, str, LanceError]]:
    failed: set[str] = set()
    for check in cheap_checks(snapshot, fragment):
        if check.kind == LINEAGE and failed:
            continue  # it reads the same files
        error = _failure(check, counts)
        if error is not None:
            failed.add(check.kind)
            yield check.kind, check.path, error
    for check in value_checks(snapshot, fragment) if values and DATA_FILE not in failed else ():
        error = _failure(check, counts)
        if error is not None:
            yield check.kind, check.path, error


def _failure(check: Check, counts: _Counts) -> LanceError | None:
    try:
        counts.add("values", check.run())
    except LanceError as error:
        return error
    return None


def _identities(fragment: Fragment) -> set[str]:
    found = {NamedFile(DATA, f"data/{one.path}").identity for one in fragment.files}
    if fragment.deletion_file is not None:
        path = fragment.deletion_file.location(fragment.id)
        found.add(NamedFile(DELETION, path).identity)
    return found


def _newest_errors(snapshot: Snapshot) -> Iterator[tuple[str, str, LanceError]]:
    """Check what is said of the whole version: row ids that differ, files of indices."""
    try:
        indices = read_indices(snapshot)
    except LanceError as error:
        yield "manifest", snapshot.manifest.path, error
        return
    if _repeats_row_ids(snapshot):
        text = "a row id occurs in two live rows"
        yield LINEAGE, snapshot.manifest.path, InvalidInputError(text)
    for index in indices:
        for file in index.files:
            path = f"_indices/{index.uuid}/{file.path}"
            wrong = _index_error(snapshot, path, index.base_id, file.size_bytes)
            if wrong is not None:
                yield "index", path, wrong


def _repeats_row_ids(snapshot: Snapshot) -> bool:
    if not snapshot.manifest.reader_feature_flags & STABLE_ROW_IDS:
        return False
    try:
        ids = live_ids(snapshot)
    except LanceError:
        return False  # the checks of its fragments have said what is wrong
    return bool(np.unique(ids).size < ids.size)


def _index_error(
    snapshot: Snapshot, path: str, base_id: int | None, size_bytes: int
) -> LanceError | None:
    try:
        store, inside = snapshot.locations.locate(path, base_id)
        found = store.size(inside)
    except (ObjectNotFoundError, InvalidInputError) as error:
        return error
    if size_bytes and found != size_bytes:
        return InvalidInputError(f"it has {found} bytes instead of {size_bytes}")
    return None
