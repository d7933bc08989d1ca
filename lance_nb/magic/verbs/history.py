"""Verbs about the past: the log, and the search for the version that went wrong."""

from __future__ import annotations

import re
from argparse import Namespace

from lance_nb.errors import InvalidInputError
from lance_nb.explorer.models import text
from lance_nb.explorer.static_rendering import render_table
from lance_nb.magic.answer import Answer, answer_of_records, word
from lance_nb.magic.desk import Desk, label
from lance_nb.magic.graph import graph_of
from lance_nb.magic.verb import REF, Verb, argument


def log(desk: Desk, said: Namespace) -> Answer:
    """List versions, newest first."""
    if said.ref is not None and re.fullmatch(r"-\d+", said.ref):
        raise InvalidInputError(f"a number of versions is written -n {said.ref[1:]}")
    dataset = desk.at(said.ref)
    limit = desk.settings.versions_shown if said.limit is None else said.limit
    if limit < 0:
        raise InvalidInputError(f"-n {limit}: a number of versions is not negative")
    if said.graph:
        return graph_of(dataset, limit)
    before = None if said.ref is None else dataset.version + 1
    infos = dataset.history(limit, before)
    records = [
        {
            "version": f"{one.version}{' (shown)' if one.version == dataset.version else ''}",
            "time": one.timestamp and one.timestamp.astimezone(),
            "operation": one.operation,
            "rows": one.num_rows,
            "deleted": one.num_deleted_rows,
            "fragments": one.num_fragments,
            "tags": ", ".join(map(text.name, one.tags)),
            "message": one.message if one.error is None else one.error,
        }
        for one in infos
    ]
    data = [{**record, "version": one.version} for record, one in zip(records, infos, strict=True)]
    answer = answer_of_records(f"Versions of {label(dataset)}", records)
    return Answer(infos, answer.picture, data)


def bisect(desk: Desk, said: Namespace) -> Answer:
    """Find the first version of which a statement is false."""
    dataset = desk.at(said.bad)
    good = None if said.good is None else desk.at(said.good).version
    found = dataset.bisect(said.statement, good=good, bad=dataset.version, nulls=said.nulls)
    has_nulls = any(one.num_null for one in found.tried)
    records = [
        {
            "version": one.version,
            "holds": one.holds,
            **({"null_rows": one.num_null} if has_nulls else {}),
            "operation": one.operation,
            "message": one.message,
        }
        for one in found.tried
    ]
    lines = [found.describe("--nulls fail")]
    head = tuple(records[0])
    rows = [tuple(word(value) for value in record.values()) for record in records]
    picture = render_table(f"bisect {text.line(said.statement)}", tuple(lines), (head, rows))
    data = {
        "first_bad": found.first_bad, "last_good": found.last_good, "nulls": found.nulls,
        "num_null": found.num_null, "tried": records,
    }  # fmt: skip
    return Answer(found, picture, data, exit_code=0 if found.first_bad is None else 1)


VERBS = (
    Verb(
        "log",
        "list the versions, newest first",
        log,
        (
            argument("ref", nargs="?", means=REF, help="begin here"),
            argument("-n", "--limit", type=int, help="how many versions"),
            argument("--graph", action="store_true", help="draw all branches with their forks"),
        ),
        "log -n 5",
    ),
    Verb(
        "bisect",
        "find the first version of which a statement is false, in few steps",
        bisect,
        (
            argument(
                "statement",
                help="SQL: a filter that all rows should pass, or a query that should be true",
            ),
            argument("--good", means=REF, metavar="REF", help="a version of which it holds"),
            argument("--bad", means=REF, metavar="REF", help="a version of which it does not"),
            argument(
                "--nulls",
                choices=["pass", "fail"],
                default="pass",
                help="whether rows for which a filter is NULL pass, as with CHECK in SQL, or fail",
            ),
        ),
        "bisect 'label IS NOT NULL'",
    ),
)
