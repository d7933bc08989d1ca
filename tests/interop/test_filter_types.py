"""Filters on a column of every type and null pattern choose the rows that pylance chooses.

Where pylance does not take a filter on a type, the rows are those that pyarrow finds in memory.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import PredicateError
from tests.interop.matrix import FAMILIES, ROUNDS, columns
from tests.interop.predicates import Check, checks
from tests.support.reading import decoded, first_difference, same
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop
NUM_ROWS = 150


@pytest.mark.parametrize("version", ["legacy", "2.0", "2.1", "2.2"])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("seed", range(23, 23 + ROUNDS))
def test_filters_choose_the_rows_of_pylance(
    seed: int, family: str, version: str, tmp_path: Path
) -> None:
    lance = require_pylance()
    found = {name: array for name, array in columns(family, NUM_ROWS, "2.2", seed)
             if len(array) == NUM_ROWS}  # fmt: skip
    kept = _accepted(lance, found, version, tmp_path)
    table = pa.table({**kept, "n": pa.array(range(NUM_ROWS))})
    path = str(tmp_path / "all")
    lance.write_dataset(table, path, data_storage_version=version, max_rows_per_file=100)
    lance.dataset(path).delete("n % 11 = 3")
    ours, theirs = lance_nb.dataset(path), lance.dataset(path)
    stored, rng = ours.to_table(), np.random.default_rng(seed)
    wrong, judged = [], 0
    for number, name in enumerate(kept):
        ways = list(checks(name, stored[name].combine_chunks(), rng))
        check = ways[number % len(ways)]
        expected = _judge(theirs, name, check)
        judged += expected is not None
        if expected is None:
            expected = stored.select(["n", name]).filter(check.mask)
        got = ours.to_table(["n", name], filter=check.condition)
        if not all(map(_equal, got.columns, expected.columns)):
            text = first_difference(got[name], expected[name])
            wrong.append(f"{name} where {check.condition}: {text}")
    assert not wrong
    assert judged >= len(kept) // 2


def _equal(got: Any, expected: Any) -> bool:
    return same(decoded(got), decoded(expected))


def _judge(theirs: Any, name: str, check: Check) -> pa.Table | None:
    try:
        return theirs.to_table(["n", name], filter=check.condition, use_stats=False)
    except (OSError, ValueError, NotImplementedError, TypeError):
        return None
    except BaseException as exc:
        if type(exc).__name__ != "PanicException":
            raise
        return None


def _accepted(
    lance: Any, found: dict[str, pa.Array], version: str, folder: Path
) -> dict[str, pa.Array]:
    """Leave out the columns that a file version cannot hold."""
    if version > "2.1" and version != "legacy":
        return found
    kept, refused = {}, set()
    for name, array in found.items():
        kind = name.partition("/")[0]
        if kind in refused and "full" not in name:
            continue
        try:
            path = folder / f"try{len(kept)}-{len(refused)}"
            lance.write_dataset(pa.table({"c": array}), path,
                                data_storage_version=version)  # fmt: skip
            lance.dataset(path).to_table()
        except (OSError, ValueError, NotImplementedError):
            refused.add(kind)
            continue
        except BaseException as exc:
            if type(exc).__name__ != "PanicException":
                raise
            refused.add(kind)
            continue
        kept[name] = array
    return kept


_KINDS = pa.table({
    "id": [0, 1, 2, 3], "s": ["5", "x", "10", None], "i": [5, 10, None, 7],
    "f": [5.0, 10.0, None, 1.5], "b": [True, False, None, True], "d": pa.array([0, 5, None,
    18628], pa.date32()),
    "ts": pa.array([0, 5, None, 10**15], pa.timestamp("us")), "bin": [b"5", b"x", None, b""],
    "l": [[1], [5], None, []], "st": [{"x": 1}] * 4,
})  # fmt: skip
_LITERALS = ("5", "5.5", "'5'", "'abc'", "true", "date '1970-01-06'",
             "timestamp '1970-01-06 00:00:00'", "x'35'", "NULL", "'2021-01-01'")  # fmt: skip


def _ids(dataset: Any, condition: str) -> Any:
    try:
        return dataset.to_table(columns=["id"], filter=condition)["id"].to_pylist()
    except (ValueError, OSError, pa.ArrowException):
        return "refused"


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """One column of each kind in our reader and in pylance."""
    path = str(tmp_path_factory.mktemp("kinds") / "data")
    theirs = require_pylance().write_dataset(_KINDS, path)
    return lance_nb.dataset(path), theirs


@pytest.mark.parametrize("column", [name for name in _KINDS.column_names if name != "id"])
def test_what_pylance_accepts_for_types_that_differ_is_accepted_with_its_rows(
    kinds: tuple[Any, Any], column: str
) -> None:
    ours, theirs = kinds
    others = [name for name in _KINDS.column_names if name not in ("id", column)]
    for other in (*_LITERALS, *others):
        for condition in (
            f"{column} = {other}", f"{column} < {other}", f"{column} IN ({other})",
            f"{column} BETWEEN {other} AND {other}",
        ):  # fmt: skip
            expected = _ids(theirs, condition)
            is_nested = column in ("l", "st") and other == "NULL"  # these have no order here
            if expected != "refused" and not is_nested:
                assert _ids(ours, condition) == expected, condition


@pytest.mark.parametrize(
    ("condition", "problem", "advice"),
    [
        ("s > 5", "column 's' is string, 5 is int64", "write '5' in quotes"),
        ("s IN (1, 2)", "column 's' is string, 1 is int64", "CAST(s AS DOUBLE)"),
        ("s BETWEEN 1 AND 5", "column 's' is string", "in quotes"),
        ("lower(s) > 5", "the expression is string, 5 is int64", "in quotes"),
        ("b > 5", "column 'b' is bool, 5 is int64", "true or false"),
        ("l = 1", "column 'l' is list<", "array_has(l"),
        ("st = 1", "column 'st' is struct<", "st.x"),
        ("d = 'abc'", "'abc' is not a value of type date32", "date '2021-01-31'"),
        ("d > 5", "column 'd' is date32[day], 5 is int64", "date '2021-01-31'"),
        ("ts > 'x'", "'x' is not a value of type timestamp[us]", "timestamp '2021-01-31"),
        (
            "i = 'abc'",
            "column 'i' is int64, and 'abc' is not a value of type int64",
            "write a number",
        ),
        ("bin = 5", "column 'bin' is binary, 5 is int64", "x'00ff'"),
        ("5 < s", "column 's' is string, 5 is int64", "in quotes"),
        ("f = true", "column 'f' is double, true is bool", "write a number"),
    ],
)
def test_a_literal_of_the_wrong_type_is_refused_with_the_columns_type_and_what_to_write(
    kinds: tuple[Any, Any], condition: str, problem: str, advice: str
) -> None:
    ours, theirs = kinds
    assert _ids(theirs, condition) == "refused"
    with pytest.raises(PredicateError) as found:
        ours.count_rows(condition)
    assert problem in str(found.value)
    assert advice in str(found.value)
    assert "Failed to parse" not in str(found.value)


def test_times_are_written_and_read_as_text_like_in_pylance(tmp_path: Path) -> None:
    lance = require_pylance()
    ticks = [0, 1, 1000, 10**6, 3723 * 10**6, 3723_500_000, 3723_123_456, None]
    table = pa.table({
        "us": pa.array(ticks, pa.time64("us")),
        "ns": pa.array([None if one is None else one * 1000 + 7 for one in ticks], pa.time64("ns")),
        "ms": pa.array([0, 1, 999, 1000, 3723000, 3723500, 1100, None], pa.time32("ms")),
        "s": pa.array([0, 1, 59, 60, 3600, 3661, 86399, None], pa.time32("s")),
    })  # fmt: skip
    theirs = lance.write_dataset(table, tmp_path / "times")
    ours = lance_nb.dataset(tmp_path / "times")
    texts = {name: f"CAST({name} AS string)" for name in table.column_names}

    assert ours.to_table(columns=texts).equals(theirs.to_table(columns=texts))
    units = ("Time64(Microsecond)", "Time64(Nanosecond)", "Time32(Millisecond)", "Time32(Second)")
    for name, type_ in zip(texts, units, strict=True):
        for text in ("01:02:03", "00:00:01", "00:00:00.001", "01:00"):
            condition = f"{name} >= arrow_cast('{text}', '{type_}')"
            wanted = theirs.to_table(filter=condition)
            assert ours.to_table(filter=condition).equals(wanted), condition
