"""Where the work of cards runs: every heavy verb can go elsewhere, and does the same there."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from lance_nb import spark
from lance_nb.dataset import LanceDataset
from lance_nb.errors import (
    ColumnNotFoundError,
    InvalidInputError,
    MissingPackageError,
    NotSupportedError,
)
from lance_nb.explorer.error_card import error_card
from lance_nb.explorer.stage.card import PLANNED, READY, Card, ProgressReporter
from lance_nb.explorer.stage.card_view import card_json
from lance_nb.explorer.stage.edit_execution import placement_of
from lance_nb.explorer.stage.edit_forms import VERBS, EditForm
from lance_nb.explorer.stage.staging_area import StagingArea
from lance_nb.spark import sessions
from tests.unit.explorer.conftest import MORE

Add = Callable[..., Card]
HEAVY: list[tuple[str, dict[str, Any]]] = [
    ("append", {"source": "held"}),
    ("delete", {"where": "id < 3"}),
    ("update", {"set": {"price": "0"}, "where": "id < 3"}),
    ("upsert", {"source": "more", "on": ["id"]}),
    ("add_column", {"name": "twice", "sql": "price * 2"}),
    ("cast_column", {"column": "id", "type": "int32"}),
    ("compact", {"target_rows_per_fragment": 1000}),
]
LIGHT: list[tuple[str, dict[str, Any]]] = [
    ("add_column", {"name": "empty", "type": "float32"}),
    ("rename_column", {"column": "price", "name": "cost"}),
    ("drop_columns", {"columns": ["price"]}),
    ("restore", {"version": "1"}),
]


def shown(card: Card) -> dict[str, Any]:
    """What a card says of its change; tasks put what an upsert inserts into a file of its own."""
    found = card_json(card)
    facts = {one["label"]: one["value"] for one in found["facts"]}
    if card.form.verb == "upsert":
        facts = {name: facts[name] for name in ("rows", "updated", "added")}
    return {"facts": facts, "lines": found["lines"], "samples": found["samples"]}


def test_these_are_all_heavy_verbs() -> None:
    assert {verb for verb, _ in HEAVY} == {one.name for one in VERBS.values() if one.is_heavy}


@pytest.mark.parametrize("change", HEAVY, ids=[verb for verb, _ in HEAVY])
def test_a_heavy_card_does_in_tasks_what_it_does_here(
    change: tuple[str, dict[str, Any]],
    dataset: LanceDataset,
    area: StagingArea,
    newest: Callable[[], LanceDataset],
    session: object,
) -> None:
    verb, args = change
    names = {"more": pa.table({"id": [1, 100], "price": [7.0, 8.0]}), "held": dataset}
    here = area.add(dataset, EditForm.of(verb, args), names, ProgressReporter())
    assert (here.state, here.where.name, here.where.is_movable) == (READY, "local", True)
    wanted = shown(here)
    area.remove(here.id)
    card = area.add(dataset, EditForm.of(verb, args, "spark"), names, ProgressReporter())
    assert (card.state, card.where.name, card.stage) == (PLANNED, "spark", None)
    told = ProgressReporter("prepare")
    area.prepare(card.id, told)
    assert card.state == READY
    assert shown(card) == wanted
    assert (told.now.engine, told.now.done, told.now.total) == ("spark", 1, 1)
    assert told.now.rows > 0
    area.commit(card.id, "elsewhere", ProgressReporter())
    assert card.version == newest().version
    assert newest().version_info(card.version).message == "elsewhere"
    newest().validate()


@pytest.mark.parametrize(("verb", "args"), LIGHT)
def test_a_light_card_stays(verb: str, args: dict[str, Any], add: Add) -> None:
    card = add(verb, "spark", **args)
    assert (card.state, card.where.name, card.where.is_movable) == (READY, "local", False)
    assert card.where.reason == "no data is read"


def test_rows_that_lie_here_are_written_here(dataset: LanceDataset, add: Add) -> None:
    assert add("append", "spark", source="more").where.reason == "its rows are in this process"
    stream = {"more": MORE.to_reader()}
    form = EditForm.of("upsert", {"source": "more", "on": ["id"]}, "spark")
    where = placement_of(dataset, form, stream)
    assert (where.name, where.is_movable) == ("local", False)
    assert stream["more"].read_all().num_rows == 2  # looking has not read it


def test_spark_that_cannot_be_had_is_said_before_anything_runs(
    add: Add, area: StagingArea, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark, "find_session", lambda *_: None)
    with monkeypatch.context() as patched:
        patched.setattr(sessions, "java", lambda: None)
        with pytest.raises(NotSupportedError, match="needs Java 17 or newer, and none was found"):
            add("compact", "spark", target_rows_per_fragment=1000)
    with monkeypatch.context() as patched:
        patched.setitem(sys.modules, "pyspark", None)
        missing = sessions._problem()
    monkeypatch.setattr(sessions, "_problem", lambda: missing)
    with pytest.raises(
        MissingPackageError, match=r"Spark needs PySpark, .* pip install "
    ) as raised:
        add("compact", "spark", target_rows_per_fragment=1000)
    assert error_card(raised.value).title == "A package is not installed"
    assert area.cards == []


@pytest.mark.usefixtures("session")
def test_a_card_that_fails_elsewhere_says_why_and_goes_on_here(area: StagingArea, add: Add) -> None:
    card = add("compact", "spark", target_rows_per_fragment=1000)
    area.prepare(card.id, ProgressReporter(), "local")
    assert card.state == READY
    with pytest.raises(InvalidInputError, match="no fragments need compaction"):
        add("compact", target_rows_per_fragment=2)
    with pytest.raises(ColumnNotFoundError):
        add("cast_column", "spark", column="nope", type="int32")


@pytest.mark.usefixtures("session")
def test_an_empty_dataset_has_no_tasks(dataset: LanceDataset, area: StagingArea) -> None:
    dataset.delete("true")
    form = EditForm.of("add_column", {"name": "twice", "sql": "price * 2"}, "spark")
    card = area.add(dataset, form, {}, ProgressReporter())
    area.commit(card.id, None, ProgressReporter())
    found = dataset.checkout_latest()
    assert found.schema.field("twice").type == pa.float64()
