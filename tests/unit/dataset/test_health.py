"""Plans of repairs through the façade: which steps run, and which calls are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta

import pytest

import lance_nb
from lance_nb.errors import DatasetNotFoundError, InvalidInputError, RefNotFoundError
from lance_nb.format.layout import HINT_PATH, tag_path
from tests.support.damages import NEWEST, Damaged, build

AT_ONCE = timedelta(0)


@pytest.fixture
def world() -> Damaged:
    """Return the dataset, undamaged."""
    made = Damaged("memory://health/d.lance")
    made.put({})
    return build(made.uri, stable_row_ids=False)


def test_steps_can_be_chosen(world: Damaged) -> None:
    world.root.write(tag_path("kept"), b"{")
    world.root.write(HINT_PATH, b"")
    plan = lance_nb.plan_repair(world.uri, older_than=AT_ONCE)
    assert [one.kind for one in plan.steps] == ["quarantine", "hint"]
    plan.run(plan.steps[1:])
    assert bytes(world.root.read(tag_path("kept"))) == b"{"
    assert json.loads(bytes(world.root.read(HINT_PATH))) == {"version": NEWEST}
    other = lance_nb.plan_repair(world.uri, older_than=AT_ONCE)
    with pytest.raises(InvalidInputError, match="does not belong to this plan"):
        other.run(plan.steps[1:])


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda uri: lance_nb.plan_repair(uri, older_than=3), InvalidInputError),
        (lambda uri: lance_nb.plan_repair(uri, older_than=timedelta(-1)), InvalidInputError),
        (lance_nb.undo_repair, RefNotFoundError),
        (lambda uri: lance_nb.undo_repair(uri, "../x"), RefNotFoundError),
        (lambda uri: lance_nb.verify(f"{uri}-nowhere"), DatasetNotFoundError),
        (lambda _: lance_nb.verify(None), InvalidInputError),
    ],
    ids=["number", "future", "none", "path", "nowhere", "nothing"],
)
def test_calls_that_mean_nothing_are_refused(
    call: Callable[[str], object], error: type[Exception], world: Damaged
) -> None:
    with pytest.raises(error):
        call(world.uri)


def test_a_whole_dataset_needs_no_repair(world: Damaged) -> None:
    plan = lance_nb.plan_repair(world.uri)
    assert plan.steps == ()
    assert "no repair steps" in repr(plan)
