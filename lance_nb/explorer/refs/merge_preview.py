"""Preview a merge, a cherry-pick or a revert, and the cells that both sides changed.

Layout of ``MergePreview.to_json``, for a merge, a cherry-pick or a revert::

    kind, title, strategy, words       "up-to-date", "fast-forward" or "replay", and what it means
    base, source, target               {branch, version, label}
    rows [before, after], operation    what the new version holds, what it is recorded as
    fragments  {new, changed, dropped, lines: [{id, change, before, after}], hidden}
    columns    [text]                  columns that come, go, or change their type
    conflicts  [{kind, text, remedy, resolution}], hidden_conflicts, unresolved
    notes      [text]
    grid       {source: [Step], target: [Step], hidden_source, hidden_target,
                verdicts: [{outcome, words, reason}], cells: [position in verdicts or -1, ...]}
    sample     {columns: [name], rows: [{row, base: [text | null] | null, source, target}]}
    message    the proposed message of the commit
    pin        what keeps the files that the target would read in place, else ""
    refusal    why it is not planned as it was asked for, else ""
    offers     [{label, set}]          what would help: values for the fields of the form
    cells      {total, rows, deleted_rows, open (rows without a choice), key,
                columns: [{name, label, type, count}], hidden}, null where rows are not merged
               cell by cell

``grid.cells`` goes by rows: each transaction of the source against each of the target. A step is
``{version, label, operation, text}``.

``cell_lines`` are ``{row, label, column, name, type, base, ours, theirs, take, value}``: ``row`` is
JSON, ``name`` is shown of the column; both are null where a whole row was deleted on one side; a
side is ``{text, image?}`` or null where it has no such row.

Limits: ``MAX_STEPS`` steps of each side (those at disputed fragments, then the newest),
``MAX_FRAGMENTS``, ``MAX_CONFLICTS``, ``MAX_NOTES``, ``MAX_ROWS`` rows of ``MAX_COLUMNS`` columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from lance_nb.code_lines import PYTHON_ONLY, can_be_listed, magic, offered
from lance_nb.explorer import cells, text
from lance_nb.explorer.json_fields import JsonFields
from lance_nb.explorer.refs.ref_list import Place
from lance_nb.explorer.refs.ref_preview import Code, opened
from lance_nb.explorer.source import Source
from lance_nb.explorer.table_images import INLINE_BYTES, images_json
from lance_nb.explorer.version_refs import MAIN, place_word
from lance_nb.merging.choices import row_text
from lance_nb.merging.conflicts import ROWS, MergeConflict, pair_table
from lance_nb.merging.merge_base import Step
from lance_nb.merging.merge_plan import MergePlan
from lance_nb.merging.row_replay import ConflictCell, ConflictCells
from lance_nb.table.refs import Target
from lance_nb.transactions.operation import operation_name
from lance_nb.value_classes import dataclass

MAX_STEPS = 40
MAX_FRAGMENTS = 40
MAX_CONFLICTS = 30
MAX_NOTES = 20
MAX_ROWS = 12
MAX_COLUMNS = 8
MAX_SCHEMA = 30
MAX_CELL_CHARS = 400
_CELL_CHARS = 60
SIDES = ("base", "source", "target")
Json = dict[str, Any]

_WORDS = {
    "up-to-date": "nothing to do: the target already contains the source",
    "fast-forward": "fast-forward: the target has no newer versions than the merge base",
    "replay": "three-way: both sides have newer versions than the merge base",
}
_OUTCOMES = {
    "replayed": "no conflict, applied as it is",
    "merged": "both change the same data, and the merge combines the changes",
    "conflict": "conflict",
}
_RULES = {
    "compatible": "the commit rules allow both",
    "rebasable": "the commit rules allow both if they changed different rows",
    "retryable": "the commit rules require a retry",
    "incompatible": "the commit rules allow only one of them",
}


@dataclass(frozen=True, slots=True)
class MergePreview(JsonFields):
    """A plan, bounded for showing."""

    kind: str
    title: str
    strategy: str
    words: str
    base: Json
    source: Json
    target: Json
    rows: tuple[int, int]
    operation: str | None
    fragments: Json
    columns: tuple[str, ...]
    conflicts: tuple[Json, ...]
    hidden_conflicts: int
    unresolved: int
    notes: tuple[str, ...]
    grid: Json
    sample: Json
    message: str
    pin: str
    refusal: str
    offers: tuple[Json, ...]
    cells: Json | None


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a merge was planned otherwise than asked for, and what would do it that way."""

    reason: str
    label: str
    fields: Mapping[str, str]


