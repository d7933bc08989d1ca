"""Verbs for indices: create, list, extend, describe and drop them; which of them a filter uses."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterable
from typing import Any

from lance_nb.errors import InvalidInputError
from lance_nb.explorer import text
from lance_nb.magic.context import MagicContext, label
from lance_nb.magic.verb import COLUMN, Result, argument, records_result, text_result, verb

ACTIONS = ("list", "create", "drop", "optimize", "stats")
# Arguments of create_index and create_scalar_index that are no settings of a kind.
_ARGUMENTS = frozenset(
    {"column", "index_type", "name", "replace", "train", "progress_callback", "fragment_ids",
     "index_uuid", "storage_options", "ivf_centroids_file"}
)  # fmt: skip


@verb(
    argument("action", nargs="?", choices=ACTIONS, default="list", help="what to do"),
    argument(
        "what",
        nargs="?",
        completes=COLUMN,
        help="a column (create) or the name of an index",
    ),
    argument(
        "--type",
        default="BTREE",
        help="BTREE, BITMAP, LABEL_LIST, NGRAM, ZONEMAP, BLOOMFILTER, IVF_PQ, ...",
    ),
    argument("--name", help="the name of a new index (default: COLUMN_idx)"),
    argument("--replace", action="store_true", help="build an index of that name anew"),
    argument(
        "--set",
        action="append",
        metavar="NAME=VALUE",
        help="create: a setting of the kind, such as num_sub_vectors=8; may be repeated",
    ),
    argument("--retrain", action="store_true", help="optimize: build as one segment anew"),
    example="index create label --type BITMAP",
)
def index(context: MagicContext, args: Namespace) -> Result:
    """List, create, extend, describe or drop indices."""
    if args.action == "create":
        return _create(context, args)
    if args.action == "drop":
        name = _name(context, args, "the name of the index")
        dataset = context.checkout_latest()
        dataset.drop_index(name)
        context.set_dataset(dataset)
        return text_result(f"Dropped index {text.name(name)}", [label(dataset)], value=dataset)
    if args.action == "optimize":
        return _optimize(context, args)
    if args.action == "stats":
        name = _name(context, args, "the name of the index")
        statistics = context.dataset.index_statistics(name)
        shown = [key for key, value in statistics.items() if not isinstance(value, list)]
        records = [{"of the index": key, "value": str(statistics[key])} for key in shown]
        return records_result(f"Index {text.name(name)}", records, value=statistics)
    records = _described(context)
    lines = [] if records else [f"no index; {context.prog} index create COLUMN builds one"]
    return records_result(f"Indices of {label(context.dataset)}", records, lines=lines)


def _described(context: MagicContext) -> list[dict[str, Any]]:
    return [
        {
            "index": text.name(description.name),
            "type": description.index_type,
            "columns": ", ".join(map(text.name, description.field_names)),
            "segments": description.num_segments,
            "rows": description.num_rows_indexed,
            "rows without": description.num_unindexed_rows,
            "size": None
            if description.total_size_bytes is None
            else text.size(description.total_size_bytes),
        }
        for description in context.dataset.describe_indices()
    ]


def _create(context: MagicContext, args: Namespace) -> Result:
    column = _name(context, args, "a column")
    dataset = context.checkout_latest()
    name = args.name or f"{column}_idx"
    settings = _settings(args.set or ())
    if args.type.upper().startswith("IVF"):
        dataset.create_index(column, args.type, name, replace=args.replace, **settings)
    else:
        dataset.create_scalar_index(column, args.type, name, replace=args.replace, **settings)
    context.set_dataset(dataset)
    statistics = dataset.index_statistics(name)
    rows = text.plural(int(statistics["num_indexed_rows"]), "row")
    lines = [f"{statistics['index_type']} on {text.name(column)}, {rows}; now at {label(dataset)}"]
    return text_result(f"Created index {text.name(name)}", lines, value=dataset)


def _settings(words: Iterable[str]) -> dict[str, Any]:
    """Return settings of a kind: numbers, true, false and lists as in JSON, other words as texts.

    Raises InvalidInputError.
    """
    settings: dict[str, Any] = {}
    for word in words:
        name, is_set, value = word.partition("=")
        if not is_set or not name.isidentifier() or name in _ARGUMENTS:
            raise InvalidInputError(
                "--set takes a setting of the kind of index, such as num_sub_vectors=8, "
                f"not {word!r}"
            )
        try:
            settings[name] = json.loads(value)
        except ValueError:
            settings[name] = value
    return settings


def _optimize(context: MagicContext, args: Namespace) -> Result:
    dataset = context.checkout_latest()
    before = dataset.version
    names = None if args.what is None else [args.what]
    dataset.optimize.optimize_indices(index_names=names, retrain=args.retrain)
    context.set_dataset(dataset)
    if dataset.version == before:
        return text_result("Every index covers all rows", [label(dataset)], value=dataset)
    return records_result(f"Optimized: {label(dataset)}", _described(context), value=dataset)


def _name(context: MagicContext, args: Namespace, subject: str) -> str:
    if args.what is None:
        raise InvalidInputError(f"{context.prog} index {args.action} needs {subject}")
    name: str = args.what
    return name


@verb(
    argument("filter", metavar="FILTER", help="a condition such as \"label = 'cat'\""),
    argument("--run", action="store_true", help="run it, and count what was read"),
    example="explain \"label = 'cat'\"",
)
def explain(context: MagicContext, args: Namespace) -> Result:
    """Show which indices answer a filter, and what is read."""
    scanner = context.dataset.scanner(filter=args.filter)
    plan = scanner.analyze_plan() if args.run else scanner.explain_plan()
    lines = [text.line(line) for line in plan.splitlines()]
    return text_result(f"Plan of a scan of {label(context.dataset)}", lines, value=plan)


VERBS = (index, explain)
