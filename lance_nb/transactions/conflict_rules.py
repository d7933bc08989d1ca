"""The rules of conflict resolution: one condition each, and the verdict when it holds.

A rule compares what two operations touch (``Footprint``). It returns None, or the verdict that
follows with the reason in words. Cells of the grid (conflict_grid.py) name rules by their letters.

Limits: rules see transactions only. Whether two writers deleted the same *rows* is decided later,
from their deletion vectors (rebase.py); the verdict "rebasable" says that this is worth trying.
Source: specification of transactions; pylance 14.0.2 measured pair by pair. Where the two differ,
the stricter verdict holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import IntEnum

from pyroaring import BitMap

from lance_nb.format.fragment_reuse import REUSE_INDEX
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.format.merged_logs import WAL_INDEX
from lance_nb.transactions.operation import CONFIG, TABLE_METADATA, Footprint
from lance_nb.value_classes import dataclass

_SHOWN = 5


class Verdict(IntEnum):
    """Whether our operation can follow one that was committed first; a larger one is stricter."""

    COMPATIBLE = 0
    REBASABLE = 1
    RETRYABLE = 2
    INCOMPATIBLE = 3


_REBASABLE, _RETRYABLE, _INCOMPATIBLE = (
    Verdict.REBASABLE,
    Verdict.RETRYABLE,
    Verdict.INCOMPATIBLE,
)


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What is known beside the two transactions.

    ``knows_rows``: we know which rows our operation touches, so that deletions can be merged.
    ``both_insert``: both operations insert rows with new keys, without recording the keys.
    """

    knows_rows: bool = False
    both_insert: bool = False


@dataclass(frozen=True, slots=True)
class Conflict:
    """The verdict on a pair of operations; ``overlap`` says what they have in common."""

    verdict: Verdict
    overlap: str = ""


Judge = Callable[[Footprint, Footprint, Circumstances], Conflict | None]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: ``letter`` names it in the grid, ``text`` explains it in the grid's legend."""

    letter: str
    text: str
    judge: Judge


RULES: dict[str, Rule] = {}
"""The rules by their letters."""


def _rule(letter: str, text: str) -> Callable[[Judge], Judge]:
    """Return a decorator that adds a condition to ``RULES``."""

    def add(judge: Judge) -> Judge:
        RULES[letter] = Rule(letter, text, judge)
        return judge

    return add


def enumerate_ids(noun: str, ids: Iterable[int]) -> str:
    """Return "fragment 3" or "fragments 1, 2, 3 and 4 more"."""
    ordered = sorted(ids)
    shown = ", ".join(map(str, ordered[:_SHOWN]))
    more = f" and {len(ordered) - _SHOWN} more" if len(ordered) > _SHOWN else ""
    return f"{noun if len(ordered) == 1 else noun + 's'} {shown}{more}"


@_rule("X", "incompatible")
def _incompatible(_ours: Footprint, _theirs: Footprint, _known: Circumstances) -> Conflict:
    return Conflict(_INCOMPATIBLE, "the two exclude each other")


@_rule("R", "retryable")
def _retryable(_ours: Footprint, _theirs: Footprint, _known: Circumstances) -> Conflict:
    return Conflict(_RETRYABLE, "ours was planned on an older version")


@_rule("?", "incompatible, as one of the two cannot be judged")
def _not_understood(_ours: Footprint, _theirs: Footprint, _known: Circumstances) -> Conflict:
    return Conflict(_INCOMPATIBLE, "this release does not know the other operation")


# --- fragments and rows ---------------------------------------------------------------------------


@_rule("f", "retryable if both change the same fragment")
def _same_fragments(ours: Footprint, theirs: Footprint, _known: Circumstances) -> Conflict | None:
    common = ours.touched & theirs.touched
    if not common:
        return None
    return Conflict(_RETRYABLE, f"both change {enumerate_ids('fragment', common)}")


@_rule("d", "same fragment: merged deletions if the rows are known and differ, else retryable")
def _same_rows(ours: Footprint, theirs: Footprint, circumstances: Circumstances) -> Conflict | None:
    common = ours.touched & theirs.touched
    if not common:
        return None
    where = enumerate_ids("fragment", common)
    removed = common & (ours.removed_fragments | theirs.removed_fragments)
    if removed:
        subject = enumerate_ids("fragment", removed)
        return Conflict(_RETRYABLE, f"both change {where}, and {subject} is removed as a whole")
    if not circumstances.knows_rows:
        return Conflict(_RETRYABLE, f"both change {where}, and which rows is not known")
    return Conflict(_REBASABLE, f"both change {where}: rebased if their rows differ")


