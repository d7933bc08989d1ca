"""The clean-up simulator answers by the plan of a clean-up, and only reads."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.explorer.messages import handle
from lance_nb.explorer.retention.widget import RetentionHandlers
from lance_nb.explorer.session import Session

_NUMBERS = count()
Ask = Callable[..., dict[str, Any]]


@pytest.fixture
def dataset() -> LanceDataset:
    """Return seven versions; a tag is on the second one, a branch starts from the third."""
    uri = f"memory://retention/{next(_NUMBERS)}.lance"
    found = lance_nb.write_dataset(pa.table({"id": [0]}), uri)
    for one in range(1, 7):
        found = lance_nb.write_dataset(pa.table({"id": [one]}), uri, mode="overwrite")
    found.tags.create("v1", 2)
    found.create_branch("dev", 3)
    return found


@pytest.fixture
def ask(dataset: LanceDataset) -> Ask:
    handlers = Session(dataset).keep(RetentionHandlers).handlers()

    def asked(type_: str, **args: Any) -> dict[str, Any]:
        reply, _ = handle({"id": "1", "type": type_, "args": args}, handlers)
        found: dict[str, Any] = dict(reply)
        result: dict[str, Any] = found["result"] if found["ok"] else {"error": found["error"]}
        return result

    return asked


def test_what_is_offered(ask: Ask) -> None:
    found = ask("retention.open", branch=None)
    assert (found["label"], found["versions"], found["damaged"]) == ("main", 7, 0)
    assert found["tags"] == [{"name": "v1", "label": "v1", "version": 2}]
    assert 0 <= found["oldest_days"] < 1
    assert ask("retention.open", branch="dev")["versions"] == 1


def test_a_rule_names_what_goes_and_why_others_stay(ask: Ask, dataset: LanceDataset) -> None:
    ask("retention.open", branch=None)
    found = ask("retention.move", keep=2, days=None, drop_tags=[])
    assert found["goes"] == [[1, 1], [4, 5]]
    assert found["stays"] == [
        [2, 2, "tag v1"], [3, 3, "branch dev started here"], [6, 7, "one of the newest 2"],
    ]  # fmt: skip
    plan = dataset.cleanup_old_versions(
        retain_versions=2, error_if_tagged_old_versions=False, dry_run=True
    )
    assert (found["versions"], found["bytes"]) == (3, plan.stats.bytes_removed)
    assert found["code"]["python"] == "ds.cleanup_old_versions(retain_versions=2)"
    assert found["code"]["magic"] == "%lance clean --keep 2 --really"
    found = ask("retention.move", keep=2, days=0, drop_tags=["v1", "unknown"])
    assert found["goes"] == [[1, 2], [4, 5]]
    found = ask("retention.move", keep=1, days=1.5, drop_tags=[])
    assert found["goes"] == []
    assert [4, 6, "younger than 1.5 days"] in found["stays"]
    assert ask("retention.move", keep=None, days=None)["versions"] == 0


def test_a_version_names_who_keeps_its_files(ask: Ask) -> None:
    ask("retention.open", branch=None)
    rule = {"keep": 2, "days": None, "drop_tags": []}
    found = ask("retention.files", version=3, **rule)
    assert (found["goes"], found["reason"]) == (False, "branch dev started here")
    assert any(one["kept"] == "kept by main:3, dev:3" for one in found["files"])
    found = ask("retention.files", version=4, **rule)
    assert found["goes"] is True
    assert {one["kept"] for one in found["files"]} == {"no version that stays needs it"}
    assert ask("retention.files", version=99, **rule)["files"] == []


@pytest.mark.parametrize(
    "args",
    [
        {"keep": 0}, {"keep": "x"}, {"days": -1}, {"days": True}, {"days": 1e9}, {"days": "1"},
        {"drop_tags": "v1"}, {"drop_tags": ["x"] * 101},
    ],
)  # fmt: skip
def test_hostile_rules_are_refused(ask: Ask, args: dict[str, Any]) -> None:
    ask("retention.open", branch=None)
    assert "error" in ask("retention.move", **{"keep": 1, "days": None, **args})


def test_a_survey_is_taken_first(ask: Ask) -> None:
    assert "open the clean-up simulator" in ask("retention.move", keep=1)["error"]["message"]
    assert "error" in ask("retention.open", branch="nope")
