"""Describe a card for the Stage tab: preview, conflicts, outcome, and the code for the same edit.

Layout of ``card_json``::

    {id, verb, title, on, branch, read_version, state, message, code, where: {name, reason, ..},
     lines: [text], has_rows, facts: [{label, value}], fragments: [{id, change, before, after}],
     num_fragments, samples: [{label, sign, columns, rows, images, cut, signs?}], meetings: [...],
     edits, conflicts,
     checking, expectations, problem, outcome, review}

A meeting is a version that somebody else committed since: version, operation, author, time,
message, what it means for this card, and the first rows that both change. ``checking``: others have
committed since the meetings were read, so that they have to be read again. ``expectations`` is what
the change would do to them: ``{checking, count, closed, refused, problem, broken: [{name,
statement, detail, sample}], more, off}``, ``off`` the code that opens the gate; null where there
are none. ``outcome`` is set when the card is committed: the version, and how to undo it. ``review``
is that of an act that takes something away (see act_review.py), with ``outdated``: the dataset has
changed since. Code is ``{python, magic}``.

``edits`` are those of a draft: ``{cells: [{row, column, name, before, after}], added: [{row,
values}], deleted: [row], hidden}``, with texts, null for a null. ``conflicts`` is what
refs/conflict_table.js takes for a plan, null without any.

Limits: ``MAX_EDITS`` edits are listed. ``MAX_ROWS`` rows, ``MAX_COLUMNS`` columns and images of
``IMAGE_BYTES`` of a sample, ``MAX_FRAGMENTS`` fragments, ``MAX_MEETINGS`` meetings, ``MAX_BROKEN``
broken expectations. A verb that ``%lance`` lacks has the line that shows what is staged.
"""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import pyarrow as pa

from lance_nb.code_lines import PYTHON_ONLY, Python, magic, offered
from lance_nb.errors import LanceError
from lance_nb.explorer import cells, text
from lance_nb.explorer.checks.version_checks import gate_code, outcome_json, sample_json
from lance_nb.explorer.editing.cell_draft import CellDraft, draft_title
from lance_nb.explorer.error_card import error_card
from lance_nb.explorer.schema_tree import type_label
from lance_nb.explorer.stage.act_review import ActReview
from lance_nb.explorer.stage.actions import index_settings
from lance_nb.explorer.stage.card import COMMITTED, Card
from lance_nb.explorer.stage.edit_execution import LOCAL, SPARK
from lance_nb.explorer.stage.edit_forms import (
    COORDINATES,
    EDITS,
    IN_CODE,
    VECTOR,
    VERBS,
    EditForm,
)
from lance_nb.explorer.stage.row_sources import STREAMED
from lance_nb.explorer.table_images import images_json
from lance_nb.format.expectations import ConfiguredExpectations
from lance_nb.session import provenance
from lance_nb.writing.editing import CellConflict
from lance_nb.writing.stage_preview import Meeting, StagePreview

# What reads a file of rows, by its ending: as table_files does.
_READERS = {
    ".parquet": "pyarrow.parquet.read_table",
    ".csv": "pyarrow.csv.read_csv",
    ".json": "pyarrow.json.read_json",
    ".jsonl": "pyarrow.json.read_json",
    ".arrow": "pyarrow.feather.read_table",
    ".feather": "pyarrow.feather.read_table",
}
MAX_ROWS = 5
MAX_COLUMNS = 8
MAX_FRAGMENTS = 12
MAX_MEETINGS = 20
MAX_BROKEN = 5
MAX_EDITS = 100
CELL_CHARS = 60
IMAGE_BYTES = 64_000  # of a sample: many cards travel together
_VERDICTS = {
    "compatible": "is compatible with this card",
    "rebasable": "this card is rebased onto it automatically",
    "retryable": "this card must be re-run after it",
    "incompatible": "conflicts with this card: discard it",
}
_SAME_ROWS = "changed rows that this card changes: re-run the card"
# What a verb is called where it names one thing; in the menu it names any.
_TITLES = {
    "add_column": "Add column",
    "rename_column": "Rename column",
    "cast_column": "Cast column",
    "restore": "Restore",
}