@_rule("t", "incompatible if a fragment we change is removed")
def _target_removed(ours: Footprint, theirs: Footprint, _known: Circumstances) -> Conflict | None:
    removed = ours.changed_fragments & theirs.removed_fragments
    if not removed:
        return None
    return Conflict(_INCOMPATIBLE, f"{enumerate_ids('fragment', removed)} no longer exists")


@_rule("c", "retryable if same field of same fragment")
def _same_cells(ours: Footprint, theirs: Footprint, _known: Circumstances) -> Conflict | None:
    common = ours.replaced & theirs.replaced
    if not common:
        return None
    fields = enumerate_ids("field", {field for _, field in common})
    fragments = enumerate_ids("fragment", {fragment for fragment, _ in common})
    return Conflict(_RETRYABLE, f"both replace {fields} of {fragments}")


@_rule("u", "retryable if both may insert a row with the same key")
def _same_new_keys(
    ours: Footprint, theirs: Footprint, circumstances: Circumstances
) -> Conflict | None:
    mine, their_keys = ours.inserted_keys, theirs.inserted_keys
    if mine is None:
        if circumstances.both_insert:
            return Conflict(_RETRYABLE, "both insert rows, and with which keys is not known")
        return None
    if their_keys is None:
        return Conflict(_RETRYABLE, "ours inserts new keys, theirs does not say which it adds")
    if mine.may_overlap(their_keys):
        return Conflict(_RETRYABLE, "both may insert a row with the same key")
    return None


@_rule("v", "retryable if we insert new keys")
def _unknown_new_keys(
    ours: Footprint, _theirs: Footprint, _known: Circumstances
) -> Conflict | None:
    if ours.inserted_keys is None:
        return None
    return Conflict(_RETRYABLE, "ours inserts new keys, and theirs may have added the same")


# --- schema ---------------------------------------------------------------------------------------


@_rule(
    "n",
    "retryable if one writes values and the other changes the schema without promising that"
    " nulls stay allowed",
)
def _nullability(ours: Footprint, theirs: Footprint, _known: Circumstances) -> Conflict | None:
    if ours.may_alter_nullability and theirs.supplies_values:
        return Conflict(_RETRYABLE, "ours may forbid nulls that theirs has written")
    if theirs.may_alter_nullability and ours.supplies_values:
        return Conflict(_RETRYABLE, "theirs may forbid nulls that ours writes")
    return None


@_rule("g", "retryable if a field we rewrite is dropped")
def _modified_field_gone(
    ours: Footprint, theirs: Footprint, _known: Circumstances
) -> Conflict | None:
    dropped = _dropped_fields({field for field in ours.fields_modified if field >= 0}, theirs)
    if not dropped:
        return None
    return Conflict(
        _RETRYABLE, f"theirs drops {enumerate_ids('field', dropped)}, which ours rewrites"
    )


@_rule("G", "incompatible if a field we replace is dropped")
def _replaced_field_gone(
    ours: Footprint, theirs: Footprint, _known: Circumstances
) -> Conflict | None:
    dropped = _dropped_fields({field for _, field in ours.replaced if field >= 0}, theirs)
    if not dropped:
        return None
    ids = enumerate_ids("field", dropped)
    return Conflict(_INCOMPATIBLE, f"theirs drops {ids}, whose data ours replaces")


@_rule("F", "incompatible if a field whose metadata we change is dropped")
def _annotated_field_gone(
    ours: Footprint, theirs: Footprint, _known: Circumstances
) -> Conflict | None:
    fields = {field for _, field in ours.settings.maps if field >= 0}
    dropped = _dropped_fields(fields, theirs)
    if not dropped:
        return None
    ids = enumerate_ids("field", dropped)
    return Conflict(_INCOMPATIBLE, f"theirs drops {ids}, whose metadata ours changes")


def _dropped_fields(fields: set[int], theirs: Footprint) -> set[int]:
    return set() if theirs.field_ids is None else fields - theirs.field_ids


def _schema_metadata(ours: Footprint, theirs: Footprint, verdict: Verdict) -> Conflict | None:
    if ours.settings.touches_schema:
        return Conflict(verdict, "ours changes metadata of the schema that theirs replaces")
    if theirs.settings.touches_schema:
        return Conflict(verdict, "theirs changes metadata of the schema that ours replaces")
    return None


