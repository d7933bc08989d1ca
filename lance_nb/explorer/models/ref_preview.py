"""Preview changes of branches and tags: what each would do, and the code that does it.

Layout of ``Consequence.to_json``: ``{level, text}``; ``level`` is "ok" (information), "warn"
(something gets lost) or "stop" (the engine refuses). Layout of code: ``{python, magic}``; the
magics apply to the current dataset. Merges, cherry-picks and reverts have code here as well.

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

``cells`` goes by rows: each transaction of the source against each of the target. A step is
``{version, label, operation, text}``.

Limits: ``MAX_NAMED`` names of each kind are written out, the others are counted; ``MAX_STEPS``
steps of each side (those at disputed fragments, then the newest), ``MAX_FRAGMENTS``,
``MAX_CONFLICTS``, ``MAX_NOTES``, ``MAX_ROWS`` rows of ``MAX_COLUMNS`` columns.
Source: ``table.retention`` (what a clean-up keeps), ``BranchDeletion``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from lance_nb.code_lines import PYTHON_ONLY, Python, can_be_listed, magic, offered
from lance_nb.dataset.verbs.branch_merging import MergePlan
from lance_nb.explorer.models import cells, text
from lance_nb.explorer.models.ref_list import Place, RefBook, fork_of, tag_place
from lance_nb.explorer.models.refs import MAIN, place_word
from lance_nb.explorer.models.source import Source
from lance_nb.table.refs import Target
from lance_nb.transactions.branch_merge.conflicts import pair_table
from lance_nb.transactions.branch_merge.merge_base import Step
from lance_nb.transactions.branch_writer import BranchDeletion
from lance_nb.transactions.operation import operation_name

MAX_NAMED = 8
OK, WARN, STOP = "ok", "warn", "stop"
Code = dict[str, str]


@dataclass(frozen=True, slots=True)
class Consequence:
    """One consequence."""

    level: str
    text: str

    def to_json(self) -> dict[str, str]:
        """Return it as JSON-able values."""
        return asdict(self)


def of_creating(book: RefBook, kind: str, place: Place, num_rows: int) -> list[Consequence]:
    """List the consequences of a new tag or branch at a version."""
    shown = text.ref_label(*place)
    kept = Consequence(OK, f"{shown} is kept from clean-up as long as the {kind} exists.")
    if kind == "tag":
        others = book.tags_at(place)
        return [
            kept,
            *([Consequence(OK, f"It already has the tag {_names(others)}.")] if others else []),
        ]
    rows = text.plural(num_rows, "row")
    return [Consequence(OK, f"Starts at {shown} with its {rows}; no data is copied."), kept]


def of_moving(book: RefBook, tag: str, place: Place, latest: int | None) -> list[Consequence]:
    """List the consequences of moving a tag; ``latest`` is that of the branch it leaves."""
    before = tag_place(book.tags[tag])
    if before == place:
        return [Consequence(STOP, f"It is already at {text.ref_label(*place)}.")]
    kept = f"{text.ref_label(*place)} is kept from clean-up as long as the tag exists."
    return [
        Consequence(OK, f"From {text.ref_label(*before)} to {text.ref_label(*place)}."),
        Consequence(OK, kept),
        *of_leaving(book, tag, latest),
    ]


def of_leaving(book: RefBook, tag: str, latest: int | None) -> list[Consequence]:
    """List the consequences for the version that a tag leaves."""
    place = tag_place(book.tags[tag])
    found = [_protection(book, place, [one for one in book.tags_at(place) if one != tag], latest)]
    if tag.startswith(f"merged-{(place[0] or 'main').replace('/', '-')}-{place[1]}"):
        found.append(
            Consequence(
                WARN,
                "A merge created this tag: another branch reads files of "
                f"{text.ref_label(*place)} in place. pylance does not know this, and may delete "
                "the files without the tag.",
            )
        )
    return found


def _protection(
    book: RefBook, place: Place, tags: Sequence[str], latest: int | None, without: str = ""
) -> Consequence:
    """Return whether a version is still protected from clean-up."""
    shown = text.ref_label(*place)
    forks = [one for one in book.forks_at(place) if one != without]
    if tags or forks:
        by = [f"tag {_names(tags)}"] if tags else []
        by += [f"branch {_names(forks)}, which started there"] if forks else []
        return Consequence(OK, f"{shown} stays protected by {' and '.join(by)}.")
    if latest is not None and place[1] >= latest:
        return Consequence(
            OK, f"{shown} is the newest version: it stays until there is a newer one."
        )
    return Consequence(WARN, f"{shown} loses its protection: the next clean-up may delete it.")


def of_deleting_branch(
    book: RefBook, deletion: BranchDeletion, latest_of_parent: int | None, *, stands_here: bool
) -> list[Consequence]:
    """List what is deleted with a branch, and what prevents it."""
    users, name = deletion.users, text.name(deletion.name)
    found = [Consequence(STOP, one) for one in _refusals(deletion)]
    own = [one for one in deletion.versions if one > (deletion.fork.version or 0)]
    size = f"{text.plural(deletion.num_files, 'file')}, {text.size(deletion.size_bytes)}"
    level = OK if users else WARN
    versions = text.plural(len(deletion.versions), "version")
    found.append(Consequence(level, f"Frees {size}: all {versions}."))
    if own:
        what = f"{text.plural(len(own), 'version')} of {name} since its fork"
        found.append(Consequence(WARN, f"{what} cannot be restored."))
    place = fork_of(book.branches[deletion.name])
    tags = book.tags_at(place)
    found.append(_protection(book, place, tags, latest_of_parent, without=deletion.name))
    if stands_here:
        there = text.ref_label(*place)
        found.append(Consequence(OK, f"This view shows the branch and will switch to {there}."))
    return found


def _refusals(deletion: BranchDeletion) -> Iterable[str]:
    users = deletion.users
    if users.children:
        names = _names([name for name, _ in users.children])
        yield f"Refused: other branches started from it ({names}). Delete them first."
    if users.tags:
        names = _names([name for name, _ in users.tags])
        yield f"Refused: tags point to its versions ({names}). Delete or move them first."
    if users.readers:
        places = [text.ref_label(*one) for one in users.readers]
        yield f"Refused: versions that merged it refer to its files ({_names(places)})."


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(text.name(one) for one in names[:MAX_NAMED])
    more = len(names) - MAX_NAMED
    return f"{shown} and {more} more" if more > 0 else shown


def list_code(dataset: Source, kind: str) -> Code:
    """List the branches or tags."""
    noun = "branches" if kind == "branch" else "tags"
    return offered(_dataset(dataset).attribute(f"{noun}.list").call(), magic(kind, "list"))


def change_code(
    dataset: Source, kind: str, action: str, name: str, place: Place | None, *, note: str = ""
) -> Code:
    """Create, move or delete a ref."""
    what = (note,) if action == "note" else () if place is None else (_python_place(place),)
    python = _change(_dataset(dataset), kind, action, name, what)
    if action == "note":
        return offered(python, PYTHON_ONLY)
    there = () if place is None or action == "delete" else (place_word(*place),)
    return offered(python, magic(kind, action, name, *there))


def _dataset(dataset: Source) -> Python:
    return Python("lance_nb.dataset").call(dataset.uri)


def _change(opened: Python, kind: str, action: str, name: str, what: tuple[object, ...]) -> Python:
    if action == "create" and kind == "branch":
        return opened.attribute("create_branch").call(name, *what)
    verbs = {"create": "create", "move": "update", "delete": "delete", "note": "replace_metadata"}
    noun = "branches" if kind == "branch" else "tags"
    given = {"note": tuple({"note": note} for note in what), "delete": ()}.get(action, what)
    return opened.attribute(f"{noun}.{verbs[action]}").call(name, *given)


def _python_place(place: Place) -> int | Place:
    return place[1] if place[0] is None else place


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
        is_list = isinstance(value, (tuple, list))
        options[f"--{name.replace('_', '-')}"] = ",".join(map(str, value)) if is_list else value
    key = named.get("key")
    is_sayable = not isinstance(key, (tuple, list)) or can_be_listed(list(map(str, key)))
    if dry_run:
        named["dry_run"] = options["--dry-run"] = True
    if message:
        options["-m"] = message
        named = {**named, "message": message}
    opened = _dataset(dataset)
    if kind == "merge":
        target = into or MAIN
        python = opened.attribute("branches.merge").call(source, target, **_ordered(named))
        shown = source if isinstance(source, str) else source[0] or MAIN
        line = magic("merge", shown, options={"--into": target, **options})
        return offered(python, line if is_sayable else PYTHON_ONLY)
    verb = "revert" if kind == "revert" else "cherry_pick"
    place = source if isinstance(source, tuple) else (source, 0)
    if into is not None:
        opened = opened.attribute("checkout_version").call((into, None))
    there: int | Place = place[1] if place[0] == into else place
    if place[0] is None and into is not None:
        there = (MAIN, place[1])
    python = opened.attribute(verb).call(there, **_ordered(named))
    line = magic(verb.replace("_", "-"), place_word(*place), options=options)
    return offered(python, line if is_sayable else PYTHON_ONLY)


def _ordered(named: Mapping[str, Any]) -> dict[str, Any]:
    """Put what is said of every merge behind what is said of this one."""
    last = ("message", "dry_run")
    found = {name: value for name, value in named.items() if name not in last}
    return found | {name: named[name] for name in last if name in named}


MAX_STEPS = 40
MAX_FRAGMENTS = 40
MAX_CONFLICTS = 30
MAX_NOTES = 20
MAX_ROWS = 12
MAX_COLUMNS = 8
MAX_SCHEMA = 30
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
class MergePreview:
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

    def to_json(self) -> dict[str, Any]:
        """Return the preview as JSON-able values."""
        return asdict(self)


def merge_preview(plan: MergePlan) -> MergePreview:
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
        columns=_columns(plan.planned.ends.target.manifest.schema.to_arrow(), plan.schema_after),
        conflicts=tuple(
            {
                "kind": one.kind,
                "text": text.line(one.text),
                "remedy": text.line(one.remedy),
                "resolution": one.resolution,
            }
            for one in plan.conflicts[:MAX_CONFLICTS]
        ),
        hidden_conflicts=max(0, len(plan.conflicts) - MAX_CONFLICTS),
        unresolved=len(plan.unresolved),
        notes=tuple(text.line(one) for one in plan.notes[:MAX_NOTES]),
        grid=_grid(plan),
        sample=_sample(plan.conflict_rows(MAX_ROWS)),
    )


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
    known, new = ({field.name: str(field.type) for field in one} for one in (before, after))
    found = [
        f"+ {text.name(name)}: {text.name(kind)}" for name, kind in new.items() if name not in known
    ]
    found += [f"− {text.name(name)}" for name in known if name not in new]
    found += [
        f"~ {text.name(name)}: {text.name(known[name])} → {text.name(kind)}"
        for name, kind in new.items()
        if name in known and known[name] != kind
    ]
    return tuple(found[:MAX_SCHEMA])


# --- the grid -------------------------------------------------------------------------------------


def _grid(plan: MergePlan) -> Json:
    ends = plan.planned.ends
    steps = ends.source_history.steps, ends.target_history.steps
    disputed = frozenset(number for one in plan.conflicts for number in one.fragments)
    sides = [_shown(one, disputed) for one in steps]
    verdicts: dict[tuple[str, str, str], int] = {}
    found: dict[tuple[int, int], int] = {}
    for pair in pair_table(sides[0], sides[1], plan.conflicts).to_pylist():
        key = pair["outcome"], pair["verdict"], text.line(pair["reason"] or "")
        at = pair["source_version"], pair["target_version"]
        found[at] = verdicts.setdefault(key, len(verdicts))
    return {
        "source": [_step(one) for one in sides[0]],
        "target": [_step(one) for one in sides[1]],
        "hidden_source": len(steps[0]) - len(sides[0]),
        "hidden_target": len(steps[1]) - len(sides[1]),
        "verdicts": [_verdict(*key) for key in verdicts],
        "cells": [found.get((a.version, b.version), -1) for a in sides[0] for b in sides[1]],
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
    order = sorted(range(len(steps)), key=lambda at: (not _touches(steps[at], disputed), -at))
    return [steps[at] for at in sorted(order[:MAX_STEPS])]


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
    names = list(dict.fromkeys(field.name for one in sides.values() for field in one.type))
    texts = [[_texts(sides[side], row, names) for side in SIDES] for row in range(table.num_rows)]
    differ = [at for at in range(len(names)) if any(_differs(row, at) for row in texts)]
    shown = sorted({0, *differ[: MAX_COLUMNS - 1]})
    return {
        "columns": [text.name(names[at]) for at in shown],
        "rows": [
            {
                side: None if values is None else [values[at] for at in shown]
                for side, values in zip(SIDES, row, strict=True)
            }
            for row in texts
        ],
    }


def _differs(row: Sequence[Sequence[str | None] | None], at: int) -> bool:
    return len({values[at] for values in row if values is not None}) > 1


def _texts(column: pa.StructArray, row: int, names: Sequence[str]) -> list[str | None] | None:
    """Return a row of one side as texts, None where the side has no such row."""
    value = column[row]
    if not value.is_valid:
        return None
    known = {field.name for field in column.type}
    return [
        cells.scalar_text(value[name], _CELL_CHARS) if name in known else None for name in names
    ]