def stage_code(form: EditForm, message: str = "", engine: str = LOCAL) -> dict[str, str]:
    """Return ``{python, magic}``; ``ds`` is the dataset at the newest version of its branch.

    ``engine``: where the work runs. ``%lance`` has no line for work on Spark.
    """
    on_spark = _on_spark(form.verb, form.args, message) if engine == SPARK else None
    if on_spark is not None:
        return offered(on_spark, PYTHON_ONLY)
    return offered(_python(form.verb, form.args, message), _magic(form.verb, form.args))


# --- Python ---------------------------------------------------------------------------------------


def _python(verb: str, args: Mapping[str, Any], message: str) -> Python:
    arguments = (message,) if message else ()
    if verb == IN_CODE:
        return Python("stage.commit").call(*arguments)
    if verb == "cleanup":
        return _cleanup_code(args)
    if verb == "index":
        build = "create_index" if args["kind"].startswith("IVF") else "create_scalar_index"
        settings = index_settings(args)
        return Python("ds").attribute(build).call(args["column"], args["kind"], **settings)
    if verb == "tag":
        change = {"create": "create", "move": "update", "delete": "delete"}[args["action"]]
        ref = () if change == "delete" or "ref" not in args else (_ref_code(args["ref"]),)
        return Python(f"ds.tags.{change}").call(args["name"], *ref)
    if verb == "branch":
        if args["action"] == "delete":
            return Python("ds.branches.delete").call(args["name"])
        ref = (_ref_code(args["ref"]),) if "ref" in args else ()
        return Python("ds.create_branch").call(args["name"], *ref)
    if verb == "append" and args["source"].endswith((*STREAMED, ".lance")):
        also = {"message": message} if message else {}
        return Python("lance_nb.spark.append").call(Python("ds"), args["source"], **also)
    return _staged(Python("ds.stage()"), verb, args).attribute("commit").call(*arguments)


def _on_spark(verb: str, args: Mapping[str, Any], message: str) -> Python | None:
    """Return what does the work on Spark; None where ``lance_nb.spark`` has no verb for it."""
    ds, verbs = Python("ds"), Python("lance_nb.spark")
    also = {**({"message": message} if message else {}), "engine": SPARK}
    if verb == "append":
        source = args["source"]
        is_path = source.endswith((*STREAMED, ".lance"))  # of files that tasks read
        return verbs.attribute(verb).call(ds, source if is_path else _rows_code(source), **also)
    if verb == "upsert":
        on = args["on"][0] if len(args["on"]) == 1 else args["on"]
        return verbs.attribute(verb).call(ds, _rows_code(args["source"]), on, **also)
    if verb == "delete":
        return verbs.attribute(verb).call(ds, args["where"], **also)
    if verb == "update":
        where = (args["where"],) if "where" in args else ()
        return verbs.attribute(verb).call(ds, args["set"], *where, **also)
    if verb == "compact":
        options = {"compaction": args} if args else {}
        return verbs.attribute(verb).call(ds, **options, **also)
    if verb == "add_column" and "sql" in args:
        return verbs.attribute("backfill").call(ds, {args["name"]: args["sql"]}, **also)
    return None


