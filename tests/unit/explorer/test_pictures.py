from __future__ import annotations

import base64
import struct
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import DatasetNotFoundError
from lance_nb.explorer.app import Explorer
from lance_nb.explorer.registry import VIEWS, DeletionMap, DiffView, StagePanel, ValueView
from lance_nb.explorer.rows import picture as rows_picture
from lance_nb.explorer.session import Session
from lance_nb.explorer.widget import LanceWidget
from tests.support.explorer_datasets import changed_dataset, worn_dataset
from tests.support.fake_dataset import hostile_dataset, many_versions, small_dataset
from tests.support.markup_payloads import PAYLOADS
from tests.support.pictures import check_picture, texts_of


def words(svg: str) -> str:
    check_picture(svg)
    return " ".join(texts_of(svg))


def ask(widget: LanceWidget, kind: str, **args: Any) -> dict[str, Any]:
    """Send a request as the browser does, and return the result."""
    sent: list[Any] = []
    widget.send = lambda content, **_buffers: sent.append(content)
    widget._on_message(widget, {"id": "1", "type": kind, "args": args}, [])
    assert sent[-1]["ok"], sent[-1]
    result: dict[str, Any] = sent[-1]["result"]
    return result


@pytest.fixture(autouse=True)
def jobs_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LanceWidget, "jobs_beside", False)


@pytest.fixture
def worn(tmp_path: Path) -> Any:
    return worn_dataset(tmp_path / "worn.lance")


@pytest.fixture(scope="module")
def changed() -> Any:
    return changed_dataset()


EXPECTED = {
    "Overview": ("worn.lance", "main:6", "270 rows"),
    "Timeline": ("6 versions on 1 branch", "v1", "Rows added", "Rows deleted"),
    "VersionDetail": ("Version main:6", "Project"),
    "SchemaTree": ("3 columns", "vector"),
    "FragmentMap": ("3 fragments", "10.0 % deleted"),
    "DeletionMap": ("fragment 1: 30 of 100 rows",),
    "SpaceView": ("current", "bookkeeping", "tag v1"),
    "RowGrid": ("rows 0 – 11 of 270", "id", "0 – 299"),
    "DiffView": ("main:5 → main:6", "Schema", "−1"),
    "EmbeddingMap": ("Map", "placed when the tab of the map is opened"),
    "PictureWall": ("Pictures", "read when their tab is opened"),
    "StorageView": ("Fragments", "Deleted rows", "Advice", "Space"),
    "RefsManager": ("1 branch, 1 tag", "v1", "main:2"),
    "ExpectationsPanel": ("0 expectations", "the gate is open"),
    "StagePanel": ("Nothing is staged.",),
    "OperationsLogView": ("Nothing was done from here.",),
}


def test_every_view_draws_itself(worn: Any) -> None:
    assert set(EXPECTED) == set(VIEWS)
    for name, view in VIEWS.items():
        svg = view(worn).to_svg()
        said = " ".join(words(svg).split())
        for expected in EXPECTED[name]:
            assert expected in said, (name, expected, said)
        assert f"{name} of worn.lance at main:6" in svg
        assert len(svg) < 60_000, name


@pytest.mark.parametrize("payload", PAYLOADS, ids=range(len(PAYLOADS)))
def test_no_name_and_no_value_becomes_markup(payload: str) -> None:
    dataset = hostile_dataset(payload)
    for source in (dataset, dataset.checkout_version((payload, None))):
        for on_screen in ({}, {"tab": "refs"}, {"tab": "rows", "rows": {"filter": payload}}):
            explorer = Explorer(source)
            explorer._open_session().on_screen = on_screen
            check_picture(explorer.to_svg())
    error = DatasetNotFoundError(payload)
    check_picture(Explorer(error).to_svg())


def test_what_is_saved_is_what_was_on_screen(worn: Any) -> None:
    explorer = Explorer(worn)
    assert "rows 0 – 11 of 270" in words(explorer.to_svg())
    ask(explorer, "shown", tab="storage", storage={"fragment": 1})
    said = words(explorer.to_svg())
    assert "Fragment 1" in said
    assert "rows 0 – 11" not in said
    ask(explorer, "travel", branch=None, version=2)
    ask(explorer, "shown", tab="rows", rows={"row": 40})
    said = words(explorer.to_svg())
    assert "main:2" in said
    assert "rows 40 – 51 of 200" in said
    looked = ask(explorer, "rows.look", branch=None, version=2, filter="id > 195", system=False)
    ask(explorer, "shown", tab="rows", rows={
        "filter": "id > 195", "system": False, "arranged": looked["arranged"], "row": 0,
    })  # fmt: skip
    said = words(explorer.to_svg())
    assert "filter: id > 195" in said
    assert "rows 0 – 3 of 4 that pass" in said
    assert "row 199" in said


