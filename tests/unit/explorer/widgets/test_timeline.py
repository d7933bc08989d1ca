from __future__ import annotations

from lance_nb.explorer.widgets.timeline import Timeline
from tests.unit.explorer.fakes import small_dataset


def test_it_shows_its_part_alone_and_follows_a_journey() -> None:
    widget = Timeline(small_dataset(), height=300)
    assert widget.height == 300
    assert "lanes" in widget.screen["timeline"]
    widget.travel("dev:2")
    assert widget.screen["label"] == "dev:2"
    assert "lanes" in widget.screen["timeline"]


def test_its_module_mounts_the_view_without_the_other_views() -> None:
    assert "export default" in Timeline._esm
    assert "mountExplorer" not in Timeline._esm
    assert ".lnb" in Timeline._css
