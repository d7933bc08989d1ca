"""Verbs for expectations: check versions; add, list and remove expectations."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from lance_nb.dataset import LanceDataset
from lance_nb.dataset.checks.result import CheckResult, junit_xml
from lance_nb.dataset.expectations import Expectations
from lance_nb.errors import InvalidInputError, StorageError
from lance_nb.explorer import text
from lance_nb.magic.context import MagicContext, label
from lance_nb.magic.verb import (
    COLUMN,
    REF,
    Result,
    argument,
    names_of,
    records_result,
    table_result,
    text_result,
    verb,
)
from lance_nb.magic.verbs.history import bisection_result


@verb(
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
    example="check --junit checks.xml",
)
def check(context: MagicContext, args: Namespace) -> Result:
    """Evaluate the expectations at a version; exit status 1 if one fails or is unknown."""
    dataset = context.dataset
    names = args.name or None
    cache, allowed = not args.no_cache, args.allow_base or ()
    if args.rows is not None:
        return _failing(context, args)
    if args.all:
        if args.ref is not None:
            raise InvalidInputError("--all checks every version of the branch: leave out REF")
        results = dataset.check_versions(names=names, cache=cache, allow_bases=allowed)
    else:
        resolved = None if args.ref is None else context.resolve(args.ref)
        ref = None if resolved is None else (resolved.branch, resolved.version)
        results = [dataset.check(ref, names=names, cache=cache, allow_bases=allowed)]
    if args.junit is not None:
        _write(args.junit, junit_xml(results))
    exit_code = 0 if all(result.ok for result in results) else 1
    return _versions(results, exit_code) if args.all else _one(results[0], exit_code)


def _failing(context: MagicContext, args: Namespace) -> Result:
    """Show the first rows for which one expectation fails."""
    if args.all or args.junit is not None or len(args.name or ()) != 1:
        raise InvalidInputError("--rows shows the rows of one expectation: use --name NAME")
    dataset = context.dataset if args.ref is None else context.resolve(args.ref)
    (name,) = args.name
    rows = dataset.expectations.failing_rows(name, limit=args.rows)
    heading = f"{text.plural(rows.num_rows, 'row')} of {label(dataset)} for which {name} fails"
    exit_code = 1 if rows.num_rows else 0
    return table_result(text.line(heading), rows, context.settings.rows_shown, exit_code=exit_code)


def _one(result: CheckResult, exit_code: int) -> Result:
    records = [
        {
            "status": outcome.status,
            "name": outcome.name,
            "expectation": outcome.statement,
            "detail": outcome.detail,
        }
        for outcome in result.outcomes
    ]
    lines = [] if records else ["add one: expect add 'score BETWEEN 0 AND 1'"]
    return records_result(
        f"Check of {result.sentence}", records, value=result, lines=lines, exit_code=exit_code
    )


def _versions(results: Sequence[CheckResult], exit_code: int) -> Result:
    records = [
        {
            "version": result.label,
            "status": result.status,
            "failed": ", ".join(outcome.name for outcome in result.failed),
            "unknown": sum(outcome.status == "unknown" for outcome in result.outcomes),
        }
        for result in results
    ]
    first = next((result for result in results if result.failed), None)
    bad = sum(bool(result.failed) for result in results)
    lines = [
        f"{text.plural(len(results), 'version')} checked, {text.plural(bad, 'version')} failed"
    ]
    if first is not None:
        lines.append(f"the first version that fails is {first.label}")
    return records_result(
        "Check of all versions", records[::-1], value=results, data=records, lines=lines,
        exit_code=exit_code,
    )  # fmt: skip


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


@verb(
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
    example="expect add 'score BETWEEN 0 AND 1'",
)
def expect(context: MagicContext, args: Namespace) -> Result:
    """List, add, remove or bisect expectations, or open and close the gate of staging."""
    if args.action == "list":
        return _listed(context.dataset)
    words = _words(args)
    if args.action == "bisect":
        search = context.dataset.expectations.bisect(words, bad=args.bad)
        return bisection_result(f"bisect {text.line(words)}", search, search.sentence)
    dataset = context.checkout_latest()
    expectations = dataset.expectations
    if args.action == "gate":
        if words not in {"on", "off"}:
            raise InvalidInputError("use expect gate on, or expect gate off")
        expectations.set_gate(words == "on")
        sentence = (
            f"Version {label(dataset)}: the gate is {'closed' if expectations.gate else 'open'}"
        )
        return text_result(sentence, [_NOT_BOUND], value=dataset)
    if args.action == "remove":
        expectations.remove(words)
        sentence = f"Version {label(dataset)}: removed expectation {text.line(words)}"
        return text_result(sentence, [], value=dataset)
    name = _added(expectations, args, words)
    statement = expectations.list()[name].statement
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
    expectations = dataset.expectations
    records = [
        {"name": name, "kind": expectation.kind, "expectation": expectation.statement}
        for name, expectation in expectations.list().items()
    ]
    records += [
        {"name": text.name(name), "kind": "unreadable", "expectation": problem}
        for name, problem in expectations.problems().items()
    ]
    lines = ["The gate is closed: staging refuses a commit that breaks one.", _NOT_BOUND]
    lines = lines if expectations.gate else []
    if not records:
        advice = (
            "There is none yet. Add one: expect not-null COLUMN, expect unique COLUMN, or "
            "expect add 'COLUMN > 0'."
        )
        lines = [advice, *lines]
    return records_result(
        f"Expectations of {label(dataset)}",
        records,
        value=expectations.list(),
        lines=lines,
    )


def _added(expectations: Expectations, args: Namespace, words: str) -> str:
    match args.action:
        case "add":
            return expectations.add(words, name=args.name)
        case "not-null":
            return expectations.add_not_null(words, name=args.name)
        case "unique":
            return expectations.add_unique(names_of(words) or [], name=args.name)
        case "rows":
            return expectations.add_row_count(args.min, args.max, name=args.name)
        case "drift":
            return expectations.add_drift(words, args.limit, against=args.against, name=args.name)
        case _:
            if args.uri is None or args.to is None:
                raise InvalidInputError("expect reference needs --uri URI and --to COLUMN")
            return expectations.add_reference(words, args.uri, args.to, name=args.name)


VERBS = (check, expect)
