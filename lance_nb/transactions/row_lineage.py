"""Row ids and row versions of the fragments of a new version (datasets with stable row ids).

New rows get the next free ids and are created and last updated in the new version. Rows that an
update moved keep their ids and the version they were created in.

Layout: format/row_sequences.py. Sequences cover physical rows.
Limits: sequences that are hidden columns of data files are left as they are.
Source: lance-table ``rowids``; pylance 14.0.2 measured.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from lance_nb.errors import CorruptFileError, InvalidInputError, NotSupportedError
from lance_nb.format.fragment import Fragment, InlineSequence, RowDatasetVersionMeta, RowIdMeta
from lance_nb.format.row_sequences import Range, RowIdSegments, RowVersionSequence
from lance_nb.format.wire import U64_MAX

CREATED_UNKNOWN = 1
"""The version a row was created in when its fragment does not say (as pylance has it)."""

U64s = npt.NDArray[np.uint64]


def assign_row_ids(fragments: Iterable[Fragment], next_row_id: int) -> tuple[list[Fragment], int]:
    """Give ids to rows without one. Returns the fragments and the next free id.

    A fragment that brings ids for its first rows only (the updated ones of an upsert) gets new ones
    for the rest. New ids are above all that fragments bring. Raises InvalidInputError for more ids
    than rows, and for ids that do not fit 64 bits.
    """
    fragments = list(fragments)
    brought = {id(fragment): row_ids_of(fragment) for fragment in fragments if _is_inline(fragment)}
    highest = [bounds[1] for ids in brought.values() if (bounds := ids.bounds) is not None]
    next_row_id = max(next_row_id, *highest, 0)
    assigned = []
    for fragment in fragments:
        if fragment.row_ids is None or _is_inline(fragment):
            row_ids = brought.get(id(fragment), RowIdSegments(()))
            missing = fragment.physical_rows - row_ids.num_rows
            if missing < 0:
                raise InvalidInputError(
                    f"a new fragment of {fragment.physical_rows} rows brings {row_ids.num_rows} "
                    "row ids"
                )
            if next_row_id + missing > U64_MAX:
                raise InvalidInputError(
                    f"row ids from {next_row_id} on for {missing} rows do not fit 64 bits"
                )
            assigned.append(_with_more_ids(fragment, row_ids, next_row_id, missing))
            next_row_id += missing
        else:
            assigned.append(fragment)
    return assigned, next_row_id


def check_new_row_ids(fragments: Iterable[Fragment], next_row_id: int) -> None:
    """Check the ids that fragments of new rows bring. Raises InvalidInputError.

    pylance commits such ids, and its next append gives them to other rows.
    """
    ends: list[tuple[int, int]] = []
    for fragment in fragments:
        bounds = row_ids_of(fragment).bounds if _is_inline(fragment) else None
        if bounds is None:
            continue
        if bounds[0] < next_row_id:
            raise InvalidInputError(
                f"new rows bring the row id {bounds[0]}, and ids below {next_row_id} belong to "
                "rows that the dataset has or had: leave out row_id_meta of new fragments"
            )
        ends.append(bounds)
    ends.sort()
    for (_, stop), (start, _) in pairwise(ends):
        if start < stop:
            raise InvalidInputError(
                f"two new fragments bring row ids around {start}: leave out row_id_meta of "
                "new fragments"
            )


def _is_inline(fragment: Fragment) -> bool:
    return isinstance(fragment.row_ids, InlineSequence)


def _with_more_ids(
    fragment: Fragment, row_ids: RowIdSegments, first: int, missing: int
) -> Fragment:
    if fragment.row_ids is not None and not missing:
        return fragment
    segments = (*row_ids.segments, Range(first, first + missing))
    return replace(fragment, row_id_meta=RowIdMeta.inline(RowIdSegments(segments).to_bytes()))


def row_ids_of(fragment: Fragment) -> RowIdSegments:
    """Return the row ids of a fragment. Raises NotSupportedError if they are not inline."""
    if not isinstance(fragment.row_ids, InlineSequence):
        raise NotSupportedError(
            f"the row ids of fragment {fragment.id} do not lie in the manifest; changing such rows "
            "is not supported"
        )
    return RowIdSegments.from_bytes(fragment.row_ids.data)


def stamp_new_rows(fragments: Iterable[Fragment], version: int) -> list[Fragment]:
    """Say that all rows were created and last updated in ``version``."""
    stamped = []
    for fragment in fragments:
        meta = _uniform(fragment.physical_rows, version)
        stamped.append(
            replace(fragment, created_at_version_meta=meta, last_updated_at_version_meta=meta)
        )
    return stamped


def stamp_all_updated(fragment: Fragment, version: int) -> Fragment:
    """Say that all rows were last updated in ``version``."""
    meta = _uniform(fragment.physical_rows, version)
    return replace(fragment, last_updated_at_version_meta=meta)


def stamp_some_updated(fragment: Fragment, offsets: Iterable[int], version: int) -> Fragment:
    """Say that the rows at ``offsets`` were last updated in ``version``.

    A fragment that does not say when its rows were updated is left alone.
    """
    before = fragment.last_updated_at_versions
    if not isinstance(before, InlineSequence):
        return fragment
    versions = versions_of(before, fragment.physical_rows).copy()
    chosen = np.fromiter(offsets, np.int64)
    if len(chosen) and not (chosen.min() >= 0 and chosen.max() < len(versions)):
        raise InvalidInputError(
            f"updated row offsets reach {int(chosen.max())} in fragment {fragment.id}, which has "
            f"{len(versions)} rows"
        )
    versions[chosen] = version
    return replace(fragment, last_updated_at_version_meta=_recorded(versions))


def stamp_moved_rows(
    fragments: Iterable[Fragment], sources: Iterable[Fragment], version: int
) -> list[Fragment]:
    """Say when moved rows were created, found by their ids in ``sources``; updated in ``version``.

    Ids that no source has are new rows, created in ``version``.
    """
    fragments = list(fragments)
    ids, created = _created_versions(sources)
    stamped = []
    for fragment in fragments:
        row_ids = all_row_ids(fragment)
        positions = np.searchsorted(ids, row_ids)
        positions[positions == len(ids)] = 0
        is_known = ids[positions] == row_ids if len(ids) else np.zeros(len(row_ids), np.bool_)
        versions = np.full(len(row_ids), version, np.uint64)
        if len(ids):
            versions[is_known] = created[positions[is_known]]
        stamped_fragment = replace(fragment, created_at_version_meta=_recorded(versions))
        stamped.append(stamp_all_updated(stamped_fragment, version))
    return stamped


def _created_versions(sources: Iterable[Fragment]) -> tuple[U64s, U64s]:
    """Return the row ids of ``sources``, ascending, and the version each was created in."""
    ids, versions = [], []
    for source in sources:
        if source.row_ids is None:
            continue
        ids.append(all_row_ids(source))
        created = source.created_at_versions
        if isinstance(created, InlineSequence):
            versions.append(versions_of(created, source.physical_rows))
        else:
            versions.append(np.full(len(ids[-1]), CREATED_UNKNOWN, np.uint64))
    if not ids:
        return np.empty(0, np.uint64), np.empty(0, np.uint64)
    joined, joined_versions = np.concatenate(ids), np.concatenate(versions)
    order = np.argsort(joined, kind="stable")
    return joined[order], joined_versions[order]


def all_row_ids(fragment: Fragment) -> U64s:
    """Return one id per row: counts are compared before anything is expanded."""
    row_ids = row_ids_of(fragment)
    if row_ids.num_rows != fragment.physical_rows:
        expected = f"{fragment.physical_rows} row ids in fragment {fragment.id}"
        raise CorruptFileError("", None, expected, f"{row_ids.num_rows}")
    return row_ids.to_numpy()


def versions_of(sequence: InlineSequence, num_rows: int) -> U64s:
    """Return one version per row."""
    return RowVersionSequence.from_bytes(sequence.data, physical_rows=num_rows).to_numpy()


def _uniform(num_rows: int, version: int) -> RowDatasetVersionMeta:
    return RowDatasetVersionMeta.inline(RowVersionSequence(((num_rows, version),)).to_bytes())


def _recorded(versions: U64s) -> RowDatasetVersionMeta:
    return RowDatasetVersionMeta.inline(RowVersionSequence.from_numpy(versions).to_bytes())