def merge_preview(plan: MergePlan, refusal: Refusal | None = None) -> MergePreview:
    """Cut a plan to what is shown; reads the rows of the sample."""
    return MergePreview(
        kind=plan.kind,
        title=text.line(plan.title, 300),
        strategy=plan.strategy,
        words=_WORDS[plan.strategy],
        base=_place(plan.base),
        source=_place(plan.source),
        target=_place(plan.target),
        rows=(plan.num_rows_before, plan.num_rows_after),
        operation=plan.operation,
        fragments=_fragments(plan.fragments),
        columns=_columns(plan.ends.target.manifest.schema.to_arrow(), plan.schema_after),
        conflicts=tuple(
            {
                "kind": conflict.kind,
                "text": text.line(conflict.text),
                "remedy": text.line(_remedy(conflict)),
                "resolution": conflict.resolution,
            }
            for conflict in plan.conflicts[:MAX_CONFLICTS]
        ),
        hidden_conflicts=max(0, len(plan.conflicts) - MAX_CONFLICTS),
        unresolved=len(plan.unresolved),
        notes=tuple(text.line(note) for note in plan.notes[:MAX_NOTES]),
        grid=_grid(plan),
        sample=_sample(plan.conflict_rows(MAX_ROWS if plan.cells is None else 0)),
        message=text.line(plan.message, 300),
        pin=_pin_words(plan),
        refusal="" if refusal is None else refusal.reason,
        offers=tuple(_offers(plan, refusal)),
        cells=None if plan.cells is None or not len(plan.cells) else _cells(plan, plan.cells),
    )


def _pin_words(plan: MergePlan) -> str:
    name = plan.pin
    if name is None:
        return ""
    files, size_bytes = plan.source_files
    pinned = f"{text.plural(files, 'data file')} ({text.size(size_bytes)})" if files else "indices"
    return (
        f"{text.name(plan.target.branch or MAIN)} will read {pinned} of "
        f"{text.name(plan.source.branch or MAIN)} in place. The commit creates the tag "
        f"{text.name(name)}, which keeps them; it goes once no version reads them"
    )


# --- what would help ------------------------------------------------------------------------------

_KEYLESS = "The rows have no stable ids, so choose the columns that identify a row"
_BY_SIDE = "Choose the side that counts"
_MAX_KEYS = 4


def _remedy(conflict: MergeConflict) -> str:
    if conflict.needs_key:
        return _KEYLESS
    return _BY_SIDE if conflict.choices else conflict.remedy


def _offers(plan: MergePlan, refusal: Refusal | None) -> Iterator[Json]:
    """Say what would help with what is not decided: the fields of the form to set."""
    if refusal is not None:
        yield {"label": refusal.label, "set": dict(refusal.fields)}
        return
    undecided = plan.unresolved
    if any(conflict.needs_key for conflict in undecided):
        for name in _key_candidates(plan):
            yield {"label": f"Match rows by {text.name(name)}", "set": {"key": name}}
        return
    possible = [conflict.choices for conflict in undecided if conflict.choices]
    if not possible or len(possible) < len(undecided):
        return
    labels = {
        "ours": f"Keep all of {text.name(plan.target.branch or MAIN)}",
        "theirs": f"Take all of {text.name(plan.source.branch or MAIN)}",
    }
    for side, label in labels.items():
        if all(side in choices for choices in possible):
            yield {"label": label, "set": {"on_conflict": side}}


def _key_candidates(plan: MergePlan) -> list[str]:
    """Return columns of all sides that may identify a row, the likeliest first."""
    ends = plan.ends
    sides = [end.manifest.schema for end in (ends.base, ends.source, ends.target)]
    common = set.intersection(*(set(schema.names) for schema in sides))
    kinds = {field.name: field.type for field in sides[2].to_arrow()}
    candidates = [
        name
        for name in sides[2].names
        if name in common
        and can_be_listed([name])
        and (pa.types.is_integer(kinds[name]) or cells.is_text(kinds[name]))
    ]
    return sorted(candidates, key=lambda name: not _looks_like_key(name))[:_MAX_KEYS]


def _looks_like_key(name: str) -> bool:
    plain = name.casefold()
    return plain in ("id", "key", "uuid", "guid") or plain.endswith(("_id", "_key", "uuid"))


# --- cells in conflict ----------------------------------------------------------------------------


def _cells(plan: MergePlan, conflict_cells: ConflictCells) -> Json:
    types = {field.name: str(field.type) for field in plan.schema_after}
    columns = [
        {"name": name, "label": text.name(name), "type": text.name(types[name]), "count": count}
        for name, count in conflict_cells.columns().items()
    ]
    return {
        "total": len(conflict_cells),
        "rows": conflict_cells.num_rows,
        "deleted_rows": conflict_cells.num_deleted_rows,
        "open": sum(conflict.num_rows for conflict in plan.unresolved if conflict.kind == ROWS),
        "key": ", ".join(map(text.name, conflict_cells.replay.key)) or "row id",
        "columns": columns[:MAX_SCHEMA],
        "hidden": max(0, len(columns) - MAX_SCHEMA),
    }


