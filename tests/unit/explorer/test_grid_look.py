from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.code_lines import Python
from lance_nb.errors import InvalidInputError
from lance_nb.explorer.arrangements import Arrangements
from lance_nb.explorer.grid_look import look_at, look_of
from lance_nb.explorer.models import row_query
from lance_nb.explorer.models.row_query import NearestQuery
from tests.unit.explorer.fakes import small_dataset


def quiet(_done: int, _total: int) -> None:
    """Nobody is told."""


@pytest.fixture
def dataset(tmp_path: Path) -> Any:
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(range(400), pa.float32()), 4)
    table = pa.table({"id": range(100), "v": vectors})
    return lance_nb.write_dataset(table, tmp_path / "a.lance")


def run(line: str) -> pa.Table:
    """Run the line that a person copies."""
    return eval(line, {"lance_nb": lance_nb})  # noqa: S307


def test_an_order_says_over_how_many_rows_and_its_code_gives_the_same(
    dataset: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = look_of(
        {"order": {"column": "id", "ascending": False}, "filter": "id < 50"}, Arrangements()
    )
    found = look_at(dataset, look, quiet)
    assert (found.words, found.num_rows) == ("sorted over 50 rows", 50)
    shown = found.lens.rows(dataset, ["id"], 0, 3)
    assert shown["id"].to_pylist() == [49, 48, 47]
    assert run(found.code["python"])["id"].to_pylist()[:3] == [49, 48, 47]
    monkeypatch.setattr(row_query, "MAX_ORDERED", 10)
    assert look_at(dataset, look, quiet).words == "sorted over 50 rows; the first 10 are shown"


def test_neighbours_have_a_distance_first_and_code(dataset: Any) -> None:
    kept = Arrangements()
    code = Python(f"lance_nb.dataset({dataset.uri!r}).take([7])['v'][0].as_py()")
    key = kept.keep_likeness(NearestQuery("v", dataset.take([7])["v"][0], code))
    look = look_of({"near": {"like": key, "k": 3, "metric": "l2"}, "filter": "id > 7"}, kept)
    found = look_at(dataset, look, quiet)
    assert found.words == "3 rows nearest by l2, exact, of those that pass"
    assert found.lens.names(dataset) == ["_distance", "id", "v"]
    assert run(found.code["python"])["id"].to_pylist() == [8, 9, 10]
    assert found.lens.rows(dataset, ["id"], 0, 9)["id"].to_pylist() == [8, 9, 10]


def test_a_filter_tells_what_it_reads(dataset: Any) -> None:
    found = look_at(dataset, look_of({"filter": "id < 5"}, Arrangements()), quiet)
    assert (found.num_rows, found.reads.columns, found.words) == (5, ("id",), "")
    plain = look_at(small_dataset(), look_of({"filter": "id < 5"}, Arrangements()), quiet)
    assert (plain.num_rows, plain.reads) == (5, None)


@pytest.mark.parametrize(
    "args",
    [
        {"order": 5}, {"order": {"column": 3, "ascending": True}}, {"order": {"column": "x"}},
        {"near": []}, {"near": {"like": "v1", "k": 3, "metric": "l2"}},
        {"near": {"like": "v1", "k": 0, "metric": "l2"}}, {"near": {"like": None, "k": 3}},
    ],
)  # fmt: skip
def test_nonsense_is_refused(args: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        look_of(args, Arrangements())
