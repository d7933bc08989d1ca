"""Verbs for expectations: check versions; add, list and remove expectations."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from lance_nb.dataset import LanceDataset
from lance_nb.dataset.checks.result import CheckResult, junit_xml
from lance_nb.dataset.expectations import Expectations
from lance_nb.errors import InvalidInputError, StorageError
from lance_nb.explorer.models import text
from lance_nb.explorer.static_rendering import render_table
from lance_nb.magic.context import MagicContext, label
from lance_nb.magic.verb import (
    COLUMN,
    REF,
    Result,
    Verb,
    argument,
    names_of,
    records_result,
    table_result,
    text_result,
    word,
)
from lance_nb.magic.verbs.history import bisection_result


def check(context: MagicContext, args: Namespace) -> Result:
    """Evaluate the expectations at one version, or at all."""
    dataset = context.dataset
    names = args.name or None
    cache, allowed = not args.no_cache, args.allow_base or ()
    if args.rows is not None:
        return _failing(context, args)
    if args.all:
        if args.ref is not None:
            raise InvalidInputError("--all checks every version of the branch: leave out REF")
        found = dataset.check_versions(names=names, cache=cache, allow_bases=allowed)
    else:
        at = None if args.ref is None else context.resolve(args.ref)
        ref = None if at is None else (at.branch, at.version)
        found = [dataset.check(ref, names=names, cache=cache, allow_bases=allowed)]
    if args.junit is not None:
        _write(args.junit, junit_xml(found))
    exit_code = 0 if all(one.ok for one in found) else 1
    answer = _versions(found) if args.all else _one(found[0])
    value = found if args.all else found[0]
    return Result(value, answer.picture, answer.data, exit_code)


def _failing(context: MagicContext, args: Namespace) -> Result:
    """Show the first rows for which one expectation fails."""
    if args.all or args.junit is not None or len(args.name or ()) != 1:
        raise InvalidInputError("--rows shows the rows of one expectation: use --name NAME")
    dataset = context.dataset if args.ref is None else context.resolve(args.ref)
    (name,) = args.name
    found = dataset.expectations.failing_rows(name, limit=args.rows)
    heading = f"{text.plural(found.num_rows, 'row')} of {label(dataset)} for which {name} fails"
    answer = table_result(text.line(heading), found, context.settings.rows_shown)
    return Result(found, answer.picture, answer.data, 1 if found.num_rows else 0)


def _one(found: CheckResult) -> Result:
    records = [
        {
            "status": one.status,
            "name": one.name,
            "expectation": one.statement,
            "detail": one.detail,
        }
        for one in found.outcomes
    ]
    lines = [] if records else ["add one: expect add 'score BETWEEN 0 AND 1'"]
    return records_result(f"Check of {found.sentence}", records, lines=lines)


def _versions(found: Sequence[CheckResult]) -> Result:
    records = [
        {
            "version": one.label,
            "status": one.status,
            "failed": ", ".join(outcome.name for outcome in one.failed),
            "unknown": sum(outcome.status == "unknown" for outcome in one.outcomes),
        }
        for one in found
    ]
    first = next((one for one in found if one.failed), None)
    bad = sum(bool(one.failed) for one in found)
    lines = [f"{text.plural(len(found), 'version')} checked, {text.plural(bad, 'version')} failed"]
    if first is not None:
        lines.append(f"the first version that fails is {first.label}")
    heading = "Check of all versions"
    head = tuple(records[0]) if records else ()
    rows = [tuple(map(word, record.values())) for record in reversed(records)]
    return Result(found, render_table(heading, tuple(lines), (head, rows)), records)


def _write(path: str, content: str) -> None:
    try:
        Path(path).write_text(content, "utf-8")
    except OSError as error:
        raise StorageError(path, error.strerror or str(error)) from error


_NOT_BOUND = (
    "Other writers, such as pylance, Spark and ds.insert, do not know the gate and are not bound "
    "by it: check versions in continuous integration, too."
)
ACTIONS = (
    "list", "add", "not-null", "unique", "rows", "drift", "reference", "remove", "gate", "bisect",
)  # fmt: skip


def expect(context: MagicContext, args: Namespace) -> Result:
    """List, add, remove or bisect expectations; each change is a version."""
    if args.action == "list":
        return _listed(context.dataset)
    words = _words(args)
    if args.action == "bisect":
        bad = None if args.bad is None else context.resolve(args.bad).version
        search = context.dataset.expectations.bisect(words, bad=bad)
        return bisection_result(f"bisect {text.line(words)}", search, search.sentence)
    dataset = context.checkout_latest()
    found = dataset.expectations
    if args.action == "gate":
        if words not in {"on", "off"}:
            raise InvalidInputError("use expect gate on, or expect gate off")
        found.set_gate(words == "on")
        said = f"Version {label(dataset)}: the gate is {'closed' if found.gate else 'open'}"
        return text_result(said, [_NOT_BOUND], value=dataset)
    if args.action == "remove":
        found.remove(words)
        said = f"Version {label(dataset)}: removed expectation {text.line(words)}"
        return text_result(said, [], value=dataset)
    name = _added(found, args, words)
    statement = found.list()[name].statement
    record = {"name": name, "expectation": statement}
    return records_result(f"Version {label(dataset)}: added", [record], value=dataset)


def _words(args: Namespace) -> str:
    if args.action == "rows":
        if args.words is not None:
            raise InvalidInputError("use expect rows --min N --max M")
        return ""
    if args.words is None:
        raise InvalidInputError(f"expect {args.action} needs an argument; see help expect")
    return str(args.words)


def _listed(dataset: LanceDataset) -> Result:
    found = dataset.expectations
    records = [
        {"name": name, "kind": one.kind, "expectation": one.statement}
        for name, one in found.list().items()
    ]
    records += [
        {"name": text.name(name), "kind": "unreadable", "expectation": problem}
        for name, problem in found.problems().items()
    ]
    lines = ["The gate is closed: staging refuses a commit that breaks one.", _NOT_BOUND]
    return records_result(
        f"Expectations of {label(dataset)}",
        records,
        value=found.list(),
        lines=lines if found.gate else [],
    )


def _added(found: Expectations, args: Namespace, words: str) -> str:
    match args.action:
        case "add":
            return found.add(words, name=args.name)
        case "not-null":
            return found.add_not_null(words, name=args.name)
        case "unique":
            return found.add_unique(names_of(words) or [], name=args.name)
        case "rows":
            return found.add_row_count(args.min, args.max, name=args.name)
        case "drift":
            return found.add_drift(words, args.limit, against=args.against, name=args.name)
        case _:
            if args.uri is None or args.to is None:
                raise InvalidInputError("expect reference needs --uri URI and --to COLUMN")
            return found.add_reference(words, args.uri, args.to, name=args.name)


VERBS = (
    Verb(
        "check",
        "evaluate the expectations at a version; exit status 1 if one fails or is unknown",
        check,
        (
            argument("ref", nargs="?", completes=REF, help="the version (default: the current)"),
            argument("--all", action="store_true", help="every version of the branch"),
            argument("--name", action="append", help="only this expectation; may be repeated"),
            argument("--junit", metavar="FILE", help="write the outcomes as JUnit XML"),
            argument("--rows", type=int, metavar="N", help="with one --name: rows that fail"),
            argument("--no-cache", action="store_true", help="read everything again"),
            argument(
                "--allow-base",
                action="append",
                metavar="URI",
                help="another dataset that references may read; may be repeated",
            ),
        ),
        "check --junit checks.xml",
    ),
    Verb(
        "expect",
        "list, add, remove or bisect expectations, or open and close the gate of staging",
        expect,
        (
            argument("action", nargs="?", choices=ACTIONS, default="list", help="what to do"),
            argument(
                "words",
                nargs="?",
                completes=COLUMN,
                metavar="CONDITION|COLUMN|NAME|on|off",
                help="SQL about one row, a column, the name of an expectation, or on and off",
            ),
            argument("--name", help="the name of the new expectation"),
            argument("--min", type=int, help="with rows: the fewest rows"),
            argument("--max", type=int, help="with rows: the most rows"),
            argument("--bad", completes=REF, metavar="REF", help="with bisect: where it fails"),
            argument("--limit", type=float, default=0.25, help="with drift: the largest index"),
            argument("--against", default="previous", help="with drift: a tag or a version"),
            argument("--uri", help="with reference: the dataset with the allowed values"),
            argument("--to", metavar="COLUMN", help="with reference: its column"),
        ),
        "expect add 'score BETWEEN 0 AND 1'",
    ),
)