def _staged(stage: Python, verb: str, args: Mapping[str, Any]) -> Python:
    """Put one change on a stage."""
    if verb == COORDINATES:
        return stage.attribute("add_columns").call(Python("coordinates"))
    if verb == EDITS:
        named = {"cells": Python("cells"), "add": Python("rows"), "delete": Python("row_ids")}
        given_code = args.get("code", {})
        code = {key: named[key] if value is None else value for key, value in given_code.items()}
        cells = (code.pop("cells"),) if "cells" in code else ()
        return stage.attribute("edit").call(*cells, **code)
    if verb in ("append", "overwrite"):
        return stage.attribute(verb).call(_rows_code(args["source"]))
    if verb == "upsert":
        on = args["on"][0] if len(args["on"]) == 1 else args["on"]
        return stage.attribute(verb).call(_rows_code(args["source"]), on=on)
    if verb == "delete":
        return stage.attribute(verb).call(args["where"])
    if verb == "update":
        where = {"where": args["where"]} if "where" in args else {}
        return stage.attribute(verb).call(args["set"], **where)
    if verb == "restore":
        return stage.attribute(verb).call(_version_code(args["version"]))
    if verb == "compact":
        return stage.attribute(verb).call(**args)
    if verb == "drop_columns":
        return stage.attribute(verb).call(args["columns"])
    if verb == "add_column":
        if "sql" in args:
            return stage.attribute("add_columns").call({args["name"]: args["sql"]})
        field = Python("pa.field").call(args["name"], _type_code(args.get("type", "string")))
        return stage.attribute("add_columns").call(field)
    change = (
        {"name": args["name"]}
        if verb == "rename_column"
        else {"data_type": _type_code(args["type"])}
    )
    return stage.attribute("alter_columns").call({"path": args["column"], **change})


def _type_code(name: str) -> Python:
    """Write an Arrow type as Python: ``pa.int32()``."""
    vector = VECTOR.fullmatch(name)
    if vector is not None:
        return Python("pa.list_").call(_type_code(vector[1]), int(vector[2]))
    if name.isidentifier() and hasattr(pa, name):
        return Python("pa").attribute(name).call()
    return Python("pa.type_for_alias").call(name)


def _version_code(version: str) -> int | Python:
    last = version.rpartition(":")[2]
    if _is_number(last):
        return int(last)
    return Python("ds.checkout_version").call(version).attribute("version")


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdigit()


def _rows_code(source: str) -> Python:
    """Return what the rows are: a variable, or what reads a file."""
    if source.isidentifier() and source.isascii() and not keyword.iskeyword(source):
        return Python(source)
    return Python(_READERS.get(PurePath(source).suffix, "lance_nb.dataset")).call(source)


def _cleanup_code(args: Mapping[str, Any]) -> Python:
    rules: dict[str, object] = {}
    if "older_than" in args:
        rules["older_than"] = Python("timedelta").call(days=_days(args["older_than"]))
    if "keep" in args:
        rules["retain_versions"] = args["keep"]
    return Python("ds.cleanup_old_versions").call(**rules)


def _days(days: float) -> float | int:
    return int(days) if days == int(days) else days


def _ref_code(ref: str) -> object:
    if _is_number(ref):
        return int(ref)
    branch, colon, number = ref.partition(":")
    if colon and _is_number(number):
        return (None if branch == "main" else branch, int(number))
    return ref


# --- %lance ---------------------------------------------------------------------------------------


def _magic(verb: str, args: Mapping[str, Any]) -> str:
    if verb == EDITS:
        return PYTHON_ONLY
    if verb in ("append", "overwrite"):
        return magic("stage", verb, args["source"])
    if verb == "delete":
        return magic("stage", verb, args["where"])
    if verb == "update":
        if any("=" in column or column != column.strip() for column in args["set"]):
            return PYTHON_ONLY
        pairs = (f"{column}={value}" for column, value in args["set"].items())
        return magic("stage", verb, *pairs, options={"--where": args.get("where")})
    if verb == "cleanup":
        older = args.get("older_than")
        rules = {
            "--older-than": None if older is None else _days(older),
            "--keep": args.get("keep"),
        }
        return magic("clean", options={**rules, "--really": True})
    if verb == "index":
        settings = [f"{name}={value}" for name, value in index_settings(args).items()]
        options = {"--type": args["kind"], "--set": settings}
        return magic("index", "create", args["column"], options=options)
    if verb == "compact":
        return magic("compact", options={"--target-rows": args.get("target_rows_per_fragment")})
    if verb == "restore":
        return magic(verb, args["version"])
    if verb in ("tag", "branch"):
        ref = (args["ref"],) if "ref" in args else ()
        return magic(verb, args["action"], args["name"], *ref)
    return magic("status")


def code_of(card: Card) -> dict[str, str]:
    """Return the code of a card, on the engine that it runs on."""
    return stage_code(card.form, card.message, card.where.name)


