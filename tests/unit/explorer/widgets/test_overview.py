from __future__ import annotations

from lance_nb.explorer.view_module import texts
from lance_nb.explorer.widgets.overview import Overview
from tests.unit.explorer.fakes import small_dataset


def test_it_shows_its_part_alone_and_follows_a_journey() -> None:
    widget = Overview(small_dataset(), height=300)
    assert widget.height == 300
    assert "name" in widget.screen["card"]
    widget.travel("dev:2")
    assert widget.screen["label"] == "dev:2"
    assert "name" in widget.screen["card"]


def test_its_module_mounts_the_view_without_the_other_views() -> None:
    assert "export default" in texts(Overview.entry)[0]
    assert "mountExplorer" not in texts(Overview.entry)[0]
    assert ".lnb" in texts(Overview.entry)[1]
