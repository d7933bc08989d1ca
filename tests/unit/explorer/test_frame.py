from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import InvalidInputError
from lance_nb.explorer.frame import Frame
from lance_nb.explorer.messages import handle
from lance_nb.explorer.session import Session
from tests.unit.explorer.fakes import FakeDataset, small_dataset


def ask(session: Session, kind: str, **args: Any) -> dict[str, Any]:
    request = {"id": "1", "type": kind, "args": args}
    reply, _ = handle(request, session.keep(Frame).handlers())
    return reply["result"] if reply["ok"] else reply["error"]


def commit(dataset: FakeDataset, version: int) -> None:
    main = dataset.lanes[None]
    main[version] = replace(main[max(main)], version=version)


def test_names_are_completed_for_the_branch_in_view() -> None:
    session = Session(small_dataset())
    assert ask(session, "refs", text="HEAD")["choices"][0]["note"] == "main:4"
    session.travel("dev:2")
    assert ask(session, "refs", text="HEAD")["choices"][0]["note"] == "dev:3"
    assert "at most" in ask(session, "refs", text="x" * 400)["message"]


def test_news_name_what_came_and_bring_the_timeline_once() -> None:
    dataset = small_dataset()
    session = Session(dataset)
    first = ask(session, "news", latest=4, mark="")
    assert (first["added"], first["gone"], "timeline" in first) == (0, False, False)
    commit(dataset, 5)
    then = ask(session, "news", latest=4, mark=first["mark"])
    assert (then["added"], then["latest"]) == (1, 5)
    assert then["timeline"]["lanes"][0]["runs"] == [[1, 5]]
    assert then["card"]["version"] == 4
    again = ask(session, "news", latest=4, mark=then["mark"])
    assert again["added"] == 1
    assert "timeline" not in again


def test_a_tag_that_somebody_moves_brings_the_timeline_and_reads_no_tag(tmp_path: Path) -> None:
    made = lance_nb.write_dataset(pa.table({"id": [1]}), tmp_path / "a.lance")
    made.insert(pa.table({"id": [2]}))
    made.tags.create("best", 1)
    (path,) = (tmp_path / "a.lance" / "_refs" / "tags").iterdir()
    os.utime(path, (0, 0))  # else the clock of files may not tell both states apart
    session = Session(lance_nb.dataset(tmp_path / "a.lance"))
    first = ask(session, "news", latest=2, mark="")
    made.tags.update("best", 2)
    then = ask(session, "news", latest=2, mark=first["mark"])
    assert [tag["version"] for tag in then["timeline"]["tags"]] == [2]
    path.write_bytes(b"damaged")  # what is only listed cannot be in the way
    assert "mark" in ask(session, "news", latest=2, mark="")


def test_a_version_that_is_cleaned_up_is_told() -> None:
    dataset = small_dataset()
    session = Session(dataset.checkout_version(2))
    del dataset.lanes[None][2]
    del dataset.lanes[None][1]
    assert ask(session, "news", latest=4, mark="")["gone"] is True


def test_a_branch_that_was_deleted_is_told_with_a_way_on(tmp_path: Path) -> None:
    made = lance_nb.write_dataset(pa.table({"id": [1]}), tmp_path / "a.lance")
    branch = made.create_branch("dev")
    branch.insert(pa.table({"id": [2]}))
    session = Session(branch)
    made.branches.delete("dev")
    found = ask(session, "news", latest=2, mark="")
    assert (found["gone"], found["lost"]) == (True, "branch dev was deleted")
    assert found["way"] == {"branch": None, "version": 1, "label": "main:1"}
    assert (
        "'dev' does not exist" in session.parts_json(("timeline",))["timeline"]["error"]["message"]
    )
    shutil.rmtree(tmp_path / "a.lance")
    found = ask(session, "news", latest=2, mark="")
    assert (found["lost"], found["way"]) == ("the dataset is not there any more", None)


def test_the_lock_is_shut_until_somebody_opens_it() -> None:
    session = Session(small_dataset())
    with pytest.raises(InvalidInputError, match="lock"):
        session.check_unlocked()
    assert ask(session, "lock", locked=False) == {"locked": False}
    session.check_unlocked()
    assert ask(session, "lock", locked=True) == {"locked": True}
    assert "true or false" in ask(session, "lock", locked=1)["message"]


def test_the_lock_of_a_read_only_explorer_stays_shut() -> None:
    session = Session(small_dataset(), read_only=True)
    assert "read_only" in ask(session, "lock", locked=False)["message"]
    assert session.screen(("card",))["locked"] is None
