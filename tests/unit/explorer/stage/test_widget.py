from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb import spark
from lance_nb.explorer.display import render_value, widget_of
from lance_nb.explorer.log.operations_log import operations_log_of
from lance_nb.explorer.messages import handle
from lance_nb.explorer.session import Session
from lance_nb.explorer.stage import row_sources
from lance_nb.explorer.stage.widget import StagePanel
from lance_nb.spark.run import RunOptions, run_once
from lance_nb.spark.task_log import RecordedTask
from tests.support.fake_dataset import small_dataset
from tests.unit.explorer.conftest import MORE


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setattr(row_sources, "notebook_variables", lambda: {"more": MORE})
    data = pa.table({"id": range(20), "price": [float(one) for one in range(20)]})
    return Session(lance_nb.write_dataset(data, tmp_path / "a.lance"))


def ask(session: Session, kind: str, **args: Any) -> dict[str, Any]:
    place = {"branch": session.dataset.branch, "version": session.dataset.version}
    request = {"id": "1", "type": f"stage.{kind}", "args": place | args}
    reply, _ = handle(request, StagePanel.request_handlers(session))
    found: dict[str, Any] = reply["result"] if reply["ok"] else reply["error"]
    return found


def test_the_menu_offers_verbs_columns_variables_and_names(session: Session) -> None:
    session.dataset.tags.create("v1", 1)  # type: ignore[attr-defined]
    menu = ask(session, "menu")
    assert [one["name"] for one in menu["columns"]] == ["id", "price"]
    assert [one["name"] for one in menu["rows"]] == ["more"]
    assert (menu["tags"], menu["branches"], menu["versions"]) == (["v1"], [], ["main:1", "v1"])
    assert {"append", "compact", "branch"} <= {one["name"] for one in menu["verbs"]}
    assert menu["spark"]


def test_what_is_typed_is_checked_without_the_lock(session: Session) -> None:
    found = ask(session, "check", verb="delete", args={"where": "id < 3"})
    assert found["where"]["name"] == "local"
    assert "delete('id < 3')" in found["code"]["python"]
    wrong = ask(session, "check", verb="delete", args={"where": "id <"})
    assert wrong["kind"] == "PredicateError"
    assert "already" in ask(session, "check", verb="add_column",
                            args={"name": "id", "sql": "1"})["message"]  # fmt: skip
    note = ask(session, "check", verb="add_column", args={"name": "x", "sql": "price * 2"})["note"]
    assert note == "a column of type double"
    assert "'nope'" in ask(session, "check", verb="upsert",
                           args={"source": "more", "on": "nope"})["message"]  # fmt: skip


def test_a_form_for_spark_shows_the_code_for_spark(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark, "why_not", lambda: None)  # as where Java is installed
    found = ask(session, "check", verb="delete", args={"where": "id < 3"}, engine="spark")
    assert found["where"]["name"] == "spark"
    assert found["code"]["python"] == "lance_nb.spark.delete(ds, 'id < 3', engine='spark')"


@pytest.mark.parametrize("kind", ["add", "prepare", "rerun", "commit", "all"])
def test_nothing_is_staged_or_committed_while_the_lock_is_shut(session: Session, kind: str) -> None:
    found = ask(session, kind, verb="append", args={"source": "more"}, id="x", message="")
    assert "this explorer is locked" in found["message"]


def test_a_card_goes_from_form_to_version(session: Session) -> None:
    session.lock(locked=False)
    (card,) = ask(session, "add", verb="append", args={"source": "more"})["area"]["cards"]
    assert ask(session, "running") == {"running": None}
    lance_nb.dataset(session.dataset.uri).delete("id = 1")
    (seen,) = ask(session, "cards")["area"]["cards"]
    assert (seen["checking"], seen["meetings"]) == (True, [])
    (seen,) = ask(session, "forecast")["area"]["cards"]
    assert not seen["checking"]
    assert [one["verdict"] for one in seen["meetings"]] == ["compatible"]
    done = ask(session, "commit", id=card["id"], message="more rows")
    assert (done["branch"], done["version"]) == (None, 3)
    assert done["area"]["cards"][0]["outcome"]["text"] == "committed as main:3"
    tagged = ask(session, "add", verb="tag", args={"action": "create", "name": "v1"})["area"]
    assert "timeline" in ask(session, "commit", id=tagged["cards"][-1]["id"])
    assert ask(session, "remove", id=card["id"])["area"]["cards"][0]["verb"] == "tag"


def test_every_explorer_of_a_dataset_has_the_same_cards(session: Session) -> None:
    session.lock(locked=False)
    ask(session, "add", verb="append", args={"source": "more"})
    other = Session(lance_nb.dataset(session.dataset.uri))
    assert [one["title"] for one in ask(other, "cards")["area"]["cards"]] == [
        "Append rows from more"
    ]
    done = ask(session, "all", message="", together=True)
    assert done["version"] == 2


