"""Run a sequence of steps from a seed; make a failing one short; say how to repeat it.

    python -m tests.faults stateful 10000 [seed] [--keep]   many sequences
    python -m tests.faults stateful 1 SEED --only 3,4,17               some steps of one

Every step draws from a source of chance of its own, so that steps can be left out and the others
stay what they were, as far as the dataset allows.
"""

from __future__ import annotations

import random
import time
import traceback
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.faults import command
from tests.faults.stateful import (
    columns_verbs,
    history_verbs,
    merging_verbs,
    rows_verbs,
    upkeep_verbs,
)
from tests.faults.stateful.world import OURS, PYLANCE, World, compare, read

STEPS = 30
VERBS = (
    rows_verbs.VERBS
    | merging_verbs.VERBS
    | columns_verbs.VERBS
    | history_verbs.VERBS
    | upkeep_verbs.VERBS
)
SHORTENING_S = 120.0


class SequenceError(AssertionError):
    """A sequence failed; the text says which, and how to repeat it."""


def run(
    seed: int, engines: dict[str, Any], steps: Iterable[int] = range(STEPS), share: float = 1.0
) -> World:
    """Run the steps of a sequence and check everything. Raises whatever is wrong.

    Of the old versions we read ``share`` again at the end, and pylance all; unless we read all, we
    read half of the columns after each step.
    """
    with command.memory_folder() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pylance's, about its own arguments
        world = World(Path(folder), random.Random(f"{seed}"), engines, thorough=share == 1.0)
        try:
            for number in steps:
                take(world, seed, number)
            check_all(world, share)
        except BaseException as error:
            error.add_note("\n".join(world.log))
            raise
    return world


def take(world: World, seed: int, number: int) -> None:
    """Do one step: who, where, what. A verb that does not fit gives its turn to an append."""
    chance = random.Random(f"{seed}/{number}")
    world.chance, world.number = chance, number
    world.next_uid = max(world.next_uid, (number + 1) * 1000)
    world.actor = chance.choice((OURS, PYLANCE))
    lines = list(world.model.lines)
    world.branch = chance.choice(lines) if chance.random() < 0.5 else None
    for _ in range(5):
        verb = chance.choices(list(VERBS), list(VERBS.values()))[0]
        if verb(world):
            return


def check_all(world: World, share: float) -> None:
    """Read every version that there is; pylance must find the newest ones valid."""
    for branch, line in world.model.lines.items():
        for actor in (OURS, PYLANCE):
            newest = world.at(actor, branch=branch)
            assert [one["version"] for one in newest.versions()] == sorted(line.versions)
            if actor == PYLANCE:
                newest.validate()
            for number, expected in line.versions.items():
                if actor == OURS and world.chance.random() >= share:
                    continue
                dataset = newest.checkout_version((branch, number))
                compare(expected, read(dataset, expected), dataset)
    history_verbs.check_tags(world)


def shortened(steps: list[int], fails: Callable[[list[int]], bool]) -> list[int]:
    """Leave out steps as long as it still fails."""
    until = time.monotonic() + SHORTENING_S
    size = max(len(steps) // 2, 1)
    while size:
        at = 0
        while at < len(steps) and time.monotonic() < until:
            fewer = steps[:at] + steps[at + size :]
            if fails(fewer):
                steps = fewer
            else:
                at += size
        size //= 2
    return steps


def explained(seed: int, error: BaseException, engines: dict[str, Any]) -> str:
    """Make a failing sequence short and tell about it."""
    kind = type(error)
    last: dict[str, BaseException] = {"error": error}

    def fails(steps: list[int]) -> bool:
        with suppress(Exception):  # another failure is not this one
            try:
                run(seed, engines, steps)
            except kind as found:
                last["error"] = found
                return True
        return False

    steps = shortened(list(range(STEPS)), fails)
    text = "".join(traceback.format_exception(last["error"], limit=-5, chain=False))
    only = ",".join(map(str, steps))
    return f"seed {seed}: python -m tests.faults stateful 1 {seed} --only {only}\n{text}"


def run_many(seeds: Iterable[int], engines: dict[str, Any], share: float = 1.0) -> int:
    """Run sequences; return how many steps were taken. Raises SequenceError."""
    taken = 0
    for seed in seeds:
        try:
            taken += len(run(seed, engines, share=share).log)
        except Exception as error:
            raise SequenceError(explained(seed, error, engines)) from error
    return taken


def both_engines() -> dict[str, Any]:
    """Ours and pylance."""
    import lance

    import lance_nb

    return {OURS: lance_nb, PYLANCE: lance}


def main(arguments: list[str]) -> int:
    """Run from the command line."""
    parser = command.parser_of("stateful", f"sequences of {STEPS} steps", 10_000)
    parser.add_argument("--only", help="the steps of one sequence to take and print: 3,4,17")
    options = parser.parse_args(arguments)
    engines = both_engines()
    if options.only:
        steps = [int(step) for step in options.only.split(",")]
        print("\n".join(run(options.seed, engines, steps).log))
        return 0

    def work(asked: command.Run) -> command.Counts:
        taken, seeds = 0, []
        for seed in asked.seeds():
            seeds.append(seed)
            try:
                taken += run_many([seed], engines)
            except SequenceError as error:
                asked.fail(str(error))
        return asked.result({"runs": len(seeds), "steps": taken}, seeds)

    return command.run("sequences", parser, arguments, work)
