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
from lance_nb.format.manifest_files import (
    DATA,
    DELETION,
    INDEX,
    TRANSACTION,
    NamedFile,
)
from lance_nb.table.dangling import (
    MISSING,
    Dataset,
    damaged_manifests,
    file_problems,
    ref_problems,
    unreferenced,
)
from lance_nb.table.file_references import Line, References
from lance_nb.table.fragment_checks import DATA_FILE, LINEAGE, Check, cheap_checks, value_checks
from lance_nb.table.indices import read_indices
from lance_nb.table.manifest_checks import manifest_problems
from lance_nb.table.row_id_index import live_ids
from lance_nb.table.snapshot import Snapshot
from lance_nb.table.verification_report import Problem, Verification

Tick = Callable[[], object]
_READ = (DATA, DELETION)


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
        *ref_problems(dataset.survey),
        *damaged_manifests(dataset),
        *file_problems(dataset),
    ]
    for folder, line in dataset.references.lines.items():
        problems += _line_problems(dataset, folder, line, counts, values=values, tick=tick)
    problems = _without_echoes(problems)
    orphans = unreferenced(dataset)
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
        for text in manifest_problems(snapshot):
            yield "manifest", snapshot.manifest.path, InvalidInputError(text)
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
