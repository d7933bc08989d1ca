"""Check that a manifest is consistent: numbers, flags, fields, base paths, indices, old states.

The rules are those for versions that this library writes (transactions/invariants), as far as they
hold for versions of every writer. Old releases of pylance left states that break them. Such a
version is read as pylance 14.0.2 reads it, so these states are no damage; but ``validate`` of
pylance refuses most of them, some cannot be changed, and the next version repairs the others
(transactions/old_manifests.py).

Limits: the fragments themselves are checked by fragments.py. Of a manifest that names no writer,
every data file is opened to compare its row counts.
Source: lance-table; pylance 14.0.2 refuses or misreads what breaks the rules; datasets of releases
0.3 to 4.0 (tests/golden/old_states.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from lance_nb.errors import LanceError
from lance_nb.format.feature_flags import DELETION_FILES, STABLE_ROW_IDS
from lance_nb.format.fragment import Fragment
from lance_nb.table.fragment_reader import confirmed_rows
from lance_nb.table.indices import read_indices
from lance_nb.table.scan_tasks import num_live_rows
from lance_nb.table.snapshot import Snapshot
from lance_nb.table.verification.findings import Finding

REWRITE = "write_dataset(ds, ds.uri, mode='overwrite') rewrites the dataset"


def manifest_findings(snapshot: Snapshot) -> Iterator[Finding]:
    """Find inconsistent numbers in the manifest of a version; opens no file of it.

    Raises CorruptFileError when it cannot be decoded.
    """
    manifest = snapshot.manifest
    path = manifest.path.removeprefix(f"{snapshot.locations.home.uri}/")

    def finding(code: str, text: str, fragment: int | None = None) -> Finding:
        return Finding(code, text, path, snapshot.branch, snapshot.version, fragment)

    counts = manifest.fragments.counts()
    highest = manifest.max_fragment_id
    if counts.ids.size and highest is not None and int(counts.ids.max()) > highest:
        number = int(counts.ids.max())
        text = f"there is a fragment {number}; the highest id ever is said to be {highest}"
        yield finding("max-fragment-id", text, number)
    if counts.num_deletion_files.any() and not manifest.writer_feature_flags & DELETION_FILES:
        text = "there are deletion files and the flags do not tell writers so"
        yield finding("flags-missing", text)
    if manifest.branch != snapshot.branch:
        branch_name = manifest.branch or "main"
        text = (
            f"it lies in the folder of {snapshot.branch or 'main'} and says it is of {branch_name}"
        )
        yield finding("manifest-branch", text)
    for number, times in Counter(base_path.id for base_path in manifest.base_paths).items():
        if times > 1:
            text = f"{times} base paths have the id {number}"
            yield finding("base-id-repeated", text)
    problem = _type_problem(snapshot)
    if problem is not None:
        yield finding("field-type", problem)


def newest_findings(snapshot: Snapshot) -> Iterator[Finding]:
    """Find inconsistencies of a whole version; opens its files where that is necessary.

    Raises CorruptFileError, ObjectNotFoundError.
    """
    path = snapshot.manifest.path.removeprefix(f"{snapshot.locations.home.uri}/")

    def finding(code: str, text: str, fragment: int | None = None) -> Finding:
        return Finding(code, text, path, snapshot.branch, snapshot.version, fragment)

    locations = snapshot.locations
    for old, new in zip(locations.bases, locations.present_bases(), strict=True):
        if old != new:
            text = f"moved from {old.path!r}; these files are read at {new.path!r} now"
            yield finding("base-moved", text)
    if snapshot.manifest.reader_feature_flags & STABLE_ROW_IDS:
        for fragment in snapshot.manifest.fragments:
            if fragment.row_ids is None:
                text = f"row ids are stable and fragment {fragment.id} has none"
                yield finding("row-ids-missing", text, fragment.id)
                break
    indices = read_indices(snapshot)
    uuids = [index.uuid for index in indices]
    if len(set(uuids)) < len(uuids):
        yield finding("index-uuid-repeated", "two indices have the same uuid")
    field_ids = {field.id for field in snapshot.manifest.schema.walk()}
    for lost in indices:
        if not field_ids.issuperset(lost.fields):
            text = f"index {lost.name!r} is on a field that the schema does not have"
            yield finding("index-field", text)
    for state in (*refused_states(snapshot), *tolerated_states(snapshot)):
        yield finding(state.code, state.text, state.fragment)


def _type_problem(snapshot: Snapshot) -> str | None:
    try:
        snapshot.manifest.schema.to_arrow()
    except LanceError as error:
        return "; ".join((str(error), *getattr(error, "__notes__", ())))
    return None


# --- states that old releases left ----------------------------------------------------------------


class OldState(NamedTuple):
    """A state that an old release left: the code of the finding, the fragment, and a text."""

    code: str
    fragment: int | None
    text: str


def refused_states(snapshot: Snapshot) -> Iterator[OldState]:
    """Yield the states of old releases that ``validate`` of pylance refuses.

    Raises as reading the version does.
    """
    fragments = snapshot.manifest.fragments
    repeated = fragments.repeated_id()
    ids = fragments.counts().ids
    if repeated is not None:
        yield OldState(
            "fragment-id-repeated",
            repeated,
            f"two fragments have the id {repeated}, as commits of releases up to 0.16 left it: "
            f"they are read in the order of the manifest and cannot be changed; {REWRITE}",
        )
    elif (ids[1:] < ids[:-1]).any():
        position = int((ids[1:] < ids[:-1]).argmax())
        yield OldState(
            "fragment-order",
            int(ids[position + 1]),
            f"fragment {ids[position + 1]} stands behind fragment {ids[position]}, as compactions "
            "of releases up to 0.8 left it: the next version sorts them",
        )
    if not fragments.has_counts:
        yield from _wrong_counts(snapshot)
    yield from _file_states(snapshot)
    yield from _overlaps(snapshot)


def _wrong_counts(snapshot: Snapshot) -> Iterator[OldState]:
    fragments = snapshot.manifest.fragments
    for raw, fragment in zip(fragments.raw, fragments, strict=True):
        stored = Fragment.from_bytes(raw, snapshot.manifest.path)
        rows = confirmed_rows(snapshot, fragment)
        deleted = rows - num_live_rows(snapshot, fragment)
        is_wrong = stored.physical_rows not in (0, rows)
        if is_wrong or stored.num_deleted_rows not in (0, deleted):
            yield OldState(
                "fragment-counts",
                fragment.id,
                f"the manifest counts {stored.physical_rows} rows and {stored.num_deleted_rows} "
                f"deleted ones in fragment {fragment.id}, which has {rows} and {deleted}, as "
                "release 0.8.0 left it: rows are counted in the files, and the next version "
                "records them",
            )
            return


def _file_states(snapshot: Snapshot) -> Iterator[OldState]:
    field_ids = {field.id for field in snapshot.manifest.schema.walk()}
    for fragment in snapshot.manifest.fragments:
        if len({file.is_legacy for file in fragment.files}) > 1:
            yield OldState(
                "file-versions-mixed",
                fragment.id,
                f"fragment {fragment.id} has data files of version 0.1 and of later ones, as "
                f"releases 0.16 mixed them: pylance cannot read all of it; {REWRITE}",
            )
            return
        for file in fragment.files:
            if all(field_id >= 0 and field_id not in field_ids for field_id in file.fields):
                yield OldState(
                    "fields-unknown",
                    fragment.id,
                    f"data file {file.path!r} of fragment {fragment.id} holds no column of the "
                    "schema, as releases up to 0.10 left the files of dropped columns: it is not "
                    "read",
                )
                return


def tolerated_states(snapshot: Snapshot) -> Iterator[OldState]:
    """Yield the states of old releases that ``validate`` of pylance accepts.

    Raises CorruptFileError.
    """
    fragments = snapshot.manifest.fragments
    if len({file.is_legacy for fragment in fragments for file in fragment.files}) > 1:
        yield OldState(
            "file-versions-mixed",
            None,
            "there are data files of version 0.1 and of later ones, as releases 0.12 to 0.16 mixed "
            f"them: pylance refuses such a version or fails to filter it; {REWRITE}",
        )
    for index in read_indices(snapshot):
        if not index.is_system and index.fragment_ids(snapshot.manifest.path) is None:
            yield OldState(
                "index-coverage-unknown",
                None,
                f"index {index.name!r} does not say which fragments it covers, as releases up to "
                "0.7 left it: build it again",
            )


def _overlaps(snapshot: Snapshot) -> Iterator[OldState]:
    covered: dict[str, Counter[int]] = {}
    for index in read_indices(snapshot):
        fragments = index.fragment_ids(snapshot.manifest.path)
        if fragments is not None and not index.is_system:
            covered.setdefault(index.name, Counter()).update(fragments)
    for name, counts in covered.items():
        twice = [fragment_id for fragment_id, count in counts.items() if count > 1]
        if twice:
            yield OldState(
                "index-coverage-overlaps",
                None,
                f"two segments of index {name!r} cover fragment {min(twice)}, as optimize_indices "
                "of releases up to 0.21 left it: the next commit of pylance corrects it",
            )
