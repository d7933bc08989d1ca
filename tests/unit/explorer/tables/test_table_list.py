from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import lance_nb
from lance_nb.dataset.database import TableSummary
from lance_nb.explorer import display
from lance_nb.explorer.tables.table_list import HEAD, table_line
from tests.support.markup_payloads import PAYLOADS


def test_what_is_not_known_is_empty() -> None:
    found = TableSummary("x", "", can_open=False, health="cannot be opened: why")
    assert table_line(found) == ("x", "", "", "", "", "", "cannot be opened: why")
    assert len(table_line(found)) == len(HEAD)


def test_a_database_shows_its_tables_as_a_picture_everywhere(tmp_path: Path, monkeypatch) -> None:
    for name in ("photos", "orders"):
        lance_nb.write_dataset(pa.table({"id": range(1500)}), tmp_path / "db" / f"{name}.lance")
    db = lance_nb.database(tmp_path / "db")
    bundle = db._repr_mimebundle_()
    text = " ".join(bundle["text/plain"].split())
    assert "Tables of db" in text
    assert "2 tables" in text
    assert "photos 1,500" in text
    assert bundle["text/html"].startswith("<details open>")
    monkeypatch.setattr(display, "TABLES_SHOWN", 1)
    assert "1 more table" in db._repr_mimebundle_()["text/plain"]


def test_names_and_messages_never_become_markup() -> None:
    for payload in PAYLOADS:
        line = table_line(TableSummary(payload, "", can_open=False, health=payload))
        assert all("\x1b" not in one and "\n" not in one for one in line)
