from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lance_nb.errors import DatasetNotFoundError, InvalidInputError, LanceError
from lance_nb.explorer import html_export as module
from lance_nb.explorer.app import Explorer
from lance_nb.explorer.html_export import Snapshot, snapshot_page, take_snapshot
from tests.support.explorer_datasets import worn_dataset
from tests.support.fake_dataset import many_versions, one_table, small_dataset
from tests.support.markup_payloads import PAYLOADS


def taken(dataset: Any, **how: Any) -> dict[str, Any]:
    return take_snapshot(dataset, Explorer.request_handlers, Explorer.parts, **how).to_json()


def test_it_keeps_the_version_shown_first_then_tags_and_heads() -> None:
    found = taken(small_dataset())
    labels = [screen["label"] for screen in found["screens"]]
    assert labels[0] == "main:4"
    assert set(labels) == {"main:1", "main:2", "main:3", "main:4", "dev:3"}
    assert all(screen["locked"] is None for screen in found["screens"])
    assert sorted(found["bars"][""]) == [1, 2, 3, 4]
    json.dumps(found)


def test_rows_are_cut_and_say_of_how_many() -> None:
    rows = taken(small_dataset(), versions=[2], rows=5)["screens"][1]["rows"]
    assert (rows["num_rows"], rows["whole"]) == (5, {"rows": 30, "columns": 2})
    assert "$bytes" in rows["buffers"][0]


def test_answers_about_storage_changes_and_refs_are_kept(tmp_path: Path) -> None:
    dataset = worn_dataset(tmp_path / "worn.lance")
    found = taken(dataset)["answers"]
    here = f"|{dataset.version}"
    for kind in ("storage.map|", "storage.health|", "changes.counts|", "rows.profile|"):
        assert kind + here in found
    assert found["storage.fragment||6|1"]["result"]["deleted"] == 30
    assert [line["name"] for line in found["refs.list|tag"]["result"]["lines"]] == ["v1"]
    assert "refs.show|tag|v1" in found
    assert found["refs.heads"]["result"]["heads"][0]["name"] is None


def test_it_has_a_size_however_many_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 150_000)
    found = take_snapshot(many_versions(60), Explorer.request_handlers, Explorer.parts)
    assert found.left >= 0
    assert 0 < len(found.screens) < module.MAX_VERSIONS
    with pytest.raises(LanceError):
        taken(small_dataset(), versions=["nope"])


def test_one_file_with_nothing_to_load_and_a_policy(tmp_path: Path) -> None:
    path = Explorer(small_dataset()).to_html(tmp_path / "out.html")
    page = path.read_text("utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy[1]
    assert "<link" not in page
    assert not re.search(r"(src|href)\s*=", page.split("<script")[0])
    assert page.count("<script") == page.count("</script>") == 3
    assert "fake.lance" in page


def test_hostile_names_and_values_never_become_markup(tmp_path: Path) -> None:
    names = [f"{text}{at}" for at, text in enumerate(PAYLOADS)]
    table = pa.table({name: list(PAYLOADS) for name in names})
    page = Explorer(one_table(table)).to_html(tmp_path / "out.html").read_text("utf-8")
    assert page.count("<script") == page.count("</script>") == 3
    picture = page[page.index("<svg ") : page.index("</svg>") + len("</svg>")]
    tags = set(re.findall(r"<([a-z]+)", picture))
    assert tags <= {"svg", "title", "desc", "g", "rect", "line", "path", "text"}
    outside = page.replace(picture, "").partition("START(")[0]
    assert not re.search(r"<(img|svg|iframe|object|embed|base|form|link)\b", outside)


def test_the_picture_is_what_is_on_screen(tmp_path: Path) -> None:
    explorer = Explorer(small_dataset())
    page = explorer.to_html(tmp_path / "out.html").read_text("utf-8")
    assert f'<main id="explorer">{explorer.to_svg()}</main>' in page
    assert "<table" not in page.partition("<script")[0]


def test_without_a_dataset_there_is_nothing_to_write(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError):
        Explorer(DatasetNotFoundError("x")).to_html(tmp_path / "out.html")
    assert not (tmp_path / "out.html").exists()


@pytest.mark.parametrize("payload", PAYLOADS)
def test_the_title_of_the_page_is_escaped(payload: str) -> None:
    page = snapshot_page(payload, "<svg></svg>", Snapshot(), 400)

    title = re.search("<title>(.*?)</title>", page, re.DOTALL)
    assert title is not None
    assert "<" not in title[1]
    assert ">" not in title[1]
    assert page.count("<script") == page.count("</script>") == 3
