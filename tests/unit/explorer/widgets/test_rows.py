from __future__ import annotations

from lance_nb.explorer.widgets.rows import RowGrid
from tests.unit.explorer.fakes import small_dataset


def test_it_shows_its_part_alone_and_follows_a_journey() -> None:
    widget = RowGrid(small_dataset(), height=300)
    assert widget.height == 300
    assert "page" in widget.screen["rows"]
    widget.travel("dev:2")
    assert widget.screen["label"] == "dev:2"
    assert "page" in widget.screen["rows"]


def test_its_module_mounts_the_view_without_the_other_views() -> None:
    assert "export default" in RowGrid._esm
    assert "mountExplorer" not in RowGrid._esm
    assert ".lnb" in RowGrid._css
