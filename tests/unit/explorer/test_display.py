from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset.display import VALUES
from lance_nb.explorer import display, widget
from lance_nb.explorer.display import kind_of, render_value, widget_of
from tests.support.fake_dataset import small_dataset
from tests.support.markup_payloads import PAYLOADS
from tests.support.pictures import check_picture


def test_in_a_terminal_a_dataset_shows_itself_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(display, "has_browser", lambda: False)
    bundle = display.mime_bundle(small_dataset())
    assert "fake.lance · main:4" in bundle["text/plain"]
    assert "<style>" not in bundle["text/html"]


def test_in_a_notebook_the_live_explorer_stands_before_its_picture(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown: list[Any] = []
    monkeypatch.setattr(display, "has_browser", lambda: True)
    monkeypatch.setattr(widget, "display", lambda value, **_raw: shown.append(value))
    bundle = display.mime_bundle(small_dataset())
    live, picture = shown
    assert "application/vnd.jupyter.widget-view+json" in live
    assert picture["image/svg+xml"].startswith("<svg")
    assert ":has(.lnb-live)" in bundle["text/html"]
    assert "lnb-static" in bundle["text/html"]


@pytest.fixture
def dataset(tmp_path: Path) -> Any:
    table = pa.table({"id": range(20), "<b>&": [{"x": 1}] * 20})
    found = lance_nb.write_dataset(table, tmp_path / "a.lance", max_rows_per_file=10)
    found.delete("id < 3")
    return lance_nb.dataset(tmp_path / "a.lance")


def values(dataset: Any) -> dict[str, Any]:
    stage = dataset.stage().delete("id > 10")
    return {
        "version": replace(dataset.version_info(2), message=PAYLOADS[0]),
        "diff": dataset.diff(1, 2),
        "transaction": dataset.transaction(2),
        "fragment": dataset.get_fragments()[0],
        "schema": dataset.lance_schema,
        "stage": stage,
        "preview": stage.preview(),
        "write": stage.staged,
    }


def test_every_value_has_text_and_escaped_html(dataset: Any) -> None:
    shown = values(dataset)
    assert set(shown) == set(VALUES.values())
    expected = {
        "version": "Version 2", "diff": "Changes main:1 → main:2",
        "transaction": "Rows deleted (Delete)",
        "fragment": "Fragment 0", "schema": "2 columns", "stage": "Stage for main:2",
        "preview": "What a commit would change: Rows deleted (Delete)",
        "write": "Staged write: Rows deleted (Delete)",
    }  # fmt: skip
    for kind, value in shown.items():
        assert kind_of(value) == kind
        picture = render_value(value)
        assert expected[kind] in picture.text
        assert len(picture.html) < 10_000
        assert "<b>&<" not in picture.html
        assert "<script" not in picture.html
    assert "drop" not in shown
    assert "<script>" in render_value(shown["version"]).text


def test_every_value_is_alive_in_a_notebook(dataset: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = values(dataset)
    alive = {kind: type(widget_of(value)).__name__ for kind, value in shown.items()}
    views = {"diff": "DiffView", "fragment": "DeletionMap", "stage": "StagePanel"}
    assert alive == dict.fromkeys(VALUES.values(), "ValueView") | views
    assert type(widget_of(dataset.get_fragments()[1])).__name__ == "ValueView"
    monkeypatch.setattr(display, "has_browser", lambda: True)
    displayed: list[Any] = []
    monkeypatch.setattr(widget, "display", lambda value, **_raw: displayed.append(value))
    for value in shown.values():
        bundle = display.mime_bundle(value)
        check_picture(displayed.pop()["image/svg+xml"])
        assert "application/vnd.jupyter.widget-view+json" in displayed.pop()
        assert "lnb-static" in bundle["text/html"]
        assert bundle["text/plain"] == render_value(value).text


def test_a_schema_of_hostile_names_is_text(tmp_path: Path) -> None:
    names = [text for text in PAYLOADS if "\0" not in text and "." not in text]
    table = pa.table({name: [1] for name in names})
    schema = lance_nb.write_dataset(table, tmp_path / "a.lance").lance_schema
    html = render_value(schema).html
    assert "<script" not in html
    assert "<img" not in html


@pytest.mark.slow
def test_a_notebook_shows_values_without_loading_anything_before() -> None:
    code = (
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\n"
        "import sys, pyarrow as pa, lance_nb\n"
        "assert 'lance_nb.explorer' not in sys.modules\n"
        "ds = lance_nb.write_dataset(pa.table({'id': [1]}), 'memory://shown')\n"
        "data, _ = shell.display_formatter.format(ds.lance_schema)\n"
        "assert '1 column' in data['text/html'] and '1 column' in data['text/plain'], data\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