@_rule("s", "retryable if schema or field metadata is changed")
def _schema_metadata_retryable(
    ours: Footprint, theirs: Footprint, _known: Circumstances
) -> Conflict | None:
    return _schema_metadata(ours, theirs, _RETRYABLE)


@_rule("S", "incompatible if schema or field metadata is changed")
def _schema_metadata_incompatible(
    ours: Footprint, theirs: Footprint, _known: Circumstances
) -> Conflict | None:
    return _schema_metadata(ours, theirs, _INCOMPATIBLE)


# --- settings, bases, logs ------------------------------------------------------------------------


@_rule("k", "incompatible if both set the same key, or metadata of the same schema or field")
def _same_keys(ours: Footprint, theirs: Footprint, _known: Circumstances) -> Conflict | None:
    mine, their_settings = ours.settings, theirs.settings
    keys = {(kind, key) for kind, field, key in mine.keys & their_settings.keys if field < 0}
    if keys:
        shown = ", ".join(f"{kind} key {key!r}" for kind, key in sorted(keys)[:5])
        return Conflict(_INCOMPATIBLE, f"both set {shown}")
    whole = (mine.replaced & their_settings.maps) | (their_settings.replaced & mine.maps)
    # Metadata of a schema or field is one thing: pylance refuses two changes of it.
    same = {
        entry
        for entry in mine.maps & their_settings.maps
        if entry[0] not in (CONFIG, TABLE_METADATA)
    }
    common = sorted(whole | same)
    if not common:
        return None
    kind, field = common[0]
    where = f" of field {field}" if field >= 0 else ""
    return Conflict(_INCOMPATIBLE, f"both change the {kind}{where}")


@_rule("p", "incompatible if base id, name or path are the same")
def _same_bases(ours: Footprint, theirs: Footprint, _known: Circumstances) -> Conflict | None:
    for mine in ours.new_bases:
        for other in theirs.new_bases:
            if mine.id and mine.id == other.id:
                return Conflict(_INCOMPATIBLE, f"both add a base with id {mine.id}")
            if mine.name is not None and mine.name == other.name:
                return Conflict(_INCOMPATIBLE, f"both add a base named {mine.name!r}")
            if mine.path == other.path:
                return Conflict(_INCOMPATIBLE, f"both add the base {mine.path!r}")
    return None


@_rule("w", "incompatible if the same log is merged as far or farther, retryable if less far")
def _same_logs(ours: Footprint, theirs: Footprint, _known: Circumstances) -> Conflict | None:
    done = dict(theirs.compacted)
    shared = [(shard, number) for shard, number in ours.compacted if shard in done]
    for shard, number in shared:
        if done[shard] >= number:
            overlap = f"theirs has merged shard {shard} up to generation {done[shard]}"
            return Conflict(_INCOMPATIBLE, overlap)
    if shared:
        return Conflict(_RETRYABLE, f"both merge the log of shard {shared[0][0]}")
    return None


# --- indices --------------------------------------------------------------------------------------
# An index covers fragments and depends on fields: it conflicts with operations that move the rows,
# replace the data or drop the column. Two indices exist once: the fragment-reuse index and the
# index of write-ahead logs.


def _names(indices: tuple[IndexMetadata, ...]) -> set[str]:
    return {index.name for index in indices}


def _indexed_fields(indices: tuple[IndexMetadata, ...]) -> set[int]:
    return {field for index in indices for field in (*index.fields, *index.covering_fields)}


@_rule("i", "retryable if both change the same index")
def _same_index(ours: Footprint, theirs: Footprint, _known: Circumstances) -> Conflict | None:
    built, their_built = _names(ours.new_indices), _names(theirs.new_indices)
    removed, their_removed = _names(ours.removed_indices), _names(theirs.removed_indices)
    # Building on while the other drops the index, one way or the other.
    dropped = ((built - removed) & their_removed) | ((their_built - their_removed) & removed)
    common = (built & their_built) | dropped
    mine = {removed_index.uuid: removed_index.name for removed_index in ours.removed_indices}
    twice = {
        mine[removed_index.uuid]
        for removed_index in theirs.removed_indices
        if removed_index.uuid in mine
    }
    common |= twice & (built | their_built)
    if not common:
        return None
    return Conflict(_RETRYABLE, f"both change index {', '.join(map(repr, sorted(common)))}")


