from __future__ import annotations

from pathlib import Path

import lance_nb
from lance_nb.explorer.view_module import texts
from lance_nb.explorer.widgets.timeline import Timeline
from tests.golden.copies import copy_to_folder
from tests.unit.explorer.fakes import small_dataset


def test_it_shows_its_part_alone_and_follows_a_journey() -> None:
    widget = Timeline(small_dataset(), height=300)
    assert widget.height == 300
    assert "lanes" in widget.screen["timeline"]
    widget.travel("dev:2")
    assert widget.screen["label"] == "dev:2"
    assert "lanes" in widget.screen["timeline"]


def test_a_damaged_version_and_tag_are_shown_beside_the_others(tmp_path: Path) -> None:
    path = copy_to_folder("history", tmp_path)
    (path / "_refs" / "tags" / "first.json").write_bytes(b"{")
    (path / "_versions" / f"{(1 << 64) - 1 - 4}.manifest").write_bytes(b"not a manifest")

    screen = Timeline(lance_nb.dataset(path)).screen["timeline"]

    bars = {bar["version"]: bar["operation"] for bar in screen["lanes"][0]["details"]}
    assert bars[4] == "Damaged"
    assert "Damaged" not in {bars[number] for number in bars if number != 4}
    assert [tag["name"] for tag in screen["tags"]] == ["on-side"]


def test_its_module_mounts_the_view_without_the_other_views() -> None:
    assert "export default" in texts(Timeline.entry)[0]
    assert "mountExplorer" not in texts(Timeline.entry)[0]
    assert ".lnb" in texts(Timeline.entry)[1]
