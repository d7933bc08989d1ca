from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.code_lines import Python
from lance_nb.errors import (
    CancelledError,
    ColumnNotFoundError,
    InvalidInputError,
    NotSupportedError,
    PredicateError,
)
from lance_nb.explorer.models import arrangement, source
from lance_nb.explorer.models.arrangement import (
    DISTANCE,
    Likeness,
    near_rows,
    passing_rows,
    sorted_rows,
)

NO_CODE = Python("None")


def quiet(done: int, total: int) -> None:
    assert 0 <= done <= total


@pytest.fixture
def dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Four fragments of 25 rows, some deleted; every fragment is a group of its own."""
    monkeypatch.setattr(source, "GROUP_ROWS", 1)
    rng = np.random.default_rng(3)
    x = rng.permutation(100).astype(float)
    x[[3, 50]] = np.nan
    table = pa.table({
        "x": pa.array([None if at % 10 == 9 else value for at, value in enumerate(x)]),
        "name": [f"n{at % 7}" for at in range(100)],
        "v": pa.FixedSizeListArray.from_arrays(rng.normal(size=400).astype("f4"), 4),
        "who": [{"a": 1}] * 100,
    })  # fmt: skip
    found = lance_nb.write_dataset(table, tmp_path / "a.lance", max_rows_per_file=25)
    found.delete("x > 90")
    return found


@pytest.mark.parametrize("ascending", [True, False])
@pytest.mark.parametrize("where", [None, "name <> 'n3'"])
@pytest.mark.parametrize("most", [1000, 20])
def test_rows_come_in_the_order_of_a_column(
    dataset: Any, ascending: bool, where: str | None, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrangement, "MAX_ORDERED", most)
    found = sorted_rows(dataset, "x", where, quiet, ascending=ascending)
    values = dataset.to_table(["x"], filter=where)["x"].to_pylist()
    numbers = (one for one in values if one is not None and not np.isnan(one))
    plain = sorted(numbers, reverse=not ascending)
    shown = found.rows(dataset, ["x"], 0, 1000)["x"].to_pylist()
    assert shown[: len(plain)] == plain[:most]
    assert found.scanned == len(values)
    assert found.num_rows == min(most, len(values))
    if most > 100:
        assert [one for one in shown[len(plain) :] if one is None] == [None] * values.count(None)
        assert shown[-1] is None


def test_equal_values_keep_the_order_of_the_scan(dataset: Any) -> None:
    found = sorted_rows(dataset, "name", None, quiet, ascending=True)
    rows = found.rows(dataset, ["name", "_rowid"], 0, 100)
    ids = [row["_rowid"] for row in rows.to_pylist() if row["name"] == "n2"]
    assert ids == sorted(ids)
    assert found.rows(dataset, ["x"], 95, 10).num_rows == found.num_rows - min(95, found.num_rows)


def test_what_has_no_order_is_refused(dataset: Any) -> None:
    with pytest.raises(NotSupportedError, match="no order"):
        sorted_rows(dataset, "who", None, quiet, ascending=True)
    with pytest.raises(ColumnNotFoundError):
        sorted_rows(dataset, "nope", None, quiet, ascending=True)


def test_work_ends_where_it_tells_its_progress(dataset: Any) -> None:
    def end(done: int, _total: int) -> None:
        if done:
            raise CancelledError("ended")

    like = Likeness("v", dataset.take([0])["v"][0], NO_CODE)
    for work in (
        lambda: sorted_rows(dataset, "x", None, end, ascending=True),
        lambda: near_rows(dataset, like, None, end),
        lambda: passing_rows(dataset, "x > 3", end),
    ):
        with pytest.raises(CancelledError):
            work()


@pytest.mark.parametrize("where", [None, "name <> 'n3'"])
@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
def test_neighbours_are_those_of_an_exact_search(
    dataset: Any, where: str | None, metric: str
) -> None:
    query = dataset.take([7])["v"][0]
    found = near_rows(dataset, Likeness("v", query, NO_CODE, 12, metric), where, quiet)
    nearest = {"column": "v", "q": np.array(query.as_py(), "f4"), "k": 12, "metric": metric}
    expected = dataset.scanner(["_rowid"], where, nearest=nearest, prefilter=True).to_table()
    assert found.ids.tolist() == expected["_rowid"].to_pylist()
    shown = found.rows(dataset, [DISTANCE, "name"], 2, 3)
    assert shown[DISTANCE].to_pylist() == expected[DISTANCE].to_pylist()[2:5]
    assert found.rows(dataset, [DISTANCE], 0, 2).num_rows == 2


def test_a_search_that_cannot_be_made_is_refused(dataset: Any) -> None:
    row = dataset.take([0])
    with pytest.raises(NotSupportedError, match="vectors"):
        near_rows(dataset, Likeness("name", row["name"][0], NO_CODE), None, quiet)
    with pytest.raises(InvalidInputError, match="metric"):
        near_rows(dataset, Likeness("v", row["v"][0], NO_CODE, 5, "<b>"), None, quiet)
    with pytest.raises(InvalidInputError, match="no vector"):
        near_rows(dataset, Likeness("v", pa.scalar(None, row["v"].type), NO_CODE), None, quiet)


def test_rows_that_pass_are_read_from_their_own_fragments(dataset: Any) -> None:
    where = "name = 'n3' or x < 20"
    found = passing_rows(dataset, where, quiet)
    everything = dataset.to_table(["x", "name"], filter=where)
    assert found.num_rows == everything.num_rows == dataset.count_rows(where)
    for offset in range(found.num_rows + 2):
        page = found.rows(dataset, ["x", "name"], offset, 7)
        assert page.equals(everything.slice(offset, 7)) or str(page) == str(
            everything.slice(offset, 7)
        )
    with pytest.raises(PredicateError):
        passing_rows(dataset, "x <<< 3", quiet)
    assert passing_rows(dataset, "x > 1000", quiet).num_rows == 0
