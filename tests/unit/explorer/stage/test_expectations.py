"""The gate of the expectations in the Stage tab: said before a commit, refused by the button."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lance_nb.dataset import LanceDataset
from lance_nb.errors import CancelledError, ExpectationFailedError, InvalidInputError
from lance_nb.explorer.stage.card import COMMITTED, READY, Card, ProgressReporter
from lance_nb.explorer.stage.card_view import card_json, expectations_json
from lance_nb.explorer.stage.staging_area import StagingArea

Add = Callable[..., Card]


@pytest.fixture(autouse=True)
def cache_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_without_expectations_nothing_is_said(add: Add) -> None:
    card = add("delete", where="id < 3")
    assert card_json(card)["expectations"]["checking"] is True
    card.check_expectations()
    assert card_json(card)["expectations"] is None
    assert not card.needs_check


def test_a_card_says_what_it_would_break(dataset: LanceDataset, add: Add) -> None:
    dataset.expectations.add("price < 50", name="cheap")
    dataset.expectations.add_row_count(minimum=20, name="enough")
    card = add("update", set={"price": "99"}, where="id = 4")
    assert expectations_json(card) == {
        "checking": True, "count": 2, "refused": False, "broken": [], "problem": "",
    }  # fmt: skip
    card.check_expectations()
    found = expectations_json(card)
    assert found is not None
    assert (found["count"], found["closed"], found["refused"]) == (2, False, False)
    (broken,) = found["broken"]
    assert (broken["name"], broken["statement"], broken["rows"]) == ("cheap", "price < 50", 1)
    assert broken["sample"]["rows"] == [["99.0", "4"]]
    assert found["off"]["magic"] == "%lance expect gate off"
    fine = add("update", set={"price": "9"}, where="id = 4")
    fine.check_expectations()
    assert expectations_json(fine)["broken"] == []  # type: ignore[index]


def test_a_gate_that_somebody_closes_meanwhile_is_noticed(dataset: LanceDataset, add: Add) -> None:
    card = add("delete", where="id < 3")
    card.check_expectations()
    assert card_json(card)["expectations"] is None
    dataset.expectations.add_row_count(minimum=20, name="enough")
    dataset.expectations.set_gate(True)
    assert card.is_stale()
    card.refresh_meetings()
    assert card.needs_check
    card.check_expectations()
    found = expectations_json(card)
    assert found is not None
    assert found["refused"]
    assert found["broken"][0]["sample"] is None
    assert "17 rows, at least 20 expected" in found["broken"][0]["detail"]


def test_a_commit_that_the_gate_refuses_leaves_the_card_open(
    dataset: LanceDataset, area: StagingArea, add: Add
) -> None:
    card = add("delete", where="id < 3")
    dataset.expectations.add_row_count(minimum=20, name="enough")
    dataset.expectations.set_gate(True)
    area.commit(card.id, None, ProgressReporter())  # before the check in the background was done
    assert card.state == READY
    assert isinstance(card.problem, ExpectationFailedError)
    assert expectations_json(card)["refused"]  # type: ignore[index]
    assert dataset.checkout_latest().count_rows() == 20
    dataset.expectations.set_gate(False)
    area.commit(card.id, None, ProgressReporter())
    assert (card.state, card.problem) == (COMMITTED, None)
    assert expectations_json(card) is None
    assert dataset.checkout_latest().count_rows() == 17


def test_the_check_is_made_again_for_a_card_that_is_made_again(
    dataset: LanceDataset, add: Add
) -> None:
    dataset.expectations.add_row_count(minimum=20, name="enough")
    card = add("delete", where="id < 3")
    card.check_expectations()
    assert not card.needs_check
    card.rerun(ProgressReporter())
    assert card.needs_check


def test_a_check_that_fails_says_so_and_can_be_cancelled(
    dataset: LanceDataset, add: Add, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset.expectations.add_row_count(minimum=20, name="enough")
    card = add("delete", where="id < 3")

    def cancel(_done: int, _total: int) -> None:
        raise CancelledError("enough")

    with pytest.raises(CancelledError):
        card.check_expectations(cancel)
    assert card.needs_check

    def broken(**_: object) -> None:
        raise InvalidInputError("the store is gone")

    monkeypatch.setattr(card.stage, "check", broken)
    card.check_expectations()
    assert expectations_json(card)["problem"] == "the store is gone"  # type: ignore[index]
