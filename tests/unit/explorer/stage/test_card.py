from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import LanceDataset, staging
from lance_nb.errors import CancelledError, CommitStateUnknownError, InvalidInputError
from lance_nb.explorer.stage import card as card_module
from lance_nb.explorer.stage.card import COMMITTED, UNKNOWN, Card, ProgressReporter
from lance_nb.explorer.stage.card_view import card_json
from lance_nb.explorer.stage.edit_forms import EditForm
from lance_nb.explorer.stage.staging_area import StagingArea, staging_area_of
from tests.support.explorer_samples import EVERY

Add = Callable[..., Card]


@pytest.mark.parametrize("change", EVERY)
def test_every_change_shows_what_the_commit_then_does(
    change: tuple[str, dict[str, Any], int | None],
    area: StagingArea,
    add: Add,
    newest: Callable[[], LanceDataset],
) -> None:
    verb, args, rows = change
    card = add(verb, **args)
    shown = card_json(card)
    assert shown["state"] == "ready"
    assert shown["title"]
    assert newest().version == 1
    area.commit(card.id, "why", ProgressReporter())
    outcome = card_json(card)["outcome"]
    if rows is None:
        assert card.preview is None
        assert outcome["version"] is None
        return
    assert card.preview is not None
    assert (card.preview.num_rows_after, newest().count_rows()) == (rows, rows)
    assert (outcome["version"], outcome["undo"]["version"]) == (2, "1")
    assert newest().version_info(2).message == "why"


def test_fragments_that_get_other_columns_are_touched(add: Add) -> None:
    shown = card_json(add("add_column", name="twice", sql="price * 2"))
    facts = {one["label"]: one["value"] for one in shown["facts"]}
    assert (facts["rows"], facts["fragments"], facts["files"]) == (
        "20 → 20",
        "2 changed",
        "2 data files",
    )
    assert [one["change"] for one in shown["fragments"]] == ["changed", "changed"]
    assert [one["label"] for one in shown["samples"]] == ["before", "after"]
    nulls = card_json(add("add_column", name="empty", type="float32"))
    assert {"label": "fragments", "value": "none"} in nulls["facts"]


def test_only_the_commit_that_was_met_is_blamed(
    dataset: LanceDataset, area: StagingArea, add: Add
) -> None:
    card = add("delete", where="id < 5")
    lance_nb.dataset(dataset.uri).delete("id = 7")
    lance_nb.dataset(dataset.uri).update({"price": "0"}, where="id = 3")
    area.commit(card.id, None, ProgressReporter())
    words = {one["version"]: one["words"] for one in card_json(card)["meetings"]}
    assert words == {
        2: "this card is rebased onto it automatically",
        3: "changed rows that this card changes: re-run the card",
    }


