"""Damage whole datasets of every file version many times; call verbs that read and write them.

    python -m tests.faults datasets 100000 [seed] [--jobs 2] [--seconds 900] [--keep]
    python -m tests.faults datasets 1 SEED --show          one case: its damage, how verbs ended
    python -m tests.faults datasets 1 SEED --file FOLDER   findings, for ``golden/found``

A case is one damaged dataset (see ``worlds`` and ``damage``) and a few verbs (``looks`` and
``changes``), chosen by the seed. Each verb must end with data that Arrow finds valid and texts that
are fit to show, or with a LanceError; verify, plan_repair, and, of a dataset that opens, history
and space must not even raise that. A case takes at most 10 s of processor time and 2 GB of memory.
"""

from __future__ import annotations

import base64
import faulthandler
import importlib
import json
import pkgutil
import random
import resource
import signal
import warnings
import zlib
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa

import lance_nb
from lance_nb.errors import LanceError
from tests.faults import command
from tests.faults.command import TooSlow, memory_folder
from tests.faults.damage.changes import CHANGES, FIRST_CHANGES
from tests.faults.damage.damage import damage
from tests.faults.damage.looks import FIRST_LOOKS, LOOKS, opened, quiet
from tests.faults.damage.shown import ShownError, check_error
from tests.faults.damage.worlds import NAMES, Change, World

SECONDS_MAX = 10.0  # of processor time, for one case
MEMORY_BYTES_MAX = 2 << 30  # of what a process may write to
GROWTH_KB_MAX = 1 << 20  # of the most that a process had in memory, in one case
CHUNK = 50
FINDINGS_MAX = 20  # of one process, which then ends


class TooLargeError(Exception):
    """A case took too much memory."""


@dataclass(frozen=True, slots=True)
class Case:
    """One damaged dataset and what is called of it; ``stale``: it was opened before the damage."""

    seed: int
    world: str
    done: str
    change: Change
    verbs: tuple[str, ...]
    stale: bool = False

    def __str__(self) -> str:
        opened_before = ", opened before" if self.stale else ""
        return f"{self.world}: {self.done}{opened_before}; {', '.join(self.verbs)}"

    def to_json(self) -> str:
        """Return the case as a file that does not depend on how damage is chosen."""
        changed = {
            path: None if data is None else base64.b85encode(zlib.compress(data, 9)).decode()
            for path, data in self.change.items()
        }
        record = {"seed": self.seed, "world": self.world, "done": self.done, "change": changed,
                  "verbs": self.verbs, "stale": self.stale}  # fmt: skip
        return json.dumps(record, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Case:
        """Read what ``to_json`` wrote."""
        record = json.loads(text)
        changed = {
            path: None if data is None else zlib.decompress(base64.b85decode(data))
            for path, data in record["change"].items()
        }
        verbs = tuple(record["verbs"])
        return cls(record["seed"], record["world"], record["done"], changed, verbs, record["stale"])


@dataclass(slots=True)
class Worlds:
    """The datasets of one process, each made when its first case comes."""

    scratch: Path
    made: dict[str, World] = field(default_factory=dict)

    def get(self, name: str) -> World:
        """Return a dataset."""
        if name not in self.made:
            self.made[name] = World(name, self.scratch)
        return self.made[name]

    def case(self, seed: int) -> Case:
        """Choose a dataset, the damage and the verbs."""
        rng = random.Random(seed)
        name = rng.choice(NAMES)
        done, change = damage(self.get(name).files, rng)
        weights = [one for one, _ in LOOKS.values()]
        looks = rng.choices(list(LOOKS), weights, k=rng.choice((1, 1, 2)))
        verbs = looks
        if rng.random() < 0.3:
            weights = [one for one, _ in CHANGES.values()]
            verbs = [*rng.choices(list(CHANGES), weights), looks[0]]
        return Case(seed, name, done, change, tuple(dict.fromkeys(verbs)), rng.random() < 0.1)

    def run(self, case: Case) -> list[tuple[str, str]]:
        """Damage the dataset and call the verbs; return how each ended. Raises findings."""
        world = self.get(case.world)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        signal.setitimer(signal.ITIMER_PROF, SECONDS_MAX)
        try:
            with quiet():
                ends = _call_all(world, case)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        if touched := world.touched():
            raise ShownError(f"changed beside the dataset: {touched}")
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        if grown > GROWTH_KB_MAX:
            raise TooLargeError(f"{grown >> 10} MB more in memory")
        return ends


def _call_all(world: World, case: Case) -> list[tuple[str, str]]:
    dataset: Any = None
    if case.stale:
        world.restore({})
        dataset = opened(world)
    world.restore(case.change)
    ends = []
    if not case.stale:
        try:
            dataset = opened(world)
            repr(dataset.schema), dataset.count_rows()
        except LanceError as error:
            check_error(error)
            dataset = None
            ends.append(("open", "refused"))
    for name in case.verbs:
        rng = random.Random(f"{case.seed} {name}")
        verb = LOOKS[name][1] if name in LOOKS else CHANGES[name][1]
        if dataset is None and name not in {**FIRST_LOOKS, **FIRST_CHANGES}:
            continue
        try:
            verb(world, dataset, rng)
        except LanceError as error:
            check_error(error)
            if name in FIRST_LOOKS:
                raise ShownError(f"{name} raised {type(error).__name__}") from error
            ends.append((name, "refused"))
        else:
            ends.append((name, "done"))
    return ends


def _stop(signum: int, frame: FrameType | None) -> None:
    raise TooSlow


def _import_all() -> None:
    """Import what verbs import when they are called: once, before the children are forked."""
    for module in pkgutil.walk_packages(lance_nb.__path__, "lance_nb."):
        if ".spark" not in module.name and ".demo" not in module.name:
            importlib.import_module(module.name)
    for name in ("duckdb", "pandas", "pyarrow.compute", "pyarrow.dataset"):
        importlib.import_module(name)


def _start() -> None:
    faulthandler.enable()
    pa.set_cpu_count(1)
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGPROF, _stop)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))


