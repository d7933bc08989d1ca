from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import CancelledError, InvalidInputError
from lance_nb.explorer.map import picture as maps
from lance_nb.explorer.map import placed_map
from lance_nb.explorer.map.neighbour_layout import NeighbourLayout
from lance_nb.explorer.map.widget import EmbeddingMap
from lance_nb.explorer.messages import handle
from lance_nb.explorer.rows.widget import RowGrid
from lance_nb.explorer.session import RecentAnswers, Session
from lance_nb.explorer.stage.card import ProgressReporter
from lance_nb.explorer.stage.card_view import card_json
from lance_nb.explorer.stage.staging_area import staging_area_of
from tests.support.pictures import check_picture, texts_of


@pytest.fixture
def session(tmp_path: Any) -> Session:
    random = np.random.default_rng(2)
    values = pa.array(random.normal(size=500 * 4).astype(np.float32))
    table = pa.table({"id": range(500), "kind": ["a", "b"] * 250, "raw": [b"\x00"] * 500,
                      "vector": pa.FixedSizeListArray.from_arrays(values, 4)})  # fmt: skip
    ds = lance_nb.write_dataset(table, str(tmp_path / "d.lance"), enable_stable_row_ids=True)
    ds.delete("id < 20")
    return Session(lance_nb.dataset(str(tmp_path / "d.lance")))


def ask(session: Session, request: str, /, **args: Any) -> tuple[dict[str, Any], list[bytes]]:
    handlers = EmbeddingMap.request_handlers(session) | RowGrid.request_handlers(session)
    at = {"branch": None, "version": 2}
    reply, buffers = handle({"id": "1", "type": request, "args": at | args}, handlers)
    return (reply["result"] if reply["ok"] else reply["error"]), buffers


def place(session: Session, **args: Any) -> dict[str, Any]:
    return ask(session, "map.place", column="vector", colour="kind",
               **{"layout": "components"} | args)[0]  # fmt: skip


def test_a_tab_is_offered_where_there_are_vectors(session: Session, tmp_path: Any) -> None:
    assert session.screen(())["offers"] == ["map", "search"]
    plain = lance_nb.write_dataset(pa.table({"id": [1]}), str(tmp_path / "plain.lance"))
    assert Session(plain).screen(())["offers"] == []
    columns, _ = ask(session, "map.columns")
    assert [one["raw"] for one in columns["vectors"]] == ["vector"]
    assert [one["raw"] for one in columns["colours"]] == ["id", "kind"]
    assert [one["raw"] for one in columns["sizes"]] == ["id"]
    assert columns["stable"] is True


def test_points_travel_in_pieces_that_are_samples(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placed_map, "PIECE_POINTS", 200)
    found = place(session)
    assert (found["num_points"], found["pieces"]) == (480, 3)
    assert found["words"].startswith("480 points of 480 rows; 2 principal components of vector")
    whole = np.zeros((480, 2), np.uint16)
    for piece in range(3):
        _, (xy, codes) = ask(session, "map.piece", key=found["key"], piece=piece)
        whole[piece::3] = np.frombuffer(xy, np.uint16).reshape(-1, 2)
        assert len(codes) == len(xy) // 4
    kept = session.keep(RecentAnswers).placed_map
    assert kept is not None
    assert np.array_equal(whole, kept.points.xy)
    assert "no longer cached" in ask(session, "map.piece", key="m9", piece=0)[0]["message"]


def test_an_outline_becomes_rows_of_the_grid(session: Session) -> None:
    key = place(session)["key"]
    corners = [[0, 0], [65535, 0], [65535, 32000], [0, 32000]]
    found, (bits,) = ask(session, "map.lasso", key=key, polygon=corners)
    chosen = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")[:480]
    assert 0 < found["num_rows"] == int(chosen.sum()) < 480
    within = {"rows": found["rows"], "label": found["label"]}
    looked, _ = ask(session, "rows.look", filter=None, within=within)
    assert looked["num_rows"] == found["num_rows"]
    wrong = ask(session, "map.lasso", key=key, polygon=[[0, 0], [1, "x"], [2, 2]])[0]
    assert "pair of numbers" in wrong["message"]
    assert "3 to 256" in ask(session, "map.lasso", key=key, polygon=[])[0]["message"]


