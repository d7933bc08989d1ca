from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.errors import CancelledError, InvalidInputError, RetryableCommitConflictError
from lance_nb.explorer.stage import edit_execution
from lance_nb.explorer.stage.card import COMMITTED, FAILED, PLANNED, READY, Card, ProgressReporter
from lance_nb.explorer.stage.edit_forms import EditForm
from lance_nb.explorer.stage.staging_area import (
    KEPT_DONE,
    MAX_CARDS,
    StagingArea,
    staging_area_of,
)
from tests.unit.explorer.conftest import MORE

Add = Callable[..., Card]
Newest = Callable[[], LanceDataset]


def test_a_dataset_has_one_area_however_it_was_opened(tmp_path: Path, monkeypatch: Any) -> None:
    made = lance_nb.write_dataset(MORE, tmp_path / "a.lance")
    monkeypatch.chdir(tmp_path)
    assert staging_area_of(lance_nb.dataset("a.lance")) is staging_area_of(made)
    assert staging_area_of(made.create_branch("dev")) is staging_area_of(made)


def test_a_card_stands_on_the_newest_version(dataset: LanceDataset, add: Add) -> None:
    lance_nb.dataset(dataset.uri).delete("id = 0")
    card = add("delete", where="id = 1")
    assert (card.dataset.version, card.state) == (2, READY)
    assert card.preview is not None
    assert card.preview.num_rows_after == 18


def test_cards_become_one_version_together(area: StagingArea, add: Add, newest: Newest) -> None:
    add("append", source="more")
    add("delete", where="id < 5")
    assert area.why_not_together() == ""
    preview = area.preview()
    assert preview is not None
    done = area.commit_together("both", ProgressReporter())
    assert [(one.state, one.version) for one in done] == [(COMMITTED, 2)] * 2
    found = newest()
    assert found.count_rows() == preview.num_rows_after == 17
    assert found.version_info(2).message == "both"


def test_cards_on_older_versions_are_made_anew_to_be_together(
    dataset: LanceDataset, area: StagingArea, add: Add, newest: Newest
) -> None:
    add("append", source="more")
    lance_nb.dataset(dataset.uri).delete("id = 0")
    add("delete", where="id = 1")
    assert area.preview() is None
    area.commit_together(None, ProgressReporter())
    assert (newest().version, newest().count_rows()) == (3, 20)


def test_what_one_transaction_cannot_say_is_committed_card_by_card(
    area: StagingArea, add: Add, newest: Newest
) -> None:
    add("add_column", name="twice", sql="price * 2")
    add("append", source="more")
    assert "one transaction" in area.why_not_together()
    with pytest.raises(InvalidInputError, match="one transaction"):
        area.commit_together(None, ProgressReporter())
    done = area.commit_each("in turn", ProgressReporter())
    assert [one.state for one in done] == [COMMITTED, COMMITTED]
    assert (newest().version, newest().count_rows()) == (3, 22)


def test_a_conflict_stops_there_and_a_re_run_goes_on(
    dataset: LanceDataset, area: StagingArea, add: Add, newest: Newest
) -> None:
    card = add("update", set={"price": "0"}, where="id < 3")
    rest = add("append", source="more")
    lance_nb.dataset(dataset.uri).delete("id = 1")
    assert area.commit_each(None, ProgressReporter()) == [card]
    assert (card.state, rest.state) == (FAILED, READY)
    assert isinstance(card.problem, RetryableCommitConflictError)
    assert [one.version for one in card.meetings] == [2]
    area.rerun(card.id, ProgressReporter())
    assert (card.state, card.dataset.version, card.meetings) == (READY, 2, ())
    area.commit_each(None, ProgressReporter())
    assert newest().count_rows(filter="price = 0") == 2


