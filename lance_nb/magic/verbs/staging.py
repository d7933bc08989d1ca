"""Verbs that change rows: edits are staged, looked at, and committed as one transaction."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence

from lance_nb.errors import InvalidInputError
from lance_nb.explorer.models import text
from lance_nb.explorer.staging.card_view import title_of
from lance_nb.explorer.staging.progress import ProgressReporter
from lance_nb.magic.answer import Answer, answer_of_lines, answer_of_records
from lance_nb.magic.desk import Desk, label
from lance_nb.magic.verb import VARIABLE, Verb, argument


def stage(desk: Desk, said: Namespace) -> Answer:
    """Stage one more edit and preview all of them."""
    _EDITS[said.edit](desk, said.words, said)
    return status(desk, said)


def _append(desk: Desk, words: Sequence[str], said: Namespace) -> None:
    desk.stage("append", source=_one(words, "append", "a variable or a file"))


def _delete(desk: Desk, words: Sequence[str], said: Namespace) -> None:
    desk.stage("delete", where=said.where or _one(words, "delete", "a filter"))


def _update(desk: Desk, words: Sequence[str], said: Namespace) -> None:
    updates = dict(_assignment(one) for one in words)
    if not updates:
        raise InvalidInputError("stage update needs COLUMN=EXPRESSION, such as price='price * 2'")
    desk.stage("update", set=updates, where=said.where)


def _overwrite(desk: Desk, words: Sequence[str], said: Namespace) -> None:
    desk.stage("overwrite", source=_one(words, "overwrite", "a variable or a file"))


_EDITS = {"append": _append, "delete": _delete, "update": _update, "overwrite": _overwrite}


def status(desk: Desk, said: Namespace) -> Answer:
    """Say what is staged, here and in explorers, what it would change, and whom it would meet."""
    cards = desk.deck.open_cards
    if not cards:
        return answer_of_lines("Nothing is staged", ["%lance stage append df stages rows."])
    lines = [f"{title_of(one.form)} ({one.state})" for one in cards]
    preview = desk.deck.preview()
    heading = f"Staged on {label(desk.dataset)}"
    if preview is None:
        return answer_of_lines(heading, lines, value=lines, data={"cards": lines})
    data = {
        "operation": preview.operation,
        "read_version": preview.read_version,
        "rows_before": preview.num_rows_before,
        "rows_after": preview.num_rows_after,
        "conflicts": [
            {"version": one.version, "operation": one.operation, "overlap": one.overlap}
            for one in preview.conflicts
        ],
        "cards": lines,
    }
    lines += str(preview).splitlines()
    return answer_of_lines(
        heading, lines, value=preview, data=data, exit_code=1 if preview.conflicts else 0
    )


def commit(desk: Desk, said: Namespace) -> Answer:
    """Commit what is staged, as one new version or card by card."""
    deck = desk.deck
    if not deck.open_cards:
        raise InvalidInputError("nothing is staged; begin with %lance stage")
    message = " ".join(said.message) if said.message else None
    is_each = said.each or len(deck.open_cards) == 1
    do = deck.commit_each if is_each else deck.commit_together
    for card in do(message, ProgressReporter("commit")):
        if card.problem is not None:
            raise card.problem
    dataset = desk.latest()
    info = dataset.version_info(dataset.version)
    record = {"version": info.version, "operation": info.operation, "rows": info.num_rows,
              "message": info.message}  # fmt: skip
    return answer_of_records(f"Committed {label(dataset)}", [record], value=dataset)


def discard(desk: Desk, said: Namespace) -> Answer:
    """Throw away what is staged, here and in explorers."""
    cards = desk.deck.open_cards
    if not cards:
        raise InvalidInputError("nothing is staged")
    files = sum(desk.deck.remove(one.id) for one in cards)
    return answer_of_lines("Discarded", [f"{text.plural(files, 'file')} removed"], value=files)


def _one(words: Sequence[str], edit: str, what: str) -> str:
    if len(words) != 1:
        raise InvalidInputError(f"stage {edit} takes one word, {what}; quote it if it has spaces")
    return words[0]


def _assignment(words: str) -> tuple[str, str]:
    column, equals, value = words.partition("=")
    if not equals or not column.strip() or not value.strip():
        raise InvalidInputError(
            f"{words!r} is not COLUMN=EXPRESSION; quote what has spaces: price='price * 2'"
        )
    return column.strip(), value.strip()


VERBS = (
    Verb(
        "stage",
        "stage an edit: rows to append, delete, update or overwrite; nothing is committed",
        stage,
        (
            argument("edit", choices=tuple(_EDITS), help="what to do"),
            argument("words", nargs="*", means=VARIABLE,
                     help="append, overwrite: a variable or file; delete: a filter; update: "
                          "COLUMN=EXPRESSION"),
            argument("--where", metavar="FILTER", help="update, delete: only these rows"),
        ),
        "stage update price='price * 2' --where 'price < 10'",
    ),
    Verb("status", "say what is staged and what a commit would change", status),
    Verb(
        "commit",
        "commit what is staged, as one new version or card by card",
        commit,
        (
            argument("-m", "--message", nargs="+", help="what was done and why"),
            argument("--each", action="store_true", help="one version per card"),
        ),
        "commit -m clean prices",
    ),
    Verb("discard", "throw away what is staged", discard),
)  # fmt: skip