def cell_lines(conflict_cells: ConflictCells, first: int, count: int) -> list[Json]:
    """Read some cells in conflict, as lines of the table."""
    lines = [_cell_line(cell) for cell in conflict_cells.window(first, count)]
    left = INLINE_BYTES
    for side in (line[name] for line in lines for name in ("base", "ours", "theirs")):
        if side and "image" in side:
            left -= len(side["image"]["data"])
            if left < 0:
                del side["image"]
    return lines


def _cell_line(cell: ConflictCell) -> Json:
    sides = {
        name: None if value is None else {"text": shown_value(value), **_image(value)}
        for name, value in (("base", cell.base), ("ours", cell.ours), ("theirs", cell.theirs))
    }
    return {
        "row": row_text(cell.row),
        "label": text.line(", ".join(map(str, _parts(cell.row))), 120),
        "column": cell.column,
        "name": None if cell.column is None else text.name(cell.column),
        **sides,
        "take": cell.take,
        "value": None if cell.value is None else text.line(str(cell.value), MAX_CELL_CHARS),
    }


def _image(value: pa.Scalar) -> Json:
    """Return ``{image}`` for a value that is a small image: see table_images."""
    if not value.is_valid or not cells.is_binary(value.type):
        return {}
    images = images_json([pa.array([value.as_py()], value.type)])
    return {"image": images[0]} if images else {}


def _parts(row: object) -> tuple[object, ...]:
    return row if isinstance(row, tuple) else (row,)


def shown_value(value: pa.Scalar) -> str | None:
    """Return a value as the table of conflicts shows it, None for a null."""
    return cells.scalar_text(value, MAX_CELL_CHARS) if value.is_valid else None


def _place(target: Target) -> Json:
    version = target.version or 0
    return {
        "branch": target.branch,
        "version": version,
        "label": text.ref_label(target.branch, version),
    }


def _fragments(table: pa.Table) -> Json:
    changes = table["change"].to_pylist()
    names = {"fragment_id": "id", "rows_before": "before", "rows_after": "after"}
    shown = table.slice(0, MAX_FRAGMENTS).to_pylist()
    return {
        **{change: changes.count(change) for change in ("new", "changed", "dropped")},
        "lines": [{names.get(key, key): value for key, value in row.items()} for row in shown],
        "hidden": max(0, table.num_rows - MAX_FRAGMENTS),
    }


def _columns(before: pa.Schema, after: pa.Schema) -> tuple[str, ...]:
    before_types, new = (
        {field.name: str(field.type) for field in schema} for schema in (before, after)
    )
    changes = [
        f"+ {text.name(name)}: {text.name(kind)}"
        for name, kind in new.items()
        if name not in before_types
    ]
    changes += [f"− {text.name(name)}" for name in before_types if name not in new]
    changes += [
        f"~ {text.name(name)}: {text.name(before_types[name])} → {text.name(kind)}"
        for name, kind in new.items()
        if name in before_types and before_types[name] != kind
    ]
    return tuple(changes[:MAX_SCHEMA])


# --- the grid -------------------------------------------------------------------------------------


def _grid(plan: MergePlan) -> Json:
    ends = plan.ends
    steps = ends.source_history.steps, ends.target_history.steps
    disputed = frozenset(number for conflict in plan.conflicts for number in conflict.fragments)
    sides = [_shown(own_steps, disputed) for own_steps in steps]
    verdicts: dict[tuple[str, str, str], int] = {}
    verdict_by_pair: dict[tuple[int, int], int] = {}
    for pair in pair_table(sides[0], sides[1], plan.conflicts).to_pylist():
        key = pair["outcome"], pair["verdict"], text.line(pair["reason"] or "")
        versions = pair["source_version"], pair["target_version"]
        verdict_by_pair[versions] = verdicts.setdefault(key, len(verdicts))
    return {
        "source": [_step(step) for step in sides[0]],
        "target": [_step(step) for step in sides[1]],
        "hidden_source": len(steps[0]) - len(sides[0]),
        "hidden_target": len(steps[1]) - len(sides[1]),
        "verdicts": [_verdict(*key) for key in verdicts],
        "cells": [
            verdict_by_pair.get((a.version, b.version), -1) for a in sides[0] for b in sides[1]
        ],
    }


def _verdict(outcome: str, verdict: str, reason: str) -> Json:
    rules = _RULES.get(verdict, "")
    shown = " — ".join(filter(None, (reason, rules)))
    words = _OUTCOMES.get(outcome, outcome)
    if (outcome, verdict) == ("conflict", "rebasable"):
        words = "may be part of the conflict"  # which rows it was is not recorded
    return {"outcome": outcome, "words": words, "reason": shown}


