"""Random predicates against a slow evaluator of SQL's three-valued logic, row by row in Python."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lance_nb
from lance_nb.errors import PredicateError
from lance_nb.table.predicate import compile_filter
from tests.support.examples import examples
from tests.support.filter_rows import WORDS, filter_table, write_filter_dataset
from tests.support.requirements import require_pylance

Row = dict[str, Any]
Answer = Callable[[Row], Any]
TABLE = filter_table(80)
ROWS: list[Row] = TABLE.to_pylist()
NUMBERS = ("i", "i8", "i32", "u8", "f")
TEXTS = ("s", "t")


@dataclass(frozen=True, slots=True)
class Sample:
    """A predicate as SQL, and what it means for a row: True, False or None."""

    sql: str
    answer: Answer


def order_of(value: Any) -> Any:
    """Put NaN above every number; zeros are equal already."""
    is_nan = isinstance(value, float) and math.isnan(value)
    return (is_nan, 0 if is_nan else value) if isinstance(value, int | float) else value


TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: order_of(a) == order_of(b), "<>": lambda a, b: order_of(a) != order_of(b),
    "<": lambda a, b: order_of(a) < order_of(b), "<=": lambda a, b: order_of(a) <= order_of(b),
    ">": lambda a, b: order_of(a) > order_of(b), ">=": lambda a, b: order_of(a) >= order_of(b),
}  # fmt: skip


def literal(value: Any) -> str:
    """Write a value as SQL does."""
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value)


def compared(name: str, sign: str, value: Any) -> Sample:
    def answer(row: Row) -> Any:
        found = row[name]
        return None if found is None or value is None else TESTS[sign](found, value)

    return Sample(f"{name} {sign} {literal(value)}", answer)


def paired(left: str, sign: str, right: str) -> Sample:
    def answer(row: Row) -> Any:
        a, b = row[left], row[right]
        return None if a is None or b is None else TESTS[sign](a, b)

    return Sample(f"{left} {sign} {right}", answer)


def member(name: str, values: list[Any]) -> Sample:
    def answer(row: Row) -> Any:
        found = row[name]
        if found is None:
            return None
        if any(one is not None and TESTS["="](found, one) for one in values):
            return True
        return None if None in values else False

    return Sample(f"{name} IN ({', '.join(map(literal, values))})", answer)


def between(name: str, low: Any, high: Any) -> Sample:
    both = conjunction([compared(name, ">=", low), compared(name, "<=", high)])
    return Sample(f"{name} BETWEEN {literal(low)} AND {literal(high)}", both.answer)


def is_null(name: str, negated: bool) -> Sample:
    return Sample(f"{name} IS {'NOT ' * negated}NULL", lambda row: (row[name] is None) != negated)


def like(name: str, pattern: str, ignore_case: bool) -> Sample:
    parts = [{"%": ".*", "_": "."}.get(char, re.escape(char)) for char in pattern]
    wanted = re.compile("".join(parts), re.DOTALL | (re.IGNORECASE if ignore_case else 0))

    def answer(row: Row) -> Any:
        return None if row[name] is None else wanted.fullmatch(row[name]) is not None

    return Sample(f"{name} {'I' * ignore_case}LIKE {literal(pattern)}", answer)


def boolean(name: str) -> Sample:
    return Sample(name, lambda row: row[name])


def truth(inner: Sample, wanted: bool, negated: bool) -> Sample:
    text = f"({inner.sql}) IS {'NOT ' * negated}{str(wanted).upper()}"
    return Sample(text, lambda row: (inner.answer(row) is wanted) != negated)


def negation(inner: Sample) -> Sample:
    def answer(row: Row) -> Any:
        found = inner.answer(row)
        return None if found is None else not found

    return Sample(f"NOT ({inner.sql})", answer)


def conjunction(parts: list[Sample]) -> Sample:
    def answer(row: Row) -> Any:
        found = [part.answer(row) for part in parts]
        return False if False in found else None if None in found else True

    return Sample(" AND ".join(f"({part.sql})" for part in parts), answer)


def disjunction(parts: list[Sample]) -> Sample:
    def answer(row: Row) -> Any:
        found = [part.answer(row) for part in parts]
        return True if True in found else None if None in found else False

    return Sample(" OR ".join(f"({part.sql})" for part in parts), answer)


def sums(name: str, add: int, sign: str, value: int) -> Sample:
    def answer(row: Row) -> Any:
        return None if row[name] is None else TESTS[sign](row[name] + add, value)

    return Sample(f"{name} + {add} {sign} {value}", answer)


def has(value: int) -> Sample:
    return Sample(
        f"array_has(l, {value})", lambda row: None if row["l"] is None else value in row["l"]
    )


SIGNS = st.sampled_from(sorted(TESTS))
SMALL = st.integers(0, 12)
WORD = st.sampled_from([*WORDS[:8], "zz"])
LEAVES = st.one_of(
    st.builds(compared, st.sampled_from(NUMBERS), SIGNS, SMALL),
    st.builds(compared, st.sampled_from(("i", "i8", "f")), SIGNS, st.integers(-128, -1)),
    st.builds(compared, st.sampled_from(TEXTS), SIGNS, WORD),
    st.builds(paired, st.sampled_from(("i", "i8", "i32")), SIGNS, st.sampled_from(("i8", "u8"))),
    st.builds(paired, st.just("s"), SIGNS, st.just("t")),
    st.builds(
        member, st.sampled_from(NUMBERS), st.lists(SMALL | st.none(), min_size=1, max_size=5)
    ),
    st.builds(member, st.sampled_from(TEXTS), st.lists(WORD | st.none(), min_size=1, max_size=5)),
    st.builds(between, st.sampled_from(NUMBERS), SMALL, SMALL),
    st.builds(is_null, st.sampled_from([*NUMBERS, *TEXTS, "b", "l", "ts"]), st.booleans()),
    st.builds(like, st.sampled_from(TEXTS), st.text("ab%_A", max_size=4), st.booleans()),
    st.builds(sums, st.sampled_from(("i8", "i32", "u8")), SMALL, SIGNS, SMALL),
    st.builds(has, SMALL),
    st.just(boolean("b")),
)
PREDICATES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(negation, inner),
        st.builds(truth, inner, st.booleans(), st.booleans()),
        st.builds(conjunction, st.lists(inner, min_size=2, max_size=4)),
        st.builds(disjunction, st.lists(inner, min_size=2, max_size=4)),
    ),
    max_leaves=10,
)


def mask_of(sql: str, table: pa.Table = TABLE) -> list[bool]:
    """Evaluate a filter over the table."""
    condition = compile_filter(sql, table.schema)
    columns = {path: table.column(path[0]) for path in condition.paths}
    found: list[bool] = condition.mask(columns, table.num_rows).tolist()
    return found


@examples(80)
@given(PREDICATES)
def test_a_predicate_is_what_three_valued_logic_says(sample: Sample) -> None:
    assert mask_of(sample.sql) == [sample.answer(row) is True for row in ROWS]


@examples(25)
@given(PREDICATES)
def test_a_predicate_its_negation_and_its_null_share_out_the_rows(sample: Sample) -> None:
    parts = [
        mask_of(sample.sql),
        mask_of(f"NOT ({sample.sql})"),
        mask_of(f"({sample.sql}) IS NULL"),
    ]

    assert np.sum(parts, axis=0).tolist() == [1] * TABLE.num_rows


@examples(25)
@given(PREDICATES, st.integers(1, 40))
def test_rows_do_not_depend_on_the_windows_they_are_read_in(sample: Sample, size: int) -> None:
    whole = mask_of(sample.sql)
    parts = [mask_of(sample.sql, TABLE.slice(at, size)) for at in range(0, TABLE.num_rows, size)]

    assert [one for part in parts for one in part] == whole


@examples(60)
@given(st.text(max_size=40) | st.text("i=1()'`\"andor<>, .[]-+*/%nullin", max_size=40))
def test_any_text_is_a_filter_or_a_predicate_error(text: str) -> None:
    with contextlib.suppress(PredicateError):
        mask_of(text)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """The same rows in our reader and in pylance."""
    path = str(tmp_path_factory.mktemp("predicates") / "data")
    theirs = write_filter_dataset(require_pylance(), path)
    return lance_nb.dataset(path), theirs


@pytest.mark.interop
@examples(50)
@given(PREDICATES)
def test_pylance_chooses_the_same_rows(both: Any, sample: Sample) -> None:
    ours, theirs = both
    expected = theirs.to_table(columns=["id"], filter=sample.sql)["id"].to_pylist()

    assert ours.to_table(["id"], sample.sql)["id"].to_pylist() == expected
    assert ours.count_rows(sample.sql) == len(expected)
