"""SQL statements give what pylance gives: names, types and values; WHERE what a filter chooses.

Random statements over a table of every type; ``LANCE_NB_TEST_SCALE`` multiplies their number. A
statement that pylance refuses and we do not is no difference: what we understand beyond it is
DuckDB's. Texts are ``string`` in both, where pylance has ``string_view`` for some.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import LanceError
from tests.house.source import ROOT
from tests.interop.matrix import ROUNDS
from tests.support.filter_rows import write_filter_dataset
from tests.support.random_predicates import random_predicate
from tests.support.random_statements import random_statement, statement_table
from tests.support.requirements import require_package, require_pylance

pytestmark = pytest.mark.interop

STATEMENTS = 20
CONDITIONS = 15


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """The same dataset, of several fragments with deleted rows, in our reader and in pylance."""
    require_package("duckdb")
    pylance = require_pylance()
    path = str(tmp_path_factory.mktemp("sql_statements") / "data")
    pylance.write_dataset(statement_table(), path, max_rows_per_file=20).delete("id % 11 = 4")
    return lance_nb.dataset(path), pylance.dataset(path)


def ask(dataset: Any, statement: str) -> pa.Table | None:
    """Return the rows of a statement, None where it is refused."""
    try:
        batches = dataset.sql(statement).build().to_batch_records()
    except (LanceError, ValueError, OSError):
        return None
    return pa.Table.from_batches(batches) if batches else pa.table({})


def type_names(table: pa.Table) -> list[str]:
    return [str(kind).replace("string_view", "string") for kind in table.schema.types]


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    columns = []
    for column in table.columns:
        is_time = pa.types.is_timestamp(column.type) or pa.types.is_duration(column.type)
        columns.append((column.cast(pa.int64()) if is_time else column).to_pylist())
    return list(zip(*columns, strict=True))


def is_same(left: Any, right: Any) -> bool:
    """Whether two values are the same; sums of floats may differ in their last digits."""
    if isinstance(left, float) and isinstance(right, float):
        if math.isnan(left) or left == 0:
            signs = math.copysign(1, left) == math.copysign(1, right)
            return (math.isnan(left) and math.isnan(right)) or (left == right and signs)
        return math.isclose(left, right, rel_tol=1e-12)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(is_same, left, right))
    return type(left) is type(right) and bool(left == right)


def check(ours: Any, theirs: Any, statement: str, *, is_ordered: bool = True) -> str:
    """Compare a statement in both; tell whether it was compared or refused."""
    expected, result = ask(theirs, statement), ask(ours, statement)
    if expected is None:
        return "refused"
    assert result is not None, f"we refuse {statement}"
    if not expected.num_columns:
        assert result.num_rows == 0, statement
        return "compared"
    names = [name.replace(", ", ",") for name in expected.schema.names]  # its plan has spaces
    assert [name.replace(", ", ",") for name in result.schema.names] == names, statement
    assert type_names(result) == type_names(expected), statement
    left, right = rows_of(result), rows_of(expected)
    if not is_ordered:
        left, right = sorted(left, key=repr), sorted(right, key=repr)
    assert len(left) == len(right), statement
    for row, expected_row in zip(left, right, strict=True):
        assert is_same(row, expected_row), f"{statement}: {row} is not {expected_row}"
    return "compared"


@pytest.mark.parametrize("batch", range(12 * ROUNDS))
def test_a_random_statement_gives_what_pylance_gives(both: tuple[Any, Any], batch: int) -> None:
    outcomes: Counter[str] = Counter()
    for seed in range(batch * STATEMENTS, (batch + 1) * STATEMENTS):
        statement = random_statement(seed)
        print(f"seed {seed}: {statement.text}")
        outcomes[check(*both, statement.text, is_ordered=statement.is_ordered)] += 1

    assert outcomes["compared"] > STATEMENTS / 2


@pytest.mark.parametrize("batch", range(3 * ROUNDS))
def test_where_chooses_the_rows_of_the_filter_and_of_pylance(
    tmp_path_factory: pytest.TempPathFactory, batch: int
) -> None:
    require_package("duckdb")
    path = str(tmp_path_factory.getbasetemp() / "sql_conditions")
    try:
        theirs = require_pylance().dataset(path)
    except ValueError:
        theirs = write_filter_dataset(require_pylance(), path)
    ours = lance_nb.dataset(path)
    for seed in range(batch * CONDITIONS, (batch + 1) * CONDITIONS):
        condition = random_predicate(seed)
        print(f"seed {seed}: {condition}")
        chosen = ours.to_table(columns=["id"], filter=condition)["id"].to_pylist()
        written = condition.replace("`", '"')
        statement = f"SELECT id FROM dataset WHERE {written}"  # noqa: S608
        expected = ask(theirs, statement)
        result = ask(ours, statement)
        # In a subquery on two tables, DuckDB computes the condition in the place of the scan.
        crossed = f"SELECT d.id FROM dataset d, (SELECT 1) WHERE {written}"  # noqa: S608

        assert result is not None, statement
        assert sorted(result["id"].to_pylist()) == chosen
        joined = ask(ours, crossed)
        assert joined is not None, crossed
        assert sorted(joined["id"].to_pylist()) == chosen
        if expected is not None and expected.num_columns:
            assert sorted(expected["id"].to_pylist()) == chosen


GUIDE = Path(ROOT) / "notebooks/guides/sql.md"
ROW = re.compile(r"\| `(SELECT .*?)` \| `?(.*?)`? \| `?(.*?)`? \| [^|]+ \|$", re.MULTILINE)


@pytest.mark.parametrize(
    "text",
    [
        "CAST(id AS timestamp)",
        "CAST(id AS timestamp(9))",
        "CAST(id AS timestamp(6))",
        "CAST(CAST(id AS int) AS timestamp)",
        "TRY_CAST(id AS timestamp)",
        "TIME '10:00:00.123456'",
    ],
)
def test_numbers_and_texts_are_the_moments_of_pylance(both: tuple[Any, Any], text: str) -> None:
    statement = f"SELECT id, {text} AS m FROM dataset ORDER BY id"  # noqa: S608
    assert check(*both, statement) == "compared"
    condition = text if text.startswith("TIME ") else f"{text} = to_timestamp_nanos(5)"
    statement = f"SELECT id FROM dataset WHERE coalesce({condition}, NULL) IS NULL ORDER BY id"  # noqa: S608
    assert check(*both, statement) == "compared"


def test_what_differs_stands_in_the_guide(tmp_path: Path) -> None:
    require_package("duckdb")
    table = pa.table({
        "id": [0, 1, 2], "a": pa.array([0, 2, 7], pa.int32()), "f": [-0.0, 0.0, float("nan")],
        "big": [2**62, 2**62, 0], "s": ["ab", "b", None], "flag": [True, True, None],
        "l": [[1, 2], [3], []], "Mixed": [1, 2, 3],
    })  # fmt: skip
    path = str(tmp_path / "guide.lance")
    require_pylance().write_dataset(table, path)
    ours, theirs = lance_nb.dataset(path), require_pylance().dataset(path)
    rows = ROW.findall(GUIDE.read_text())

    assert len(rows) > 10
    for statement, here, there in rows:
        assert here != there, statement
        assert shown(ask(ours, statement)) == here, statement
        assert shown(ask(theirs, statement)) == there, statement


def shown(table: pa.Table | None) -> str:
    """Return what a cell of the guide's table says."""
    if table is None:
        return "refused"
    columns = [column.to_pylist() for column in table.columns]
    return str(columns[0] if len(columns) == 1 else list(zip(*columns, strict=True)))
