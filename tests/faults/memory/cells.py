"""Every step of every change, with every fault: the dataset is as before or as after, never else.

A cell runs a change with one fault at one step (or with everything failing from that step on). Then
a reader without faults looks: it sees the old state or the new one; the new one if the change
reported success. Then the change is repeated without faults and must be done, once.

    python -m tests.faults cells 5000 [first cell] [--jobs 2] [--keep]

Cells have numbers from 1. In those after the last single fault, a second fault follows some steps
after the first; its kind, its step and all names come from the number.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from lance_nb.errors import (
    AlreadyExistsError,
    CommitStateUnknownError,
    LanceError,
    RefNotFoundError,
)
from tests.faults import command
from tests.faults.memory.scenarios import SCENARIOS, Scenario
from tests.support.committing import Table
from tests.support.faulty_store import LISTS, WRITES, Crash, Fault, Step, no_faults

ON_WRITES = (
    Fault.ERROR_BEFORE,
    Fault.NO_SPACE,
    Fault.UNKNOWN_BEFORE,
    Fault.LOST_REPLY,
    Fault.LOST_REPLY_REPEATED,
    Fault.ARRIVES_LATER,
    Fault.CRASH_BEFORE,
    Fault.CRASH_AFTER,
    Fault.INTERRUPT_BEFORE,
    Fault.INTERRUPT_AFTER,
)
ON_LISTS = (
    Fault.ERROR_BEFORE,
    Fault.CRASH_BEFORE,
    Fault.INTERRUPT_BEFORE,
    Fault.STALE_LIST,
    Fault.EMPTY_LIST,
)
ON_READS = (Fault.ERROR_BEFORE, Fault.CRASH_BEFORE, Fault.INTERRUPT_BEFORE)
DONE_BEFORE = (AlreadyExistsError, RefNotFoundError)  # a repeated change may find itself done
FIRST_SEED = 3  # of the names in cells with one fault
SECOND_STEPS_MAX = 6  # from the first fault to the second


def faults_of(scenario: Scenario, step: Step) -> tuple[Fault, ...]:
    """Return the faults that can happen to a call."""
    if step.method in LISTS:
        return ON_LISTS[:3] if scenario.needs_listings else ON_LISTS
    return ON_WRITES if step.method in WRITES else ON_READS


def begin(scenario: Scenario, seed: int) -> tuple[Table, object]:
    """Prepare a dataset; return it and what the change needs."""
    table = Table(seed=seed)
    made = scenario.prepare(table)
    table.root.list_names("_versions")  # what a stale listing will show
    table.root.steps.clear()
    return table, made


def undisturbed(scenario: Scenario, seed: int) -> tuple[list[Step], str, str]:
    """Make the change without faults; return its steps and the states before and after."""
    table, made = begin(scenario, seed)
    before = str(scenario.state(table))
    scenario.act(table, made)
    return list(table.root.steps), before, str(scenario.state(table))


@dataclass(frozen=True, slots=True)
class Cell:
    """A change and its first fault; ``all_later``: every step after it fails too."""

    name: str
    step: Step
    fault: Fault
    all_later: bool

    def __str__(self) -> str:
        later = ", all later steps fail" if self.all_later else ""
        return f"{self.name}: {self.fault.name} at step {self.step}{later}"


class Plan:
    """The faults of a cell: the first, maybe all later ones, maybe a second one."""

    def __init__(self, cell: Cell, chance: random.Random | None) -> None:
        self._cell = cell
        self._chance = chance
        self._second = 0
        if chance is not None:
            self._second = cell.step.number + chance.randint(1, SECOND_STEPS_MAX)
        self.happened: list[str] = []

    def __call__(self, step: Step) -> Fault | None:
        fault = self._fault(step)
        if fault is not None:
            self.happened.append(f"{fault.name} at {step}")
        return fault

    def _fault(self, step: Step) -> Fault | None:
        if step.number == self._cell.step.number:
            return self._cell.fault
        if self._chance is not None and step.number == self._second:
            return self._chance.choice(faults_of(SCENARIOS[self._cell.name], step))
        later = self._cell.all_later and step.number > self._cell.step.number
        return Fault.ERROR_BEFORE if later else None


class CrashGrid:
    """All cells of some changes, in an order in which few cells are of many changes."""

    def __init__(self, names: Collection[str] | None = None) -> None:
        self._states: dict[tuple[str, int], tuple[str, str]] = {}
        self.cells: list[Cell] = []
        for name in SCENARIOS if names is None else names:
            steps, *_ = undisturbed(SCENARIOS[name], FIRST_SEED)
            self.cells += [
                Cell(name, step, fault, later)
                for step in steps
                for fault in faults_of(SCENARIOS[name], step)
                for later in (False, True)
            ]
        random.Random(0).shuffle(self.cells)

    def check(self, number: int) -> str:
        """Run a cell, from 1; return how the change ended. Raises AssertionError."""
        round_number, place = divmod(number - 1, len(self.cells))
        cell = self.cells[place]
        scenario, seed = SCENARIOS[cell.name], FIRST_SEED + round_number
        before, after = self._before_and_after(cell.name, seed)
        plan = Plan(cell, random.Random(number) if round_number else None)

        table, made = begin(scenario, seed)
        table.root.world.plan = plan
        ended = _end(scenario, table, made)
        table.root.world.plan = no_faults
        told = f"{cell} ({', '.join(plan.happened)}): {ended}"
        found = self._seen(scenario, table, before, after, told)
        if ended == "done":
            assert found == after, f"{told}, readers see {found}"
        if ended == "interrupted" and len(plan.happened) == 1:
            assert scenario.is_whole(table), f"{told}, and something half done is left"
        table.root.world.arrive()
        self._seen(scenario, table, before, after, f"{told}; when all has arrived")
        _repeat(scenario, table, made)
        table.root.world.arrive()
        again = str(scenario.state(table))
        assert again == after, f"{told}; repeated, readers see {again}"
        return ended

    @staticmethod
    def _seen(scenario: Scenario, table: Table, before: str, after: str, text: str) -> str:
        state = scenario.state(table)
        is_allowed = str(state) in (before, after) or scenario.between(state)
        assert is_allowed, f"{text}, but readers see {state}"
        return str(state)

    def _before_and_after(self, name: str, seed: int) -> tuple[str, str]:
        if (name, seed) not in self._states:
            _, before, after = undisturbed(SCENARIOS[name], seed)
            assert before != after, name
            self._states[name, seed] = before, after
        return self._states[name, seed]


def _end(scenario: Scenario, table: Table, made: object) -> str:
    try:
        scenario.act(table, made)
    except Crash:
        return "crashed"
    except KeyboardInterrupt:
        return "interrupted"
    except CommitStateUnknownError:
        return "unknown"
    except LanceError:
        return "refused"
    return "done"


def _repeat(scenario: Scenario, table: Table, made: object) -> None:
    try:
        scenario.act(table, made)
    except DONE_BEFORE:
        return


# --- many cells -----------------------------------------------------------------------------------

CHUNK = 1000  # cells of one process


def share(numbers: range, tell: command.Tell) -> tuple[Counter[str], list[str]]:
    """Run cells by their numbers; return counts and findings."""
    grid = CrashGrid()
    return command.each(numbers, tell, lambda number: (grid.check(number),), "cells 1 {}")


def main(arguments: list[str]) -> int:
    """Run as many cells as asked; return the exit code."""
    parser = command.parser_of("cells", "cells; the seed is the number of the first", 10_000)
    return command.run(
        "fault_cells", parser, arguments, lambda run: command.shared(run, share, CHUNK)
    )
