"""Every step of every change, with every fault: the dataset is as before or as after, never else.

A cell runs a change with one fault at one step (or with everything failing from that step on). Then
a reader without faults looks: it sees the old state or the new one; the new one if the change
reported success. Then the change is repeated without faults and must be done, once.
"""

from __future__ import annotations

import pytest

from lance_nb.errors import (
    AlreadyExistsError,
    CommitStateUnknownError,
    LanceError,
    RefNotFoundError,
)
from tests.concurrency.scenarios import SCENARIOS, Scenario
from tests.support.committing import Table
from tests.support.faulty_store import LISTS, WRITES, Crash, Fault, Step

pytestmark = pytest.mark.slow

ON_WRITES = (
    Fault.ERROR_BEFORE,
    Fault.NO_SPACE,
    Fault.UNKNOWN_BEFORE,
    Fault.LOST_REPLY,
    Fault.LOST_REPLY_REPEATED,
    Fault.ARRIVES_LATER,
    Fault.CRASH_BEFORE,
    Fault.CRASH_AFTER,
)
ON_LISTS = (Fault.ERROR_BEFORE, Fault.CRASH_BEFORE, Fault.STALE_LIST, Fault.EMPTY_LIST)
ON_READS = (Fault.ERROR_BEFORE, Fault.CRASH_BEFORE)
CELLS_MIN = 600
# Readers refuse a dataset in the middle of a migration; repeating it is what mends it.
BETWEEN = {"V1 names migrated": "mixed"}
DONE_BEFORE = (AlreadyExistsError, RefNotFoundError)  # a repeated change may find itself done


def faults_of(scenario: Scenario, step: Step) -> tuple[Fault, ...]:
    if step.method in LISTS:
        return ON_LISTS[:2] if scenario.needs_listings else ON_LISTS
    return ON_WRITES if step.method in WRITES else ON_READS


def begin(scenario: Scenario) -> tuple[Table, object]:
    table = Table(seed=3)
    made = scenario.prepare(table)
    table.root.list_names("_versions")  # what a stale listing will show
    table.root.steps.clear()
    return table, made


def undisturbed(scenario: Scenario) -> tuple[list[Step], object, object]:
    table, made = begin(scenario)
    before = scenario.state(table)
    scenario.act(table, made)
    return list(table.root.steps), before, scenario.state(table)


def run(
    scenario: Scenario, number: int, fault: Fault, *, all_later: bool
) -> tuple[Table, object, str]:
    """Run one cell; return the table, what was prepared, and how the change ended."""
    table, made = begin(scenario)

    def plan(step: Step) -> Fault | None:
        if step.number == number:
            return fault
        return Fault.ERROR_BEFORE if all_later and step.number > number else None

    table.root.world.plan = plan
    try:
        scenario.act(table, made)
        ended = "done"
    except Crash:
        ended = "crashed"
    except CommitStateUnknownError:
        ended = "unknown"
    except LanceError as error:
        ended = f"refused ({type(error).__name__})"
    table.root.world.plan = lambda _step: None
    return table, made, ended


def repeat(scenario: Scenario, table: Table, made: object) -> None:
    try:
        scenario.act(table, made)
    except DONE_BEFORE:
        return


def comparable(state: object) -> str:
    """Versions aside: what was repeated may have taken another number."""
    return str(state)


@pytest.mark.parametrize("name", SCENARIOS)
def test_whatever_fails_the_dataset_is_as_before_or_as_after_and_a_repetition_succeeds(name: str):
    scenario = SCENARIOS[name]
    steps, before, after = undisturbed(scenario)
    assert comparable(before) != comparable(after)
    allowed = {comparable(before), comparable(after), BETWEEN.get(name)}
    cells = [
        (step, fault, later)
        for step in steps
        for fault in faults_of(scenario, step)
        for later in (False, True)
    ]
    for step, fault, later in cells:
        cell = f"{name}: {fault.name} at step {step}{', all later steps fail' * later}"
        table, made, ended = run(scenario, step.number, fault, all_later=later)
        found = comparable(scenario.state(table))
        assert found in allowed, f"{cell}: {ended}, but readers see {found}"
        if ended == "done":
            assert found == comparable(after), f"{cell}: reported as done, readers see {found}"
        table.root.world.arrive()
        assert comparable(scenario.state(table)) in allowed, cell
        repeat(scenario, table, made)
        table.root.world.arrive()
        again = comparable(scenario.state(table))
        assert again == comparable(after), f"{cell}: {ended}; repeated, readers see {again}"
    print(f"{name}: {len(cells)} cells")


def test_the_grid_is_large_enough():
    cells = 0
    for scenario in SCENARIOS.values():
        steps, _, _ = undisturbed(scenario)
        cells += sum(2 * len(faults_of(scenario, step)) for step in steps)
    assert cells >= CELLS_MIN
    print(f"{cells} cells in all")
