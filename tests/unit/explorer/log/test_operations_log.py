"""What was done from here is listed with its code, and undone where that is possible."""

from __future__ import annotations

import getpass
from collections.abc import Callable
from typing import Any, NoReturn

import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.errors import InvalidInputError
from lance_nb.explorer.log import operations_log
from lance_nb.explorer.log.operations_log import MAX_ENTRIES, OperationsLog, operations_log_of
from lance_nb.explorer.log.widget import OperationsLogView
from lance_nb.explorer.messages import handle
from lance_nb.explorer.refs.widget import RefsManager
from lance_nb.explorer.session import Session
from lance_nb.explorer.stage.card import Card, ProgressReporter
from lance_nb.explorer.stage.staging_area import StagingArea
from lance_nb.session import provenance

Add = Callable[..., Card]
Newest = Callable[[], LanceDataset]


def quiet(_done: int, _total: int) -> None:
    pass


@pytest.fixture
def log(dataset: LanceDataset) -> OperationsLog:
    return operations_log_of(dataset.uri)


@pytest.fixture
def do(area: StagingArea, add: Add) -> Callable[..., Card]:
    def committed(verb: str, **args: Any) -> Card:
        return area.commit(add(verb, **args).id, "why", ProgressReporter())

    return committed


@pytest.fixture
def ask(dataset: LanceDataset) -> Callable[..., dict[str, Any]]:
    """Send a request of the Branches & tags or the Log tab; an error is its title."""
    session = Session(dataset)
    session.locked = False
    handlers = RefsManager.request_handlers(session) | OperationsLogView.request_handlers(session)

    def asked(type_: str, **args: Any) -> dict[str, Any]:
        request = {"id": "1", "type": type_, "args": args}
        reply, _ = handle(request, handlers)
        found: dict[str, Any] = dict(reply)
        result: dict[str, Any] = found.get("result", found)
        return result

    return asked


def shown(log: OperationsLog, dataset: LanceDataset) -> dict[str, Any]:
    newest: dict[str, Any] = log.to_json(dataset)["entries"][0]
    return newest


def test_a_commit_is_undone_by_a_version_of_its_own(
    do: Add, log: OperationsLog, newest: Newest
) -> None:
    do("delete", where="id < 5")
    entry = shown(log, newest())
    assert (entry["what"], entry["label"], entry["state"]) == (
        "Delete rows where id < 5", "main:2", "done",
    )  # fmt: skip
    assert entry["code"]["python"] == "ds.stage().delete('id < 5').commit('why')"
    assert entry["code"]["magic"].startswith("%lance stage delete")
    assert entry["undo"] == {"label": "Restore main:1", "reason": ""}
    done = log.undo(entry["id"], newest(), quiet)
    assert done.words == "main:1 was restored as main:3."
    assert (newest().version, newest().count_rows()) == (3, 20)
    assert newest().version_info(3).message == "Undo version 2: Delete rows where id < 5"
    undone = log.to_json(newest())["entries"]
    assert undone[0]["what"] == "Undo: Delete rows where id < 5"
    assert (undone[1]["state"], undone[1]["undo"]["reason"]) == ("undone", "it was undone")
    with pytest.raises(InvalidInputError, match="undone already"):
        log.undo(entry["id"], newest(), quiet)
    log.undo(undone[0]["id"], newest(), quiet)  # undo the undo
    assert (newest().version, newest().count_rows()) == (4, 15)


def test_a_commit_below_newer_ones_is_not_undone(
    do: Add, log: OperationsLog, newest: Newest, dataset: LanceDataset
) -> None:
    do("delete", where="id < 5")
    lance_nb.dataset(dataset.uri).delete("id = 9")
    entry = shown(log, newest())
    assert entry["undo"]["reason"] == (
        "main:3 is newer, and restoring main:1 would undo it as well"
    )
    with pytest.raises(InvalidInputError, match="cannot be undone: main:3 is newer"):
        log.undo(entry["id"], newest(), quiet)
    assert newest().version == 3


def test_a_commit_whose_parent_is_gone_is_not_undone(
    do: Add, log: OperationsLog, newest: Newest
) -> None:
    do("delete", where="id < 5")
    do("cleanup", keep=1)
    cleaned, deleted = log.to_json(newest())["entries"]
    assert cleaned["undo"]["reason"] == "the files of the removed versions are deleted"
    assert (cleaned["label"], cleaned["code"]["magic"]) == ("", "%lance clean --keep 1 --really")
    assert deleted["undo"]["reason"] == "main:1 was cleaned up"


def test_cards_that_were_committed_together_are_one_entry(
    area: StagingArea, add: Add, log: OperationsLog, newest: Newest
) -> None:
    add("append", source="more")
    add("delete", where="id < 5")
    area.commit_together("both", ProgressReporter())
    entry = shown(log, newest())
    assert entry["what"] == "Append rows from more + Delete rows where id < 5"
    assert len(entry["code"]["python"].splitlines()) == 2
    log.undo(entry["id"], newest(), quiet)
    assert newest().count_rows() == 20


