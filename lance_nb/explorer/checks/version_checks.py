"""What expectations found, for timeline, Checks tab and Stage tab; and the same as code.

Layouts::

    mark      [version, status, words]     status: "pass", "fail", "unknown", "unchecked"
    outcome   {name, statement, kind, status, detail, rows, filter}
    sample    {columns: [{name, type}], rows: [[text | null]], images, cut}: the first rows that
              fail; images: see table_images

``words`` name the expectations that fail and how many rows, for a hover. "unknown": an expectation
cannot be evaluated at the version. "unchecked": not evaluated yet, and evaluating it
needs more bytes than are read without being asked for. ``rows`` is the number of rows that fail;
null where an expectation is about all rows together.

A form is ``{kind, ...}`` with the fields that the table configuration has (format/expectations.py).

Limits: ``NAMED_MAX`` expectations are named in the words of a mark; a sample has ``MAX_ROWS`` rows
of ``MAX_COLUMNS`` columns, those of the expectation first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from lance_nb.code_lines import PYTHON_ONLY, Python, can_be_listed, magic, offered
from lance_nb.dataset import LanceDataset
from lance_nb.dataset.checks.result import CheckOutcome, CheckResult
from lance_nb.explorer import cells, text
from lance_nb.explorer.schema_tree import type_label
from lance_nb.explorer.table_images import images_json
from lance_nb.explorer.version_refs import place_word
from lance_nb.format.expectations import Expectation

NAMED_MAX = 3
MAX_ROWS = 20
MAX_COLUMNS = 8
CELL_CHARS = 120
STATEMENT_CHARS = 400
Mark = tuple[int, str, str]


def mark_of(result: CheckResult) -> Mark:
    """Return the mark of a version."""
    failed = result.failed
    if failed:
        named = "; ".join(map(_failure, failed[:NAMED_MAX]))
        more = f"; {len(failed) - NAMED_MAX} more fail" if len(failed) > NAMED_MAX else ""
        return result.version, "fail", f"✗ {named}{more}"
    unknown = [outcome for outcome in result.outcomes if outcome.status == "unknown"]
    if unknown:
        names = ", ".join(text.name(outcome.name) for outcome in unknown[:NAMED_MAX])
        more = f" and {len(unknown) - NAMED_MAX} more" if len(unknown) > NAMED_MAX else ""
        return result.version, "unknown", f"? {names}{more} cannot be evaluated here"
    count = text.plural(len(result.outcomes), "expectation")
    return result.version, "pass", f"✓ {count} passed"


def _failure(outcome: CheckOutcome) -> str:
    where = text.name(outcome.name)
    if outcome.num_failed is None:
        return f"{where}: {text.line(outcome.detail, 120)}"
    return f"{where} fails for {text.plural(outcome.num_failed, 'row')}"


def outcome_json(outcome: CheckOutcome) -> dict[str, Any]:
    """Return an outcome as JSON-able values."""
    return {
        "name": outcome.name,
        "statement": text.line(outcome.statement, STATEMENT_CHARS),
        "kind": outcome.kind,
        "status": outcome.status,
        "detail": text.line(outcome.detail),
        "rows": outcome.num_failed,
        "filter": outcome.filter,
    }


def concerned_columns(dataset: LanceDataset, own: Sequence[str]) -> list[str]:
    """Return the columns that a sample of rows that fail shows: those of the expectation first."""
    names = {name.lower(): name for name in dataset.schema.names}
    first = [names[name.lower()] for name in own if name.lower() in names]
    return list(dict.fromkeys((*first, *dataset.schema.names)))[:MAX_COLUMNS]


def sample_json(table: pa.Table, num_columns: int) -> dict[str, Any]:
    """Return rows as texts; ``num_columns`` is how many columns the dataset has."""
    columns = [cells.cell_texts(column.slice(0, MAX_ROWS), CELL_CHARS) for column in table.columns]
    return {
        "columns": [
            {"name": text.name(field.name), "type": type_label(field.type)}
            for field in table.schema
        ],
        "rows": [list(row) for row in zip(*columns, strict=True)],
        "images": images_json([column.slice(0, MAX_ROWS) for column in table.columns]),
        "cut": max(0, num_columns - table.num_columns),
    }


# --- forms and code -------------------------------------------------------------------------------


def expectation_of(kind: str, fields: Mapping[str, Any]) -> Expectation:
    """Make an expectation of a form. Raises InvalidInputError."""
    return Expectation.from_json("new", json.dumps({"kind": kind, **fields}))


def add_call(expectation: Expectation) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    """Return the method of ``ds.expectations`` that adds an expectation, and its arguments."""
    match expectation.kind:
        case "check":
            return "add", (expectation.sql,), {}
        case "not_null":
            return "add_not_null", (expectation.column,), {}
        case "unique":
            columns = (
                expectation.columns[0]
                if len(expectation.columns) == 1
                else list(expectation.columns)
            )
            return "add_unique", (columns,), {}
        case "reference":
            return "add_reference", (expectation.column, expectation.uri, expectation.to), {}
        case "row_count":
            return "add_row_count", (expectation.minimum, expectation.maximum), {}
        case "drift":
            return (
                "add_drift",
                (expectation.column, expectation.limit),
                {"against": expectation.against},
            )


def add_code(expectation: Expectation, name: str | None) -> dict[str, str]:
    """Return the lines that add an expectation."""
    method, args, named = add_call(expectation)
    keywords = {**named, **({"name": name} if name else {})}
    word: Any = {"--name": name or None}
    match expectation.kind:
        case "check":
            line = magic("expect", "add", expectation.sql, options=word)
        case "not_null":
            line = magic("expect", "not-null", expectation.column, options=word)
        case "unique":
            is_listed = can_be_listed(expectation.columns)
            listed = magic("expect", "unique", ",".join(expectation.columns), options=word)
            line = listed if is_listed else PYTHON_ONLY
        case "reference":
            line = magic(
                "expect", "reference", expectation.column,
                options={"--uri": expectation.uri, "--to": expectation.to, **word},
            )  # fmt: skip
        case "row_count":
            line = magic(
                "expect",
                "rows",
                options={"--min": expectation.minimum, "--max": expectation.maximum, **word},
            )
        case "drift":
            options = {"--limit": expectation.limit, "--against": expectation.against, **word}
            line = magic("expect", "drift", expectation.column, options=options)
    return offered(Python(f"ds.expectations.{method}").call(*args, **keywords), line)


def remove_code(name: str) -> dict[str, str]:
    """Return the lines that remove an expectation."""
    return offered(Python("ds.expectations.remove").call(name), magic("expect", "remove", name))


def gate_code(*, closed: bool) -> dict[str, str]:
    """Return the lines that close or open the gate."""
    word = "on" if closed else "off"
    return offered(Python("ds.expectations.set_gate").call(closed), magic("expect", "gate", word))


def check_code(branch: str | None, version: int) -> dict[str, str]:
    """Return the lines that check a version."""
    place = version if branch is None else (branch, version)
    line = magic("check", place_word(branch, version))
    return offered(Python("ds.check").call(place), line)


def bisect_code(name: str, bad: int) -> dict[str, str]:
    """Return the lines that find the first version at which an expectation fails."""
    line = magic("expect", "bisect", name, options={"--bad": bad})
    return offered(Python("ds.expectations.bisect").call(name, bad=bad), line)