@pytest.mark.parametrize(
    ("kind", "args", "words"),
    [
        ("add", {"verb": "format", "args": {}}, "there is no change"),
        ("check", {"verb": "delete", "args": 7}, "an object"),
        ("commit", {"id": 7}, "id"),
        ("commit", {"id": "x"}, "no longer exists"),
        ("commit", {"id": "x", "message": "m" * 2000}, "message"),
        ("prepare", {"id": "x", "engine": 7}, "engine"),
        ("look", {"id": "x"}, "no longer exists"),
        ("remove", {"id": "x"}, "no longer exists"),
        ("earlier", {"id": "x"}, "no longer exists"),
    ],
)
def test_requests_that_make_no_sense_are_refused(
    session: Session, kind: str, args: dict[str, Any], words: str
) -> None:
    session.lock(locked=False)
    assert words in ask(session, kind, **args)["message"]


def test_what_is_no_dataset_of_ours_is_not_changed() -> None:
    assert "opened with lance_nb" in ask(Session(small_dataset()), "menu")["message"]


def test_samples_are_bounded_whatever_the_rows_are(tmp_path: Any) -> None:
    wide = pa.table({f"c{at}": ["x" * 10_000] * 50 for at in range(60)})
    session = Session(lance_nb.write_dataset(wide, tmp_path / "w.lance"))
    session.lock(locked=False)
    (card,) = ask(session, "add", verb="delete", args={"where": "c0 != ''"})["area"]["cards"]
    (sample,) = card["samples"]
    assert (len(sample["columns"]), len(sample["rows"]), sample["cut"]) == (8, 5, 52)
    assert max(len(cell) for row in sample["rows"] for cell in row) <= 61


def test_a_stage_made_in_code_is_a_card_too(session: Session) -> None:
    dataset = lance_nb.dataset(session.dataset.uri)
    stage = dataset.stage().append(MORE).delete("id = 1")
    panel = StagePanel(stage)
    assert StagePanel(stage).dataset.version == panel.dataset.version == 1
    session.lock(locked=False)
    (card,) = ask(session, "cards")["area"]["cards"]
    assert (card["title"], card["code"]["python"]) == ("Staged in code", "stage.commit()")
    assert "run that code again" in ask(session, "rerun", id=card["id"])["message"]
    assert ask(session, "commit", id=card["id"])["version"] == 2
    assert stage.state == "committed"
    with pytest.raises(lance_nb.LanceError, match="committed"):
        StagePanel(dataset.stage().include(*stage.edits).joined(stage))


def test_a_stage_shows_itself_as_a_panel(session: Session) -> None:
    stage = lance_nb.dataset(session.dataset.uri).stage().delete("id = 1")
    assert isinstance(widget_of(stage), StagePanel)
    assert "Stage for main:1" in render_value(stage).text
    stage.commit()
    empty = lance_nb.dataset(session.dataset.uri).stage()
    assert not isinstance(widget_of(empty), StagePanel)  # nothing to commit: what it is, no card


def test_a_job_that_was_interrupted_is_offered_and_resumed(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    dataset = lance_nb.dataset(session.dataset.uri)
    dataset.insert(pa.table({"id": range(20, 40), "price": [1.0] * 20}))
    other = lance_nb.write_dataset(pa.table({"id": range(4)}), tmp_path / "b.lance")
    other.insert(pa.table({"id": range(4)}))
    run = RecordedTask.run

    def dies(task: RecordedTask) -> Any:
        if task.number:
            raise KeyboardInterrupt
        return run(task)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(RecordedTask, "run", dies)
        for one in (lance_nb.dataset(session.dataset.uri), other):
            plan = spark.plan_delete(one, "id < 30", task_bytes=1)
            with pytest.raises(KeyboardInterrupt):
                run_once(plan, RunOptions(engine="local", journal=True))
    (job,) = ask(session, "cards")["area"]["unfinished"]
    assert job["title"] == "delete where id < 30"
    assert job["lines"] == ["interrupted: 1 of 2 tasks are done"]
    assert job["code"]["python"] == f"lance_nb.spark.resume({job['id']!r})"
    assert job["code"]["magic"] == f"%lance spark --resume {job['id'][:8]}"
    assert "unlock it" in ask(session, "resume", id=job["id"])["message"]
    session.lock(locked=False)
    found = ask(session, "resume", id=job["id"])
    assert (found["version"], found["area"]["unfinished"]) == (3, [])
    assert lance_nb.dataset(session.dataset.uri).count_rows() == 10
    (entry,) = operations_log_of(session.dataset.uri).entries
    assert entry.action == "delete where id < 30 (resumed)"
    assert "has ended" in ask(session, "resume", id=job["id"])["message"]
    (theirs,) = spark.unfinished()
    assert "has ended" in ask(session, "forget", id=theirs.operation_id)["message"]
    assert len(spark.unfinished()) == 1
