from __future__ import annotations

from pathlib import Path

from lance_nb.explorer.view_module import texts
from lance_nb.explorer.widgets.schema_view import SchemaTree
from tests.unit.explorer.stored_datasets import worn_dataset


def test_it_works_alone_on_a_dataset_and_on_a_path(tmp_path: Path) -> None:
    dataset = worn_dataset(tmp_path / "worn.lance")
    for target in (dataset, str(tmp_path / "worn.lance"), tmp_path / "worn.lance"):
        widget = SchemaTree(target)
        assert widget.error is None
        assert widget.screen["label"] == f"main:{dataset.version}"
    assert SchemaTree(tmp_path / "none.lance").error is not None
    assert "mountExplorer" not in texts(SchemaTree.entry)[0]