def card_json(card: Card, review: ActReview | None = None) -> dict[str, Any]:
    """Return a card as JSON-able values; ``review`` has more consequences than the card's own."""
    form, dataset = card.form, card.dataset
    shown = (review or card.review) if card.is_open else None
    return {
        "id": card.id,
        "verb": form.verb,
        "title": title_of(form),
        "on": text.ref_label(dataset.branch, dataset.version),
        "branch": dataset.branch,
        "read_version": dataset.version,
        "state": card.state,
        "message": text.line(card.message),
        "code": code_of(card),
        "where": None if card.action else {**card.where.to_json(), "asked": form.engine},
        "lines": [text.line(line) for line in _lines(card)],
        "has_rows": card.action is None,
        "review": None if shown is None else {**shown.to_json(), "outdated": card.is_outdated},
        "facts": [] if card.preview is None else facts_of(card.preview),
        "fragments": [] if card.preview is None else _fragments(card.preview),
        "num_fragments": 0 if card.preview is None else card.preview.fragments.num_rows,
        "samples": _samples(card),
        "edits": edits_json(card.draft) if card.draft is not None and card.is_open else None,
        "conflicts": conflicts_json(card.draft) if card.draft and card.is_open else None,
        "meetings": [meeting_json(card, meeting) for meeting in card.meetings[-MAX_MEETINGS:]],
        "checking": card.is_stale(),
        "expectations": expectations_json(card),
        "problem": None if card.problem is None else error_card(card.problem).to_json(),
        "outcome": _outcome(card),
    }


def _lines(card: Card) -> tuple[str, ...]:
    lines = card.action.lines if card.action else ()
    return (*card.notes, *lines) if card.is_open else lines


def title_of(form: EditForm) -> str:
    """Say in one line what a card is."""
    args = form.args
    if form.verb in ("tag", "branch"):
        return text.line(f"{args['action'].capitalize()} {form.verb} {text.name(args['name'])}")
    if form.verb == IN_CODE:
        return "Staged in code"
    if form.verb == COORDINATES:
        name, column = text.name(args["name"]), text.name(args["column"])
        return text.line(f"Add column {name}: coordinates on the map of {column}", 200)
    if form.verb == EDITS:
        counts = ("num_cells", "num_rows", "num_added", "num_deleted")
        return draft_title(*(args.get(count, 0) for count in counts))
    about = _about(form)
    colon = ":" if about and form.verb in ("compact", "cleanup", "index") else ""
    label = _TITLES.get(form.verb, VERBS[form.verb].label)
    return text.line(f"{label}{colon} {about}".strip(), 200)


def _about(form: EditForm) -> str:
    args, verb = form.args, form.verb
    if verb == "index":
        return f"{args['kind']} on {args['column']}"
    if verb == "delete":
        return f"where {args['where']}"
    if verb == "update":
        updates = ", ".join(f"{column} = {value}" for column, value in args["set"].items())
        return f"{updates} where {args.get('where', 'true')}"
    if verb == "add_column":
        return f"{args['name']} = {args.get('sql') or 'null'}"
    if "column" in args:
        return f"{args['column']} to {args.get('type') or args['name']}"
    if "source" in args:
        on = f" on {', '.join(args['on'])}" if "on" in args else ""
        return f"from {args['source']}{on}"
    if verb == "drop_columns":
        return ", ".join(args["columns"])
    if verb == "restore":
        return f"version {args['version']}" if args["version"].isdigit() else args["version"]
    return ", ".join(f"{key.replace('_', ' ')} {value:g}" for key, value in args.items())


