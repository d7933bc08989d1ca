"""The review of a branch, as the explorer asks for it and writes into it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.explorer.log.operations_log import operations_log_of
from lance_nb.explorer.messages import handle
from lance_nb.explorer.review import widget as review
from lance_nb.explorer.review.review import ReviewSections, marked_words
from lance_nb.explorer.review.widget import ReviewHandlers
from lance_nb.explorer.session import Session
from tests.support.written_tables import make, rows, uri
from tests.ui.flow_dataset import png

__all__ = ["make", "rows", "uri"]

Ask = Callable[..., dict[str, Any]]
HOSTILE = "<b>\u202eabc"


@pytest.fixture
def dataset(make: Callable[..., LanceDataset]) -> LanceDataset:
    table = pa.table({"id": range(4), "note": ["a b c"] * 4, "photo": [png(8, 8, 1)] * 4})
    found = make(table, enable_stable_row_ids=True)
    found.expectations.add("id < 9", name="small")
    branch = found.create_branch("dev")
    changed = pa.table({"id": [1], "note": ["a x c"], "photo": [png(8, 8, 200)]})
    branch.merge_insert("id").when_matched_update_all().execute(changed)
    branch.insert(pa.table({"id": [20], "note": [HOSTILE], "photo": [b"no picture"]}))
    return found


@pytest.fixture
def session(dataset: LanceDataset) -> Session:
    return Session(dataset)


@pytest.fixture
def ask(session: Session) -> Ask:
    return asker(session)


def asker(session: Session) -> Ask:
    def asked(type_: str, **args: Any) -> dict[str, Any]:
        handlers = session.keep(ReviewHandlers).handlers()
        request = {"id": "1", "type": type_, "args": {"branch": "dev", "into": None, **args}}
        reply, buffers = handle(request, handlers)
        found: dict[str, Any] = dict(reply)
        if not found["ok"]:
            return {"error": found["error"]["message"]}
        return {**found["result"], **({"buffers": buffers} if buffers else {})}

    return asked


def test_what_it_is_about(ask: Ask) -> None:
    found = ask("review.open")
    summary = found["summary"]
    assert (summary["label"], summary["into_label"], summary["state"]) == (
        "dev", "main", "not approved",
    )  # fmt: skip
    assert summary["source"] == {"branch": "dev", "version": 4, "label": "dev:4"}
    assert summary["base"] == {"branch": None, "version": 2, "label": "main:2"}
    assert "rows in: 2" in summary["facts"]
    assert found["newest"]["label"] == "dev:4"
    assert found["discussion"] == []
    assert found["code"] == {
        "python": "ds.branches.review('dev', 'main')",
        "magic": "%lance review dev --into main",
    }


def test_the_sections(ask: Ask) -> None:
    ask("review.open")
    assert ask("review.section", section="schema")["rows"] == []
    cells = ask("review.section", section="cells")
    note, photo = cells["rows"]
    assert note["before"] == {"parts": [(False, "a "), (True, "b"), (False, " c")]}
    assert note["after"] == {"parts": [(False, "a "), (True, "x"), (False, " c")]}
    assert (photo["before"]["image"], photo["after"]["image"]) == (0, 1)
    assert cells["buffers"] == [png(8, 8, 1), png(8, 8, 200)]
    added, removed = ask("review.section", section="rows")["kinds"]
    assert (added["kind"], added["num_rows"], removed["rows"]) == ("added", 1, [])
    (row,) = added["rows"]
    assert "\u202e" not in str(row)
    assert not [one for one in row if "image" in one]
    assert [one["name"] for one in ask("review.section", section="drift")["columns"]] == [
        "id", "note", "photo",
    ]  # fmt: skip
    checks = ask("review.section", section="checks")
    assert checks["sentence"] == "dev:4: 1 expectation, 1 failed"
    assert "section must be one of" in ask("review.section", section="x")["error"]


def test_pictures_beyond_the_room_are_named(dataset: LanceDataset) -> None:
    sections = ReviewSections(dataset.branches.review("dev"), image_bytes=len(png(8, 8, 1)))
    photo = sections.cells()["rows"][1]
    assert "image" in photo["before"]
    assert "image" not in photo["after"]
    assert len(sections.images) == 1


def test_words_of_long_texts_are_not_compared() -> None:
    long = "a b " * 2000
    before, after = marked_words(long, f"{long}c")
    assert [changed for changed, _ in before + after] == [False, False]
    assert marked_words("", "") == ([], [])


def test_comments_are_written_read_and_seen_by_others(
    ask: Ask, session: Session, dataset: LanceDataset
) -> None:
    found = ask("review.open")
    write = {"identifier": found["identifier"], "kind": "comment", "text": "Why?"}
    assert "locked" in ask("review.write", **write)["error"]
    session.lock(locked=False)
    assert ask("review.news", mark=found["mark"]) == {"mark": found["mark"]}
    other = asker(Session(lance_nb.dataset(dataset.uri)))
    seen = other("review.open")
    first = ask("review.write", **write, author="ada")
    (comment,) = first["discussion"]
    assert (comment["author"], comment["text"], comment["depth"]) == ("ada", "Why?", 0)
    assert first["code"]["python"] == (
        "ds.branches.review('dev', 'main').comment('Why?', author='ada')"
    )
    heard = other("review.news", mark=seen["mark"])
    assert [one["text"] for one in heard["discussion"]] == ["Why?"]
    assert other("review.news", mark=heard["mark"]) == {"mark": heard["mark"]}
    answered = ask("review.write", **{**write, "text": HOSTILE}, reply_to=comment["id"])
    assert [one["depth"] for one in answered["discussion"]] == [0, 1]
    assert "\u202e" not in answered["discussion"][1]["text"]
    assert "--reply-to" in answered["code"]["magic"]
    entry = operations_log_of(dataset.uri).to_json(dataset)["entries"][0]
    assert entry["what"] == "Comment on dev:4"
    assert "record of a discussion" in entry["undo"]["reason"]


def test_an_approval_is_of_the_version_that_was_looked_at(
    ask: Ask, session: Session, dataset: LanceDataset
) -> None:
    session.lock(locked=False)
    identifier = ask("review.open")["identifier"]
    dataset.checkout_version(("dev", None)).delete("id = 20")
    found = ask("review.write", identifier=identifier, kind="approval", text="")
    assert found["summary"]["approved"]  # of version 4, which is on the page
    assert found["newest"]["label"] == "dev:5"
    assert not dataset.branches.review("dev").is_approved
    assert found["code"]["magic"] == "%lance review dev --into main --approve"
    opened = ask("review.open")
    assert opened["summary"]["state"] == "not approved"
    assert opened["discussion"][0]["is_late"]
    asked = ask("review.write", identifier=identifier, kind="changes-requested", text="More.")
    assert asked["summary"]["state"] == "changes requested"


def test_what_cannot_be_written(ask: Ask, session: Session, dataset: LanceDataset) -> None:
    session.lock(locked=False)
    form = {"kind": "comment", "text": "x"}
    assert "no longer open" in ask("review.write", identifier="x", **form)["error"]
    assert "no longer open" in ask("review.news", mark="")["error"]
    ask("review.open")
    assert "opened again" in ask("review.write", identifier="x", **form)["error"]
    identifier = dataset.branches.review("dev").identifier
    for wrong, message in (
        ({"text": " "}, "write what you want to say"),
        ({"kind": "nonsense"}, "kind must be one of"),
        ({"reply_to": "../../x"}, ""),
    ):
        found = ask("review.write", identifier=identifier, **{**form, **wrong})
        assert message in found["error"]
    assert dataset.branches.review("dev").comments() == []


def test_the_page_in_one_file_comes_in_pieces(
    ask: Ask, dataset: LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(review, "PIECE_BYTES", 1000)
    ask("review.open")
    first = ask("review.page", offset=0)
    assert first["name"] == "review-dev.html"
    assert first["code"]["magic"] == "%lance review dev --into main --html review.html"
    page = b"".join(
        ask("review.page", offset=at)["buffers"][0] for at in range(0, first["size"], 1000)
    )
    assert page.decode() == dataset.branches.review("dev").to_html()
    assert ask("review.page", offset=first["size"])["buffers"] == [b""]


def test_a_branch_that_is_deleted_keeps_its_discussion(
    ask: Ask, session: Session, dataset: LanceDataset
) -> None:
    session.lock(locked=False)
    found = ask("review.open")
    ask("review.write", identifier=found["identifier"], kind="comment", text="x")
    dataset.branches.delete("dev")
    heard = ask("review.news", mark=found["mark"])
    assert heard["newest"] is None
    assert len(heard["discussion"]) == 1
    assert "dev" in ask("review.open")["error"]


def test_the_review_of_a_branch_without_changes(ask: Ask, dataset: LanceDataset) -> None:
    dataset.create_branch("same")
    found = ask("review.open", branch="same")
    assert found["summary"]["facts"] == []
    assert ask("review.section", branch="same", section="cells")["rows"] == []
    assert "against itself" in ask("review.open", branch="main")["error"]