def check(
    cases: list[Case] | range, verbs: tuple[str, ...] = (), worlds: Worlds | None = None
) -> Counter[str]:
    """Run cases, or seeds, in this process; return how the verbs ended. Raises findings.

    ``verbs`` are called in place of those that the seeds choose.
    """
    faulthandler.enable()
    before = signal.signal(signal.SIGPROF, _stop)
    ends: Counter[str] = Counter()
    try:
        with memory_folder() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            worlds = worlds or Worlds(Path(folder))
            for number in cases:
                case = worlds.case(number) if isinstance(number, int) else number
                case = replace(case, verbs=verbs or case.verbs)
                try:
                    ends.update(end for _, end in worlds.run(case))
                except (Exception, TooSlow) as error:
                    error.add_note(f"seed {case.seed}: {case}")
                    raise
    finally:
        signal.signal(signal.SIGPROF, before)
    return ends


def _work(run: command.Run) -> command.Counts:
    findings_folder = run.options.file
    in_memory: dict[str, World] = {}

    def share(seeds: range, tell: command.Tell) -> tuple[Counter[str], list[str]]:
        with memory_folder() as folder:
            worlds = Worlds(Path(folder), dict(in_memory))

            def count(seed: int) -> list[str]:
                case = worlds.case(seed)
                try:
                    ends = worlds.run(case)
                except (Exception, TooSlow) as error:
                    error.add_note(str(case))
                    if findings_folder:
                        Path(findings_folder).mkdir(parents=True, exist_ok=True)
                        (Path(findings_folder) / f"{seed}.json").write_text(case.to_json())
                    raise
                if run.options.show:
                    print(case, ends, sep="\n")
                names = [f"verbs:{name}" for name, _ in ends]
                return ["calls"] * len(ends) + names + [f"ends:{end}" for _, end in ends]

            return command.each(seeds, tell, count, "datasets 1 {}", FINDINGS_MAX)

    _import_all()
    # Made once, too; a dataset in a folder belongs to one child.
    for name in NAMES:
        if not name.startswith("folder:") and name not in in_memory:
            in_memory[name] = World(name, Path())
    return command.shared(run, share, CHUNK, _start, "ends", "verbs")


def main(arguments: list[str]) -> int:
    """Damage datasets as often as asked; return the exit code."""
    parser = command.parser_of("datasets", "damaged datasets", 100_000)
    parser.add_argument("--show", action="store_true", help="print what every case does")
    parser.add_argument("--file", help="a folder for the cases that are findings")
    return command.run("hostile_datasets", parser, arguments, _work)