def facts_of(preview: StagePreview) -> list[dict[str, str]]:
    """Return the figures of a preview."""
    rows = f"{text.count(preview.num_rows_before)} → {text.count(preview.num_rows_after)}"
    facts = [("rows", rows)]
    if preview.num_updated_rows:
        facts.append(("updated", text.count(preview.num_updated_rows)))
    facts += [
        (label, f"{sign}{text.count(value)}")
        for label, sign, value in (
            ("added", "+", preview.num_inserted_rows),
            ("deleted", "−", preview.num_removed_rows),
        )
        if value and preview.operation != "Rewrite"
    ]
    kinds = preview.fragments["change"].to_pylist()
    touched = ", ".join(
        f"{kinds.count(kind)} {kind}" for kind in ("new", "changed", "dropped") if kind in kinds
    )
    facts.append(("fragments", touched or "none"))
    files = [text.plural(preview.num_files, "data file")] if preview.num_files else []
    if preview.num_deletion_files:
        files.append(text.plural(preview.num_deletion_files, "deletion file"))
    facts.append(("files", ", ".join(files) or "none"))
    facts.append(("written", text.size(preview.num_bytes_written)))
    if preview.dropped:
        facts.append(("drops", text.line("; ".join(preview.dropped))))
    return [{"label": label, "value": value} for label, value in facts]


def _fragments(preview: StagePreview) -> list[dict[str, Any]]:
    rows = preview.fragments.slice(0, MAX_FRAGMENTS).to_pylist()
    return [
        {"id": row["fragment_id"], "change": row["change"], "before": row["rows_before"],
         "after": row["rows_after"]}
        for row in rows
    ]  # fmt: skip


def _samples(card: Card) -> list[dict[str, Any]]:
    if card.action is not None and card.action.files is not None:
        return [
            _sample(
                "files to delete", "−", card.action.files, first=("reason", "size", "path"), most=20
            )
        ]
    preview = card.preview
    if preview is None or preview.operation == "Rewrite":
        return []
    first = _concerned(card.form)
    moves = preview.num_added_rows or preview.num_deleted_rows
    stays = preview.num_updated_rows or not moves
    names = ("before", "after") if stays else ("deleted", "added")
    signs = ("~", "~") if names[0] == "before" else ("−", "+")
    pairs = zip(names, signs, (preview.removed, preview.added), strict=True)
    samples = [_sample(*pair, first) for pair in pairs if pair[2].num_rows]
    if card.form.verb == "upsert" and stays and samples:
        samples[-1]["signs"] = _upserted(preview, card.form.args["on"])
    return samples


def _upserted(preview: StagePreview, on: list[str]) -> list[str]:
    """Say of rows after an upsert whether each is new or updated; "" where that is unknown."""
    if any(name not in preview.added.schema.names for name in on):
        return [""] * min(MAX_ROWS, preview.added.num_rows)
    old, new = (
        list(zip(*(table[name].to_pylist() for name in on), strict=True))
        for table in (preview.removed, preview.added.slice(0, MAX_ROWS))
    )
    sign = "+" if len(old) >= preview.num_updated_rows else ""
    return ["~" if key in old else sign for key in new]


def _concerned(form: EditForm) -> tuple[str, ...]:
    """Return the columns that a card is about: a sample shows these first."""
    args = form.args
    named = [*args.get("set", ()), *args.get("on", ()), *args.get("columns", ())]
    return (*named, *(args[key] for key in ("column", "name") if key in args))


def _sample(
    label: str, sign: str, table: pa.Table, first: tuple[str, ...], most: int = MAX_ROWS
) -> dict[str, Any]:
    names = [*(name for name in first if name in table.schema.names)]
    names += [name for name in table.schema.names if name not in names]
    shown, rows = names[:MAX_COLUMNS], table.slice(0, most)
    columns = [cells.cell_texts(rows[name], CELL_CHARS) for name in shown]
    return {
        "label": label,
        "sign": sign,
        "columns": [
            {"name": text.name(name), "type": type_label(table.schema.field(name).type)}
            for name in shown
        ],
        "rows": [list(row) for row in zip(*columns, strict=True)],
        "images": images_json([rows[name] for name in shown], IMAGE_BYTES),
        "cut": len(names) - len(shown),
    }


