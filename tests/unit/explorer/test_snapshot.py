from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lance_nb.errors import LanceError
from lance_nb.explorer import snapshot as module
from lance_nb.explorer.app import Explorer
from lance_nb.explorer.snapshot import take_snapshot
from tests.unit.explorer.fakes import many_versions, small_dataset
from tests.unit.explorer.stored_datasets import worn_dataset


def taken(dataset: Any, **how: Any) -> dict[str, Any]:
    return take_snapshot(dataset, Explorer.answers, Explorer.parts, **how).to_json()


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
    found = take_snapshot(many_versions(60), Explorer.answers, Explorer.parts)
    assert found.left >= 0
    assert 0 < len(found.screens) < module.MAX_VERSIONS
    with pytest.raises(LanceError):
        taken(small_dataset(), versions=["nope"])