def test_a_page_that_was_sent_is_not_read_again(worn: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    explorer = Explorer(worn)
    window = {"offset": 100, "limit": 50, "first_column": 0, "num_columns": 10}
    ask(explorer, "rows", branch=None, version=6, **window)
    ask(explorer, "shown", tab="rows", rows={"row": 120, "filter": None, "system": False})
    monkeypatch.setattr(rows_picture, "row_page", lambda *_args, **_more: pytest.fail("read again"))
    assert "rows 120 – 131 of 270" in words(explorer.to_svg())


def test_words_that_were_searched_for_are_marked(tmp_path: Path) -> None:
    texts = ["🐦 a grey heron <b>", "no bird", None, "heron, heron"]
    made = lance_nb.write_dataset(pa.table({"text": texts}), tmp_path / "a.lance")
    explorer = Explorer(made)
    look = {"filter": None, "system": False, "order": None, "near": None, "within": None}
    search = {"text": "heron", "columns": None, "any": False}
    found = ask(explorer, "rows.look", branch=None, version=1, **look, search=search)
    rows = {"row": 0, "filter": found["filter"], "arranged": found["arranged"], "system": False}
    ask(explorer, "shown", tab="rows", rows=rows)
    svg = explorer.to_svg()
    root = check_picture(svg)
    marked = [one.text for one in root.iter("{http://www.w3.org/2000/svg}tspan")]
    assert marked == ["heron"] * 3
    said = texts_of(svg)
    assert {"🐦 a grey heron <b>", "heron, heron", "search: heron"} <= set(said)


LEVELS = {
    "drift": "PSI",
    "schema": "Nothing differs here.",
    "transactions": "Delete",
    "fragments": "fragment",
    "deletions": "Deletions",
    "indices": "Nothing differs here.",
    "config": "Nothing differs here.",
}


def test_changes_are_drawn_with_the_ends_and_the_level_on_screen(changed: Any) -> None:
    explorer = Explorer(changed)
    ends = {"a": {"branch": None, "version": 1}, "b": {"branch": None, "version": 3}}
    ask(explorer, "shown", tab="changes", changes={**ends, "level": None})
    said = words(explorer.to_svg())
    assert "main:1 → main:3" in said
    assert "A" in texts_of(explorer.to_svg())  # on the timeline
    assert "changed" in said
    assert "removed" in said
    assert "fox" in said
    for level, expected in LEVELS.items():
        ask(explorer, "shown", tab="changes", changes={**ends, "level": level})
        assert expected in words(explorer.to_svg()), level


def test_old_and_new_values_stand_above_each_other(changed: Any) -> None:
    said = words(DiffView(changed.diff(1, 2)).to_svg())
    assert "~" in said
    assert "5 bird fox 1.25 101.25" in said


def test_what_is_staged_is_drawn_card_by_card(tmp_path: Path) -> None:
    dataset = worn_dataset(tmp_path / "worn.lance")
    said = words(StagePanel(dataset.stage().delete("id < 20")).to_svg())
    assert "1 card" in said
    assert "−20" in said
    assert "Staged in code" in said


@pytest.mark.parametrize(
    "on_screen",
    [
        {"tab": 7},
        {"tab": "nothing"},
        {"tab": "rows", "rows": {"row": -1}},
        {"tab": "rows", "rows": {"row": "9"}},
        {"tab": "rows", "rows": {"filter": 5}},
        {"tab": "rows", "rows": {"arranged": "o99"}},
        {"tab": "rows", "rows": [1]},
        {"tab": "changes", "changes": {"a": {"version": "x"}, "level": "rows"}},
        {"tab": "changes", "changes": {"level": "nothing"}},
        {"tab": "changes", "changes": {"a": {"branch": None, "version": 99}}},
        {"tab": "storage", "storage": {"fragment": 10**9}},
    ],
)
def test_whatever_the_browser_says_there_is_a_picture(worn: Any, on_screen: Any) -> None:
    explorer = Explorer(worn)
    ask(explorer, "shown", **on_screen)
    words(explorer.to_svg())


def png(shade: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        check = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)

    head = struct.pack(">IIBBBBB", 4, 4, 8, 0, 0, 0, 0)
    pixels = zlib.compress((b"\0" + bytes([shade]) * 4) * 4)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", pixels) + chunk(
        b"IEND", b"")  # fmt: skip