def meeting_json(card: Card, meeting: Meeting) -> dict[str, Any]:
    """Describe what somebody else committed, as far as it can still be read."""
    meeting_data: dict[str, Any] = {
        "version": meeting.version,
        "operation": text.name(meeting.operation),
        "verdict": meeting.verdict,
        "words": _SAME_ROWS if meeting.num_rows else _VERDICTS[meeting.verdict],
        "overlap": text.line(meeting.overlap),
        "rows": [text.line(row) for row in meeting.rows],
        "more_rows": max(0, meeting.num_rows - len(meeting.rows)),
        "author": "",
        "message": "",
        "time": None,
    }
    try:
        info = card.dataset.version_info(meeting.version)
    except LanceError:
        return meeting_data
    author = info.properties.get(provenance.AUTHOR) or ""
    return meeting_data | {
        "author": text.name(author) if author else "",
        "message": text.line(info.message or ""),
        "time": text.milliseconds(info.timestamp),
    }


def _shown(value: pa.Scalar | None) -> str | None:
    if value is None or not value.is_valid:
        return None
    return text.line(cells.scalar_text(value, CELL_CHARS))


def edits_json(draft: CellDraft) -> dict[str, Any]:
    """Describe the edits of a draft one by one."""
    state = draft.state
    changed = [
        {"row": str(row), "column": column, "name": text.name(column),
         "before": _shown(draft.before(row, column)), "after": _shown(value)}
        for row, values in state.cells.items() for column, value in values.items()
    ]  # fmt: skip
    added = [
        {"row": str(row), "values": ", ".join(
            f"{text.name(name)}: {'null' if not value.is_valid else _shown(value)}"
            for name, value in list(values.items())[:MAX_COLUMNS]
        )}
        for row, values in state.added.items()
    ]  # fmt: skip
    deleted = [str(row) for row in sorted(state.deleted)]
    listed = len(changed) + len(added) + len(deleted)
    changed, room = changed[:MAX_EDITS], max(0, MAX_EDITS - len(changed))
    added, room = added[:room], max(0, room - len(added))
    deleted = deleted[:room]
    shown = len(changed) + len(added) + len(deleted)
    return {"cells": changed, "added": added, "deleted": deleted, "hidden": listed - shown}


def conflicts_json(draft: CellDraft) -> dict[str, Any] | None:
    """Describe conflicts of a draft as the preview of a merge does; None without any."""
    conflicts = draft.conflicts
    if not conflicts:
        return None
    names = [conflict.column for conflict in conflicts if conflict.column is not None]
    given_up = sum(_sides(conflict) is not None for conflict in conflicts)
    return {
        "plan": draft.conflict_number,
        "note": _conflict_note(draft, given_up),
        "sides": ["theirs"] if given_up == len(conflicts) else None,
        "base": {"label": "what you edited"},
        "target": {"label": "your edit"},
        "source": {"label": f"theirs · {draft.conflicts_with}"},
        "cells": {
            "key": ", ".join(map(text.name, conflicts[0].key)) or "row id",
            "total": len(conflicts),
            "rows": len({conflict.row_id for conflict in conflicts}),
            "deleted_rows": sum(
                conflict.column is None and not conflict.is_lost for conflict in conflicts
            ),
            "hidden": 0,
            "columns": [
                {"name": name, "label": text.name(name), "count": names.count(name)}
                for name in list(dict.fromkeys(names))[:MAX_COLUMNS]
            ],
        },
    }


def _sides(conflict: CellConflict) -> list[str] | None:
    """Return the sides that can be applied, None for all."""
    return ["theirs"] if conflict.is_lost and not conflict.values else None


def _row_label(conflict: CellConflict) -> str:
    """Name the row of a conflict by what tells rows apart; else by a value and its row id."""
    values = ", ".join(_shown(value) or "null" for value in conflict.key.values())
    row = f"row id {text.count(conflict.row_id)}"
    return values if conflict.is_named else f"{values} ({row})" if values else row


