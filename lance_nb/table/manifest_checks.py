"""Does a manifest agree with itself: numbers, flags, fields, base paths, indices, who wrote it.

The same rules as for versions that we write (transactions/invariants), as far as they hold for
versions of every writer.

Limits: the fragments themselves are looked at by fragment_checks.py and row_id_checks.py.
Source: lance-table; pylance 14.0.2 refuses or misreads what breaks these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from lance_nb.errors import LanceError
from lance_nb.format.feature_flags import DELETION_FILES, STABLE_ROW_IDS
from lance_nb.table.indices import read_indices
from lance_nb.table.old_states import refused_states, tolerated_states
from lance_nb.table.snapshot import Snapshot
from lance_nb.table.verification_report import Finding


def manifest_findings(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield what is wrong with the numbers of a version; opens no file of it.

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
        found = manifest.branch or "main"
        text = f"it lies in the folder of {snapshot.branch or 'main'} and says it is of {found}"
        yield finding("manifest-branch", text)
    for number, times in Counter(one.id for one in manifest.base_paths).items():
        if times > 1:
            text = f"{times} base paths have the id {number}"
            yield finding("base-id-repeated", text)
    problem = _type_problem(snapshot)
    if problem is not None:
        yield finding("field-type", problem)


def newest_findings(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield what is wrong with a version as a whole, its files opened where they must be.

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
    uuids = [one.uuid for one in indices]
    if len(set(uuids)) < len(uuids):
        yield finding("index-uuid-repeated", "two indices have the same uuid")
    names = {one.id for one in snapshot.manifest.schema.walk()}
    for lost in indices:
        if not names.issuperset(lost.fields):
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
