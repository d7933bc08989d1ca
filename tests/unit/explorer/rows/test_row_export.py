"""Rows of the grid written to the working folder, and the lines that do the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import lance_nb
from lance_nb.errors import InvalidInputError
from lance_nb.explorer.messages import handle
from lance_nb.explorer.rows.row_export import path_in_working_folder
from lance_nb.explorer.rows.widget import RowGrid
from lance_nb.explorer.session import Session

TABLE = pa.table({"id": range(50), "x": [at % 7 for at in range(50)], "t": ["a", "b"] * 25})
Ask = Callable[..., Any]


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    monkeypatch.chdir(tmp_path)
    ds = lance_nb.write_dataset(TABLE, "d.lance", max_rows_per_file=20)
    ds.delete("id = 7")
    return asking(ds)


def asking(ds: lance_nb.LanceDataset) -> Ask:
    """Return what asks the grid of a dataset."""
    session = Session(ds)
    handlers = session.handlers() | RowGrid.request_handlers(session)

    def send(kind: str, **args: Any) -> Any:
        place = {"branch": None, "version": ds.version}
        reply, _ = handle({"id": "1", "type": kind, "args": place | args}, handlers)
        return reply["result"] if reply["ok"] else reply["error"]

    return send


def same_by_code(result: Any, tmp_path: Path) -> None:
    """The line of Python writes the same rows to a file of that name elsewhere."""
    written = parquet.read_table(result["path"])
    Path(result["path"]).rename(tmp_path / "before")
    eval(result["code"]["python"], {"lance_nb": lance_nb})  # noqa: S307 -- ours, not a user's
    assert parquet.read_table(result["path"]).equals(written)
    (tmp_path / "before").unlink()


def test_what_the_grid_shows_is_written_in_its_order(ask: Ask, tmp_path: Path) -> None:
    found = ask("rows.export", what="shown", name="all.parquet")
    assert found["rows"] == 49
    assert found["path"] == str(tmp_path / "all.parquet")
    assert found["code"]["magic"] == "%lance export all.parquet main:2"
    same_by_code(found, tmp_path)
    look = {"filter": "t = 'a'", "choice": {"pinned": [], "shown": ["id", "x"], "hidden": []}}
    seen = ask("rows.look", **look)
    lens = {"filter": "t = 'a'", "arranged": seen["arranged"], "shown": seen["shown"]}
    found = ask("rows.export", what="shown", name="some.parquet", **lens)
    assert parquet.read_table("some.parquet").equals(
        TABLE.select(["id", "x"]).filter(pa.array([at % 2 == 0 for at in range(50)]))
    )
    assert found["code"]["magic"].endswith("--where \"t = 'a'\" --columns id,x")
    same_by_code(found, tmp_path)
    order = [{"column": "x", "ascending": False}, {"column": "id", "ascending": True}]
    seen = ask("rows.look", order=order, **look)
    lens["arranged"] = seen["arranged"]
    found = ask("rows.export", what="shown", name="sorted.parquet", order=order, **lens)
    assert parquet.read_table("sorted.parquet")["id"].to_pylist()[:4] == [6, 20, 34, 48]
    same_by_code(found, tmp_path)


def test_a_selection_and_changes_are_written(ask: Ask, tmp_path: Path) -> None:
    found = ask("rows.export", what="selected", name="one.parquet", ranges=[[5, 9]])
    assert parquet.read_table("one.parquet")["id"].to_pylist() == [5, 6, 8, 9]
    same_by_code(found, tmp_path)
    found = ask("rows.export", what="selected", name="two.parquet", ranges=[[40, 41], [1, 3]])
    assert parquet.read_table("two.parquet")["id"].to_pylist() == [1, 2, 41]
    same_by_code(found, tmp_path)
    before = {"branch": None, "version": 1}
    found = ask("rows.export", what="changes", name="diff.parquet", a=before)
    assert parquet.read_table("diff.parquet").select(["_change", "id"]).to_pylist() == [
        {"_change": "removed", "id": 7}
    ]
    assert found["code"]["magic"] == "%lance export diff.parquet main:2 --since main:1"
    same_by_code(found, tmp_path)


def test_only_new_files_in_the_working_folder_are_written(ask: Ask, tmp_path: Path) -> None:
    ask("rows.export", what="shown", name="all.parquet")
    assert "exists already" in ask("rows.export", what="shown", name="all.parquet")["message"]
    (tmp_path / "inside").mkdir()
    (tmp_path / "link").symlink_to("/")
    assert path_in_working_folder("inside/a.csv") == tmp_path / "inside" / "a.csv"
    for name in ("", " ", "../a.csv", "/tmp/a.csv", "inside/../../a.csv", "link/a.csv", "a\0.csv",
                 "a\n.csv", "a\u202e.csv", "x" * 201):  # fmt: skip
        with pytest.raises(InvalidInputError, match="working folder"):
            path_in_working_folder(name)
    for wrong in ({"what": "all"}, {"what": "changes"}, {"what": 3}):
        assert "must be" in ask("rows.export", **{"name": "b.csv", **wrong})["message"]
    assert "working folder" in ask("rows.export", what="shown", name="../b.csv")["message"]


def test_a_stored_distance_is_a_column_like_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table = pa.table({"_distance": [3.5, 1.5], "id": [1, 2]})
    ask = asking(lance_nb.write_dataset(table, "far.lance"))
    found = ask("rows.export", what="shown", name="far.parquet")
    assert parquet.read_table("far.parquet").equals(table)
    same_by_code(found, tmp_path)
