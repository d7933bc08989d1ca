from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lance_nb
from lance_nb.explorer.messages import Job, begin, handle
from lance_nb.explorer.rows.widget import RowGrid
from lance_nb.explorer.session import Session
from tests.support.explorer_samples import GIF
from tests.support.fake_dataset import one_table, small_dataset


def test_it_shows_its_part_alone_and_follows_a_journey() -> None:
    widget = RowGrid(small_dataset(), height=300)
    assert widget.height == 300
    assert "page" in widget.screen["rows"]
    widget.travel("dev:2")
    assert widget.screen["label"] == "dev:2"
    assert "page" in widget.screen["rows"]


def ask(session: Session, kind: str, **args: Any) -> dict[str, Any]:
    place = {"branch": None, "version": session.dataset.version}
    handlers = session.handlers() | RowGrid.request_handlers(session)
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
    assert "row 7 does not exist" in ask(session, "cell", row=7, column=2, **look)["message"]
    assert ask(session, "rows.row", row=6, **look)["nodes"][0]["text"] == "6"
    assert ask(session, "select", ranges=[[5, 7]], **look) == {"num_rows": 2}
    assert session.selection().column("id").to_pylist() == [5, 6]


def test_words_are_searched_for_marked_kept_and_exported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["a river", "stone", "<b>river</b> 😀 river", None]
    table = pa.table({"id": range(4), "text": texts})
    dataset = lance_nb.write_dataset(table, tmp_path / "a.lance")
    dataset.create_scalar_index("text", "INVERTED")
    session, search = Session(dataset), {"text": "river", "columns": None, "any": False}
    seen = ask(session, "rows.look", search=search)
    assert (seen["num_rows"], seen["num_columns"], seen["found_by"]) == (2, 3, "_score")
    assert seen["filter"] is None
    assert seen["search"]["ranked"]
    assert seen["search"]["columns"] == [{"raw": "text", "name": "text"}]
    lens = {"filter": None, "system": False, "arranged": seen["arranged"], "shown": None}
    window = {"offset": 0, "limit": 10, "first_column": 0, "num_columns": 10}
    page = ask(session, "rows", **window, **lens)
    assert page["columns"][2]["marks"] == {"0": [2, 7], "1": [3, 8, 16, 21]}
    assert ask(session, "cell", row=1, column=2, **lens)["marks"] == [3, 8, 16, 21]
    assert "marks" not in ask(session, "cell", row=0, column=1, **lens)
    again = ask(session, "rows.look", search=search, system=True, keep=seen["arranged"])
    assert (again["num_rows"], again["num_columns"], again["search"]["ranked"]) == (2, 7, True)
    both = ask(session, "rows.look", search=search, filter="id < 2")
    assert both["num_rows"] == 1
    scanned = ask(session, "rows.look", search=search | {"columns": []}, version=1)
    assert scanned["filter"] == scanned["search"]["condition"]
    assert scanned["found_by"] is None
    monkeypatch.chdir(tmp_path)
    done = ask(session, "rows.export", what="shown", name="found.parquet", **lens)
    assert pq.read_table(done["path"])["id"].to_pylist() == [0, 2]
    assert "row_ids=[0, 2]" in done["code"]["python"]
    like = ask(session, "rows.words", row=1, column=2, **lens)
    assert like["search"] == {"text": "river b", "columns": ["text"], "any": True}
    assert "not texts" in ask(session, "rows.words", row=1, column=1, **lens)["message"]
    near = {"like": "v1", "k": 3, "metric": "l2"}
    wrong = [7, {"text": 5}, {"text": "a", "any": 1}, {"text": "a", "columns": "text"}]
    for one in wrong:
        assert "message" in ask(session, "rows.look", search=one)
    assert "no longer cached" in ask(session, "rows.look", search=search, near=near)["message"]


def test_profiles_are_made_beside_what_a_person_does() -> None:
    session = Session(small_dataset())
    args = {"branch": None, "version": session.dataset.version, "first": 0, "count": 1}
    request = {"id": "1", "type": "rows.profile", "args": args | {"num_rows": 5}}
    assert isinstance(begin(request, RowGrid.request_handlers(session))[1], Job)


