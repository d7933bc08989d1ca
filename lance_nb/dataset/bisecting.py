"""ds.bisect: find the first version where a statement does not hold, in few steps.

The statement is one of::

    label IS NOT NULL                       a filter that every row should pass
    count(*) > 1000                         an aggregate that should be true
    SELECT max(price) < 100 FROM dataset    any query whose first value should be true
    lambda ds: ...                          a function of the dataset at a version

A filter that is NULL for a row, as ``score <= 1`` is where the score is NULL, is passed by the row,
as it is with CHECK in SQL; with ``nulls="fail"`` it is not. The same goes for a query that is NULL.

Limits: binary search, so the statement is taken to hold up to some version and not after it. A
version of which it cannot be said, because a column does not exist yet, counts as one before.
Queries and aggregates need DuckDB.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, get_args

import pyarrow as pa
from sqlglot import expressions
from sqlglot.errors import SqlglotError

from lance_nb.errors import ColumnNotFoundError, InvalidInputError, VersionNotFoundError, clip
from lance_nb.table.predicate.sql_text import parse_duckdb, problem_of, shown
from lance_nb.table.ref_grammar import resolve
from lance_nb.value_classes import dataclass

if TYPE_CHECKING:
    from lance_nb.dataset.dataset import LanceDataset
    from lance_nb.table.refs import Ref

Statement = str | Callable[[Any], Any]
Nulls = Literal["pass", "fail"]


@dataclass(frozen=True, slots=True)
class Trial:
    """One version that was tried. ``holds`` is None where it cannot be said.

    ``num_null`` is the number of rows for which a filter is NULL; None for other statements.
    """

    version: int
    holds: bool | None
    operation: str | None
    message: str | None
    num_null: int | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Bisection:
    """What a search found. ``first_bad`` is None when the statement holds at the newest end.

    ``nulls`` tells whether rows for which a filter is NULL pass or fail.
    """

    first_bad: int | None
    last_good: int | None
    tried: tuple[Trial, ...]
    nulls: Nulls = "pass"

    @property
    def num_null(self) -> int | None:
        """Rows for which the filter is NULL in ``first_bad``, else in ``last_good``."""
        shown = self.last_good if self.first_bad is None else self.first_bad
        return next((trial.num_null for trial in self.tried if trial.version == shown), None)

    @property
    def sentence(self) -> str:
        """The outcome in one sentence, followed by what was checked and by rows that are NULL."""
        return self.describe()

    def describe(self, strict_form: str = "nulls='fail'") -> str:
        """Return the outcome as text; ``strict_form`` is how the caller makes NULL fail."""
        nulls = self._describe_nulls(strict_form)
        if self.first_bad is None:
            return f"The statement is true at version {self.last_good}.{nulls}"
        made_by = next(trial for trial in self.tried if trial.version == self.first_bad)
        operation_text = f" ({made_by.operation})" if made_by.operation else ""
        good = "" if self.last_good is None else f"; it is true at version {self.last_good}"
        count = len(self.tried)
        checked = "1 version was checked" if count == 1 else f"{count} versions were checked"
        return (
            f"Version {self.first_bad}{operation_text} is the first version where the statement "
            f"is false{good}. {checked}.{nulls}"
        )

    def _describe_nulls(self, strict_form: str) -> str:
        if not self.num_null:
            return ""
        version = self.last_good if self.first_bad is None else self.first_bad
        rows = "1 row" if self.num_null == 1 else f"{self.num_null:,} rows"
        outcome = (
            f"NULL passes; to make it fail, use {strict_form}"
            if self.nulls == "pass"
            else "NULL fails"
        )
        return f" The statement is NULL for {rows} of version {version}, and {outcome}."

    def __str__(self) -> str:
        """Return the outcome and a line for each version that was checked, oldest first."""
        width = len(str(self.tried[-1].version))
        lines = [self.describe()]
        for trial in self.tried:
            outcome = {True: "true", False: "false", None: "unknown"}[trial.holds]
            nulls = f"{trial.num_null:,} NULL" if trial.num_null else ""
            about = ", ".join(filter(None, (trial.operation, nulls, trial.message)))
            lines.append(f"  version {trial.version:>{width}}: {outcome:<7} {about}".rstrip())
        return "\n".join(lines)

    __repr__ = __str__


def bisect(
    dataset: LanceDataset,
    statement: Statement,
    good: Ref | None,
    bad: Ref | None,
    nulls: Nulls = "pass",
) -> Bisection:
    """Search the versions of the branch between ``good`` and ``bad``.

    Raises VersionNotFoundError, InvalidInputError (``good`` does not come before ``bad``, or one is
    of another branch).
    """
    if nulls not in get_args(Nulls):
        raise InvalidInputError(f"bisect: nulls must be 'pass' or 'fail', not {nulls!r}")
    numbers = dataset.version_numbers()
    oldest = numbers[0] if good is None else _number(dataset, good)
    newest = numbers[-1] if bad is None else _number(dataset, bad)
    for number in (oldest, newest):
        if number not in numbers:
            raise VersionNotFoundError(dataset.uri, number, f"{numbers[0]} to {numbers[-1]}")
    if oldest > newest:
        raise InvalidInputError(f"bisect: good={oldest} must not be newer than bad={newest}")
    return _search(
        dataset, statement, [number for number in numbers if oldest <= number <= newest], nulls
    )


def _number(dataset: LanceDataset, ref: Ref) -> int:
    target = resolve(dataset.opened[0].root, ref, dataset.branch)
    if target.branch != dataset.branch:
        raise InvalidInputError(
            f"bisect looks at versions of {dataset.branch or 'main'}; {ref!r} is one of "
            f"{target.branch or 'main'}"
        )
    return dataset.latest_version if target.version is None else target.version


def _search(
    dataset: LanceDataset, statement: Statement, numbers: list[int], nulls: Nulls
) -> Bisection:
    check = _call(statement) if callable(statement) else _check(statement)
    tried: dict[int, Trial] = {}

    def holds(number: int) -> bool | None:
        if number not in tried:
            tried[number] = _trial(dataset, number, check, nulls)
        return tried[number].holds

    def bisection(first_bad: int | None, last_good: int | None) -> Bisection:
        trials = tuple(tried[number] for number in sorted(tried))
        return Bisection(first_bad, last_good, trials, nulls)

    last = holds(numbers[-1])
    if last is not False:
        if last is None:
            raise InvalidInputError(
                f"bisect: {statement!r} cannot be evaluated on version {numbers[-1]}: it has no "
                f"such column; its columns: {_names_of(dataset, numbers[-1])}"
            )
        return bisection(None, numbers[-1])
    if holds(numbers[0]) is False:
        return bisection(numbers[0], None)
    low, high = 0, len(numbers) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(numbers[middle]) is False else (middle, high)
    return bisection(numbers[high], numbers[low] if holds(numbers[low]) else None)


def _names_of(dataset: LanceDataset, number: int) -> str:
    names = dataset.checkout_version((dataset.branch, number)).schema.names
    return clip(", ".join(map(repr, names)))


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What a statement is of one version: whether any row (or the query) is false, or NULL."""

    is_false: bool
    is_null: bool = False
    num_null: int | None = None


