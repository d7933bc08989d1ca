"""Marks, checks, searches and changes of expectations, as the explorer asks for them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.explorer.checks import widget as expectations
from lance_nb.explorer.checks.version_checks import sample_json
from lance_nb.explorer.checks.widget import CheckHandlers, ExpectationsPanel
from lance_nb.explorer.log.operations_log import operations_log_of
from lance_nb.explorer.messages import begin, finish, handle
from lance_nb.explorer.session import Session
from tests.support.fake_dataset import small_dataset

Ask = Callable[..., dict[str, Any]]
HOSTILE = "<img src=x>\u202e"


@pytest.fixture(autouse=True)
def cache_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def dataset(tmp_path: Path) -> LanceDataset:
    """Six versions; the fourth brings two rows that an expectation of the last one forbids."""
    uri = str(tmp_path / "a.lance")
    for one in range(5):
        table = pa.table({"id": [2 * one, 2 * one + 1], "score": [1.5 if one == 3 else 0.5] * 2})
        found = lance_nb.write_dataset(table, uri, mode="append" if one else "create")
    found.expectations.add("score <= 1", name="range")
    return found


@pytest.fixture
def session(dataset: LanceDataset) -> Session:
    return Session(dataset)


@pytest.fixture
def ask(session: Session) -> Ask:
    def asked(type_: str, **args: Any) -> dict[str, Any]:
        handlers = ExpectationsPanel.request_handlers(session)
        request = {"id": "1", "type": type_, "args": {"branch": None, **args}}
        reply, _ = handle(request, handlers)
        found: dict[str, Any] = dict(reply)
        result: dict[str, Any] = found["result"] if found["ok"] else {"error": found["error"]}
        return result

    return asked


def statuses(ask: Ask, *numbers: int, **how: Any) -> dict[int, str]:
    found = ask("checks.marks", numbers=list(numbers), **{"read": False, **how})
    return {version: status for version, status, _ in found["marks"]}


def test_the_state_of_a_branch(ask: Ask, dataset: LanceDataset) -> None:
    found = ask("checks.state")
    assert (found["version"], found["gate"], found["is_watched"]) == (6, False, True)
    assert found["expectations"] == [{"name": "range", "kind": "check", "statement": "score <= 1"}]
    assert [one["name"] for one in found["columns"]] == ["id", "score"]
    before = found["key"]
    dataset.insert(pa.table({"id": [50], "score": [0.1]}))
    assert ask("checks.state")["key"] == before
    dataset.update_config({"lance_nb.expectation.bad": HOSTILE})
    found = ask("checks.state")
    assert found["key"] != before
    assert found["problems"][0]["name"] == "bad"
    assert "\u202e" not in found["problems"][0]["problem"]


def test_a_dataset_of_another_kind_has_no_expectations() -> None:
    session = Session(small_dataset())
    request = {"id": "1", "type": "checks.state", "args": {"branch": None}}
    reply, _ = handle(request, session.keep(CheckHandlers).handlers())
    assert reply["ok"]
    assert reply["result"]["expectations"] == []


def test_versions_are_marked(ask: Ask, dataset: LanceDataset) -> None:
    found = ask("checks.marks", numbers=[6, 4, 3, 99], read=False)
    assert found["key"] == ask("checks.state")["key"]
    assert found["marks"] == [
        (6, "fail", "✗ range fails for 2 rows"),
        (4, "fail", "✗ range fails for 2 rows"),
        (3, "pass", "✓ 1 expectation passed"),
        (99, "unknown", found["marks"][3][2]),
    ]
    assert "99" in found["marks"][3][2]
    dataset.drop_columns(["score"])
    assert statuses(ask, 7) == {7: "unknown"}


def test_words_name_three_expectations_and_count_the_rest(ask: Ask, dataset: LanceDataset) -> None:
    for bound in range(4):
        dataset.expectations.add(f"id < {bound}", name=f"b{bound}")
    dataset.expectations.add_row_count(100, name="a-rows")
    (mark,) = ask("checks.marks", numbers=[6], read=False)["marks"]
    assert mark[2] == (
        "✗ a-rows: 10 rows, at least 100 expected; b0 fails for 10 rows; b1 fails for 9 rows; "
        "3 more fail"
    )


def test_what_was_marked_is_not_read_again(ask: Ask, dataset: LanceDataset) -> None:
    from lance_nb.storage import meter

    statuses(ask, 1, 2, 3, 4, 5, 6)
    before = meter.totals().read_bytes
    assert statuses(ask, 1, 2, 3, 4, 5, 6)[4] == "fail"
    assert meter.totals().read_bytes == before
    session = Session(lance_nb.dataset(dataset.uri))  # another explorer, another kernel
    request = {"id": "1", "type": "checks.marks", "args": {"branch": None, "numbers": [4]}}
    checker = session.keep(CheckHandlers)
    reply, _ = handle(request, checker.handlers())
    assert reply["ok"]
    assert checker._unasked_bytes == 0


def test_little_is_read_without_being_asked(
    ask: Ask, dataset: LanceDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = dataset.get_fragments()[0].metadata.files[0].file_size_bytes
    assert size is not None
    monkeypatch.setattr(expectations, "UNASKED_BYTES", int(2.5 * size))
    assert statuses(ask, 1, 2, 3, 6) == {1: "pass", 2: "pass", 3: "unchecked", 6: "unchecked"}
    (mark,) = ask("checks.marks", numbers=[3], read=False)["marks"]
    assert "not checked yet" in mark[2]
    assert statuses(ask, 6, read=True) == {6: "fail"}
    assert statuses(ask, 3) == {3: "pass"}  # from the cache now


def test_nothing_is_read_from_a_network_without_being_asked(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expectations, "_LOCAL", frozenset())
    assert ask("checks.state")["is_watched"] is False
    assert statuses(ask, 3) == {3: "unchecked"}
    assert statuses(ask, 3, read=True) == {3: "pass"}


def test_versions_with_large_manifests_are_left_until_they_are_in_sight(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expectations, "WATCHED_FRAGMENTS", 29)  # 6 versions of up to 5 fragments
    assert ask("checks.state")["is_watched"] is False
    monkeypatch.setattr(expectations, "WATCHED_FRAGMENTS", 30)
    assert ask("checks.state")["is_watched"] is True


def test_one_version_is_checked(ask: Ask) -> None:
    found = ask("checks.run", version=4)
    assert found["sentence"] == "main:4: 1 expectation, 1 failed"
    assert found["outcomes"] == [
        {
            "name": "range", "statement": "score <= 1", "kind": "check", "status": "fail",
            "detail": "the condition is false for 2 rows of 8; in fragment 3", "rows": 2,
            "filter": "(score <= 1) IS FALSE",
        }
    ]  # fmt: skip
    assert found["code"] == {"python": "ds.check(4)", "magic": "%lance check main:4"}


def test_the_first_bad_version_and_its_rows(ask: Ask) -> None:
    found = ask("checks.bisect", name="range", bad=6)
    assert (found["first_bad"], found["last_good"], found["label"]) == (4, 3, "main:4")
    assert found["sample"] == {
        "columns": [{"name": "score", "type": "float64"}, {"name": "id", "type": "int64"}],
        "rows": [["1.5", "6"], ["1.5", "7"]],
        "images": [],
        "cut": 0,
    }
    assert found["code"]["python"] == "ds.expectations.bisect('range', bad=6)"
    assert found["code"]["magic"] == "%lance expect bisect range --bad 6"
    assert ask("checks.bisect", name="range", bad=3)["first_bad"] is None
    assert "no expectation" in ask("checks.bisect", name="x", bad=6)["error"]["message"]


def test_rows_that_fail_at_a_version(ask: Ask, dataset: LanceDataset) -> None:
    assert ask("checks.rows", version=6, name="range")["sample"]["rows"] == [
        ["1.5", "6"], ["1.5", "7"],
    ]  # fmt: skip
    assert ask("checks.rows", version=3, name="range")["sample"] is None
    dataset.expectations.add_row_count(99, name="rows")
    found = ask("checks.rows", version=6, name="rows")
    assert (found["sample"], found["outcome"]["status"]) == (None, "fail")


FORMS: tuple[tuple[str, dict[str, Any], str, str], ...] = (
    ("check", {"sql": "id < 5"}, "add('id < 5')", "add 'id < 5'"),
    ("not_null", {"column": "id"}, "add_not_null('id')", "not-null id"),
    ("unique", {"columns": ["id"]}, "add_unique('id')", "unique id"),
    ("unique", {"columns": ["id", "score"]}, "add_unique(['id', 'score'])", "unique id,score"),
    ("row_count", {"min": 1}, "add_row_count(1, None)", "rows --min 1"),
    ("drift", {"column": "id", "max": 0.5, "against": "previous"},
     "add_drift('id', 0.5, against='previous')", "drift id --limit 0.5 --against previous"),
    ("reference", {"column": "id", "uri": "b.lance", "to": "n"},
     "add_reference('id', 'b.lance', 'n')", "reference id --uri b.lance --to n"),
)  # fmt: skip


@pytest.mark.parametrize(("kind", "fields", "python", "magic"), FORMS)
def test_forms_have_code(
    ask: Ask, kind: str, fields: dict[str, Any], python: str, magic: str
) -> None:
    found = ask("checks.form", kind=kind, fields=fields, name="")
    assert found == {
        "problem": "",
        "code": {"python": f"ds.expectations.{python}", "magic": f"%lance expect {magic}"},
    }
    named = ask("checks.form", kind=kind, fields=fields, name="n")["code"]
    assert "name='n'" in named["python"]
    assert "--name n" in named["magic"]


@pytest.mark.parametrize(
    ("kind", "fields", "problem"),
    [
        ("check", {"sql": "nothere < 5"}, "nothere"),
        ("check", {"sql": "id <"}, "not SQL"),
        ("check", {"sql": "count(*) > 1"}, "aggregate"),
        ("not_null", {"column": "x"}, "x"),
        ("row_count", {}, "give a minimum"),
        ("row_count", {"min": "many"}, "integer"),
        ("drift", {"column": "id", "max": -1}, "above 0"),
        ("nonsense", {}, "kind"),
        ("check", {"sql": "id < 5", "other": 1}, "unknown fields"),
    ],
)
def test_a_wrong_form_says_why(ask: Ask, kind: str, fields: dict[str, Any], problem: str) -> None:
    assert problem in ask("checks.form", kind=kind, fields=fields, name="")["problem"]


def test_a_taken_name_is_refused(ask: Ask) -> None:
    found = ask("checks.form", kind="check", fields={"sql": "id < 5"}, name="range")
    assert "already" in found["problem"]


def test_changes_are_versions_and_are_logged(
    ask: Ask, session: Session, dataset: LanceDataset
) -> None:
    form = {"kind": "check", "fields": {"sql": "id < 500"}, "name": "bound"}
    for refused in (
        ask("checks.add", **form),
        ask("checks.remove", name="range"),
        ask("checks.gate", closed=True),
    ):
        assert "locked" in refused["error"]["message"]
    session.lock(locked=False)
    found = ask("checks.add", **form)
    assert (found["version"], found["words"]) == (7, "Add expectation bound: main:7")
    found = ask("checks.gate", closed=True)
    assert found["code"]["magic"] == "%lance expect gate on"
    found = ask("checks.remove", name="range")
    assert found["version"] == 9
    newest = lance_nb.dataset(dataset.uri)
    assert newest.expectations.names() == ["bound"]
    assert newest.expectations.gate
    assert "no expectation" in ask("checks.remove", name="range")["error"]["message"]
    entries = operations_log_of(dataset.uri).to_json(newest)["entries"]
    assert [one["what"] for one in entries] == [
        "Remove expectation range", "Close the gate of staging", "Add expectation bound",
    ]  # fmt: skip
    assert entries[0]["undo"] == {"label": "Restore main:8", "reason": ""}


def test_another_branch_has_expectations_of_its_own(ask: Ask, dataset: LanceDataset) -> None:
    branch = dataset.create_branch("dev", 4)
    branch.expectations.add("id < 3", name="few")
    assert [one["name"] for one in ask("checks.state", branch="dev")["expectations"]] == ["few"]
    assert statuses(ask, 5, branch="dev") == {5: "fail"}
    assert statuses(ask, 5) == {5: "fail"}
    assert ask("checks.bisect", branch="dev", name="few", bad=5)["label"] == "dev:4"


def test_marks_are_cancelled_between_versions_and_while_they_wait(
    session: Session, ask: Ask
) -> None:
    handlers = session.keep(CheckHandlers)
    request = {"id": "1", "type": "checks.marks", "args": {"branch": None, "numbers": [6, 5, 4]}}
    steps: list[tuple[int, int]] = []

    def stop(done: int, total: int) -> None:
        steps.append((done, total))
        if done == 1:
            raise lance_nb.errors.CancelledError("enough")

    job = begin(request, handlers.handlers())
    reply, _ = finish(*job, stop)  # type: ignore[arg-type]
    assert not reply["ok"]
    assert steps[-1] == (1, 3)
    assert list(handlers._marks) == [(ask("checks.state")["key"], None, 6)]
    held, let_go = threading.Event(), threading.Event()

    def hold() -> None:
        with handlers._alone(lambda *_: None):
            held.set()
            let_go.wait(10)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(10)

    def give_up(_done: int, _total: int) -> None:
        raise lance_nb.errors.CancelledError("enough")

    reply, _ = finish(*begin(request, handlers.handlers()), give_up)  # type: ignore[arg-type]
    assert not reply["ok"]
    let_go.set()
    thread.join()


def test_the_panel_has_a_picture(dataset: LanceDataset) -> None:
    picture = ExpectationsPanel(dataset).picture()
    assert "range" in picture.text
    assert "the gate is open" in picture.text
    assert "score &lt;= 1" in picture.html


def test_pictures_of_rows_that_fail_come_with_their_texts() -> None:
    picture = b"GIF89a" + bytes([2, 0, 2, 0]) + bytes(20)
    table = pa.table({"id": [1, 2], "photo": [None, picture]})
    sample = sample_json(table, 2)
    assert sample["rows"] == [["1", None], ["2", "GIF 2 × 2 · 30 B"]]
    [image] = sample["images"]
    assert (image["row"], image["column"], image["mime"]) == (1, 1, "image/gif")