def test_tags_go_back_to_where_they_were(
    do: Add, log: OperationsLog, dataset: LanceDataset
) -> None:
    dataset.delete("id = 1")
    for step, label in (
        ({"action": "create", "name": "v1", "ref": "1"}, "Delete tag v1"),
        ({"action": "move", "name": "v1", "ref": "2"}, "Move tag v1 at main:1"),
        ({"action": "delete", "name": "v1"}, "Create tag v1 at main:2"),
    ):
        do("tag", **step)
        assert shown(log, dataset)["undo"] == {"label": label, "reason": ""}
    made, moved, deleted = log.entries
    assert made.undo.reason(dataset) == "tag v1 has changed since"
    for entry, place in ((deleted, 2), (moved, 1), (made, None)):
        log.undo(entry.id, dataset, quiet)
        found = dataset.tags.list()
        assert (found["v1"]["version"] if "v1" in found else None) == place


def test_a_tag_whose_version_is_gone_stays_deleted(
    do: Add, log: OperationsLog, dataset: LanceDataset
) -> None:
    dataset.tags.create("v1", 1)
    dataset.delete("id = 1")
    do("tag", action="delete", name="v1")
    dataset.cleanup_old_versions(retain_versions=1)
    assert shown(log, dataset)["undo"]["reason"] == "main:1 no longer exists"


def test_a_branch_is_undone_while_it_has_no_versions_of_its_own(
    do: Add, log: OperationsLog, dataset: LanceDataset
) -> None:
    do("branch", action="create", name="dev")
    log.undo(shown(log, dataset)["id"], dataset, quiet)
    assert dataset.branches.names() == []
    log.undo(shown(log, dataset)["id"], dataset, quiet)
    assert dataset.branches.names() == ["dev"]
    dataset.checkout_version(("dev", None)).delete("id = 1")
    assert log.entries[0].undo.reason(dataset) == "branch dev has 1 version of its own"
    do("branch", action="delete", name="dev")
    assert shown(log, dataset)["undo"]["reason"] == ("1 version of the branch were deleted with it")


def test_acts_of_the_branches_tab_are_recorded_and_undone(
    ask: Callable[..., dict[str, Any]], dataset: LanceDataset
) -> None:
    ask("refs.create", kind="tag", name="v1", branch=None, version=1, note="first")
    ask("refs.note", kind="tag", name="v1", note="second", before="first")
    dataset.delete("id = 1")
    seen = {"branch": None, "version": 1}
    ask("refs.move", name="v1", branch=None, version=2, seen=seen)
    ask("refs.create", kind="branch", name="dev", branch=None, version=1, note="")
    listed = ask("log.list")["entries"]
    assert [one["what"] for one in listed] == [
        "Create branch dev", "Move tag v1", "Write the note on tag v1", "Create tag v1",
    ]  # fmt: skip
    for entry in listed[:3]:
        answer = ask("log.undo", id=entry["id"])
        assert "error" not in answer, answer
    assert dataset.branches.names() == []
    tag = dataset.tags.list()["v1"]
    assert (tag["version"], tag["metadata"]) == (1, {"note": "first"})
    seen = {"branch": None, "version": 1}
    ask("refs.delete", kind="tag", name="v1", seen=seen)
    entry = ask("log.list")["entries"][0]
    answer = ask("log.undo", id=entry["id"])
    assert answer["words"] == "Tag v1 was created at main:1."
    assert set(answer["parts"]) == {"timeline", "card"}


def test_a_merge_is_recorded_and_undone(
    ask: Callable[..., dict[str, Any]], dataset: LanceDataset, newest: Newest
) -> None:
    dataset.create_branch("dev").delete("id < 5")
    plan = ask("refs.plan", kind="merge", source="dev", into=None, strategy="auto",
               on_conflict="fail", copy=False, key="")  # fmt: skip
    assert "error" not in plan, plan
    merged = ask("refs.merge", plan=plan["plan"], message="")
    assert "error" not in merged, merged
    entry = ask("log.list")["entries"][0]
    version = merged["place"]["version"]
    assert (entry["label"], entry["undo"]["reason"]) == (f"main:{version}", "")
    answer = ask("log.undo", id=entry["id"])
    assert answer["place"]["version"] == newest().version == version + 1
    assert newest().count_rows() == 20


def test_nothing_is_undone_while_the_lock_is_shut(dataset: LanceDataset) -> None:
    handlers = OperationsLogView.request_handlers(Session(dataset))
    reply, _ = handle({"id": "1", "type": "log.undo", "args": {"id": 1}}, handlers)
    assert "locked" in reply["error"]["message"]


def test_names_of_others_are_shown_as_text(
    ask: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provenance, "properties", lambda: {provenance.AUTHOR: "a\u202eb"})
    ask("refs.create", kind="tag", name="x", branch=None, version=1, note="")
    assert "\u202e" not in ask("log.list")["entries"][0]["who"]


def test_a_process_without_a_user_still_has_a_log(
    log: OperationsLog, dataset: LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody() -> NoReturn:
        raise KeyError("uid")

    monkeypatch.setattr(getpass, "getuser", nobody)
    log.record("x", {"python": "x", "magic": "x"})
    assert shown(log, dataset)["who"] == "unknown user"


def test_a_log_and_the_logs_are_bounded(
    log: OperationsLog, dataset: LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(MAX_ENTRIES + 5):
        log.record("x", {"python": "x", "magic": "x"})
    found = log.to_json(dataset)
    assert len(found["entries"]) + found["hidden"] == MAX_ENTRIES
    with pytest.raises(InvalidInputError, match="no longer in the log"):
        log.undo(1, dataset, quiet)
    monkeypatch.setattr(operations_log, "MAX_LOGS", 2)
    for name in "abc":
        operations_log_of(f"memory://{name}")
    assert len(operations_log._LOGS) == 2
