"""The tables of a database: what the browser gets, and what it may ask for."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset.database import TableListing, TablePlace
from lance_nb.errors import DatasetNotFoundError, InvalidInputError, StorageError
from lance_nb.explorer import display, widget
from lance_nb.explorer.app import DatabaseExplorer, Explorer
from lance_nb.explorer.messages import handle
from lance_nb.explorer.tables import table_list
from lance_nb.explorer.tables import widget as tables
from lance_nb.explorer.tables.table_list import sorted_tables, table_card
from lance_nb.magic.command_line import main
from tests.support.markup_payloads import PAYLOADS
from tests.support.pictures import check_picture, texts_of

ROWS = pa.table({"id": range(100)})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "shop_db"
    for name in ("photos", "orders"):
        lance_nb.write_dataset(ROWS, place / f"{name}.lance")
    lance_nb.dataset(place / "orders.lance").delete("id < 50")
    broken = place / "broken.lance" / "_versions"
    broken.mkdir(parents=True)
    (broken / "1.manifest").write_bytes(b"damaged")
    return place


def ask(explorer: Explorer, kind: str, **args: Any) -> Any:
    reply, _ = handle({"id": "1", "type": kind, "args": args}, explorer._handlers())
    return reply["result"] if reply["ok"] else reply["error"]


def test_a_folder_of_tables_is_explored_as_its_tables(folder: Path) -> None:
    explorer = lance_nb.explore(folder)
    assert isinstance(explorer, DatabaseExplorer)
    assert explorer.error is None
    shown = explorer.screen["tables"]
    assert shown["labels"] == ["broken", "orders", "photos"]
    assert (shown["name"], shown["num_tables"], shown["open"]) == ("shop_db", 3, None)
    assert explorer.screen["code"]["python"] == f"lance_nb.explore('{folder}')"
    broken, orders, photos = (shown["cards"][str(at)] for at in range(3))
    assert broken["state"] == "error"
    assert broken["health"].startswith("A file is damaged: ")
    assert (orders["rows"], orders["columns"], orders["versions"]) == (50, 1, 2)
    assert orders["state"] == "advice"
    assert orders["health"] == "50% of the rows are deleted"
    assert orders["bars"] == [[1, "Overwrite", 100], [2, "Delete", 50]]
    assert (photos["state"], photos["health"]) == ("ok", "ok")
    assert photos["code"]["python"] == f"lance_nb.explore('{folder}/photos.lance')"
    assert "Data files were not opened" in shown["looked_at"]


def test_every_way_to_name_a_database(folder: Path) -> None:
    database = lance_nb.database(folder)
    for target in (folder, str(folder), f"file://{folder}", database):
        assert lance_nb.explore(target).table_names() == ["broken", "orders", "photos"]
    lance_nb.write_dataset(ROWS, "memory://explored_db/a.lance")
    assert lance_nb.explore("memory://explored_db").table_names() == ["a"]
    nothing = lance_nb.explore(folder / "photos")
    assert isinstance(nothing.error, DatasetNotFoundError)
    # A version is one of a dataset.
    assert isinstance(lance_nb.explore(folder, 3).error, DatasetNotFoundError)
    unreachable = lance_nb.explore("rest+http://127.0.0.1:9")
    assert isinstance(unreachable.error, StorageError)


def test_a_table_opens_and_closes(folder: Path) -> None:
    explorer = lance_nb.explore(folder, read_only=True)
    with pytest.raises(InvalidInputError, match="no table is open"):
        _ = explorer.dataset
    assert explorer.heading == "shop_db"
    explorer.open_table("orders")
    assert (explorer.version, explorer.dataset.count_rows()) == (2, 50)
    assert explorer.screen["tables"]["open"] == {"table": 1, "label": "orders"}
    assert explorer.screen["locked"] is None, "read_only holds for the tables"
    explorer.travel(1)
    assert explorer.screen["tables"]["open"] == {"table": 1, "label": "orders"}
    assert explorer.heading == "orders.lance"
    assert "main:1" in explorer.to_svg()
    explorer.close_table()
    assert explorer.screen["tables"]["open"] is None
    assert "1" not in explorer.screen["tables"]["cards"], "it may have been changed"
    with pytest.raises(DatasetNotFoundError, match="no such table"):
        explorer.open_table("nothing")
    with pytest.raises(lance_nb.errors.CorruptFileError):
        explorer.open_table("broken")
    assert explorer.screen["tables"]["open"] is None
    explorer.close()
    with pytest.raises(InvalidInputError, match="closed"):
        explorer.table_names()


def test_the_browser_opens_a_table_of_the_listing_it_knows(folder: Path) -> None:
    explorer = lance_nb.explore(folder)
    assert ask(explorer, "tables.open", listing=1, table=2) == {}
    assert explorer.dataset.count_rows() == 100
    assert ask(explorer, "refs", text="")["choices"], "requests of the table are answered"
    assert ask(explorer, "tables.close") == {}
    assert "unknown request type" in ask(explorer, "refs", text="")["message"]
    shutil.rmtree(folder / "photos.lance")
    assert ask(explorer, "tables.open", listing=1, table=2)["title"] == "No dataset found"
    assert ask(explorer, "tables.refresh")["labels"] == ["broken", "orders"]
    assert "listed anew" in ask(explorer, "tables.open", listing=1, table=1)["message"]
    for table in (-1, 2, 1.5, None, "orders"):
        assert ask(explorer, "tables.open", listing=2, table=table)["kind"] == "InvalidInputError"


def test_tables_are_described_when_asked_for(folder: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(tables, "FIRST_CARDS", 0)
    explorer = lance_nb.explore(folder)
    assert explorer.screen["tables"]["cards"] == {}
    cards = ask(explorer, "tables.describe", listing=1, tables=[2, 0])["cards"]
    assert (cards["2"]["rows"], cards["0"]["state"]) == (100, "error")
    for wrong in ([], [3], list(range(tables.MAX_DESCRIBED + 1)), "0", None):
        found = ask(explorer, "tables.describe", listing=1, tables=wrong)
        assert found["kind"] == "InvalidInputError"
    assert ask(explorer, "tables.list", listing=1, first=2) == {"labels": ["photos"]}


def test_a_batch_is_cancelled_between_tables(folder: Path, monkeypatch: Any) -> None:
    described: list[str] = []

    def card(listing: TableListing, name: str) -> Any:
        described.append(name)
        return table_card(listing, name)

    monkeypatch.setattr(tables, "FIRST_CARDS", 0)
    monkeypatch.setattr(tables, "THREADS", 1)
    monkeypatch.setattr(tables, "table_card", card)
    explorer = lance_nb.explore(folder)
    job = explorer._handlers()["tables.describe"]({"listing": 1, "tables": [1, 2]})

    def progress(done: int, _total: int) -> None:
        if done:
            raise lance_nb.errors.CancelledError("nobody waits")

    with pytest.raises(lance_nb.errors.CancelledError):
        job.work(progress)
    assert described == ["orders"]


def test_what_goes_wrong_with_a_table_is_on_its_card() -> None:
    def place(name: str) -> TablePlace:
        raise StorageError(f"s3://shop/{name}", "403 Forbidden")

    card = table_card(TableListing(["photos"], place), "photos")
    assert (card.state, card.summary.uri) == ("error", "")
    assert "403 Forbidden" in card.health
    assert card.to_json()["error"]["kind"] == "StorageError"


def test_of_a_store_on_the_network_only_names_of_versions_are_read(
    folder: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(table_list, "is_on_this_machine", lambda _uri: False)
    listing = lance_nb.database(folder).listing()
    assert table_card(listing, "orders").bars == ((1, "", None), (2, "", None))


def test_cards_are_sorted_with_unknown_values_last(folder: Path) -> None:
    listing = lance_nb.database(folder).listing()
    names = listing.names
    cards = {at: table_card(listing, names[at]) for at in (0, 1, 2)}
    assert sorted_tables(names, cards, "", "name") == [0, 1, 2]
    assert sorted_tables(names, cards, "", "name-down") == [2, 1, 0]
    assert sorted_tables(names, cards, "", "rows") == [2, 1, 0]
    assert sorted_tables(names, cards, "", "changed") == [1, 2, 0]
    assert sorted_tables(names, cards, "O", "versions") == [1, 2, 0]
    assert sorted_tables(names, cards, "hot", "size") == [2]
    del cards[2]
    assert sorted_tables(names, cards, "", "rows") == [1, 0, 2]


def test_the_picture_has_what_was_on_screen(folder: Path) -> None:
    explorer = lance_nb.explore(folder)
    texts = texts_of(explorer.to_svg())
    assert {"Tables of shop_db", "3 tables", "photos", "100 rows", "manifest ok"} <= set(texts)
    assert any(one.startswith("A file is damaged") for one in texts)
    check_picture(explorer.to_svg())
    ask(explorer, "shown", tables={"filter": "or", "order": "rows", "first": 0})
    texts = texts_of(explorer.to_svg())
    assert "orders" in texts
    assert "photos" not in texts
    ask(explorer, "shown", tables={"filter": "", "order": "name", "first": 2})
    assert "… 2 before" in texts_of(explorer.to_svg())
    for wrong in ({"filter": 3}, {"order": "x"}, {"first": -1}):
        shown = {"filter": "", "order": "name", "first": 0} | wrong
        assert ask(explorer, "shown", tables=shown)["kind"] == "InvalidInputError"
    assert "Tables of shop_db" in repr(explorer)


def test_no_name_becomes_markup_in_a_picture_or_a_file(tmp_path: Path) -> None:
    for name in PAYLOADS:
        if "/" not in name and "\0" not in name and len(name) < 80:
            lance_nb.write_dataset(ROWS, tmp_path / "db" / f"{name}.lance")
    explorer = lance_nb.explore(tmp_path / "db")
    check_picture(explorer.to_svg())
    page = explorer.to_html(tmp_path / "x.html").read_text("utf-8")
    data = re.search(r'id="snapshot">(.*?)</script>', page)
    assert data is not None
    assert "<" not in data.group(1)
    assert "'unsafe" not in page
    assert len(page.split("<script")) == 4  # the rows, the modules, and what starts them


def test_a_file_of_an_open_table_is_that_of_the_table(folder: Path, tmp_path: Path) -> None:
    explorer = lance_nb.explore(folder)
    explorer.open_table("photos")
    page = explorer.to_html(tmp_path / "x.html").read_text("utf-8")
    assert "<title>photos.lance</title>" in page


def test_a_database_is_alive_in_a_notebook(folder: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(display, "has_browser", lambda: True)
    displayed: list[Any] = []
    monkeypatch.setattr(widget, "display", lambda value, **_raw: displayed.append(value))
    bundle = lance_nb.database(folder)._repr_mimebundle_()
    assert bundle is not None
    check_picture(displayed.pop()["image/svg+xml"])
    assert "application/vnd.jupyter.widget-view+json" in displayed.pop()
    assert "lnb-static" in bundle["text/html"]
    assert "photos  100" in bundle["text/plain"].replace("photos   ", "photos ")


def test_the_first_screen_of_many_tables_stays_small(tmp_path: Path, monkeypatch: Any) -> None:
    class Catalog:
        def listed(self) -> Any:
            return [f"{'table' * 40}{at:05}" for at in range(5000)], self.place

        def place(self, name: str) -> TablePlace:
            raise DatasetNotFoundError(name)

    database = lance_nb.Database("rest+http://localhost:1", Catalog())
    explorer = lance_nb.explore(database)
    shown = explorer.screen["tables"]
    assert shown["num_tables"] == 5000
    assert len(shown["labels"]) == tables.MAX_LABELS
    assert sum(map(len, shown["labels"])) < 200_000
    more = ask(explorer, "tables.list", listing=1, first=4990)["labels"]
    assert len(more) == 10


def test_the_command_view_reports_what_is_no_database(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "empty").mkdir()
    assert main(["view", str(tmp_path / "empty"), "--no-browser"]) == 2
    assert "no lance dataset" in capsys.readouterr().err.lower()