@_rule(
    "b",
    "retryable if the index covers a rewritten fragment (not if a fragment-reuse index says"
    " where its rows went)",
)
def _index_covers(ours: Footprint, theirs: Footprint, _known: Circumstances) -> Conflict | None:
    index, rewrite = (ours, theirs) if ours.new_indices else (theirs, ours)
    if REUSE_INDEX in _names(index.new_indices):
        return _reuse_index_and_rewrite(index, rewrite)
    for new_index in index.new_indices:
        covered = new_index.fragment_ids()
        if covered is None:
            return Conflict(
                _RETRYABLE, f"index {new_index.name!r} does not say which fragments it covers"
            )
        moved = {fragment for fragment in rewrite.touched if fragment in covered}
        if not moved:
            continue
        # A fragment-reuse index says where the rows went, if a group went as a whole.
        if (
            rewrite.carries_reuse_index
            and new_index.kind != "NGram"
            and _whole_groups(rewrite, covered)
        ):
            continue
        ids = enumerate_ids("fragment", moved)
        return Conflict(_RETRYABLE, f"index {new_index.name!r} covers {ids}, whose rows moved")
    return None


def _whole_groups(rewrite: Footprint, covered: BitMap) -> bool:
    groups = map(BitMap, rewrite.groups)
    return all(len(group & covered) in (0, len(group)) for group in groups)


def _reuse_index_and_rewrite(index: Footprint, rewrite: Footprint) -> Conflict | None:
    if len(index.new_indices) != 1 or len(index.removed_indices) > 1:
        return Conflict(_INCOMPATIBLE, "the fragment-reuse index changes together with others")
    if rewrite.carries_reuse_index:
        return Conflict(_REBASABLE, "both change the fragment-reuse index")
    return None


@_rule("e", "retryable if both carry a fragment-reuse index")
def _both_reuse_index(ours: Footprint, theirs: Footprint, _known: Circumstances) -> Conflict | None:
    if ours.carries_reuse_index and theirs.carries_reuse_index:
        return Conflict(_RETRYABLE, "both add to the fragment-reuse index")
    return None


@_rule("j", "retryable if the data of an indexed field is replaced")
def _indexed_data(ours: Footprint, theirs: Footprint, _known: Circumstances) -> Conflict | None:
    index, replacement = (ours, theirs) if ours.new_indices else (theirs, ours)
    common = _indexed_fields(index.new_indices) & {field for _, field in replacement.replaced}
    if not common:
        return None
    ids = enumerate_ids("field", common)
    return Conflict(_RETRYABLE, f"{ids}: one builds an index on it, one replaces its data")


@_rule("m", "rebased: fragments whose indexed field was rewritten leave the index")
def _indexed_update(ours: Footprint, theirs: Footprint, _known: Circumstances) -> Conflict | None:
    common = _indexed_fields(ours.new_indices) & theirs.fields_modified
    if not common:
        return None
    ids = enumerate_ids("field", common)
    overlap = f"theirs rewrites {ids}: its fragments leave the coverage of our index"
    return Conflict(_REBASABLE, overlap)


@_rule("a", "retryable if the index is the one of write-ahead logs")
def _wal_index(ours: Footprint, theirs: Footprint, _known: Circumstances) -> Conflict | None:
    index, other = (ours, theirs) if ours.new_indices else (theirs, ours)
    if WAL_INDEX not in _names(index.new_indices):
        return None
    change = "a changed schema" if other.field_ids is not None else "merged logs"
    return Conflict(_RETRYABLE, f"the write-ahead-log index has to be built anew for {change}")


@_rule(
    "l",
    "incompatible unless the index is the one of write-ahead logs, which takes up their state",
)
def _log_state(ours: Footprint, _theirs: Footprint, _known: Circumstances) -> Conflict:
    if WAL_INDEX in _names(ours.new_indices):
        return Conflict(_REBASABLE, "both change the state of write-ahead logs")
    return Conflict(_INCOMPATIBLE, "theirs changes the state of write-ahead logs")


@_rule("D", "incompatible if a field we index is dropped")
def _indexed_field_gone(
    ours: Footprint, theirs: Footprint, _known: Circumstances
) -> Conflict | None:
    dropped = _dropped_fields(_indexed_fields(ours.new_indices), theirs)
    if not dropped:
        return None
    return Conflict(
        _INCOMPATIBLE, f"theirs drops {enumerate_ids('field', dropped)}, which ours indexes"
    )
