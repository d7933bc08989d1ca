"""The requests of the wall: tiles within a budget of bytes, sections, and what is staged."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.explorer.messages import handle
from lance_nb.explorer.pictures import picture_wall
from lance_nb.explorer.pictures.widget import PictureWall
from lance_nb.explorer.rows.widget import RowGrid
from lance_nb.explorer.session import Session
from lance_nb.explorer.stage.edit_forms import EditForm
from tests.support.pictures import check_picture, texts_of

ROWS = 60


def png(width: int, height: int) -> bytes:
    """Return the head of a picture, which tells its size, and some bytes."""
    head = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", width, height)
    return head + bytes(20 + height)


def rows(ids: np.ndarray, shift: int = 0) -> pa.Table:
    kinds = ids % 3
    vectors = np.eye(3, 8, dtype=np.float32)[kinds] * 4
    vectors[:, 3:] += np.random.default_rng(3).normal(size=(len(ids), 5)).astype(np.float32)
    images = [None if one == 7 else png(8, 4 + (one + shift) % 9) for one in ids.tolist()]
    return pa.table({
        "id": ids, "label": pa.array(["a'b", "<i>", "c"]).take(pa.array(kinds)),
        "image": pa.array(images, pa.binary()), "raw": pa.array([b"\0"] * len(ids)),
        "v": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 8),
    })  # fmt: skip


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """60 rows, of which 2 are copies, 1 has a wrong label; then 3 go and 2 change."""
    first = rows(np.arange(ROWS))
    vectors = np.stack(first["v"].to_pylist()).astype(np.float32)
    vectors[58], vectors[59] = vectors[1], vectors[2]
    labels = first["label"].to_pylist()
    labels[30] = "c"
    first = first.set_column(1, "label", pa.array(labels))
    first = first.set_column(4, "v", pa.FixedSizeListArray.from_arrays(
        pa.array(vectors.ravel()), 8))  # fmt: skip
    path = str(tmp_path / "d.lance")
    ds = lance_nb.write_dataset(first, path, enable_stable_row_ids=True)
    ds.delete("id IN (10, 11, 12)")
    ds.merge_insert("id").when_matched_update_all().execute(rows(np.array([20, 21]), 5))
    return Session(lance_nb.dataset(path))


def ask(session: Session, request: str, /, **args: Any) -> tuple[Any, list[bytes]]:
    handlers = PictureWall.request_handlers(session) | RowGrid.request_handlers(session)
    at = {"branch": None, "version": 3}
    reply, buffers = handle({"id": "1", "type": request, "args": at | args}, handlers)
    return (reply["result"] if reply["ok"] else reply["error"]), buffers


def test_a_tab_is_offered_where_there_are_pictures(session: Session, tmp_path: Path) -> None:
    assert session.screen(())["offers"] == ["pictures", "map", "search"]
    plain = lance_nb.write_dataset(
        pa.table({"raw": pa.array([b"\0" * 20], pa.binary())}), str(tmp_path / "plain.lance")
    )
    assert Session(plain).screen(())["offers"] == []
    columns, _ = ask(session, "wall.columns")
    assert columns["pictures"] == [{"raw": "image", "label": "image", "at": 1}]  # after the key
    assert columns["vectors"] == [{"raw": "v", "label": "v", "at": 3, "metric": "cosine"}]
    assert [one["raw"] for one in columns["labels"]] == ["id", "label"]


def test_tiles_have_captions_and_pictures(session: Session) -> None:
    found, sent = ask(session, "wall.tiles", column="image", caption="label", row=5, count=4)
    tiles = found["tiles"]
    assert [one["row"] for one in tiles] == [5, 6, 7, 8]
    assert [one["caption"] for one in tiles] == ["c", "a'b", "<i>", "c"]
    assert [one["picture"] for one in tiles] == [True, True, False, True]
    assert [len(one) for one in sent] == [len(png(8, 4 + at % 9)) for at in (5, 6, 8)]
    assert found["at"] == 1  # after the key
    last, _ = ask(session, "wall.tiles", column="image", row=56, count=24)
    assert len(last["tiles"]) == 1
    wrong, _ = ask(session, "wall.tiles", column="id", row=0, count=4)
    assert "not binary" in wrong["message"]
    assert "24" in ask(session, "wall.tiles", column="image", row=0, count=25)[0]["message"]


def test_pictures_beyond_the_budget_are_sent_later(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(picture_wall, "ANSWER_BYTES", 2 * len(png(8, 4)))
    found, sent = ask(session, "wall.tiles", column="image", row=0, count=5)
    states = [(one["picture"], one["later"]) for one in found["tiles"]]
    assert states[0] == (True, False)
    assert (False, True) in states
    assert len(sent) == sum(picture for picture, _ in states)
    monkeypatch.setattr(picture_wall, "TILE_BYTES", 10)
    found, sent = ask(session, "wall.tiles", column="image", row=0, count=2)
    assert not sent
    assert not found["tiles"][0]["later"]  # too large for a tile


def test_blobs_are_tiles_too(tmp_path: Path) -> None:
    field = pa.field("image", pa.large_binary(), metadata={b"lance-encoding:blob": b"true"})
    table = pa.table([pa.array([png(8, 8), None, png(9, 9)], pa.large_binary())],
                     schema=pa.schema([field]))  # fmt: skip
    blobs = Session(lance_nb.write_dataset(table, str(tmp_path / "blobs.lance")))
    assert blobs.screen(())["offers"] == ["pictures"]
    found, sent = ask(blobs, "wall.tiles", version=1, column="image", row=0, count=3)
    assert [one["picture"] for one in found["tiles"]] == [True, False, True]
    assert sent == [png(8, 8), png(9, 9)]


def test_rows_are_grouped_by_a_column(session: Session) -> None:
    looked, _ = ask(session, "rows.look", filter="id < 30")
    lens = {"filter": "id < 30", "arranged": looked["arranged"]}
    found, _ = ask(session, "wall.groups", column="label", **lens)
    assert [(one["title"], one["count"]) for one in found["sections"]] == [
        ("a'b", 9), ("<i>", 9), ("c", 9)
    ]  # fmt: skip
    second = found["sections"][1]
    tiles, _ = ask(session, "wall.tiles", column="image", caption="label",
                   arranged=found["arranged"], row=second["first"], count=9)  # fmt: skip
    assert {one["caption"] for one in tiles["tiles"]} == {"<i>"}
    assert "binary" in ask(session, "wall.groups", column="image")[0]["message"]


def test_too_many_rows_and_groups_are_refused(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(picture_wall, "MAX_SECTIONS", 20)
    assert "another column" in ask(session, "wall.groups", column="id")[0]["message"]
    monkeypatch.setattr(picture_wall, "MAX_GROUPED", 20)
    assert "filter them" in ask(session, "wall.groups", column="label")[0]["message"]


def test_near_duplicates_are_groups_of_which_all_but_one_can_go(session: Session) -> None:
    found, _ = ask(session, "wall.duplicates", vectors="v", threshold=0.0001)
    assert [(one["first"], one["count"]) for one in found["sections"]] == [(0, 2), (2, 2)]
    assert ".near_duplicates('v', threshold=0.0001)" in found["code"]["python"]
    assert found["code"]["magic"] == "%lance duplicates --by v --threshold 0.0001"
    lens = {"arranged": found["arranged"]}
    rest, _ = ask(session, "wall.condition", ranges=[[1, 2], [3, 4]], **lens)
    assert rest == {"where": "_rowid IN (58, 59)", "rows": 2}
    dataset = session.dataset.checkout_version((None, None))
    dataset.delete(EditForm.of("delete", {"where": rest["where"]}).args["where"])
    assert dataset.count_rows("id IN (58, 59)") == 0
    refused, _ = ask(session, "wall.condition", ranges=[[1, 2]], **lens)
    assert "newest version" in refused["message"]


def test_doubtful_labels_are_sections_with_the_literal_that_mends_them(session: Session) -> None:
    found, _ = ask(session, "wall.doubts", vectors="v", label="label")
    assert found["code"]["magic"] == "%lance doubts label --by v"
    (section,) = found["sections"]
    assert (section["title"], section["count"]) == ("c → a'b", 1)
    assert section["edit"] == {"column": "label", "value": "'a''b'", "label": "a'b"}
    picked, _ = ask(session, "wall.condition", ranges=[[0, 1]], arranged=found["arranged"])
    dataset = session.dataset.checkout_version((None, None))
    dataset.update({"label": section["edit"]["value"]}, where=picked["where"])
    assert dataset.to_table(filter="id = 30")["label"].to_pylist() == ["a'b"]


def test_many_rows_are_not_staged_in_one_card(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(picture_wall, "MAX_STAGED", 3)
    assert "at most 3" in ask(session, "wall.condition", ranges=[[0, 9]])[0]["message"]
    assert "no row" in ask(session, "wall.condition", ranges=[])[0]["message"]


def test_changes_are_pictures_that_arrived_went_or_differ(session: Session) -> None:
    ends = {"a": {"branch": None, "version": 1}, "b": {"branch": None, "version": 3}}
    found, _ = ask(session, "wall.changes", column="image", key=None, **ends)
    assert found["words"] == "main:1 → main:3: 0 arrived, 3 removed, 2 changed"
    gone, _ = ask(session, "wall.tiles", version=1, column="image", caption="id", row=0, count=3,
                  arranged=found["removed"]["arranged"])  # fmt: skip
    assert [one["caption"] for one in gone["tiles"]] == ["10", "11", "12"]
    pairs, sent = ask(session, "wall.changed", column="image", key=None, row=0, count=2, **ends)
    assert [[one["row"] for one in pair] for pair in pairs["pairs"]] == [[0, 0], [1, 1]]
    assert sent == [png(8, 4 + (at + shift) % 9) for at in (20, 21) for shift in (0, 5)]


def test_the_static_picture_shows_what_is_in_sight(session: Session) -> None:
    wall = PictureWall(session.dataset)
    before = wall.to_svg()
    check_picture(before)
    assert before.count("<image") > 10
    place = {"branch": None, "version": 3}
    said = {"pictures": {"place": place, "column": "image", "caption": "label", "row": 55,
                         "words": "57 rows"}}  # fmt: skip
    wall._open_session().on_screen = said
    shown = texts_of(wall.to_svg())
    assert "57 rows" in " ".join(shown)
    assert wall.to_svg().count("<image") == 2
