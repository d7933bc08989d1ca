from __future__ import annotations

from typing import Any

import pyarrow as pa

from lance_nb.explorer.messages import handle
from lance_nb.explorer.session import Session
from lance_nb.explorer.widgets.rows import RowGrid
from tests.unit.explorer.fakes import one_table, small_dataset


def test_it_shows_its_part_alone_and_follows_a_journey() -> None:
    widget = RowGrid(small_dataset(), height=300)
    assert widget.height == 300
    assert "page" in widget.screen["rows"]
    widget.travel("dev:2")
    assert widget.screen["label"] == "dev:2"
    assert "page" in widget.screen["rows"]


def test_its_module_mounts_the_view_without_the_other_views() -> None:
    assert "export default" in RowGrid._esm
    assert "mountExplorer" not in RowGrid._esm
    assert ".lnb" in RowGrid._css


def ask(session: Session, kind: str, **args: Any) -> dict[str, Any]:
    place = {"branch": None, "version": session.dataset.version}
    handlers = session.handlers() | RowGrid.answers(session)
    reply, _ = handle({"id": "1", "type": kind, "args": place | args}, handlers)
    return reply["result"] if reply["ok"] else reply["error"]


def test_a_filter_is_counted_paged_peeked_and_selected() -> None:
    session = Session(small_dataset())
    look = {"filter": "id < 7", "system": True}
    seen = ask(session, "rows.look", **look)
    assert (seen["num_rows"], seen["num_columns"]) == (7, 6)
    assert "filter='id < 7'" in seen["code"]["python"]
    window = {"offset": 5, "limit": 10, "first_column": 0, "num_columns": 10}
    page = ask(session, "rows", **window, **look)
    assert page["num_rows"] == 2
    assert page["columns"][-4]["name"] == "_rowid"
    assert ask(session, "cell", row=6, column=2, **look)["text"] == "6"
    assert "no row" in ask(session, "cell", row=7, column=2, **look)["message"]
    assert ask(session, "rows.row", row=6, **look)["nodes"][0]["text"] == "6"
    assert ask(session, "select", ranges=[[5, 7]], **look) == {"num_rows": 2}
    assert session.selection().column("id").to_pylist() == [5, 6]


def test_a_filter_that_cannot_be_used_says_why() -> None:
    found = ask(Session(small_dataset()), "rows.look", filter="nope")
    assert found["title"] == "This filter cannot be used"


def test_columns_are_found_by_a_part_of_their_name() -> None:
    names = [*(f"column {at}" for at in range(2000)), "Vector", "a vector"]
    session = Session(one_table(pa.table({name: [1] for name in names})))
    found = ask(session, "rows.columns", text="vec")
    assert [column["name"] for column in found["columns"]] == ["Vector", "a vector"]
    many = ask(session, "rows.columns", text="column")
    assert (len(many["columns"]), many["found"]) == (20, 2000)


def test_profiles_of_columns_are_made_from_a_sample() -> None:
    found = ask(Session(small_dataset()), "rows.profile", first=0, count=2, num_rows=25)
    assert [profile["kind"] for profile in found["profiles"]] == ["number", "text"]
