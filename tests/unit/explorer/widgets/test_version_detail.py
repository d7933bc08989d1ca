from __future__ import annotations

from lance_nb.explorer.view_module import texts
from lance_nb.explorer.widgets.version_detail import VersionDetail
from tests.unit.explorer.fakes import small_dataset


def test_it_shows_its_part_alone_and_follows_a_journey() -> None:
    widget = VersionDetail(small_dataset(), height=300)
    assert widget.height == 300
    assert "schema" in widget.screen["detail"]
    widget.travel("dev:2")
    assert widget.screen["label"] == "dev:2"
    assert "schema" in widget.screen["detail"]


def test_its_module_mounts_the_view_without_the_other_views() -> None:
    assert "export default" in texts(VersionDetail.entry)[0]
    assert "mountExplorer" not in texts(VersionDetail.entry)[0]
    assert ".lnb" in texts(VersionDetail.entry)[1]
