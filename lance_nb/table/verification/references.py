"""Check names: versions of a branch, the hint to the newest, tags, branches, files that must exist.

Layout: ``_versions/latest_version_hint.json`` is ``{"version": N}``, written after version N.

Limits: everything is decided from manifests and one listing; a file under a base path outside of
the dataset is looked up by itself, and only if that place was allowed. Missing versions in between
are found only where the transaction file of one still exists: a clean-up removes both. A missing
newest version is known from the hint alone, which not every writer writes.
Source: format/layout.py; the hint as pylance 14.0.2 writes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from lance_nb.errors import (
    CorruptFileError,
    InvalidInputError,
    LanceError,
    NotSupportedError,
    ObjectNotFoundError,
)
from lance_nb.format.layout import (
    DETACHED_BIT,
    HINT_PATH,
    QUARANTINE,
    VERSIONS,
    branch_path,
    branch_root,
    parse_manifest_name,
    tag_path,
)
from lance_nb.format.manifest_history import (
    DATA,
    DELETION,
    INDEX,
    TRANSACTION,
    NamedFile,
    VersionFiles,
    identity_of,
)
from lance_nb.format.transaction_summary import count_of
from lance_nb.storage.base import Store
from lance_nb.table.cleanup_plan import needed_identities
from lance_nb.table.file_references import Line, References
from lance_nb.table.locations import Locations
from lance_nb.table.snapshot import Snapshot
from lance_nb.table.survey import (
    TEMPORARY_MANIFEST,
    LineOfVersions,
    StoredFile,
    Survey,
    staged_version,
)
from lance_nb.table.verification.findings import Finding
from lance_nb.table.versions import describe_versions
from lance_nb.value_classes import dataclass

Load = Callable[[str | None, int], Snapshot]
Place = Callable[[str, VersionFiles], Locations]
_MISSING = {DATA: "data-file-missing", DELETION: "deletion-file-missing", INDEX: "index-missing"}
_UNUSABLE = {"tag": "tag-unreadable", "branch": "branch-unreadable", "name": "branch-name"}
HINT_BYTES_MAX = 4096
_READ_VERSION = re.compile(r"(\d{1,19})-[^/]*\.txn")
_SHOWN = 3
_HINTS_SINCE = 14  # major release of pylance


@dataclass(frozen=True, slots=True)
class Dataset:
    """The dataset that is verified: survey, references, and functions that load and locate."""

    survey: Survey
    references: References
    load: Load
    place: Place

    def branch(self, folder: str) -> str | None:
        """Return the branch in a folder."""
        return self.survey.lines[folder].branch


# --- versions of a branch -------------------------------------------------------------------------


def line_findings(survey: Survey, references: References, folder: str) -> Iterator[Finding]:
    """Check the versions of one branch by the names of files, and report unreadable manifests."""
    line, read = survey.lines[folder], references.lines.get(folder)
    yield from _unreadable(line, read)
    if not line.names:
        if folder == "":
            yield Finding("no-versions", _without_versions(survey), VERSIONS)
        return
    yield from _hint(survey.store(folder), line)
    mine = [file for file in survey.files if file.home == folder]
    yield from _gaps(line, references, mine, quarantined_versions(survey, folder))
    yield from _leftovers(line, mine)


def _without_versions(survey: Survey) -> str:
    left = [file for file in survey.files if file.kind in (DATA, DELETION, INDEX)]
    if not left:
        return "there is no manifest of main"
    size = sum(file.size_bytes for file in left)
    return (
        f"there is no manifest of main, and {count_of(len(left), 'file')} of {size:,} bytes are "
        "left, as a drop that was interrupted leaves them"
    )


def _unreadable(line: LineOfVersions, read: Line | None) -> Iterator[Finding]:
    if read is None:
        return
    newest = line.names[-1].version if line.names else None
    good = max(
        (version.version for version in read.versions if version.version < DETACHED_BIT),
        default=None,
    )
    for name, error in read.damaged:
        is_new = isinstance(error, NotSupportedError)
        code = "manifest-not-supported" if is_new else "manifest-unreadable"
        finding = Finding(code, str(error), name.path, line.branch, name.version, error=error)
        yield as_newest(finding, good) if name.version == newest else finding


def as_newest(finding: Finding, good: int | None) -> Finding:
    """Report an unreadable manifest as the newest version; ``good`` is the last readable one."""
    if finding.code != "manifest-unreadable":
        return finding
    if good is None:
        text = f"the newest version cannot be opened, nor can any other: {finding.message}"
        return replace(finding, code="none-readable", message=text)
    newest_readable = f"version {good} is the last that can be"
    text = f"the newest version cannot be opened ({newest_readable}): {finding.message}"
    return replace(finding, code="newest-unreadable", message=text)


def read_hint(home: Store) -> int | None:
    """Return the version of the hint, None without a hint, -1 if it cannot be parsed.

    Raises LanceError if it cannot be read.
    """
    try:
        data = home.read_tail(HINT_PATH, HINT_BYTES_MAX)[0]
    except ObjectNotFoundError:
        return None
    try:
        hint = json.loads(bytes(data))
    except (ValueError, RecursionError):
        return -1
    match hint:
        case {"version": int(version)} if not isinstance(version, bool):
            return version if 0 < version < DETACHED_BIT else -1
    return -1


def _hint(home: Store, line: LineOfVersions) -> Iterator[Finding]:
    newest = line.names[-1].version
    try:
        hint = read_hint(home)
    except LanceError as error:
        yield Finding("hint-unreadable", str(error), HINT_PATH, line.branch, error=error)
        return
    if hint is None or hint == newest:
        return
    if hint < 0:
        text = "it does not name a version"
        yield Finding("hint-unreadable", text, HINT_PATH, line.branch)
    elif hint < newest:
        text = f"it names version {hint}, the newest is {newest}"
        yield Finding("hint-stale", text, HINT_PATH, line.branch)
    elif hint not in _versions_now(home):  # not just committed
        text = f"the hint names version {hint}, and the newest manifest is of version {newest}"
        yield Finding("newest-missing", text, HINT_PATH, line.branch, hint)


def missing_hint(snapshot: Snapshot) -> Iterator[Finding]:
    """Find a missing hint, where the newest version is by a writer that leaves one.

    Raises StorageError.
    """
    writer = snapshot.manifest.writer_version
    if writer is None or snapshot.locations.home.exists(HINT_PATH):
        return
    major = writer.version.partition(".")[0]
    is_new = writer.library == "lance" and major.isdecimal() and int(major) >= _HINTS_SINCE
    if is_new or writer.library == "lance_nb":
        text = "there is no hint to the newest version"
        yield Finding("hint-missing", text, HINT_PATH, snapshot.branch, snapshot.version)


def _versions_now(home: Store) -> set[int]:
    manifest_names = map(parse_manifest_name, home.list_names(VERSIONS))
    return {manifest_name.version for manifest_name in manifest_names if manifest_name is not None}


def quarantined_versions(survey: Survey, folder: str) -> set[int]:
    """Return the versions whose manifests a repair has moved to quarantine."""
    versions = f"{folder}/{VERSIONS}" if folder else VERSIONS
    set_aside = set()
    for file in survey.files:
        if file.path.startswith(f"{QUARANTINE}/"):
            place, _, name = file.path.partition("/files/")[2].rpartition("/")
            parsed = parse_manifest_name(name) if place == versions else None
            if parsed is not None:
                set_aside.add(parsed.version)
    return set_aside


def _gaps(
    line: LineOfVersions, references: References, files: Sequence[StoredFile], aside: set[int]
) -> Iterator[Finding]:
    """Find missing versions whose transactions still exist.

    ``aside`` are versions whose manifests a repair has moved to quarantine.
    """
    versions = {name.version for name in line.names} | aside
    first, last = line.names[0].version, line.names[-1].version
    lost = set()
    for file in files:
        name = file.path.rpartition("/")[2]
        match = _READ_VERSION.fullmatch(name) if file.kind == TRANSACTION else None
        if match is None or references.knows(identity_of(TRANSACTION, name)):
            continue
        version = int(match[1]) + 1
        if first < version < last and version not in versions:
            lost.add(version)
    if lost:
        near = [name for name in line.names if name.version + 1 in lost or name.version - 1 in lost]
        shown = ", ".join(map(str, sorted(lost)[:_SHOWN]))
        more = f" and {len(lost) - _SHOWN} more" if len(lost) > _SHOWN else ""
        text = (
            f"there is a transaction of version {shown}{more} and no manifest of it, beside "
            f"{describe_versions(near)}"
        )
        yield Finding("version-gap", text, VERSIONS, line.branch, min(lost))


def _leftovers(line: LineOfVersions, files: Sequence[StoredFile]) -> Iterator[Finding]:
    newest = line.names[-1].version
    for file in files:
        if file.kind != TEMPORARY_MANIFEST:
            continue
        name = file.path.rpartition("/")[2]
        version = staged_version(name)
        if version is not None and version > newest and ".manifest-" in name:
            text = f"version {version} was staged for an external manifest store and never placed"
            yield Finding("staged-manifest", text, file.path, line.branch, version)
        else:
            text = f"an interrupted commit left {count_of(file.size_bytes, 'byte')}"
            yield Finding("leftover-file", text, file.path, line.branch)


# --- tags, branches and files ---------------------------------------------------------------------


def ref_findings(survey: Survey) -> Iterator[Finding]:
    """Find records of tags and branches that cannot be read or do not fit the versions."""
    for ref in survey.unusable:
        if ref.kind == "line":
            branch = survey.lines[ref.name].branch
            yield Finding("naming-mixed", str(ref.error), "_versions", branch, error=ref.error)
            continue
        path = (tag_path if ref.kind == "tag" else branch_path)(ref.name)
        yield Finding(_UNUSABLE[ref.kind], str(ref.error), path, error=ref.error)
    for name, tag in survey.tags.items():
        line = _line(survey, tag.branch)
        place = f"{tag.branch or 'main'}:{tag.version}"
        if line is None or not _has(line, tag.version):
            text = f"tag {name!r} points at {place}, which does not exist"
            if line is not None and tag.version in quarantined_versions(survey, line.folder):
                text = (
                    f"tag {name!r} points at {place}, whose manifest could not be read and was "
                    "moved to quarantine by a repair"
                )
            yield Finding("tag-dangling", text, tag_path(name))
        else:
            wrong = _wrong_size(survey, line, tag.version, tag.manifest_size_bytes)
            if wrong:
                yield Finding("tag-manifest-size", f"tag {name!r}: {wrong}", tag_path(name))
    yield from _branch_findings(survey)


def _branch_findings(survey: Survey) -> Iterator[Finding]:
    for name, branch in survey.branches.items():
        path = branch_path(name)
        if not survey.lines[branch_root(name)].names:
            text = f"branch {name!r} has a record and no versions: its creation was interrupted"
            yield Finding("branch-without-versions", text, path, name)
        parent = _line(survey, branch.parent_branch)
        place = f"{branch.parent_branch or 'main'}:{branch.parent_version}"
        if parent is None or not _has(parent, branch.parent_version):
            text = f"branch {name!r} started from {place}, which does not exist any more"
            yield Finding("branch-parent-missing", text, path, name)
        else:
            manifest_size = branch.manifest_size_bytes
            wrong = _wrong_size(survey, parent, branch.parent_version, manifest_size)
            if wrong:
                yield Finding("branch-manifest-size", f"branch {name!r}: {wrong}", path, name)
    roots = {branch_root(ref.name) for ref in survey.unusable if ref.kind in ("branch", "name")}
    for folder, line in survey.lines.items():
        if line.branch is None or line.branch in survey.branches or folder in roots:
            continue
        text = (
            f"folder {folder!r} has {len(line.names)} versions and no record of a branch: its "
            "creation or deletion was interrupted, or is going on"
        )
        yield Finding("branch-without-record", text, folder, line.branch)


def _line(survey: Survey, branch: str | None) -> LineOfVersions | None:
    return survey.lines.get("" if branch is None else branch_root(branch))


def _has(line: LineOfVersions, version: int) -> bool:
    return any(name.version == version for name in (*line.names, *line.detached))


def _wrong_size(survey: Survey, line: LineOfVersions, version: int, stored_size: int) -> str | None:
    """Return what is wrong with the size that a record says of a manifest; 0 is not recorded."""
    name = next(
        candidate for candidate in (*line.names, *line.detached) if candidate.version == version
    )
    file = survey.manifest(line.folder, name)
    if file is None or stored_size in (0, file.size_bytes):
        return None
    return f"the record says {stored_size} bytes of the manifest, which has {file.size_bytes}"


def file_findings(dataset: Dataset) -> Iterator[Finding]:
    """Find files that versions name and that do not exist, also under base paths."""
    present_paths = {file.path for file in dataset.survey.files}
    present_paths |= {path.rpartition("/")[0] for path in present_paths}  # of indices
    refused: set[tuple[str, int | None]] = set()
    for folder, line in dataset.references.lines.items():
        home = line.home
        branch = dataset.branch(home)
        is_lost: list[bool] = []  # of each data file
        findings: list[Finding] = []
        for file, position in line.first_named.items():
            if file.kind in (DATA, DELETION) or (file.kind == INDEX and file.size_bytes):
                version = line.versions[position]
                problem = _missing(dataset, home, version, file=file, present_paths=present_paths)
                if file.kind == DATA:
                    is_lost.append(problem is not None and problem[0] == _MISSING[DATA])
                if problem is None:
                    continue
                code, text, error = problem
                if code.startswith("base-"):  # once for all of its files
                    if (folder, file.base_id) in refused:
                        continue
                    refused.add((folder, file.base_id))
                finding = Finding(code, text, file.path, branch, version.version, error=error)
                findings.append(finding)
        if folder == home == "" and is_lost and all(is_lost):
            num_lost = len(is_lost)
            lost = "the only data file of main is not there"
            if num_lost > 1:
                lost = f"none of the {num_lost:,} data files of main is there"
            text = f"{lost}, as a drop that was interrupted leaves it"
            yield Finding("half-dropped", text, DATA)
        yield from findings


def _missing(
    dataset: Dataset, folder: str, version: VersionFiles, file: NamedFile, present_paths: set[str]
) -> tuple[str, str, LanceError | None] | None:
    missing = _MISSING[file.kind], "versions from this one on refer to it, and it is not there"
    try:
        store, path = dataset.place(folder, version).locate(file.path, file.base_id)
        root = dataset.survey.root.uri
        if store.uri == root or store.uri.startswith(f"{root}/"):
            inside = store.uri[len(root) :].lstrip("/")
            whole = f"{inside}/{path}" if inside else path
            exists = whole in present_paths or (
                file.kind != INDEX and store.exists(path)
            )  # behind a link
        else:
            exists = bool(store.list_recursive(path)) if file.kind == INDEX else store.exists(path)
    except CorruptFileError as error:
        return "base-unknown", str(error), error
    except InvalidInputError as error:
        code = missing[0] if file.base_id is None else "base-not-allowed"
        return code, str(error), error
    except LanceError as error:
        return missing[0], str(error), error
    return None if exists else (*missing, None)


def unreferenced(dataset: Dataset) -> list[StoredFile]:
    """List the files of the usual folders that no version refers to."""
    files = dataset.survey.files
    identities = dataset.references.numbers_of([file.identity for file in files]).tolist()
    needed = needed_identities(dataset.references, {})
    return [
        file
        for file, key in zip(files, identities, strict=True)
        if file.kind in (DATA, DELETION, INDEX) and not (key >= 0 and needed[key])
    ]
