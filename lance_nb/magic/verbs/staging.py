"""Verbs that change rows: stage edits, preview them, commit them as one transaction."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

from lance_nb.errors import InvalidInputError
from lance_nb.explorer import text
from lance_nb.magic.context import MagicContext, label
from lance_nb.magic.verb import VARIABLE, Result, argument, records_result, text_result, verb


def _append(context: MagicContext, words: Sequence[str], args: Namespace) -> None:
    context.stage("append", source=_one(words, "append", "a variable or a file"))


def _delete(context: MagicContext, words: Sequence[str], args: Namespace) -> None:
    context.stage("delete", where=args.where or _one(words, "delete", "a filter"))


def _update(context: MagicContext, words: Sequence[str], args: Namespace) -> None:
    updates = dict(_assignment(word) for word in words)
    if not updates:
        raise InvalidInputError("stage update needs COLUMN=EXPRESSION, such as price='price * 2'")
    context.stage("update", set=updates, where=args.where)


def _overwrite(context: MagicContext, words: Sequence[str], args: Namespace) -> None:
    context.stage("overwrite", source=_one(words, "overwrite", "a variable or a file"))


_EDITS = {"append": _append, "delete": _delete, "update": _update, "overwrite": _overwrite}


@verb(
    argument("edit", choices=tuple(_EDITS), help="the kind of edit"),
    argument(
        "words",
        nargs="*",
        completes=VARIABLE,
        help="append, overwrite: a variable or file; delete: a filter; update: COLUMN=EXPRESSION",
    ),
    argument("--where", "--filter", metavar="FILTER", help="update, delete: only these rows"),
    example="stage update price='price * 2' --where 'price < 10'",
)
def stage(context: MagicContext, args: Namespace) -> Result:
    """Stage an edit: rows to append, delete, update or overwrite; nothing is committed."""
    _EDITS[args.edit](context, args.words, args)
    return _status(context)


@verb()
def status(context: MagicContext, args: Namespace) -> Result:
    """Show the staged edits and what a commit would change."""
    return _status(context)


def _status(context: MagicContext) -> Result:
    """Show the staged edits (of explorers too), their effect, and conflicts with other commits."""
    cards = context.staging_area.open_cards
    if not cards:
        return text_result("Nothing is staged", ["Use %lance stage append df to stage rows."])
    from lance_nb.explorer.stage.card_view import title_of

    lines = [f"{title_of(card.form)} ({card.state})" for card in cards]
    preview = context.staging_area.preview()
    heading = f"Staged on {label(context.dataset)}"
    if preview is None:
        return text_result(heading, lines, value=lines, data={"cards": lines})
    data = {
        "operation": preview.operation,
        "read_version": preview.read_version,
        "rows_before": preview.num_rows_before,
        "rows_after": preview.num_rows_after,
        "conflicts": [
            {
                "version": conflict.version,
                "operation": conflict.operation,
                "overlap": conflict.overlap,
            }
            for conflict in preview.conflicts
        ],
        "cards": lines,
    }
    lines += str(preview).splitlines()
    return text_result(
        heading, lines, value=preview, data=data, exit_code=1 if preview.conflicts else 0
    )


@verb(
    argument("-m", "--message", nargs="+", help="the commit message"),
    argument("--each", action="store_true", help="one version per edit"),
    example="commit -m clean prices",
)
def commit(context: MagicContext, args: Namespace) -> Result:
    """Commit the staged edits, as one version or one version each."""
    area = context.staging_area
    if not area.open_cards:
        raise InvalidInputError("nothing is staged; use %lance stage first")
    message = " ".join(args.message) if args.message else None
    is_each = args.each or len(area.open_cards) == 1
    do = area.commit_each if is_each else area.commit_together
    from lance_nb.explorer.stage.card import ProgressReporter

    for card in do(message, ProgressReporter("commit")):
        if card.problem is not None:
            raise card.problem
    dataset = context.checkout_latest()
    info = dataset.version_info(dataset.version)
    record = {"version": info.version, "operation": info.operation, "rows": info.num_rows,
              "message": info.message}  # fmt: skip
    return records_result(f"Committed {label(dataset)}", [record], value=dataset)


@verb()
def discard(context: MagicContext, args: Namespace) -> Result:
    """Discard the staged edits."""
    cards = context.staging_area.open_cards
    if not cards:
        raise InvalidInputError("nothing is staged")
    files = sum(context.staging_area.remove(card.id) for card in cards)
    return text_result("Discarded", [f"{text.plural(files, 'file')} removed"], value=files)


def _one(words: Sequence[str], edit: str, subject: str) -> str:
    if len(words) != 1:
        raise InvalidInputError(
            f"stage {edit} takes one argument, {subject}; quote it if it has spaces"
        )
    return words[0]


def _assignment(words: str) -> tuple[str, str]:
    column, equals, value = words.partition("=")
    if not equals or not column.strip() or not value.strip():
        raise InvalidInputError(
            f"{words!r} is not COLUMN=EXPRESSION; quote spaces, as in price='price * 2'"
        )
    return column.strip(), value.strip()


VERBS = (stage, status, commit, discard)