def _shown(steps: Sequence[Step], disputed: frozenset[int]) -> list[Step]:
    """Return the steps to show, in their order: those at disputed fragments, then the newest."""
    if len(steps) <= MAX_STEPS:
        return list(steps)
    order = sorted(
        range(len(steps)), key=lambda index: (not _touches(steps[index], disputed), -index)
    )
    return [steps[index] for index in sorted(order[:MAX_STEPS])]


def _touches(step: Step, fragments: frozenset[int]) -> bool:
    if step.transaction is None:
        return False
    return not step.transaction.operation.footprint().touched.isdisjoint(fragments)


def _step(step: Step) -> Json:
    operation = None if step.transaction is None else step.transaction.operation
    return {
        "version": step.version,
        "label": text.ref_label(step.branch, step.version),
        "operation": "" if operation is None else operation_name(operation.arm),
        "text": "no longer recorded" if operation is None else text.line(operation.describe(), 200),
    }


# --- the sample -----------------------------------------------------------------------------------


def _sample(table: pa.Table) -> Json:
    """Show rows that both sides changed, in the columns that differ and the first one."""
    if not table.num_rows:
        return {"columns": [], "rows": []}
    sides = {name: table[name].combine_chunks() for name in SIDES}
    names = list(dict.fromkeys(field.name for side in sides.values() for field in side.type))
    texts = [[_texts(sides[side], row, names) for side in SIDES] for row in range(table.num_rows)]
    differ = [index for index in range(len(names)) if any(_differs(row, index) for row in texts)]
    shown = sorted({0, *differ[: MAX_COLUMNS - 1]})
    return {
        "columns": [text.name(names[index]) for index in shown],
        "rows": [
            {
                side: None if values is None else [values[index] for index in shown]
                for side, values in zip(SIDES, row, strict=True)
            }
            for row in texts
        ],
    }


def _differs(row: Sequence[Sequence[str | None] | None], index: int) -> bool:
    return len({values[index] for values in row if values is not None}) > 1


def _texts(column: pa.StructArray, row: int, names: Sequence[str]) -> list[str | None] | None:
    """Return a row of one side as texts, None where the side has no such row."""
    value = column[row]
    if not value.is_valid:
        return None
    field_names = {field.name for field in column.type}
    return [
        cells.scalar_text(value[name], _CELL_CHARS) if name in field_names else None
        for name in names
    ]


def merge_code(
    dataset: Source,
    kind: str,
    source: str | Place,
    into: str | None,
    settings: Mapping[str, Any],
    *,
    message: str | None = None,
    dry_run: bool = False,
) -> Code:
    """Merge, cherry-pick or revert."""
    named = {
        name: value
        for name, value in settings.items()
        if value not in ("auto", "fail", False, None)
    }
    options: dict[str, object] = {}
    for name, value in named.items():
        is_list = isinstance(value, (tuple, list)) and name != "resolve"  # which is repeated
        options[f"--{name.replace('_', '-')}"] = ",".join(map(str, value)) if is_list else value
    key = named.get("key")
    is_sayable = not isinstance(key, (tuple, list)) or can_be_listed(list(map(str, key)))
    if dry_run:
        named["dry_run"] = options["--dry-run"] = True
    if message is not None:
        options["-m"] = message
        named = {**named, "message": message}
    line_of = opened(dataset)
    if kind == "merge":
        target = into or MAIN
        python = line_of.attribute("branches.merge").call(source, target, **_ordered(named))
        shown = source if isinstance(source, str) else source[0] or MAIN
        line = magic("merge", shown, options={"--into": target, **options})
        return offered(python, line if is_sayable else PYTHON_ONLY)
    verb = "revert" if kind == "revert" else "cherry_pick"
    place = source if isinstance(source, tuple) else (source, 0)
    if into is not None:
        line_of = line_of.attribute("checkout_version").call((into, None))
    place_in_code: int | Place = place[1] if place[0] == into else place
    if place[0] is None and into is not None:
        place_in_code = (MAIN, place[1])
    python = line_of.attribute(verb).call(place_in_code, **_ordered(named))
    line = magic(verb.replace("_", "-"), place_word(*place), options=options)
    return offered(python, line if is_sayable else PYTHON_ONLY)


def _ordered(named: Mapping[str, Any]) -> dict[str, Any]:
    """Put what is said of every merge behind what is said of this one."""
    last = ("message", "dry_run")
    ordered = {name: value for name, value in named.items() if name not in last}
    return ordered | {name: named[name] for name in last if name in named}