Check = Callable[["LanceDataset"], _Outcome]


def _trial(dataset: LanceDataset, number: int, check: Check, nulls: Nulls) -> Trial:
    checked_out = dataset.checkout_version((dataset.branch, number))
    info = dataset.version_info(number)
    try:
        outcome = check(checked_out)
    except ColumnNotFoundError:
        return Trial(number, None, info.operation, info.message)
    holds = not outcome.is_false and (nulls == "pass" or not outcome.is_null)
    return Trial(number, holds, info.operation, message=info.message, num_null=outcome.num_null)


def _call(statement: Callable[[Any], Any]) -> Check:
    return lambda dataset: _Outcome(not statement(dataset))


def _check(statement: str) -> Check:
    try:
        trees = parse_duckdb(statement)
    except SqlglotError as error:
        raise InvalidInputError(
            f"bisect: {statement!r} is not SQL: {problem_of(error, statement)}"
        ) from error
    if len(trees) != 1:
        raise InvalidInputError(f"bisect: {shown(statement)} is not a single statement")
    parsed = trees[0]
    if isinstance(parsed, expressions.Query):
        outcome_of = _query(statement)
    elif parsed.find(expressions.AggFunc) is not None:
        # No injection: the user's own SQL, on tables in memory.
        outcome_of = _query(f"SELECT {statement} FROM dataset")  # noqa: S608
    else:
        outcome_of = _filter(statement)
    own = {node.alias_or_name for node in parsed.find_all(expressions.Alias, expressions.CTE)}
    roots = (
        {column.parts[0].name for column in parsed.find_all(expressions.Column)} - own - {"dataset"}
    )

    def check(dataset: LanceDataset) -> _Outcome:
        column_names = {name.lower() for name in dataset.schema.names}
        for root in roots:
            if root.lower() not in column_names:
                raise ColumnNotFoundError(root, tuple(dataset.schema.names))
        return outcome_of(dataset)

    return check


def _filter(statement: str) -> Check:
    # A comment at the end of the statement must not swallow the bracket.
    tests = {"true": f"({statement}\n) IS TRUE", "false": f"({statement}\n) IS FALSE"}

    def outcome_of(dataset: LanceDataset) -> _Outcome:
        num_rows = num_true = num_false = 0
        for batch in dataset.to_batches(columns=tests):
            num_rows += batch.num_rows
            num_true += _count_true(batch["true"])
            num_false += _count_true(batch["false"])
        num_null = num_rows - num_true - num_false
        return _Outcome(num_false > 0, num_null > 0, num_null)

    return outcome_of


def _count_true(values: pa.Array) -> int:
    return int(values.true_count)


def _query(query: str) -> Check:
    def outcome_of(dataset: LanceDataset) -> _Outcome:
        batches = dataset.sql(query).build().to_batch_records()
        if not batches or not batches[0].num_rows:
            raise InvalidInputError(f"bisect: {query!r} returns no row")
        column = batches[0].column(0)
        value = column[0].as_py()
        is_null = value is None and column.type in (pa.bool_(), pa.null())
        if not is_null and not isinstance(value, bool):
            kind = column.type if value is None else type(value).__name__
            raise InvalidInputError(
                f"bisect: {query!r} must be true or false, not {kind}; write a comparison"
            )
        return _Outcome(value is False, is_null)

    return outcome_of
