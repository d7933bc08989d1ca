"""Damage whole datasets of every file version many times; call verbs that read and write them.

    python -m tests.hostile.whole 100000 [seed] [--jobs 2] [--seconds 900] [--keep]
    python -m tests.hostile.whole 1 SEED --show          one case: what was done, how verbs ended
    python -m tests.hostile.whole 1 SEED --file FOLDER   findings as files, for ``golden/found``

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
import sys
import tempfile
import traceback
import warnings
import zlib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa

import lance_nb
from lance_nb.errors import LanceError
from tests.hostile.changes import CHANGES, FIRST_CHANGES
from tests.hostile.damage import damage
from tests.hostile.looks import FIRST_LOOKS, LOOKS, opened, quiet
from tests.hostile.shown import ShownError, check_error
from tests.hostile.worlds import NAMES, Change, World
from tests.torture import command

SECONDS_MAX = 10.0  # of processor time, for one case
MEMORY_BYTES_MAX = 2 << 30  # of what a process may write to
GROWTH_KB_MAX = 1 << 20  # of the most that a process had in memory, in one case
CHUNK = 50
FINDINGS_MAX = 20  # of one process, which then ends


class TooSlow(BaseException):
    """A case did not end in time; no handler for ordinary errors may swallow this."""


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


def scratch() -> tempfile.TemporaryDirectory[str]:
    """Return a folder for the datasets that lie in one, in memory where there is such a place."""
    shared = Path("/dev/shm")
    return tempfile.TemporaryDirectory(prefix="hostile-", dir=shared if shared.is_dir() else None)


def check(cases: list[Case] | range) -> Counter[str]:
    """Run cases, or seeds, in this process; return how the verbs ended. Raises findings."""
    faulthandler.enable()
    before = signal.signal(signal.SIGPROF, _stop)
    ends: Counter[str] = Counter()
    try:
        with scratch() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            worlds = Worlds(Path(folder))
            for one in cases:
                case = worlds.case(one) if isinstance(one, int) else one
                try:
                    ends.update(end for _, end in worlds.run(case))
                except (Exception, TooSlow) as error:
                    error.add_note(f"seed {case.seed}: {case}")
                    raise
    finally:
        signal.signal(signal.SIGPROF, before)
    return ends


def _work(run: command.Run) -> command.Found:
    found_at = run.options.file
    in_memory: dict[str, World] = {}

    def share(seeds: range, tell: command.Tell) -> tuple[Counter[str], list[str]]:
        counts: Counter[str] = Counter()
        findings: list[str] = []
        with scratch() as folder:
            worlds = Worlds(Path(folder), dict(in_memory))
            for seed in seeds:
                tell(seed)
                counts["cases"] += 1
                case = worlds.case(seed)
                try:
                    ends = worlds.run(case)
                except (Exception, TooSlow):  # noqa: BLE001 - whatever it is, it is a finding
                    findings.append(f"seed {seed}: {case}\n{traceback.format_exc()[-1500:]}")
                    if found_at:
                        Path(found_at).mkdir(parents=True, exist_ok=True)
                        (Path(found_at) / f"{seed}.json").write_text(case.to_json())
                    if len(findings) == FINDINGS_MAX:
                        break
                    continue
                for name, end in ends:
                    counts[f"verb: {name}"] += 1
                    counts[f"end: {end}"] += 1
                if run.options.show:
                    print(case, ends, sep="\n")
        return counts, findings

    _import_all()
    # Made once, too; a dataset in a folder belongs to one child.
    for name in NAMES:
        if not name.startswith("folder:") and name not in in_memory:
            in_memory[name] = World(name, Path())
    found = command.shared(run, share, CHUNK, _start)
    ends = {key[5:]: found.pop(key) for key in list(found) if key.startswith("end: ")}
    verbs = {key[6:]: found.pop(key) for key in list(found) if key.startswith("verb: ")}
    return {**found, "calls": sum(verbs.values()), "ends": ends, "verbs": verbs}


def main(arguments: list[str]) -> int:
    """Damage datasets as often as asked; return the exit code."""
    parser = command.arguments_of("tests.hostile.whole", "damaged datasets")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--show", action="store_true", help="print what every case does")
    parser.add_argument("--file", help="a folder for the cases that are findings")
    return command.run("hostile_datasets", parser, arguments, _work)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