def test_a_card_that_was_taken_away_leaves_nothing(tmp_path: Path) -> None:
    made = lance_nb.write_dataset(MORE, tmp_path / "a.lance")
    before = sorted(tmp_path.rglob("*"))
    area = staging_area_of(made)
    card = area.add(
        made, EditForm.of("append", {"source": "more"}), {"more": MORE}, ProgressReporter()
    )
    assert len(sorted(tmp_path.rglob("*"))) == len(before) + 1
    assert area.remove(card.id) == 1
    assert sorted(tmp_path.rglob("*")) == before
    with pytest.raises(InvalidInputError, match="no longer exists"):
        area.remove(card.id)


@pytest.mark.usefixtures("session")
def test_work_on_spark_waits_until_it_is_asked_for(
    area: StagingArea, add: Add, newest: Newest
) -> None:
    card = add("delete", "spark", where="id < 5")
    assert (card.state, card.where.name, card.stage) == (PLANNED, "spark", None)
    area.prepare(card.id, ProgressReporter(), "local")
    assert (card.state, card.where.name) == (READY, "local")
    area.prepare(card.id, ProgressReporter(), "spark")
    assert card.state == PLANNED
    area.prepare(card.id, ProgressReporter(), "auto")
    area.commit(card.id, "small", ProgressReporter())
    assert newest().count_rows() == 15


def test_large_work_here_waits_until_it_is_asked_for(
    area: StagingArea, add: Add, newest: Newest, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(edit_execution, "LARGE_BYTES", 1)
        card = add("delete", "local", where="id < 5")
    assert (card.state, card.where.name, card.stage) == (PLANNED, "local", None)
    area.commit(card.id, "large", ProgressReporter())
    assert newest().count_rows() == 15


def test_a_cancelled_card_is_not_staged(dataset: LanceDataset, area: StagingArea) -> None:
    def cancelled(_done: int, _total: int) -> None:
        raise CancelledError("cancelled")

    form = EditForm.of("delete", {"where": "id = 1"})
    with pytest.raises(CancelledError):
        area.add(dataset, form, {}, ProgressReporter("stage", cancelled))
    assert area.cards == []
    assert area.running is None


@pytest.mark.parametrize("verb", ["delete", "update"])
def test_a_filter_that_nothing_passes_is_reported_at_once(
    verb: str, area: StagingArea, add: Add
) -> None:
    also: dict[str, Any] = {"set": {"price": "0"}} if verb == "update" else {}
    card = add(verb, where="id > 1000", **also)
    assert "would change nothing" in card.notes[0]
    assert area.commit(card.id, None, ProgressReporter()).version == 2


def test_the_order_can_be_changed(area: StagingArea, add: Add) -> None:
    first, second = add("append", source="more"), add("delete", where="id = 1")
    area.earlier(second.id)
    area.earlier(second.id)
    assert area.cards == [second, first]


def test_old_committed_cards_are_put_away_and_a_area_is_bounded(
    area: StagingArea, add: Add
) -> None:
    for _ in range(KEPT_DONE + 2):
        area.commit(add("tag", action="create", name=f"t{_}").id, None, ProgressReporter())
    add("append", source="more")
    assert len(area.cards) == KEPT_DONE + 1
    area.cards += [area.cards[-1]] * MAX_CARDS
    with pytest.raises(InvalidInputError, match="cards are staged"):
        add("append", source="more")


def test_cards_of_a_dataset_that_was_written_anew_are_forgotten(tmp_path: Path) -> None:
    made = lance_nb.write_dataset(MORE, tmp_path / "a.lance")
    area = staging_area_of(made)
    area.add(made, EditForm.of("delete", {"where": "id = 100"}), {}, ProgressReporter())
    area.drop_foreign_cards(made)
    assert len(area.cards) == 1
    shutil.rmtree(tmp_path / "a.lance")
    other = lance_nb.write_dataset(MORE, tmp_path / "a.lance")
    staging_area_of(other).drop_foreign_cards(other)
    assert area.cards == []
