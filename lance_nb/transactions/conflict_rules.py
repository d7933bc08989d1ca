"""The named rules of conflict resolution: one condition each, and the verdict when it holds.

Operations list them in their row of the grid (``VERSUS``). Several rules in one cell are all asked;
the strictest verdict counts. A cell without rules is compatible. The rules about indices are in
index_rules.py.

Limits and source: verdicts.py.
"""

from __future__ import annotations

from lance_nb.transactions.footprint import CONFIG, TABLE_METADATA, Footprint
from lance_nb.transactions.verdicts import (
    Circumstances,
    Finding,
    Judge,
    Rule,
    Verdict,
    enumerate_ids,
)

Cell = tuple[Rule, ...]

_REBASABLE, _RETRYABLE, _INCOMPATIBLE = (
    Verdict.REBASABLE,
    Verdict.RETRYABLE,
    Verdict.INCOMPATIBLE,
)


def _always(verdict: Verdict, overlap: str) -> Judge:
    def judge(_ours: Footprint, _theirs: Footprint, _known: Circumstances) -> Finding:
        return Finding(verdict, overlap)

    return judge


# --- fragments and rows ---------------------------------------------------------------------------


def _same_fragments(ours: Footprint, theirs: Footprint, _known: Circumstances) -> Finding | None:
    common = ours.touched & theirs.touched
    if not common:
        return None
    return Finding(_RETRYABLE, f"both change {enumerate_ids('fragment', common)}")


def _same_rows(ours: Footprint, theirs: Footprint, known: Circumstances) -> Finding | None:
    common = ours.touched & theirs.touched
    if not common:
        return None
    where = enumerate_ids("fragment", common)
    gone = common & (ours.removed_fragments | theirs.removed_fragments)
    if gone:
        which = enumerate_ids("fragment", gone)
        return Finding(_RETRYABLE, f"both change {where}, and {which} is removed as a whole")
    if not known.knows_rows:
        return Finding(_RETRYABLE, f"both change {where}, and which rows is not known")
    return Finding(_REBASABLE, f"both change {where}: rebased if their rows differ")


def _target_removed(ours: Footprint, theirs: Footprint, _known: Circumstances) -> Finding | None:
    gone = ours.changed_fragments & theirs.removed_fragments
    if not gone:
        return None
    return Finding(_INCOMPATIBLE, f"{enumerate_ids('fragment', gone)} no longer exists")


def _same_cells(ours: Footprint, theirs: Footprint, _known: Circumstances) -> Finding | None:
    common = ours.replaced & theirs.replaced
    if not common:
        return None
    fields = enumerate_ids("field", {field for _, field in common})
    fragments = enumerate_ids("fragment", {fragment for fragment, _ in common})
    return Finding(_RETRYABLE, f"both replace {fields} of {fragments}")


def _same_new_keys(ours: Footprint, theirs: Footprint, known: Circumstances) -> Finding | None:
    mine, others = ours.inserted_keys, theirs.inserted_keys
    if mine is None:
        if known.both_insert:
            return Finding(_RETRYABLE, "both insert rows, and with which keys is not known")
        return None
    if others is None:
        return Finding(_RETRYABLE, "ours inserts new keys, theirs does not say which it adds")
    if mine.may_overlap(others):
        return Finding(_RETRYABLE, "both may insert a row with the same key")
    return None


def _unknown_new_keys(ours: Footprint, _theirs: Footprint, _known: Circumstances) -> Finding | None:
    if ours.inserted_keys is None:
        return None
    return Finding(_RETRYABLE, "ours inserts new keys, and theirs may have added the same")


# --- schema ---------------------------------------------------------------------------------------


def _nullability(ours: Footprint, theirs: Footprint, _known: Circumstances) -> Finding | None:
    if ours.may_alter_nullability and theirs.supplies_values:
        return Finding(_RETRYABLE, "ours may forbid nulls that theirs has written")
    if theirs.may_alter_nullability and ours.supplies_values:
        return Finding(_RETRYABLE, "theirs may forbid nulls that ours writes")
    return None


def _modified_field_gone(
    ours: Footprint, theirs: Footprint, _known: Circumstances
) -> Finding | None:
    gone = gone_fields({field for field in ours.fields_modified if field >= 0}, theirs)
    if not gone:
        return None
    return Finding(_RETRYABLE, f"theirs drops {enumerate_ids('field', gone)}, which ours rewrites")


def _replaced_field_gone(
    ours: Footprint, theirs: Footprint, _known: Circumstances
) -> Finding | None:
    gone = gone_fields({field for _, field in ours.replaced if field >= 0}, theirs)
    if not gone:
        return None
    ids = enumerate_ids("field", gone)
    return Finding(_INCOMPATIBLE, f"theirs drops {ids}, whose data ours replaces")


def _annotated_field_gone(
    ours: Footprint, theirs: Footprint, _known: Circumstances
) -> Finding | None:
    fields = {field for _, field in ours.settings.maps if field >= 0}
    gone = gone_fields(fields, theirs)
    if not gone:
        return None
    ids = enumerate_ids("field", gone)
    return Finding(_INCOMPATIBLE, f"theirs drops {ids}, whose metadata ours changes")