@pytest.mark.parametrize("landed", [True, False])
def test_an_unknown_outcome_is_looked_at_again(
    landed: bool,
    area: StagingArea,
    add: Add,
    newest: Callable[[], LanceDataset],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = staging.commit_staged

    def lost(session: Any, branch: Any, staged: Any, options: Any, properties: Any) -> Any:
        if landed:
            real(session, branch, staged, options, properties)
        raise CommitStateUnknownError("the reply was lost", options.environment.new_uuid(), 2)

    card = add("append", source="more")
    with monkeypatch.context() as patched:
        patched.setattr(staging, "commit_staged", lost)
        area.commit(card.id, None, ProgressReporter())
    assert card.state == UNKNOWN
    problem = card_json(card)["problem"]
    assert "outcome of this commit is unknown" in problem["title"]
    card.look_again()
    assert (card.state, card.version) == ((COMMITTED, 2) if landed else (UNKNOWN, None))
    if not landed:
        area.commit(card.id, None, ProgressReporter())
    assert (card.state, card.version, newest().version) == (COMMITTED, 2, 2)
    assert newest().count_rows() == 22
    with pytest.raises(InvalidInputError, match="already known"):
        card.look_again()


def test_a_restore_undoes_what_was_committed(
    area: StagingArea, add: Add, newest: Callable[[], LanceDataset]
) -> None:
    card = area.commit(add("delete", where="id < 5").id, None, ProgressReporter())
    undo = card_json(card)["outcome"]["undo"]
    area.commit(add(undo["verb"], version=undo["version"]).id, None, ProgressReporter())
    assert (newest().version, newest().count_rows()) == (3, 20)


def test_a_committed_card_is_not_committed_again(area: StagingArea, add: Add) -> None:
    card = area.commit(add("append", source="more").id, None, ProgressReporter())
    with pytest.raises(InvalidInputError, match="is committed"):
        area.commit(card.id, None, ProgressReporter())
    with pytest.raises(InvalidInputError, match="is committed"):
        area.rerun(card.id, ProgressReporter())
    assert card.discard() == 0


def test_names_are_changed_only_where_they_were_seen(
    dataset: LanceDataset, area: StagingArea, add: Add
) -> None:
    dataset.tags.create("v1", 1)
    card = add("tag", action="delete", name="v1")
    other = lance_nb.dataset(dataset.uri)
    other.delete("id = 1")
    other.tags.update("v1", 2)
    with pytest.raises(lance_nb.LanceError):
        area.commit(card.id, None, ProgressReporter())
    assert dataset.tags.names() == ["v1"]
    area.rerun(card.id, ProgressReporter())
    area.commit(card.id, None, ProgressReporter())
    assert dataset.tags.names() == []


@pytest.mark.parametrize(
    ("verb", "args", "words"),
    [
        ("tag", {"action": "move", "name": "nope"}, "tag 'nope' does not exist"),
        ("tag", {"action": "delete", "name": "nope"}, "tag 'nope' does not exist"),
        ("branch", {"action": "delete", "name": "nope"}, "nope"),
        ("restore", {"version": "99"}, "99"),
        ("add_column", {"name": "x"}, "type of a column of nulls"),
        ("append", {"source": "nothing"}, "neither a variable"),
        ("cleanup", {"older_than": 99999}, "36,500 days"),
    ],
)
def test_what_makes_no_sense_is_refused_when_it_is_staged(
    verb: str, args: dict[str, Any], words: str, area: StagingArea, add: Add
) -> None:
    with pytest.raises(lance_nb.LanceError, match=words):
        add(verb, **args)
    assert area.cards == []


def test_branches_are_made_and_deleted(dataset: LanceDataset, area: StagingArea, add: Add) -> None:
    area.commit(add("branch", action="create", name="dev").id, None, ProgressReporter())
    with pytest.raises(InvalidInputError, match="branch 'dev' already exists"):
        add("branch", action="create", name="dev")
    card = add("branch", action="delete", name="dev")
    assert "1 version" in " ".join(card_json(card)["lines"])
    area.commit(card.id, None, ProgressReporter())
    assert dataset.branches.names() == []


def test_an_upsert_tells_new_rows_from_those_that_were_there(dataset: LanceDataset) -> None:
    rows = pa.table({"id": [3, 900], "price": [0.0, 1.0]})
    form = EditForm.of("upsert", {"source": "rows", "on": ["id"]})
    card = staging_area_of(dataset).add(dataset, form, {"rows": rows}, ProgressReporter())
    before, after = card_json(card)["samples"]
    signs = dict(zip((row[0] for row in after["rows"]), after["signs"], strict=True))
    assert signs == {"3": "~", "900": "+"}
    assert "signs" not in before


def test_titles_name_one_thing(add: Add) -> None:
    titles = [card_json(add(verb, **args))["title"] for verb, args in (
        ("rename_column", {"column": "price", "name": "cost"}),
        ("restore", {"version": "1"}),
        ("restore", {"version": "main:1"}),
        ("add_column", {"name": "a", "sql": "id + 1"}),
    )]  # fmt: skip
    assert titles == ["Rename column price to cost", "Restore version 1", "Restore main:1",
                      "Add column a = id + 1"]  # fmt: skip


def cancelled(_done: int, _total: int) -> None:
    raise CancelledError("cancelled")


def test_steps_and_runs_are_reported() -> None:
    told: list[tuple[int, int]] = []
    reporter = ProgressReporter("commit", lambda done, total: told.append((done, total)))
    reporter.count(2, 5)
    assert (reporter.now.title, reporter.now.done, reporter.now.total) == ("commit", 2, 5)
    run = SimpleNamespace(
        phase="running", engine="spark", num_done=3, num_tasks=4, num_rows=70, done_bytes=9
    )
    reporter.run(run)
    assert (reporter.now.engine, reporter.now.rows, reporter.now.size_bytes) == ("spark", 70, 9)
    reporter.phase("committing")
    assert (reporter.now.phase, reporter.now.engine) == ("committing", "spark")
    assert told[:2] == [(2, 5), (3, 4)]
    assert not reporter.is_stopped()


def test_a_cancel_ends_steps_and_is_passed_to_runs() -> None:
    with pytest.raises(CancelledError):
        ProgressReporter("stage", cancelled).count(1, 2)
    reporter = ProgressReporter("stage", cancelled)
    assert reporter.is_stopped()
    with pytest.raises(CancelledError):
        reporter.check()


def test_time_goes_on_while_nothing_is_reported() -> None:
    reporter = ProgressReporter("commit")
    first, then = reporter.snapshot(), reporter.snapshot()
    assert then.elapsed_s > first.elapsed_s > 0.0
    assert reporter.now.elapsed_s == 0.0


def test_the_view_reads_fields_that_running_work_has() -> None:
    script = (Path(card_module.__file__).parent / "stage.js").read_text("utf-8")
    read = set(re.findall(r"(?<![.\w])running\.(\w+)", script))

    assert "title" in read
    assert read <= {field.name for field in fields(card_module.Running)}