def test_groups_are_rows_of_the_version_that_has_them(session: Session) -> None:
    key = place(session)["key"]
    by_colour, _ = ask(session, "map.group", key=key, kind="code", code=0)
    assert (by_colour["num_rows"], by_colour["version"]) == (240, 2)
    refused = ask(session, "map.group", key=key, kind="removed")[0]
    assert "not compared" in refused["message"]
    found, buffers = ask(session, "map.compare", key=key, version=1, match=None)
    assert found["counts"] == {
        "arrived": 0, "removed": 20, "moved": 0, "relabelled": 0, "same": 480
    }  # fmt: skip
    assert found["words"] == "rows matched by their stable row ids"
    assert [len(one) for one in buffers] == [480, 80, 0]
    assert found["groups"] == {
        code: {"arrived": 0, "moved": 0, "relabelled": 0, "removed": 10} for code in ("0", "1")
    }
    removed, _ = ask(session, "map.group", key=key, kind="removed")
    assert (removed["num_rows"], removed["version"]) == (20, 1)
    by_key, _ = ask(session, "map.compare", key=key, version=1, match="id")
    assert by_key["counts"] == found["counts"]


def test_a_point_is_a_row(session: Session) -> None:
    key = place(session)["key"]
    found, _ = ask(session, "map.point", key=key, index=3)
    assert [one["text"] for one in found["cells"]][:2] == ["23", "b"]
    assert "no point 480" in ask(session, "map.point", key=key, index=480)[0]["message"]


def test_colours_change_without_placing_again(session: Session) -> None:
    key = place(session)["key"]
    found, (codes,) = ask(session, "map.colour", key=key, colour="id")
    assert (found["colouring"]["kind"], len(codes)) == ("number", 480)
    plain, (codes,) = ask(session, "map.colour", key=key, colour=None)
    assert (plain["colouring"]["kind"], set(codes)) == ("plain", {0})


def test_sizes_travel_with_the_points_and_change_without_placing_again(session: Session) -> None:
    found = place(session, size="id")
    assert found["sizing"]["words"] == "id, 24.79 to 494.21"
    _, buffers = ask(session, "map.piece", key=found["key"], piece=0)
    assert [len(one) for one in buffers] == [4 * 480, 480, 480]
    sizes = np.frombuffer(buffers[2], np.uint8)
    assert (np.diff(sizes.astype(int)) >= 0).all()
    assert (sizes[0], sizes[-1]) == (1, 255)
    svg = EmbeddingMap(session.dataset)
    svg._open_session().keep(RecentAnswers).placed_map = session.keep(RecentAnswers).placed_map
    picture = svg.to_svg()
    check_picture(picture)
    assert "size: id, 24.79 to 494.21" in " ".join(texts_of(picture))
    assert len(set(re.findall(r'<rect[^>]* width="([\d.]+)" height="\1"', picture))) > 40
    plain, buffers = ask(session, "map.size", key=found["key"], size=None)
    assert (plain, buffers) == ({"sizing": None}, [])
    again, (codes,) = ask(session, "map.size", key=found["key"], size="id")
    assert (again["sizing"]["raw"], codes) == ("id", sizes.tobytes())
    refused, _ = ask(session, "map.size", key=found["key"], size="kind")
    assert "cannot be sized by 'kind'" in refused["message"]


def test_the_picture_has_the_points_that_were_placed(session: Session) -> None:
    widget = EmbeddingMap(session.dataset)
    place(widget._open_session())
    svg = widget.to_svg()
    check_picture(svg)
    said = " ".join(texts_of(svg))
    assert "480 points of 480 rows" in said
    assert "a (240)" in said
    assert svg.count("<rect") > 480
    assert {"a", "b"} & set(texts_of(svg))  # a name on the map; the legend has counts


