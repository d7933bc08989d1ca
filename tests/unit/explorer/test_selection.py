from __future__ import annotations

from typing import Any

import pytest

from lance_nb.errors import InvalidInputError
from lance_nb.explorer.models.row_query import RowQuery
from lance_nb.explorer.selection import MAX_SELECTED, Selection, selection_of
from tests.unit.explorer.fakes import small_dataset


def test_rows_and_columns_are_read_in_the_order_of_the_grid() -> None:
    found = selection_of({"ranges": [[3, 5], [0, 1]], "columns": [1]}, RowQuery())
    table = found.table(small_dataset())
    assert table.to_pydict() == {"text": ["row 0", "row 3", "row 4"]}
    assert found.num_rows == 3


def test_columns_alone_mean_the_first_rows() -> None:
    assert Selection(columns=(0,)).table(small_dataset()).num_rows == 25
    assert Selection().table(small_dataset()).num_rows == 0
    assert Selection(columns=(99,)).table(small_dataset()).column_names == ["id", "text"]


def test_a_selection_of_what_passes_a_filter() -> None:
    found = Selection(((1, 3),), (0,), RowQuery("id < 9", system=True))
    assert found.table(small_dataset())["id"].to_pylist() == [1, 2]


@pytest.mark.parametrize(
    "args",
    [
        {}, {"ranges": 5}, {"ranges": [[1]]}, {"ranges": [["a", 2]]}, {"ranges": [[0, 2]] * 1001},
        {"ranges": [], "columns": "x"}, {"ranges": [], "columns": [-1]},
        {"ranges": [[0, MAX_SELECTED + 1]]},
    ],
)  # fmt: skip
def test_nonsense_is_refused(args: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        selection_of(args, RowQuery())
