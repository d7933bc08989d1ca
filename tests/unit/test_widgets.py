"""The views one by one: listed, documented, each working on the path of a dataset."""

from __future__ import annotations

from pathlib import Path

import pytest

from lance_nb import widgets
from lance_nb.explorer.widget import LanceWidget
from tests.support.explorer_datasets import worn_dataset


def test_every_view_is_listed_with_an_example() -> None:
    assert sorted(widgets.__all__) == widgets.__all__
    for name in widgets.__all__:
        assert issubclass(getattr(widgets, name), LanceWidget)
        assert f"widgets.{name}(ds" in (widgets.__doc__ or "")


@pytest.mark.parametrize("name", widgets.__all__)
def test_a_view_takes_a_path(name: str, tmp_path: Path) -> None:
    dataset = worn_dataset(tmp_path / "worn.lance")
    widget = getattr(widgets, name)(str(tmp_path / "worn.lance"))
    assert widget.screen["version"] == dataset.version
    assert widget.error is None
    widget.close()
