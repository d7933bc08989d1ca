"""CheckResult: what a check of one version found; as text, HTML, an Arrow table and JUnit XML.

Limits: the HTML and the text show all outcomes; ``fragments`` of an outcome names the first
``FRAGMENTS_MAX`` fragments with rows that fail. XML 1.0 has no control characters: they are written
as they are shown.
Source: JUnit XML as continuous integration servers read it (testsuites, testsuite, testcase).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Literal

import pyarrow as pa

from lance_nb.shown_text import visible
from lance_nb.value_classes import dataclass

FRAGMENTS_MAX = 20
Status = Literal["pass", "fail", "unknown"]

SCHEMA = pa.schema(
    [
        ("name", pa.string()),
        ("statement", pa.string()),
        ("status", pa.string()),
        ("num_rows", pa.int64()),
        ("num_failed", pa.int64()),
        ("num_null", pa.int64()),
        ("detail", pa.string()),
        ("filter", pa.string()),
        ("fragments", pa.list_(pa.int64())),
    ]
)


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """One expectation at one version.

    ``status``: "pass", "fail", or "unknown" where it cannot be evaluated. ``num_failed``: rows for
    which it is false; ``num_null``: rows for which a condition is NULL, which pass. ``detail`` says
    why in a sentence; ``filter`` selects the rows that fail, None where no filter can. ``measured``
    is the number that is compared with a bound: rows, or the drift.

    Examples:
        >>> _ = ds.expectations.add("id < 9")
        >>> outcome = ds.check().outcomes[0]
        >>> outcome.status, outcome.num_failed, outcome.filter
        ('fail', 1, '(id < 9) IS FALSE')
    """

    name: str
    statement: str
    kind: str
    status: Status
    detail: str = ""
    num_rows: int | None = None
    num_failed: int | None = None
    num_null: int | None = None
    filter: str | None = None
    fragments: tuple[int, ...] = ()
    measured: float | None = None
    num_fragments_read: int = 0
    num_fragments_cached: int = 0


@dataclass(frozen=True, slots=True, repr=False)
class CheckResult:
    """The outcomes of all expectations at one version; see ``LanceDataset.check``.

    ``bytes_read`` counts what the whole process read from stores meanwhile.

    Examples:
        >>> _ = ds.expectations.add("id >= 0")
        >>> result = ds.check()
        >>> result.ok, result.status, len(result.outcomes)
        (True, 'pass', 1)
        >>> result.label, result.failed, result.sentence
        ('main:2', (), 'main:2: 1 expectation, 1 passed')
    """

    name: str
    branch: str | None
    version: int
    outcomes: tuple[CheckOutcome, ...]
    bytes_read: int = 0

    @property
    def ok(self) -> bool:
        """Whether every expectation could be evaluated and holds; true where there is none."""
        return all(outcome.status == "pass" for outcome in self.outcomes)

    @property
    def status(self) -> str:
        """The worst status of all outcomes, or ``none`` where there is no expectation."""
        statuses = {outcome.status for outcome in self.outcomes}
        return next(
            (status for status in ("fail", "unknown", "pass") if status in statuses), "none"
        )

    @property
    def failed(self) -> tuple[CheckOutcome, ...]:
        """The outcomes that fail."""
        return tuple(outcome for outcome in self.outcomes if outcome.status == "fail")

    @property
    def label(self) -> str:
        """Branch and version, such as ``main:7``."""
        return f"{self.branch or 'main'}:{self.version}"

    @property
    def sentence(self) -> str:
        """The outcome in one sentence."""
        total = len(self.outcomes)
        if not total:
            return f"{self.label}: no expectations"
        counts = [
            f"{len([outcome for outcome in self.outcomes if outcome.status == status])} {words}"
            for status, words in (("fail", "failed"), ("unknown", "unknown"), ("pass", "passed"))
            if any(outcome.status == status for outcome in self.outcomes)
        ]
        noun = "expectation" if total == 1 else "expectations"
        return f"{self.label}: {total} {noun}, {', '.join(counts)}"

    def to_table(self) -> pa.Table:
        """Return one row per expectation.

        Examples:
            >>> _ = ds.expectations.add("id >= 0")
            >>> ds.check().to_table()["status"].to_pylist()
            ['pass']
        """
        rows = [
            {name: getattr(outcome, name) for name in SCHEMA.names if name != "fragments"}
            | {"fragments": list(outcome.fragments)}
            for outcome in self.outcomes
        ]
        return pa.Table.from_pylist(rows, schema=SCHEMA)

    def to_junit(self) -> str:
        """Return JUnit XML: a failure where one fails, an error where one is unknown.

        Examples:
            >>> _ = ds.expectations.add("id < 9")
            >>> "<failure" in ds.check().to_junit()
            True
        """
        return junit_xml([self])

    def __str__(self) -> str:
        width = max((len(outcome.name) for outcome in self.outcomes), default=0)
        lines = [self.sentence]
        for outcome in self.outcomes:
            detail = f"  {outcome.detail}" if outcome.detail else ""
            lines.append(
                f"  {outcome.status:<7}  {outcome.name:<{width}}  {outcome.statement}{detail}"
            )
        return "\n".join(visible(line) for line in lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = "".join(
            "<tr>"
            + "".join(
                f'<td style="text-align:left">{_text(cell)}</td>'
                for cell in (
                    f"{_SIGNS[outcome.status]} {outcome.status}",
                    outcome.statement,
                    outcome.detail,
                )
            )
            + "</tr>"
            for outcome in self.outcomes
        )
        head = "<tr><th>status</th><th>expectation</th><th>detail</th></tr>" if rows else ""
        return (
            f"<details open><summary><b>{_text(self.sentence)}</b></summary>"
            f"<table>{head}{rows}</table></details>"
        )


_SIGNS = {"pass": "✓", "fail": "✗", "unknown": "?"}


def _text(value: str) -> str:
    return escape(visible(value))


def junit_xml(results: Sequence[CheckResult]) -> str:
    """Return JUnit XML of several versions, a test suite for each."""
    suites = "".join(_suite(result) for result in results)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n{suites}</testsuites>\n'


def _suite(result: CheckResult) -> str:
    name = _text(f"{result.name} {result.label}")
    failed = len(result.failed)
    unknown = sum(outcome.status == "unknown" for outcome in result.outcomes)
    cases = "".join(_cases(name, result.outcomes))
    counts = f'tests="{len(result.outcomes)}" failures="{failed}" errors="{unknown}"'
    return f'  <testsuite name="{name}" {counts}>\n{cases}  </testsuite>\n'


def _cases(suite: str, outcomes: Iterable[CheckOutcome]) -> Iterable[str]:
    for outcome in outcomes:
        name = f"{_text(outcome.name)}: {_text(outcome.statement)}"
        case = f'    <testcase classname="{suite}" name="{name}"'
        if outcome.status == "pass":
            yield f"{case}/>\n"
            continue
        tag = "failure" if outcome.status == "fail" else "error"
        yield f'{case}>\n      <{tag} message="{_text(outcome.detail)}"/>\n    </testcase>\n'