def _conflict_note(draft: CellDraft, given_up: int) -> str:
    """Say how rows were followed, and how edits of rows that cannot be found are kept."""
    conflicts, version = draft.conflicts, draft.conflicts_with
    likely = [conflict for conflict in conflicts if conflict.is_likely]
    notes = []
    if likely:
        rows = len({conflict.row_id for conflict in likely})
        names = ", ".join(map(text.name, likely[0].key))
        notes.append(
            f"{version} has {text.plural(rows, 'row')} that you edited written again with other "
            f"values: found by {names}, which is unique."
        )
    restored = sum(bool(conflict.values) for conflict in conflicts)
    if restored:
        notes.append(
            f"{text.plural(restored, 'row')} that you edited {'was' if restored == 1 else 'were'} "
            f"deleted in {version}: 'your edit' adds {'it' if restored == 1 else 'them'} again."
        )
    if given_up:
        notes.append(
            f"{text.plural(given_up, 'row')} that you edited cannot be found in {version}: "
            "deleted, or written again with other values too, and no column tells rows apart. If a "
            "row is still there, search for it in the Rows tab, give up the edit here, and edit "
            "the row again: your values stand in the column 'your edit'."
        )
    return " ".join(notes)


def _lost_edits(conflict: CellConflict) -> str:
    """Write the edits of a row that is gone, for somebody to make them again."""
    values = (
        f"{text.name(name)} = {_shown(value) or 'null'}" for name, value in conflict.edits.items()
    )
    return text.line(", ".join(values) or "delete the row", 4 * CELL_CHARS)


def conflict_lines(draft: CellDraft, first: int, count: int) -> list[dict[str, Any]]:
    """Return some conflicts as lines of the table; ``sides`` are those that can be applied."""
    return [_conflict_line(conflict) for conflict in draft.conflicts[first : first + count]]


def _conflict_line(conflict: CellConflict) -> dict[str, Any]:
    base: str | None = "as before"
    ours: str | None = None
    theirs: str | None = "changed"
    if conflict.is_lost:
        ours = _lost_edits(conflict)
        theirs = "deleted" if conflict.values else "deleted, or written again under another row id"
    elif conflict.column is not None:
        base, ours, theirs = map(_shown, (conflict.base, conflict.ours, conflict.theirs))
    is_deletion = conflict.column is None and not conflict.is_lost
    return {
        "row": str(conflict.row_id),
        "label": _row_label(conflict),
        "column": conflict.column,
        "name": None if conflict.column is None else text.name(conflict.column),
        "base": {"text": base},
        "sides": _sides(conflict),
        "ours": None if is_deletion else {"text": ours},
        "theirs": {"text": theirs},
    }


def expectations_json(card: Card) -> dict[str, Any] | None:
    """Describe what a card would do to the expectations; None where it has none."""
    check = card.check
    count = 0 if check is None else check.num_expectations
    if card.needs_check:
        count = count or len(ConfiguredExpectations.of(card.dataset.config()).expectations)
        return {"checking": True, "count": count, "refused": False, "broken": [], "problem": ""}
    if not card.is_open or not (count or card.check_problem):
        return None
    shown = {"checking": False, "count": count, "problem": text.line(card.check_problem)}
    if check is None:
        return {**shown, "closed": False, "refused": False, "broken": []}
    num_columns = len(card.dataset.schema)
    return {
        **shown,
        "closed": check.is_gated,
        "refused": check.is_refused,
        "broken": [
            {
                **outcome_json(outcome),
                "sample": sample_json(check.rows[outcome.name], num_columns)
                if outcome.name in check.rows
                else None,
            }
            for outcome in check.broken[:MAX_BROKEN]
        ],
        "more": max(0, len(check.broken) - MAX_BROKEN),
        "off": gate_code(closed=False),
    }


def _outcome(card: Card) -> dict[str, Any] | None:
    """Say where a card landed; what was restored by going back can be undone the same way."""
    if card.state != COMMITTED:
        return None
    branch, version = card.dataset.branch, card.version
    if version is None:
        return {"text": text.line(card.done), "branch": branch, "version": None, "undo": None}
    label = text.ref_label(branch, version)
    return {
        "text": f"committed as {label}",
        "branch": branch,
        "version": version,
        "undo": {"verb": "restore", "version": str(version - 1)},
    }
