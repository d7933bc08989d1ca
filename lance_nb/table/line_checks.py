"""Is a line of versions complete: its newest version, its hint, versions between, leftovers.

Layout: ``_versions/latest_version_hint.json`` is ``{"version": N}``, written after version N.

Limits: that versions are missing in between is told only where the transaction file of one is still
there: a clean-up removes both. A newest version that is gone is known from the hint alone, which
not every writer writes.
Source: format/layout.py; the hint as pylance 14.0.2 writes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from lance_nb.errors import LanceError, NotSupportedError, ObjectNotFoundError
from lance_nb.format.layout import (
    DETACHED_BIT,
    HINT_PATH,
    QUARANTINE,
    VERSIONS,
    parse_manifest_name,
)
from lance_nb.format.manifest_files import TRANSACTION, identity_of
from lance_nb.format.operation_details import count_of
from lance_nb.storage.base import Store
from lance_nb.table.file_references import Line, References
from lance_nb.table.snapshot import Snapshot
from lance_nb.table.survey import (
    TEMPORARY_MANIFEST,
    LineOfVersions,
    StoredFile,
    Survey,
    staged_version,
)
from lance_nb.table.verification_report import Finding
from lance_nb.table.versions import describe_versions

HINT_BYTES_MAX = 4096
_READ_VERSION = re.compile(r"(\d{1,19})-[^/]*\.txn")
_SHOWN = 3
_HINTS_SINCE = 14  # major release of pylance


def line_findings(survey: Survey, references: References, folder: str) -> Iterator[Finding]:
    """Check what the names of files say of one line of versions, and what could not be read."""
    line, read = survey.lines[folder], references.lines.get(folder)
    yield from _unreadable(line, read)
    if not line.names:
        if folder == "":
            yield Finding("no-versions", "there is no manifest of main", VERSIONS)
        return
    yield from _hint(survey.store(folder), line)
    mine = [one for one in survey.files if one.home == folder]
    yield from _gaps(line, references, mine, put_aside(survey, folder))
    yield from _leftovers(line, mine)


def _unreadable(line: LineOfVersions, read: Line | None) -> Iterator[Finding]:
    if read is None:
        return
    newest = line.names[-1].version if line.names else None
    good = max((one.version for one in read.versions if one.version < DETACHED_BIT), default=None)
    for name, error in read.damaged:
        is_new = isinstance(error, NotSupportedError)
        code = "manifest-not-supported" if is_new else "manifest-unreadable"
        found = Finding(code, str(error), name.path, line.branch, name.version, error=error)
        yield as_newest(found, good) if name.version == newest else found


def as_newest(found: Finding, good: int | None) -> Finding:
    """Say that what cannot be read is the newest version; ``good`` is the last that can be."""
    if found.code != "manifest-unreadable":
        return found
    if good is None:
        text = f"the newest version cannot be opened, nor can any other: {found.message}"
        return replace(found, code="none-readable", message=text)
    said = f"version {good} is the last that can be"
    text = f"the newest version cannot be opened ({said}): {found.message}"
    return replace(found, code="newest-unreadable", message=text)


def read_hint(home: Store) -> int | None:
    """Return what the hint says, None if there is none. Raises LanceError if it says nothing."""
    try:
        data = home.read_tail(HINT_PATH, HINT_BYTES_MAX)[0]
    except ObjectNotFoundError:
        return None
    try:
        said = json.loads(bytes(data))
    except (ValueError, RecursionError):
        return -1
    match said:
        case {"version": int(version)} if not isinstance(version, bool):
            return version if 0 < version < DETACHED_BIT else -1
    return -1


def _hint(home: Store, line: LineOfVersions) -> Iterator[Finding]:
    newest = line.names[-1].version
    try:
        said = read_hint(home)
    except LanceError as error:
        yield Finding("hint-unreadable", str(error), HINT_PATH, line.branch, error=error)
        return
    if said is None or said == newest:
        return
    if said < 0:
        text = "it does not name a version"
        yield Finding("hint-unreadable", text, HINT_PATH, line.branch)
    elif said < newest:
        text = f"it names version {said}, the newest is {newest}"
        yield Finding("hint-stale", text, HINT_PATH, line.branch)
    elif said not in _versions_now(home):  # not just committed
        text = f"the hint names version {said}, and the newest manifest is of version {newest}"
        yield Finding("newest-missing", text, HINT_PATH, line.branch, said)


def missing_hint(snapshot: Snapshot) -> Iterator[Finding]:
    """Find that the hint is gone, where the newest version is by a writer that leaves one.

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
    found = map(parse_manifest_name, home.list_names(VERSIONS))
    return {one.version for one in found if one is not None}


def put_aside(survey: Survey, folder: str) -> set[int]:
    """Return the versions of which a repair has put the manifest aside."""
    versions = f"{folder}/{VERSIONS}" if folder else VERSIONS
    found = set()
    for one in survey.files:
        if one.path.startswith(f"{QUARANTINE}/"):
            place, _, name = one.path.partition("/files/")[2].rpartition("/")
            parsed = parse_manifest_name(name) if place == versions else None
            if parsed is not None:
                found.add(parsed.version)
    return found


def _gaps(
    line: LineOfVersions, references: References, files: Sequence[StoredFile], aside: set[int]
) -> Iterator[Finding]:
    """Find versions that are missing although what they wrote is still there.

    ``aside`` are those that a repair has put aside.
    """
    known = {one.version for one in line.names} | aside
    first, last = line.names[0].version, line.names[-1].version
    lost = set()
    for file in files:
        name = file.path.rpartition("/")[2]
        found = _READ_VERSION.fullmatch(name) if file.kind == TRANSACTION else None
        if found is None or references.knows(identity_of(TRANSACTION, name)):
            continue
        version = int(found[1]) + 1
        if first < version < last and version not in known:
            lost.add(version)
    if lost:
        near = [one for one in line.names if one.version + 1 in lost or one.version - 1 in lost]
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
