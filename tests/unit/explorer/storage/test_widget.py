from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lance_nb.explorer.messages import handle
from lance_nb.explorer.session import Session
from lance_nb.explorer.storage.widget import DeletionMap, FragmentMap, SpaceView, StorageView
from tests.support.explorer_datasets import worn_dataset
from tests.support.fake_dataset import small_dataset


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Session:
    return Session(worn_dataset(tmp_path_factory.mktemp("storage") / "d.lance"))


def ask(session: Session, kind: str, **args: Any) -> tuple[dict[str, Any], list[bytes]]:
    place = {"branch": None, "version": 6}
    request = {"id": "1", "type": f"storage.{kind}", "args": place | args}
    reply, buffers = handle(request, StorageView.request_handlers(session))
    return (reply["result"] if reply["ok"] else reply["error"]), buffers


def test_the_map_travels_as_columns_of_numbers(session: Session) -> None:
    found, buffers = ask(session, "map", first=0, stop=2**50)
    assert found["num_fragments"] == found["num_bins"] == 3
    assert [len(buffer) for buffer in buffers] == [24] * 7
    old, _ = ask(session, "map", first=0, stop=2**50, version=1)
    assert old["num_fragments"] == 1


def test_fragments_files_and_deletions_are_looked_at_one_by_one(session: Session) -> None:
    detail, _ = ask(session, "fragment", fragment=1)
    assert detail["deleted"] == 30
    pages, _ = ask(session, "pages", path=detail["files"][0]["path"])
    assert pages["columns"]
    found, (pixels,) = ask(session, "deletions", fragment=1, first=0, rows=100, pixels=10)
    assert found["num_pixels"] == len(pixels) == 10


def test_advice_and_space_are_answered(session: Session) -> None:
    assert len(ask(session, "health")[0]["advice"]) == 2
    assert ask(session, "space")[0]["total"] > 0


@pytest.mark.parametrize(
    ("kind", "args", "words"),
    [
        ("map", {"first": -1, "stop": 1}, "first"),
        ("fragment", {"fragment": 99}, "no fragment 99"),
        ("deletions", {"fragment": 1, "first": 0, "rows": 1, "pixels": 10**9}, "pixels"),
        ("pages", {"path": "../../etc/passwd"}, "no data file"),
        ("pages", {"path": 7}, "path"),
    ],
)
def test_requests_that_make_no_sense_are_refused(
    session: Session, kind: str, args: dict[str, Any], words: str
) -> None:
    assert words in ask(session, kind, **args)[0]["message"]


def test_a_dataset_without_files_says_so() -> None:
    found, _ = ask(Session(small_dataset()), "health", version=4)
    assert "gives no access to its files" in found["message"]


def test_it_works_alone_on_a_dataset_and_on_a_path(tmp_path: Path) -> None:
    dataset = worn_dataset(tmp_path / "worn.lance")
    for target in (dataset, str(tmp_path / "worn.lance"), tmp_path / "worn.lance"):
        widget = FragmentMap(target)
        assert widget.error is None
        assert widget.screen["label"] == f"main:{dataset.version}"
    assert FragmentMap(tmp_path / "none.lance").error is not None


def test_it_begins_with_the_fragment_that_is_asked_for(tmp_path: Path) -> None:
    dataset = worn_dataset(tmp_path / "worn.lance")
    assert DeletionMap(dataset).screen["fragment"] is None
    assert DeletionMap(str(tmp_path / "worn.lance"), 2, height=300).screen["fragment"] == 2


def test_the_fragments_with_most_deleted_rows_come_first(tmp_path: Path) -> None:
    dataset = worn_dataset(tmp_path / "worn.lance")
    dataset.delete("id < 5")
    args = {"branch": None, "version": dataset.version}
    request = {"id": "1", "type": "storage.deleted", "args": args}
    reply, _ = handle(request, DeletionMap.request_handlers(Session(dataset)))
    assert reply["result"]["most"] == [
        {"id": 1, "rows": 100, "deleted": 30}, {"id": 0, "rows": 100, "deleted": 5},
    ]  # fmt: skip


def test_it_works_alone_on_a_dataset_and_on_a_path_space_view(tmp_path: Path) -> None:
    dataset = worn_dataset(tmp_path / "worn.lance")
    for target in (dataset, str(tmp_path / "worn.lance"), tmp_path / "worn.lance"):
        widget = SpaceView(target)
        assert widget.error is None
        assert widget.screen["label"] == f"main:{dataset.version}"
    assert SpaceView(tmp_path / "none.lance").error is not None
