from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.explorer.refs import ref_list
from lance_nb.explorer.refs import widget as branches
from lance_nb.explorer.registry import RefsManager
from lance_nb.explorer.session import Session
from tests.support.fake_dataset import small_dataset
from tests.unit.explorer.refs.conftest import HOW, ask, other, rows


def test_lists_and_heads(session: Session) -> None:
    page = ask(session, "list", kind="branch", text="", sort="name", first=0, count=50)
    assert [line["label"] for line in page["lines"]] == ["main", "dev"]
    assert page["code"]["magic"] == "%lance branch list"
    heads = ask(session, "heads", names=[None, "dev"])["heads"]
    assert [(one["version"], one["rows"], one["ahead"], one["behind"]) for one in heads] == [
        (3, 20, None, None), (3, 20, 1, 1)
    ]  # fmt: skip


def test_heads_know_what_was_merged(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    main = other(session)
    main.branches.merge("dev")

    def head() -> Any:
        return ask(session, "heads", names=["dev"])["heads"][0]

    found = head()
    assert (found["ahead"], found["behind"], found["exact"]) == (0, 1, True)
    assert found["merged"]["label"] == "dev:3"
    facts = {
        one["label"]: one["value"]
        for one in ask(session, "show", kind="branch", name="dev")["facts"]
    }
    assert facts["merged"] == "dev:3 into main, which is all of it"
    assert facts["behind"] == "1 version of main that it lacks"
    main.checkout_version(("dev", None)).insert(rows(70, 1))
    assert (head()["ahead"], head()["merged"]["label"]) == (1, "dev:3")
    monkeypatch.setattr(ref_list, "MAX_COMPARED", 2)
    found = head()
    assert (found["ahead"], found["behind"], found["exact"]) == (2, 2, False)


def test_details_tell_what_stands_on_a_ref(session: Session) -> None:
    main = ask(session, "show", kind="branch", name=None)
    assert [one["label"] for one in main["tags"]["lines"]] == ["v1"]
    assert [one["label"] for one in main["children"]["lines"]] == ["dev"]
    dev = ask(session, "show", kind="branch", name="dev")
    facts = {one["label"]: one["value"] for one in dev["facts"]}
    assert facts["started from"] == "main:2"
    assert "files" in facts["in its own folder"]
    tag = ask(session, "show", kind="tag", name="v1")
    assert tag["place"]["label"] == "main:1"
    assert "'nope'" in ask(session, "show", kind="tag", name="nope")["error"]


@pytest.mark.parametrize("action", ["delete", "move"])
def test_a_tag_of_a_branch_that_was_deleted_is_shown_moved_and_deleted(
    session: Session, action: str
) -> None:
    dataset = other(session)
    dataset.tags.create("old", ("dev", 3))
    dataset.branches.delete("dev", force=True)
    ask(session, "list", kind="tag", text="", sort="name", first=0, count=50, fresh=True)
    facts = {
        one["label"]: one["value"] for one in ask(session, "show", kind="tag", name="old")["facts"]
    }
    assert facts["version"].startswith("dev:3 (does not exist any more")
    seen = {"branch": "dev", "version": 3}
    if action == "move":
        moved = ask(session, "check", kind="tag", action="move", name="old", at="HEAD")
        assert "dev:3 does not exist any more" in moved["consequences"][-1]["text"]
        ask(session, "move", name="old", branch=None, version=1, seen=seen)
        assert dataset.tags.get_version("old") == 1
        return
    explained = ask(session, "explain", kind="tag", name="old")
    assert [one["level"] for one in explained["consequences"]] == ["ok", "warn"]
    assert explained["seen"]["label"] == "dev:3"
    assert "was deleted" in str(ask(session, "delete", kind="tag", name="old", seen=seen))
    assert "old" not in dataset.tags.names()


def test_a_form_is_checked_while_it_is_filled_in(session: Session) -> None:
    def check(name: str, at: str = "dev", kind: str = "tag", action: str = "create") -> Any:
        return ask(session, "check", kind=kind, action=action, name=name, at=at)

    assert check("")["reason"] == ""
    assert "only letters" in check("a/b")["reason"]
    assert "already" in check("v1")["reason"]
    assert "'main' is reserved" in check("main", kind="branch")["reason"]
    assert "version 99" in check("x", "dev:99")["problem"]
    found = check("x/y", kind="branch")
    assert (found["reason"], found["place"]["label"]) == ("", "dev:3")
    assert found["code"]["python"].endswith(".create_branch('x/y', ('dev', 3))")
    moved = check("v1", "HEAD", action="move")
    assert [one["level"] for one in moved["consequences"]] == ["ok", "ok", "warn"]
    assert "'nope'" in check("nope", action="move")["error"]


def test_tags_are_made_moved_described_and_deleted(session: Session) -> None:
    made = ask(session, "create", kind="tag", name="t", branch="dev", version=3, note=" hi ")
    assert made["words"] == "Tag t was created at dev:3."
    assert "t" in [one["name"] for one in made["parts"]["timeline"]["tags"]]
    assert other(session).tags.list()["t"]["metadata"] == {"note": "hi"}
    seen = {"branch": "dev", "version": 3}
    ask(session, "move", name="t", branch=None, version=2, seen=seen)
    assert (
        "moved meanwhile"
        in ask(session, "move", name="t", branch=None, version=1, seen=seen)["error"]
    )
    assert "moved meanwhile" in ask(session, "delete", kind="tag", name="t", seen=seen)["error"]
    assert other(session).tags.get_version("t") == 2
    assert (
        "changed by another writer"
        in ask(session, "note", kind="tag", name="t", note="x", before="")["error"]
    )
    ask(session, "note", kind="tag", name="t", note="", before="hi")
    assert other(session).tags.list()["t"]["metadata"] == {}
    explained = ask(session, "explain", kind="tag", name="t")
    assert explained["seen"]["label"] == "main:2"
    assert "then frees" in ask(session, "bytes", name="v1")["words"]
    ask(session, "delete", kind="tag", name="t", seen=explained["seen"])
    assert other(session).tags.names() == ["v1"]


def test_a_branch_that_changed_since_it_was_looked_at_stays(session: Session) -> None:
    seen = ask(session, "explain", kind="branch", name="dev")["seen"]
    other(session).checkout_version(("dev", None)).insert(rows(50, 1))
    refused = ask(session, "delete", kind="branch", name="dev", seen=seen)
    assert "its newest version is now 4" in refused["error"]
    other(session).tags.create("needs", ("dev", 4))
    explained = ask(session, "explain", kind="branch", name="dev")
    assert explained["refused"]
    assert "needs" in explained["consequences"][0]["text"]
    assert (
        "cannot be deleted"
        in ask(session, "delete", kind="branch", name="dev", seen=explained["seen"])["error"]
    )
    assert other(session).branches.names() == ["dev"]


def test_who_deletes_the_branch_in_view_is_taken_to_its_fork(session: Session) -> None:
    session.travel("dev")
    explained = ask(session, "explain", kind="branch", name="dev")
    done = ask(session, "delete", kind="branch", name="dev", seen=explained["seen"])
    assert done["place"]["label"] == "main:2"
    assert (session.dataset.branch, session.dataset.version) == (None, 2)
    assert "error" not in done["parts"]["card"]
    ask(session, "create", kind="branch", name="dev", branch=None, version=1, note="")
    assert session.open(("dev", 1)).count_rows() == 10


def test_nothing_is_written_while_the_lock_is_shut(session: Session) -> None:
    plan = ask(session, "plan", kind="merge", source="dev", into="main", **HOW)
    session.lock(locked=True)
    place = {"branch": None, "version": 1}
    for what, args in {
        "create": {"kind": "tag", "name": "t", "note": "", **place},
        "move": {"name": "v1", "seen": place, **place},
        "note": {"kind": "tag", "name": "v1", "note": "x", "before": ""},
        "delete": {"kind": "tag", "name": "v1", "seen": place},
        "merge": {"plan": plan["plan"], "message": ""},
    }.items():
        assert "explorer is locked" in ask(session, what, **args)["error"]
    assert other(session).tags.names() == ["v1"]
    assert other(session).version == 3


@pytest.mark.parametrize(
    ("what", "args", "words"),
    [
        ("list", {"kind": "both", "text": "", "sort": "name", "first": 0, "count": 1}, "kind"),
        ("list", {"kind": "tag", "text": 7, "sort": "name", "first": 0, "count": 1}, "text"),
        ("list", {"kind": "tag", "text": "", "sort": "x", "first": 0, "count": 1}, "sort"),
        ("heads", {"names": ["x"] * 41}, "names"),
        ("delete", {"kind": "tag", "name": "v1", "seen": "main:1"}, "seen"),
        ("plan", {"kind": "rebase", "source": "dev", **HOW}, "kind must be one of"),
        ("plan", {"kind": "merge", "source": " ", **HOW}, "name the branch"),
        ("plan", {"kind": "merge", "source": "main", **HOW}, "into itself"),
        ("plan", {"kind": "merge", "source": "dev", **HOW, "strategy": "hope"}, "strategy"),
    ],
)
def test_requests_that_make_no_sense_are_refused(
    session: Session, what: str, args: dict[str, Any], words: str
) -> None:
    assert words in ask(session, what, **args)["error"]


def test_a_dataset_that_cannot_be_changed_is_shown_all_the_same() -> None:
    session = Session(small_dataset())
    session.lock(locked=False)
    assert ask(session, "show", kind="branch", name="dev")["fork"]["label"] == "main:2"
    made = ask(session, "create", kind="tag", name="t", branch=None, version=1, note="")
    assert "cannot be changed" in made["error"]


def test_branches_and_tags_are_pictured_with_their_places(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = lance_nb.write_dataset(pa.table({"id": [1]}), "memory://ref-pictures/d.lance")
    dataset.tags.create("v1", 1)
    dataset.create_branch("dev")
    dataset.create_branch("try")
    shown = RefsManager(dataset).picture()
    for words in ("2 besides main, 1 tag", "dev", "from main:1", "v1", "main:1"):
        assert words in shown.text
    assert shown.html.count("<tr>") == 1 + 4
    monkeypatch.setattr(branches, "MAX_RENDERED", 1)
    few = RefsManager(dataset).picture().text
    assert "try" not in few
    assert "1 more" in few


def test_an_unfinished_branch_is_pictured_as_such(tmp_path: Path) -> None:
    dataset = lance_nb.write_dataset(pa.table({"id": [1]}), tmp_path)
    dataset.create_branch("half")
    shutil.rmtree(tmp_path / "tree")
    assert "from main:1, unfinished" in RefsManager(dataset).picture().text


def test_without_a_dataset_the_picture_says_why() -> None:
    assert "No dataset found" in RefsManager("memory://ref-pictures/none.lance").picture().text