def test_rows_that_pass_are_profiled_in_the_bars_of_all_rows(tmp_path: Path) -> None:
    table = pa.table({"x": range(100), "label": ["a", "b"] * 50})
    session = Session(lance_nb.write_dataset(table, tmp_path / "d.lance"))
    ask(session, "rows.profile", first=0, count=2, num_rows=1)
    where = [[None, "x >= 10"], ["label", "label = 'a'"]]
    look = {"filter": "x >= 10 AND label = 'a'", "arranged": "p7"}
    found = ask(session, "rows.cross", columns=[0, 1], conditions=where, **look)
    assert (found["sampled"], found["passing"], found["num_rows"]) == (100, 45, 100)
    # The label stands before the number.
    assert [one["edges"] for one in found["profiles"]] == [None, [0.0, 99.0]]
    assert found["profiles"][0]["counts"] == [45, 45]
    exact = ask(session, "rows.exact", column=1, conditions=where, **look)["profile"]
    assert (exact["sampled"], sum(exact["counts"]), exact["edges"]) == (45, 45, [0.0, 99.0])
    for wrong in ("x", [["x"]], [[None, "x"]] * 65):
        assert "condition" in ask(session, "rows.cross", columns=[], conditions=wrong)["message"]
    assert "columns" in ask(session, "rows.cross", columns=[0] * 17, conditions=[])["message"]


def test_a_filter_that_cannot_be_used_says_why() -> None:
    found = ask(Session(small_dataset()), "rows.look", filter="nope")
    assert found["title"] == "This expression cannot be used"


def test_columns_are_found_by_a_part_of_their_name() -> None:
    names = [*(f"column {at}" for at in range(2000)), "Vector", "a vector"]
    session = Session(one_table(pa.table({name: [1] for name in names})))
    found = ask(session, "rows.columns", text="vec")
    assert [column["name"] for column in found["columns"]] == ["Vector", "a vector"]
    many = ask(session, "rows.columns", text="column")
    assert (len(many["columns"]), many["found"]) == (20, 2000)


def test_fields_within_structs_are_found_as_a_filter_names_them() -> None:
    people = [{"name": "a", "home": {"zip code": 1}}]
    session = Session(one_table(pa.table({"id": [1], "who": people, "name": ["b"]})))
    found = ask(session, "rows.columns", text="who.")["columns"]
    assert [one["sql"] for one in found] == ["who.name", "who.home", "who.home.`zip code`"]
    assert {one["at"] for one in found} == {2}
    assert [one["type"] for one in found][2] == "int64"
    named = ask(session, "rows.columns", text="name")["columns"]
    assert [one["sql"] for one in named] == ["name", "who.name"]


def test_profiles_of_columns_are_made_from_a_sample() -> None:
    found = ask(Session(small_dataset()), "rows.profile", first=0, count=2, num_rows=25)
    assert [profile["kind"] for profile in found["profiles"]] == ["number", "text"]


def stored() -> Any:
    table = pa.table({
        "id": range(60),
        "label": ["cat", "dog", "<b>"] * 20,
        "pic": [GIF, None] * 30,
        "v": pa.FixedSizeListArray.from_arrays(pa.array(range(240), pa.float32()), 4),
        "when": pa.array([at * 86_400 for at in range(60)], pa.timestamp("s")),
    })  # fmt: skip
    return lance_nb.write_dataset(table, "memory://rows-of-a-widget", mode="overwrite")


