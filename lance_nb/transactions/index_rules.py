"""The named rules of conflict resolution that are about indices.

An index covers fragments and depends on fields: it gets in the way of whoever moves the rows,
replaces the data or drops the column. Two indices exist once: the one of fragment reuse and the one
of write-ahead logs.

Limits and source: verdicts.py.

Record merged write-ahead logs in the system index that keeps their state.

Source: format/merged_logs.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pyroaring import BitMap

from lance_nb.errors import InvalidInputError
from lance_nb.format.fragment_reuse import REUSE_INDEX
from lance_nb.format.index_metadata import SYSTEM_NAMES, IndexMetadata
from lance_nb.format.merged_logs import MergedLog, with_merged_logs
from lance_nb.transactions.conflict_rules import gone_fields
from lance_nb.transactions.footprint import Footprint
from lance_nb.transactions.manifest_building import Draft
from lance_nb.transactions.verdicts import Circumstances, Finding, Rule, Verdict, enumerate_ids

WAL_INDEX = SYSTEM_NAMES[1]

_REBASABLE, _RETRYABLE, _INCOMPATIBLE = (
    Verdict.REBASABLE,
    Verdict.RETRYABLE,
    Verdict.INCOMPATIBLE,
)


def _names(indices: tuple[IndexMetadata, ...]) -> set[str]:
    return {one.name for one in indices}


def _indexed_fields(indices: tuple[IndexMetadata, ...]) -> set[int]:
    return {field for one in indices for field in (*one.fields, *one.covering_fields)}


def _same_index(ours: Footprint, theirs: Footprint, _known: Circumstances) -> Finding | None:
    built, others = _names(ours.new_indices), _names(theirs.new_indices)
    removed, gone = _names(ours.removed_indices), _names(theirs.removed_indices)
    # Building on while the other drops the index, one way or the other.
    dropped = ((built - removed) & gone) | ((others - gone) & removed)
    common = (built & others) | dropped
    mine = {one.uuid: one.name for one in ours.removed_indices}
    twice = {mine[one.uuid] for one in theirs.removed_indices if one.uuid in mine}
    common |= twice & (built | others)
    if not common:
        return None
    return Finding(_RETRYABLE, f"both change index {', '.join(map(repr, sorted(common)))}")


def _index_covers(ours: Footprint, theirs: Footprint, _known: Circumstances) -> Finding | None:
    index, rewrite = (ours, theirs) if ours.new_indices else (theirs, ours)
    if REUSE_INDEX in _names(index.new_indices):
        return _reuse_index_and_rewrite(index, rewrite)
    for one in index.new_indices:
        covered = one.fragment_ids()
        if covered is None:
            return Finding(_RETRYABLE, f"index {one.name!r} does not say which fragments it covers")
        moved = {fragment for fragment in rewrite.touched if fragment in covered}
        if not moved:
            continue
        # A fragment-reuse index says where the rows went, if a group went as a whole.
        if rewrite.carries_reuse_index and one.kind != "NGram" and _whole_groups(rewrite, covered):
            continue
        ids = enumerate_ids("fragment", moved)
        return Finding(_RETRYABLE, f"index {one.name!r} covers {ids}, whose rows moved")
    return None


def _whole_groups(rewrite: Footprint, covered: BitMap) -> bool:
    groups = map(BitMap, rewrite.groups)
    return all(len(group & covered) in (0, len(group)) for group in groups)


def _reuse_index_and_rewrite(index: Footprint, rewrite: Footprint) -> Finding | None:
    if len(index.new_indices) != 1 or len(index.removed_indices) > 1:
        return Finding(_INCOMPATIBLE, "the fragment-reuse index changes together with others")
    if rewrite.carries_reuse_index:
        return Finding(_REBASABLE, "both change the fragment-reuse index")
    return None


def _both_reuse_index(ours: Footprint, theirs: Footprint, _known: Circumstances) -> Finding | None:
    if ours.carries_reuse_index and theirs.carries_reuse_index:
        return Finding(_RETRYABLE, "both add to the fragment-reuse index")
    return None


def _indexed_data(ours: Footprint, theirs: Footprint, _known: Circumstances) -> Finding | None:
    index, replacement = (ours, theirs) if ours.new_indices else (theirs, ours)
    common = _indexed_fields(index.new_indices) & {field for _, field in replacement.replaced}
    if not common:
        return None
    ids = enumerate_ids("field", common)
    return Finding(_RETRYABLE, f"{ids}: one builds an index on it, one replaces its data")


def _indexed_update(ours: Footprint, theirs: Footprint, _known: Circumstances) -> Finding | None:
    common = _indexed_fields(ours.new_indices) & theirs.fields_modified
    if not common:
        return None
    ids = enumerate_ids("field", common)
    overlap = f"theirs rewrites {ids}: its fragments leave the coverage of our index"
    return Finding(_REBASABLE, overlap)


def _wal_index(ours: Footprint, theirs: Footprint, _known: Circumstances) -> Finding | None:
    index, other = (ours, theirs) if ours.new_indices else (theirs, ours)
    if WAL_INDEX not in _names(index.new_indices):
        return None
    what = "a changed schema" if other.field_ids is not None else "merged logs"
    return Finding(_RETRYABLE, f"the write-ahead-log index has to be built anew for {what}")


def _log_state(ours: Footprint, _theirs: Footprint, _known: Circumstances) -> Finding:
    if WAL_INDEX in _names(ours.new_indices):
        return Finding(_REBASABLE, "both change the state of write-ahead logs")
    return Finding(_INCOMPATIBLE, "theirs changes the state of write-ahead logs")


def _indexed_field_gone(
    ours: Footprint, theirs: Footprint, _known: Circumstances
) -> Finding | None:
    gone = gone_fields(_indexed_fields(ours.new_indices), theirs)
    if not gone:
        return None
    return Finding(
        _INCOMPATIBLE, f"theirs drops {enumerate_ids('field', gone)}, which ours indexes"
    )


SAME_INDEX = Rule("i", "same index", "retryable if both change the same index", _same_index)
INDEX_COVERS = Rule(
    "b",
    "index covers",
    "retryable if the index covers a rewritten fragment (not if a fragment-reuse index says"
    " where its rows went)",
    _index_covers,
)
BOTH_REUSE_INDEX = Rule(
    "e", "both reuse index", "retryable if both carry a fragment-reuse index", _both_reuse_index
)
INDEXED_DATA = Rule(
    "j", "indexed data", "retryable if the data of an indexed field is replaced", _indexed_data
)
INDEXED_UPDATE = Rule(
    "m",
    "indexed update",
    "rebased: fragments whose indexed field was rewritten leave the index",
    _indexed_update,
)
WAL_INDEX_AGAIN = Rule(
    "a", "log index", "retryable if the index is the one of write-ahead logs", _wal_index
)
LOG_STATE = Rule(
    "l",
    "log state",
    "incompatible unless the index is the one of write-ahead logs, which takes up their state",
    _log_state,
)
INDEXED_FIELD_GONE = Rule(
    "D", "indexed field gone", "incompatible if a field we index is dropped", _indexed_field_gone
)


def record_merged_logs(draft: Draft, logs: Iterable[MergedLog]) -> None:
    """Record the logs. Raises InvalidInputError if the dataset keeps no state of logs."""
    for position, one in enumerate(draft.indices):
        if one.name == WAL_INDEX:
            details = with_merged_logs(one.details, logs)
            draft.indices[position] = replace(one, details=details, dataset_version=draft.version)
            return
    raise InvalidInputError(
        f"the dataset has no index {WAL_INDEX!r}: there is no state of write-ahead logs to change"
    )