def gone_fields(fields: set[int], theirs: Footprint) -> set[int]:
    """Return those of the fields that ``theirs`` drops."""
    return set() if theirs.field_ids is None else fields - theirs.field_ids


def _schema_metadata(verdict: Verdict) -> Judge:
    def judge(ours: Footprint, theirs: Footprint, _known: Circumstances) -> Finding | None:
        if ours.settings.touches_schema:
            return Finding(verdict, "ours changes metadata of the schema that theirs replaces")
        if theirs.settings.touches_schema:
            return Finding(verdict, "theirs changes metadata of the schema that ours replaces")
        return None

    return judge


# --- settings, bases, logs ------------------------------------------------------------------------


def _same_keys(ours: Footprint, theirs: Footprint, _known: Circumstances) -> Finding | None:
    mine, others = ours.settings, theirs.settings
    keys = {(kind, key) for kind, field, key in mine.keys & others.keys if field < 0}
    if keys:
        shown = ", ".join(f"{kind} key {key!r}" for kind, key in sorted(keys)[:5])
        return Finding(_INCOMPATIBLE, f"both set {shown}")
    whole = (mine.replaced & others.maps) | (others.replaced & mine.maps)
    # Metadata of a schema or field is one thing: pylance refuses two changes of it.
    same = {one for one in mine.maps & others.maps if one[0] not in (CONFIG, TABLE_METADATA)}
    common = sorted(whole | same)
    if not common:
        return None
    kind, field = common[0]
    where = f" of field {field}" if field >= 0 else ""
    return Finding(_INCOMPATIBLE, f"both change the {kind}{where}")


def _same_bases(ours: Footprint, theirs: Footprint, _known: Circumstances) -> Finding | None:
    for mine in ours.new_bases:
        for other in theirs.new_bases:
            if mine.id and mine.id == other.id:
                return Finding(_INCOMPATIBLE, f"both add a base with id {mine.id}")
            if mine.name is not None and mine.name == other.name:
                return Finding(_INCOMPATIBLE, f"both add a base named {mine.name!r}")
            if mine.path == other.path:
                return Finding(_INCOMPATIBLE, f"both add the base {mine.path!r}")
    return None


def _same_logs(ours: Footprint, theirs: Footprint, _known: Circumstances) -> Finding | None:
    done = dict(theirs.compacted)
    both = [(shard, number) for shard, number in ours.compacted if shard in done]
    for shard, number in both:
        if done[shard] >= number:
            overlap = f"theirs has merged shard {shard} up to generation {done[shard]}"
            return Finding(_INCOMPATIBLE, overlap)
    if both:
        return Finding(_RETRYABLE, f"both merge the log of shard {both[0][0]}")
    return None


NEVER = Rule(
    "X", "incompatible", "incompatible", _always(_INCOMPATIBLE, "the two exclude each other")
)
AGAIN = Rule(
    "R", "retryable", "retryable", _always(_RETRYABLE, "ours was planned on an older version")
)
SAME_FRAGMENTS = Rule(
    "f", "same fragments", "retryable if both change the same fragment", _same_fragments
)
SAME_ROWS = Rule(
    "d",
    "same rows",
    "same fragment: merged deletions if the rows are known and differ, else retryable",
    _same_rows,
)
TARGET_REMOVED = Rule(
    "t", "target removed", "incompatible if a fragment we change is removed", _target_removed
)
SAME_CELLS = Rule("c", "same cells", "retryable if same field of same fragment", _same_cells)
SAME_NEW_KEYS = Rule(
    "u",
    "same new keys",
    "retryable if both may insert a row with the same key",
    _same_new_keys,
)
UNKNOWN_NEW_KEYS = Rule(
    "v", "unknown new keys", "retryable if we insert new keys", _unknown_new_keys
)
NULLABILITY = Rule(
    "n",
    "nullability",
    "retryable if one writes values and the other changes the schema without promising that"
    " nulls stay allowed",
    _nullability,
)
MODIFIED_FIELD_GONE = Rule(
    "g", "field gone", "retryable if a field we rewrite is dropped", _modified_field_gone
)
REPLACED_FIELD_GONE = Rule(
    "G",
    "replaced field gone",
    "incompatible if a field we replace is dropped",
    _replaced_field_gone,
)
ANNOTATED_FIELD_GONE = Rule(
    "F",
    "annotated field gone",
    "incompatible if a field whose metadata we change is dropped",
    _annotated_field_gone,
)
SCHEMA_METADATA_AGAIN = Rule(
    "s",
    "schema metadata",
    "retryable if schema or field metadata is changed",
    _schema_metadata(_RETRYABLE),
)
SCHEMA_METADATA_NEVER = Rule(
    "S",
    "schema metadata",
    "incompatible if schema or field metadata is changed",
    _schema_metadata(_INCOMPATIBLE),
)
SAME_KEYS = Rule(
    "k",
    "same keys",
    "incompatible if both set the same key, or metadata of the same schema or field",
    _same_keys,
)
SAME_BASES = Rule(
    "p", "same bases", "incompatible if base id, name or path are the same", _same_bases
)
SAME_LOGS = Rule(
    "w",
    "same logs",
    "incompatible if the same log is merged as far or farther, retryable if less far",
    _same_logs,
)
FINE: Cell = ()
"""A cell without rules: the two never get in each other's way."""