def test_rows_are_ordered_read_selected_and_copied_in_that_order() -> None:
    session = Session(stored())
    seen = ask(session, "rows.look", order=[{"column": "id", "ascending": False}])
    look = {"arranged": seen["arranged"]}
    window = {"offset": 0, "limit": 10, "first_column": 0, "num_columns": 10}
    assert ask(session, "rows", **window, **look)["num_rows"] == 10
    assert ask(session, "cell", row=0, column=0, **look)["text"] == "59"
    assert ask(session, "rows.row", row=1, **look)["nodes"][0]["text"] == "58"
    ask(session, "select", ranges=[[0, 2]], columns=[0, 2], **look)
    assert session.selection().to_pydict() == {"id": [59, 58], "label": ["<b>", "dog"]}
    copied = ask(session, "rows.text", ranges=[[0, 1], [3, 4]], columns=[0], **look)
    assert copied == {"text": "id\n59\n56", "rows": 2, "wanted": 2}
    table = ask(session, "rows.text", form="markdown", ranges=[[0, 1]], columns=[0, 2], **look)
    assert table["text"] == "| id | label |\n| --- | --- |\n| 59 | \\<b\\> |"
    assert "form must be" in ask(session, "rows.text", form="x", ranges=[], **look)["message"]
    profiles = ask(session, "rows.profile", first=0, count=3, num_rows=60, **look)["profiles"]
    assert [one["column"] for one in profiles] == [0, 2]
    assert "sort the rows again" in ask(session, "rows", **window, arranged="o77")["message"]


def test_chosen_columns_are_those_of_every_request() -> None:
    session = Session(stored())
    choice = {"pinned": ["v"], "shown": None, "hidden": ["pic"]}
    order = [{"column": "label", "ascending": False}, {"column": "id", "ascending": False}]
    seen = ask(session, "rows.look", choice=choice, order=order)
    assert (seen["num_columns"], seen["pinned"]) == (4, 1)
    lens = {"shown": seen["shown"], "arranged": seen["arranged"]}
    window = {"offset": 0, "limit": 10, "first_column": 0, "num_columns": 2}
    page = ask(session, "rows", **window, **lens)
    assert [one["name"] for one in page["columns"]] == ["v", "id"]
    assert ask(session, "cell", row=0, column=2, **lens)["text"] == "dog"
    ask(session, "select", ranges=[[0, 1]], columns=[1, 2], **lens)
    assert session.selection().to_pydict() == {"id": [58], "label": ["dog"]}
    # Other columns of the same rows: the order is not made again.
    again = ask(session, "rows.look", choice=None, order=order, keep=seen["arranged"])
    assert (again["num_columns"], again["pinned"], again["shown"]) == (5, 1, None)
    assert ask(session, "cell", row=0, column=0, arranged=again["arranged"])["text"] == "58"
    assert "choose them again" in ask(session, "rows", **window, shown="c99")["message"]


def test_columns_that_are_hidden_are_found_and_listed() -> None:
    session = Session(stored())
    shown = ask(session, "rows.look", choice={"shown": ["id", "label"]})["shown"]
    found = ask(session, "rows.columns", text="i", shown=shown)["columns"]
    assert [(one["raw"], one["at"]) for one in found] == [("id", 0), ("pic", None)]
    listed = ask(session, "rows.names", shown=shown)
    assert [one["raw"] for one in listed["columns"]] == ["id", "pic", "label", "v", "when"]
    assert (listed["total"], listed["groups"]) == (5, [])


@pytest.mark.parametrize(
    ("look", "ranges", "part"),
    [
        ({}, [[3, 5], [9, 10]], ".take([3, 4, 9])"),
        ({}, [[3, 50]], ".to_table(offset=3, limit=47)"),
        ({"filter": "id > 20"}, [[0, 39]], ".to_table(filter='id > 20')"),
        ({"filter": "id > 20"}, [[2, 5]], "filter='id > 20', offset=2, limit=3"),
        ({"filter": "id > 20"}, [[2, 3], [5, 6]], ".take_rows(["),
        ({"order": [{"column": "id", "ascending": False}]}, [[0, 3]], ".take_rows(["),
        ({"choice": {"shown": ["id"]}}, [[0, 3]], "columns=['id']"),
    ],
)
def test_the_code_of_a_selection_reads_the_same_rows(
    look: dict[str, Any], ranges: list[list[int]], part: str, tmp_path: Path
) -> None:
    session = Session(lance_nb.write_dataset(stored().to_table(), tmp_path / "a.lance"))
    seen = ask(session, "rows.look", **look)
    lens = {"arranged": seen["arranged"], "shown": seen["shown"], "filter": look.get("filter")}
    ask(session, "select", ranges=ranges, **lens)
    copied = ask(session, "rows.text", form="code", ranges=ranges, **lens)["text"]
    assert part in copied
    found = eval(copied, {"lance_nb": lance_nb})  # noqa: S307 - the line is ours
    assert found.equals(session.selection())


