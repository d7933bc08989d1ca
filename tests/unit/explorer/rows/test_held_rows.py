from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.explorer.messages import handle
from lance_nb.explorer.rows.held_rows import HeldRows, hold_rows, row_ids_at
from lance_nb.explorer.rows.row_order import SortOrder, filtered_rows, sorted_rows
from lance_nb.explorer.rows.row_query import RowQuery
from lance_nb.explorer.rows.widget import RowGrid
from lance_nb.explorer.session import Session

ALL = RowQuery()


def quiet(_done: int, _total: int) -> None:
    pass


def made(folder: Path, *, stable: bool) -> Any:
    table = pa.table({"id": range(40), "x": [(at * 7) % 40 for at in range(40)]})
    return lance_nb.write_dataset(
        table, folder / "held.lance", max_rows_per_file=10, enable_stable_row_ids=stable
    )


def held(before: Any, ids: list[int], target: Any, query: RowQuery = ALL) -> tuple[Any, str]:
    """Return the values of ``id`` at the places where rows are now, and the words."""
    wanted = row_ids_at(before, ALL, [(one, one + 1) for one in ids])
    found = hold_rows(before, wanted, target, query, quiet)
    shown = query.rows(target, ["id"], 0, 100)["id"].to_pylist()
    return [shown[at] for at in found.positions], found.words


@pytest.mark.parametrize("stable", [True, False])
def test_rows_are_found_after_deletions_appends_orders_and_filters(
    tmp_path: Path, stable: bool
) -> None:
    first = made(tmp_path, stable=stable)
    ds = lance_nb.dataset(first.uri)
    ds.delete("id < 5 OR id = 12")
    ds.insert(pa.table({"id": [100], "x": [1]}))
    assert held(first, [7, 13, 39], ds) == ([7, 13, 39], "")
    found, words = held(first, [12], ds)
    assert found == []
    assert words.startswith("This row does not exist in version main:3")
    found, words = held(first, [3, 7, 12], ds)
    assert found == [7]
    assert words.startswith("2 of 3 rows do not exist in version main:3")
    order = RowQuery(order=sorted_rows(ds, [SortOrder("x", False)], None, quiet))
    assert sorted(held(first, [7, 13], ds, order)[0]) == [7, 13]
    where = RowQuery("id > 10", order=filtered_rows(ds, "id > 10", quiet))
    assert held(first, [7, 13], ds, where) == ([13], "1 of 2 rows does not pass the filter.")
    # From the newer version back: a row that was not there yet.
    last = row_ids_at(ds, RowQuery("id = 100"), [(0, 1)])
    back = hold_rows(ds, last, first, ALL, quiet)
    assert back.positions.size == 0
    assert "version main:1" in back.words


def test_stable_row_ids_are_followed_through_updates_and_compactions(tmp_path: Path) -> None:
    first = made(tmp_path, stable=True)
    ds = lance_nb.dataset(first.uri)
    ds.update({"x": "500"}, where="id = 7")
    ds.optimize.compact_files()
    assert held(first, [7, 8], ds) == ([8, 7], "")  # what was updated comes last


def test_without_stable_row_ids_it_is_said_what_cannot_be_known(tmp_path: Path) -> None:
    first = made(tmp_path, stable=False)
    ds = lance_nb.dataset(first.uri)
    ds.update({"x": "500"}, where="id = 7")
    found, words = held(first, [7, 8], ds)
    assert found == [8]
    assert "or was updated: without stable row ids" in words
    ds.optimize.compact_files()
    found, words = held(first, [8], ds)
    assert found == []
    assert words.startswith("This row cannot be followed to version main:3")


def test_a_version_that_was_overwritten_has_other_rows(tmp_path: Path) -> None:
    first = made(tmp_path, stable=False)
    again = pa.table({"id": range(900, 940), "x": range(40)})
    ds = lance_nb.write_dataset(again, first.uri, mode="overwrite")
    assert held(first, [7], ds)[0] == []


@pytest.mark.parametrize("stable", [True, False])
def test_rows_of_another_branch_are_followed_by_address(tmp_path: Path, stable: bool) -> None:
    first = made(tmp_path, stable=stable)
    branch = first.create_branch("dev")
    branch.insert(pa.table({"id": [200], "x": [0]}))
    first.insert(pa.table({"id": [300], "x": [0]}))
    assert held(first, [7], branch) == ([7], "")
    assert held(first, [40], branch)[0] == []  # the same address or id, another row


def test_positions_are_ranges() -> None:
    found = HeldRows(np.array([1, 2, 3, 7, 9, 10], np.int64), "")
    assert found.ranges() == [[1, 4], [7, 8], [9, 11]]
    assert HeldRows(np.zeros(0, np.int64), "").ranges() == []


def test_the_grid_asks_where_its_rows_are(tmp_path: Path) -> None:
    ds = made(tmp_path, stable=True)
    ds.delete("id < 5")
    session = Session(ds)
    before = {"branch": None, "version": 1, "filter": None, "arranged": None}
    place = {"branch": None, "version": 2}
    handlers = RowGrid.request_handlers(session)

    def ask(args: dict[str, Any]) -> Any:
        reply, _ = handle({"id": "1", "type": "rows.hold", "args": args}, handlers)
        return reply["result"]

    args = {**place, "before": before, "ranges": [[4, 8]], "row": 6}
    assert ask(args) == {
        "row": 1, "ranges": [[0, 3]], "words": "1 of 4 rows does not exist in version main:2.",
    }  # fmt: skip
    gone = ask(args | {"ranges": [], "row": 2})
    assert gone["row"] is None
    assert gone["words"] == "This row does not exist in version main:2."