def test_coordinates_are_staged_as_a_column_on_a_branch(session: Session) -> None:
    first = place(session)
    refused = ask(session, "map.stage", key=first["key"], name="xy", branch="try")[0]
    assert "locked" in refused["message"]
    session.lock(locked=False)
    refused = ask(session, "map.stage", key=first["key"], name="kind", branch="try")[0]
    assert "there is a column 'kind' already" in refused["message"]
    assert session.dataset.branches.names() == []
    staged, _ = ask(session, "map.stage", key=first["key"], name="xy", branch="try")
    card = staging_area_of(session.dataset).card(staged["card"])
    assert (card.dataset.branch, card.state) == ("try", "ready")
    shown = card_json(card)
    assert shown["title"] == "Add column xy: coordinates on the map of vector"
    assert shown["code"]["python"] == "ds.stage().add_columns(coordinates).commit()"
    with pytest.raises(InvalidInputError, match="stage them again from the map"):
        card.rerun(ProgressReporter())
    assert card.stage is not None
    card.stage.commit()
    opened = Session(session.dataset.checkout_version(("try", None)))
    at = {"branch": "try", "version": opened.dataset.version}
    columns = ask(opened, "map.columns", **at)[0]
    assert columns["stored"] == [{"raw": "xy", "label": "xy", "vector": "vector"}]
    assert [one["raw"] for one in columns["vectors"]] == ["vector"]
    again = place(opened, layout="column:xy", **at)
    assert "coordinates kept in the column xy" in again["words"]
    pieces = [ask(one, "map.piece", key=key, piece=0)[1][0] for one, key in (
        (session, first["key"]), (opened, again["key"]))]  # fmt: skip
    both = [np.frombuffer(one, np.uint16).astype(int) for one in pieces]
    assert np.abs(both[0] - both[1]).max() <= 1
    # On the branch itself a column is added to its newest version only.
    opened.lock(locked=False)
    old = place(opened, branch=None, version=1)
    refused = ask(opened, "map.stage", key=old["key"], name="b", branch=None)[0]
    assert "to the newest version of a branch" in refused["message"]


def test_a_branch_is_not_left_behind_when_nothing_is_staged(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.lock(locked=False)
    key = place(session)["key"]

    def fail(*_args: Any) -> None:
        raise CancelledError("cancelled")

    monkeypatch.setattr("lance_nb.explorer.map.widget.coordinate_batches", fail)
    assert "cancelled" in ask(session, "map.stage", key=key, name="xy", branch="try")[0]["message"]
    assert session.dataset.branches.names() == []


def test_the_picture_of_some_points_has_all_kinds_of_them(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maps, "MAX_POINTS", 240)  # the kinds take turns
    widget = EmbeddingMap(session.dataset)
    place(widget._open_session())
    drawn = re.findall(r'<rect[^>]* width="2.4"[^>]* fill="([^"]+)"', widget.to_svg())
    assert len(drawn) == 240
    assert sorted(drawn.count(colour) > 80 for colour in set(drawn)) == [True, True]


def test_versions_share_the_layout_of_a_column(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(1)
    made = []

    def fit(_source: Any, column: str, _progress: Any) -> NeighbourLayout:
        made.append(column)
        references = random.normal(size=(200, 4)).astype(np.float32)
        return NeighbourLayout.of(column, references, references[:, :2])

    monkeypatch.setattr("lance_nb.explorer.map.widget.fit_layout", fit)
    first = place(session, layout="neighbours")
    assert (first["layout"], first["words"][:25]) == ("neighbours", "480 points of 480 rows; U")
    # An earlier version has the same layout.
    compared, _ = ask(session, "map.compare", key=first["key"], version=1, match=None)
    assert (compared["counts"]["removed"], compared["counts"]["moved"]) == (20, 0)
    assert made == ["vector"]
    assert "layout must be" in place(session, layout="spiral")["message"]
