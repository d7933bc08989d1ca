from __future__ import annotations

from pathlib import Path

import pytest

import lance_nb
from lance_nb.explorer.history.value_facts import ValueFacts
from lance_nb.explorer.history.widget import (
    Overview,
    SchemaTree,
    Timeline,
    ValueView,
    VersionDetail,
)
from lance_nb.explorer.widget import LanceWidget
from tests.golden.copies import copy_to_folder
from tests.support.explorer_datasets import worn_dataset
from tests.support.fake_dataset import small_dataset

FACTS = ValueFacts("Version 3", ("one line",), (("rows", "5"),), operation="Append")


@pytest.mark.parametrize(
    ("view", "part", "key"),
    [
        (Overview, "card", "name"),
        (Timeline, "timeline", "lanes"),
        (VersionDetail, "detail", "schema"),
    ],
)
def test_a_view_shows_its_part_alone_and_travels(
    view: type[LanceWidget], part: str, key: str
) -> None:
    widget = view(small_dataset(), height=300)
    assert widget.height == 300
    assert key in widget.screen[part]
    widget.travel("dev:2")
    assert widget.screen["label"] == "dev:2"
    assert key in widget.screen[part]


def test_a_damaged_version_and_tag_are_shown_beside_the_others(tmp_path: Path) -> None:
    path = copy_to_folder("history", tmp_path)
    (path / "_refs" / "tags" / "first.json").write_bytes(b"{")
    (path / "_versions" / f"{(1 << 64) - 1 - 4}.manifest").write_bytes(b"not a manifest")

    screen = Timeline(lance_nb.dataset(path)).screen["timeline"]

    bars = {bar["version"]: bar["operation"] for bar in screen["lanes"][0]["details"]}
    assert bars[4] == "Damaged"
    assert "Damaged" not in {bars[number] for number in bars if number != 4}
    assert [tag["name"] for tag in screen["tags"]] == ["on-side"]


def test_it_works_alone_on_a_dataset_and_on_a_path(tmp_path: Path) -> None:
    dataset = worn_dataset(tmp_path / "worn.lance")
    for target in (dataset, str(tmp_path / "worn.lance"), tmp_path / "worn.lance"):
        widget = SchemaTree(target)
        assert widget.error is None
        assert widget.screen["label"] == f"main:{dataset.version}"
    assert SchemaTree(tmp_path / "none.lance").error is not None


def test_a_value_is_on_the_screen_and_has_a_picture() -> None:
    view = ValueView(FACTS)
    assert view.error is None
    assert view.screen["value"]["heading"] == "Version 3"
    assert view.screen["value"]["rows"] == [{"label": "rows", "value": "5"}]
    assert "one line" in view.picture().html
    assert repr(view) == view.picture().text
