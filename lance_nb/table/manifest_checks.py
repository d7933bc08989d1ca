"""Does a manifest agree with itself: numbers, flags, indices, and who wrote it.

The same rules as for versions that we write (transactions/invariants), as far as they hold for
versions of every writer.

Limits: the fragments themselves are looked at by fragment_checks.py.
Source: lance-table; pylance 14.0.2 refuses or misreads what breaks these.
"""

from __future__ import annotations

from collections.abc import Iterator

from lance_nb.format.feature_flags import DELETION_FILES, STABLE_ROW_IDS
from lance_nb.table.indices import read_indices
from lance_nb.table.old_states import refused_states, tolerated_states
from lance_nb.table.snapshot import Snapshot


def manifest_problems(snapshot: Snapshot) -> Iterator[str]:
    """Yield what is wrong, in words. Raises CorruptFileError when it cannot be decoded."""
    manifest = snapshot.manifest
    counts = manifest.fragments.counts()
    highest = manifest.max_fragment_id
    if counts.ids.size and highest is not None and int(counts.ids.max()) > highest:
        yield f"there is a fragment {counts.ids.max()}; the highest id ever is said to be {highest}"
    if counts.num_deletion_files.any() and not manifest.writer_feature_flags & DELETION_FILES:
        yield "there are deletion files and the flags do not tell writers so"
    if manifest.reader_feature_flags & STABLE_ROW_IDS:
        bare = [one.id for one in manifest.fragments if one.row_ids is None]
        if bare:
            yield f"row ids are stable and fragment {bare[0]} has none"
    if manifest.branch != snapshot.branch:
        found = manifest.branch or "main"
        yield f"it lies in the folder of {snapshot.branch or 'main'} and says it is of {found}"
    uuids = [one.uuid for one in read_indices(snapshot)]
    if len(set(uuids)) < len(uuids):
        yield "two indices have the same uuid"
    names = {one.id for one in manifest.schema.walk()}
    lost = [one for one in read_indices(snapshot) if not names.issuperset(one.fields)]
    if lost:
        yield f"index {lost[0].name!r} is on a field that the schema does not have"
    yield from refused_states(snapshot)
    yield from tolerated_states(snapshot)