def test_code_is_refused_for_many_rows_that_are_sorted() -> None:
    session = Session(lance_nb.write_dataset(pa.table({"id": range(3000)}), "memory://many-rows"))
    seen = ask(session, "rows.look", order=[{"column": "id", "ascending": False}])
    args = {"arranged": seen["arranged"], "ranges": [[0, 2000]], "form": "code"}
    assert "at most 1,000 rows" in ask(session, "rows.text", **args)["message"]


def test_a_row_has_neighbours() -> None:
    session = Session(stored())
    like = ask(session, "rows.like", row=5, column=3)
    assert (like["column"], like["dimension"]) == ("v", 4)
    near = {"like": like["like"], "k": 3, "metric": "l2"}
    seen = ask(session, "rows.look", near=near)
    assert (seen["num_rows"], seen["num_columns"]) == (3, 6)
    assert ask(session, "cell", row=0, column=1, arranged=seen["arranged"])["text"] == "5"
    assert "no vectors" in ask(session, "rows.like", row=5, column=1)["message"]


def test_conditions_are_written_from_brushes_and_values() -> None:
    session = Session(stored())
    assert ask(session, "rows.range", column=0, low=2.5, high=7.5)["where"] == "id >= 3 AND id < 8"
    assert ask(session, "rows.range", column=0, odd="null")["where"] == "id IS NULL"
    day = ask(session, "rows.range", column=4, low=86_400_000, high=None, ms=True)
    assert day["where"] == "when >= timestamp '1970-01-02 00:00:00'".replace("when", "`when`")
    assert ask(session, "rows.value", row=2, column=2)["where"] == "label = '<b>'"
    others = ask(session, "rows.value", row=2, column=2, without=True)["where"]
    assert others == "(NOT (label = '<b>') OR label IS NULL)"
    assert session.dataset.count_rows(others) == 40
    assert ask(session, "rows.value", row=1, column=1, without=True)["where"] == "pic IS NOT NULL"
    assert "condition" in ask(session, "rows.value", row=0, column=1)["message"]
    wrong = ask(session, "rows.value", row=0, column=1, without=True)["message"]
    assert "condition" in wrong
    assert "number" in ask(session, "rows.range", column=0, low="x")["message"]
    assert "finite" in ask(session, "rows.range", column=0, low=float("inf"))["message"]
    profile = ask(session, "rows.exact", column=2)["profile"]
    assert (profile["exact"], profile["counts"]) == (True, [20, 20, 20])


def test_bytes_are_distinguished_and_travel_only_when_they_are_shown() -> None:
    session = Session(stored())
    handlers = RowGrid.request_handlers(session)
    args = {"branch": None, "version": session.dataset.version, "row": 0, "column": 1, "offset": 3}
    reply, buffers = handle({"id": "1", "type": "rows.media", "args": args}, handlers)
    assert (reply["result"]["mime"], buffers) == ("image/gif", [GIF[3:]])
    assert ask(session, "rows.media", row=1, column=1, offset=0) == {"null": True}
    assert "not binary" in ask(session, "rows.media", row=1, column=2, offset=0)["message"]
    assert ask(session, "cell", row=0, column=1)["bytes"] is True
    page = ask(session, "rows", offset=0, limit=2, first_column=0, num_columns=9)
    assert page["columns"][1]["pictures"] == "10"
    (small,) = ask(session, "rows.thumbs", row=0, count=2, column=1)["thumbs"]
    assert (small["at"], small["mime"]) == (0, "image/gif")
    assert "not binary" in ask(session, "rows.thumbs", row=0, count=2, column=2)["message"]
    assert "count" in ask(session, "rows.thumbs", row=0, count=99, column=1)["message"]


def test_columns_are_found_with_the_name_that_a_filter_wants() -> None:
    assert ask(Session(stored()), "rows.columns", text="wh")["columns"][0]["sql"] == "`when`"