def test_thumbnails_vectors_and_profiles_are_drawn(tmp_path: Path) -> None:
    columns: dict[str, Any] = {f"c{at}": range(30) for at in range(12)}
    columns["photo"] = [png(at) for at in range(30)]
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(range(240), pa.float32()), 8)
    table = pa.table(columns | {"vector": vectors})
    dataset = lance_nb.write_dataset(table, tmp_path / "photos.lance")
    root = check_picture(Explorer(dataset).to_svg())
    tags = [one.tag.rpartition("}")[2] for one in root.iter()]
    assert tags.count("image") == rows_picture.MAX_IMAGE_ROWS
    assert tags.count("polyline") == rows_picture.MAX_IMAGE_ROWS
    said = " ".join(one.text or "" for one in root.iter())
    assert "photo" in said
    assert "column c0 from 0 to 29: 30 distinct" in said


def test_pictures_that_changed_are_drawn_before_and_after(tmp_path: Path) -> None:
    table = pa.table({"id": range(5), "photo": [png(at) for at in range(5)], "n": range(5)})
    dataset = lance_nb.write_dataset(table, tmp_path / "p.lance", enable_stable_row_ids=True)
    changed = table.slice(2, 1).set_column(1, "photo", pa.array([png(99)]))
    dataset.merge_insert("id").when_matched_update_all().execute(changed)
    dataset.delete("id = 4")
    explorer = Explorer(lance_nb.dataset(dataset.uri))
    ask(explorer, "shown", tab="changes", changes={"a": {"branch": None, "version": 1}})
    root = check_picture(explorer.to_svg())
    images = [one for one in root.iter() if one.tag.endswith("image")]
    sources = [next(v for k, v in one.attrib.items() if k.endswith("href")) for one in images]
    encoded = [base64.b64encode(png(shade)).decode() for shade in (2, 99, 4)]
    assert [source.rpartition(",")[2] for source in sources] == encoded
    assert sources[0] != sources[1]
    left, right = (float(one.attrib["x"]) for one in images[:2])
    assert 44 < right - left < 60
    said = " ".join(one.text or "" for one in root.iter())
    assert "photo PNG 4 × 4" in said


def test_numbers_are_short_in_a_picture(tmp_path: Path) -> None:
    table = pa.table({"a": [0.123456789, 123456.789012], "n": [123456789, 1]})
    said = texts_of(Explorer(lance_nb.write_dataset(table, tmp_path / "n.lance")).to_svg())
    assert "0.1235" in said
    assert "123457" in said
    assert "0.12345678" not in said
    assert "123456789" in said  # integers are whole


def test_a_remote_dataset_has_what_was_sent_and_nothing_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = Session(small_dataset())
    session.screen(("card", "timeline", "rows"))
    monkeypatch.setattr(rows_picture, "is_near", lambda _dataset: False)
    monkeypatch.setattr(
        rows_picture, "column_profiles", lambda *_args: pytest.fail("rows were read")
    )
    [panel] = rows_picture.VIEW.panels(session, {})
    assert "row 0" in panel.markup
    [panel] = rows_picture.VIEW.panels(session, {"rows": {"row": 24, "filter": "id > 3"}})
    assert "read when a browser asks" in panel.markup


def test_ten_thousand_versions_make_a_small_picture() -> None:
    svg = Explorer(many_versions(10_000).checkout_version((None, 5000))).to_svg()
    check_picture(svg)
    assert "5000" in texts_of(svg)
    assert len(svg) < 60_000


def test_single_values_and_closed_widgets_have_a_picture(worn: Any) -> None:
    from lance_nb.explorer.display import widget_of

    view = widget_of(worn.version_info(2))
    assert isinstance(view, ValueView)
    assert "Version 2" in words(view.to_svg())
    assert "fragment 2" in words(DeletionMap(worn, 2).to_svg())
    explorer = Explorer(worn)
    explorer.close()
    assert "this widget was closed" in words(explorer.to_svg())
