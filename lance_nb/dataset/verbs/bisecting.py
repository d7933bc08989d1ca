"""ds.bisect: find the version that broke a promise, in few steps.

The statement is one of::

    label IS NOT NULL                       a filter that every row should pass
    count(*) > 1000                         an aggregate that should be true
    SELECT max(price) < 100 FROM dataset    any query whose first value should be true
    lambda ds: ...                          a function of the dataset at a version

Limits: binary search, so the statement is taken to hold up to some version and not after it. A
version of which it cannot be said, because a column does not exist yet, counts as one before.
Queries and aggregates need DuckDB.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlglot
from sqlglot import expressions
from sqlglot.errors import SqlglotError

from lance_nb.errors import ColumnNotFoundError, InvalidInputError, VersionNotFoundError, clip
from lance_nb.table.predicate.sql_text import problem_of

if TYPE_CHECKING:
    from lance_nb.dataset.dataset import LanceDataset

Statement = str | Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Trial:
    """One version that was tried. ``holds`` is None where it cannot be said."""

    version: int
    holds: bool | None
    operation: str | None
    message: str | None


@dataclass(frozen=True, slots=True)
class Bisection:
    """What a search found. ``first_bad`` is None when the statement holds at the newest end."""

    first_bad: int | None
    last_good: int | None
    tried: tuple[Trial, ...]

    @property
    def sentence(self) -> str:
        """The outcome in one sentence."""
        if self.first_bad is None:
            return f"It holds at version {self.last_good}."
        where = f"Version {self.first_bad} is the first of which it does not hold"
        made_by = next(one for one in self.tried if one.version == self.first_bad)
        how = f" ({made_by.operation})" if made_by.operation else ""
        before = "" if self.last_good is None else f"; version {self.last_good} is the last good"
        return f"{where}{how}{before}. {len(self.tried)} versions were tried."


def bisect(
    dataset: LanceDataset, statement: Statement, good: int | None, bad: int | None
) -> Bisection:
    """Search the versions of the branch between ``good`` and ``bad``.

    Raises VersionNotFoundError, InvalidInputError (``good`` does not come before ``bad``).
    """
    numbers = dataset.version_numbers()
    bad = numbers[-1] if bad is None else bad
    good = numbers[0] if good is None else good
    for number in (good, bad):
        if number not in numbers:
            raise VersionNotFoundError(dataset.uri, number, f"{numbers[0]} to {numbers[-1]}")
    if good > bad:
        raise InvalidInputError(f"bisect: good={good} comes after bad={bad}")
    return _search(dataset, statement, [one for one in numbers if good <= one <= bad])


def _search(dataset: LanceDataset, statement: Statement, numbers: list[int]) -> Bisection:
    check = statement if callable(statement) else _check(statement)
    tried: dict[int, Trial] = {}

    def holds(number: int) -> bool | None:
        if number not in tried:
            tried[number] = _trial(dataset, number, check)
        return tried[number].holds

    def found(first_bad: int | None, last_good: int | None) -> Bisection:
        return Bisection(first_bad, last_good, tuple(tried[one] for one in sorted(tried)))

    last = holds(numbers[-1])
    if last is not False:
        if last is None:
            raise InvalidInputError(
                f"bisect: {statement!r} cannot be said of version {numbers[-1]}: "
                f"it has no such column; its columns: {_names_of(dataset, numbers[-1])}"
            )
        return found(None, numbers[-1])
    if holds(numbers[0]) is False:
        return found(numbers[0], None)
    low, high = 0, len(numbers) - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(numbers[middle]) is False else (middle, high)
    return found(numbers[high], numbers[low] if holds(numbers[low]) else None)


def _names_of(dataset: LanceDataset, number: int) -> str:
    names = dataset.checkout_version((dataset.branch, number)).schema.names
    return clip(", ".join(map(repr, names)))


def _trial(dataset: LanceDataset, number: int, check: Callable[[Any], Any]) -> Trial:
    at = dataset.checkout_version((dataset.branch, number))
    info = dataset.version_info(number)
    try:
        holds: bool | None = bool(check(at))
    except ColumnNotFoundError:
        holds = None
    return Trial(number, holds, info.operation, info.message)


def _check(statement: str) -> Callable[[LanceDataset], bool]:
    try:
        parsed = sqlglot.parse_one(statement, read="duckdb")
    except SqlglotError as error:
        raise InvalidInputError(
            f"bisect: {statement!r} is not SQL: {problem_of(error, statement)}"
        ) from error
    if isinstance(parsed, expressions.Query):
        holds = _query(statement)
    elif parsed.find(expressions.AggFunc) is not None:
        # No injection: the user's own SQL, on tables in memory.
        holds = _query(f"SELECT {statement} FROM dataset")  # noqa: S608
    else:
        holds = lambda at: at.count_rows(statement) == at.count_rows()  # noqa: E731
    own = {one.alias_or_name for one in parsed.find_all(expressions.Alias, expressions.CTE)}
    roots = {one.parts[0].name for one in parsed.find_all(expressions.Column)} - own - {"dataset"}

    def check(at: LanceDataset) -> bool:
        known = {name.lower() for name in at.schema.names}
        for root in roots:
            if root.lower() not in known:
                raise ColumnNotFoundError(root, tuple(at.schema.names))
        return holds(at)

    return check


def _query(query: str) -> Callable[[LanceDataset], bool]:
    def first_value(at: LanceDataset) -> bool:
        found = at.sql(query).build().to_batch_records()
        if not found or not found[0].num_rows:
            raise InvalidInputError(f"bisect: {query!r} returns no row")
        value = found[0].column(0)[0].as_py()
        if not isinstance(value, bool):
            raise InvalidInputError(
                f"bisect: {query!r} must be true or false, not {type(value).__name__}; "
                "write a comparison"
            )
        return value

    return first_value
