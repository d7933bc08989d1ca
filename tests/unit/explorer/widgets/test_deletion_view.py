from __future__ import annotations

from pathlib import Path

from lance_nb.explorer.messages import handle
from lance_nb.explorer.session import Session
from lance_nb.explorer.widgets.deletion_view import DeletionMap
from tests.unit.explorer.stored_datasets import worn_dataset


def test_it_begins_with_the_fragment_that_is_asked_for(tmp_path: Path) -> None:
    dataset = worn_dataset(tmp_path / "worn.lance")
    assert DeletionMap(dataset).screen["fragment"] is None
    assert DeletionMap(str(tmp_path / "worn.lance"), 2, height=300).screen["fragment"] == 2


def test_the_fragments_with_most_deleted_rows_come_first(tmp_path: Path) -> None:
    dataset = worn_dataset(tmp_path / "worn.lance")
    dataset.delete("id < 5")
    args = {"branch": None, "version": dataset.version}
    request = {"id": "1", "type": "storage.deleted", "args": args}
    reply, _ = handle(request, DeletionMap.answers(Session(dataset)))
    assert reply["result"]["most"] == [
        {"id": 1, "rows": 100, "deleted": 30}, {"id": 0, "rows": 100, "deleted": 5},
    ]  # fmt: skip
