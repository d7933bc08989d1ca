"""The command line that every kind of the rig has: a size, a seed, a limit of time, a store.

    python -m tests.concurrency.simulation 100000 1 --seconds 1200 --jobs 2 --keep

A kind gives a function that does the work of a :class:`Run` and returns its counts; what is common
to all results (seeds, seconds, failures) is added here. Work that is a row of seeds can be shared
among forked processes: a child that dies or hangs is a finding, and names its seed.
"""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import pkgutil
import shlex
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from typing import Any, Protocol

from tests.torture.results import added, keep

FAILURE_CHARS_MAX = 2000
HANGS_S = 900.0  # without a new seed: a child is ended; busy neighbours make it slow
SHARES = 6  # of the verbs, for each process: it starts pylance once for a share
VERB_HANGS_S = 900.0  # without a new verb, of which each is killed some 100 times

Found = dict[str, Any]


@dataclass(slots=True)
class Run:
    """What a command line asked for, and what went wrong so far."""

    size: int
    seed: int = 1
    seconds_max: float = float("inf")
    jobs: int = 1
    options: argparse.Namespace = field(default_factory=argparse.Namespace)
    hangs_s: float = HANGS_S
    label: Callable[[int], str] = "seed {}".format
    failures: list[str] = field(default_factory=list)
    began: float = field(default_factory=time.perf_counter)

    def is_over(self) -> bool:
        """Tell whether the time is up."""
        return time.perf_counter() - self.began >= self.seconds_max

    def fail(self, text: str) -> None:
        """Print and remember a finding."""
        self.failures.append(text[:FAILURE_CHARS_MAX])
        print(f"FOUND {self.failures[-1]}", flush=True)

    def seeds(self) -> Iterator[int]:
        """Yield one seed for each unit of the size, until the time is up."""
        for seed in range(self.seed, self.seed + self.size):
            if self.is_over():
                return
            yield seed

    def result(self, counts: Found, seeds: Sequence[int] = ()) -> Found:
        """Return counts with what every stored result has."""
        first, last = (seeds[0], seeds[-1]) if seeds else (self.seed, self.seed)
        seconds = round(time.perf_counter() - self.began, 1)
        return {**counts, "seeds": [first, last], "seconds": seconds, "failures": self.failures}


def arguments_of(module: str, size: str) -> argparse.ArgumentParser:
    """Return a parser of what every kind takes; ``size`` says what is counted."""
    parser = argparse.ArgumentParser(prog=f"python -m {module}")
    parser.add_argument("size", type=int, help=size)
    parser.add_argument("seed", type=int, nargs="?", default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--keep", action="store_true", help="store the result for RELIABILITY.md")
    parser.add_argument("--add", action="store_true", help="add it to what is stored")
    return parser


def run(
    name: str,
    parser: argparse.ArgumentParser,
    arguments: Sequence[str],
    work: Callable[[Run], Found],
) -> int:
    """Do what the arguments say, print the result and store it if asked; return the exit code."""
    said = parser.parse_args(arguments)
    found = work(Run(said.size, said.seed, said.seconds, getattr(said, "jobs", 1), said))
    print({key: one for key, one in found.items() if key not in ("failures", "verbs")}, flush=True)
    if said.keep or said.add:
        given = [one for one in arguments if one not in ("--keep", "--add")]
        (added if said.add else keep)(name, f"{parser.prog} {shlex.join(given)}", found)
    return 1 if found["failures"] else 0


# --- shares among processes -----------------------------------------------------------------------

Tell = Callable[[int], None]
Work = Callable[[range, Tell], tuple["Counter[str]", list[str]]]


@dataclass(slots=True)
class _Child:
    process: Any
    pipe: Any
    seeds: range
    at: Any  # the seed it is busy with
    last: tuple[int, float]  # that seed, and since when


def shared(run: Run, work: Work, chunk: int, start: Callable[[], None] | None = None) -> Found:
    """Give chunks of seeds to forked children, ``run.jobs`` at a time; return the merged counts.

    ``work(seeds, tell)`` calls ``tell(seed)`` before each one, and returns counts and findings.
    """
    seeds = range(run.seed, run.seed + run.size)
    counts, last = _shared(run, work, seeds, chunk, start)
    return run.result(dict(counts), (run.seed, last))


def _shared(
    run: Run, work: Work, seeds: range, chunk: int, start: Callable[[], None] | None = None
) -> tuple[Counter[str], int]:
    context = multiprocessing.get_context("fork")
    counts: Counter[str] = Counter()
    children: list[_Child] = []
    next_seed, end, last = seeds.start, seeds.stop, seeds.start

    def begin(seeds: range) -> None:
        here, there = context.Pipe(duplex=False)
        at = context.Value("q", seeds.start, lock=False)
        process = context.Process(target=_child, args=(there, at, seeds, work, start))
        process.start()
        there.close()
        children.append(_Child(process, here, seeds, at, (seeds.start, time.monotonic())))

    while children or (next_seed < end and not run.is_over()):
        while len(children) < run.jobs and next_seed < end and not run.is_over():
            chosen = range(next_seed, min(next_seed + chunk, end))
            next_seed, last = chosen.stop, chosen.stop - 1
            begin(chosen)
        wait([one.pipe for one in children], timeout=1)
        for child in list(children):
            rest = _looked_after(run, child, counts)
            if rest is not None:
                children.remove(child)
                if rest:
                    begin(rest)
    return counts, last


def _child(pipe: Any, at: Any, seeds: range, work: Work, start: Callable[[], None] | None) -> None:
    def tell(seed: int) -> None:
        at.value = seed

    if start is not None:
        start()
    pipe.send(work(seeds, tell))
    pipe.close()


def _looked_after(run: Run, child: _Child, counts: Counter[str]) -> range | None:
    """Take a child's result; return the seeds that a dead one leaves, None while it is busy."""
    seed = child.at.value
    if child.pipe.poll():
        try:
            found, failures = child.pipe.recv()
        except EOFError:
            child.process.join()
            return _ended(run, child, seed, f"the process ended with {child.process.exitcode}")
        child.process.join()
        counts.update(found)
        for one in failures:
            run.fail(one)
        return range(0)
    if child.last[0] != seed:
        child.last = (seed, time.monotonic())
    if time.monotonic() - child.last[1] > run.hangs_s:
        child.process.kill()
        child.process.join()
        return _ended(run, child, seed, f"no end after {run.hangs_s:.0f} s")
    return None


def _ended(run: Run, child: _Child, seed: int, how: str) -> range:
    """Note the seed; what the child had counted before is lost, so it is done again without it."""
    run.fail(f"{run.label(seed)}: {how}")
    return range(seed + 1, child.seeds.stop)


# --- verb by verb ---------------------------------------------------------------------------------


class VerbRun(Protocol):
    """What tries one verb after the other, and counts."""

    ends: Counter[str]
    verbs: Counter[str]
    failures: list[str]

    def all_of(self, name: str, seed: int) -> None:
        """Try a verb in every way, on the dataset of a seed."""

    def close(self) -> None:
        """End what was started."""


def each_verb(run: Run, names: Sequence[str], make: Callable[[int], VerbRun], size: str) -> Found:
    """Give verbs to forked children, seed after seed, until the size is reached; return counts.

    Every verb is through with a seed before the next one begins. ``make(seed)`` returns what tries
    the verbs; ``size`` is the name of the count.
    """
    ends: Counter[str] = Counter()
    verbs: Counter[str] = Counter()
    last = run.seed - 1
    run.hangs_s, run.label = VERB_HANGS_S, names.__getitem__
    chunk = max(1, len(names) // (run.jobs * SHARES))
    _import_all()
    while verbs.total() < run.size and not run.is_over():
        last += 1
        found, _ = _shared(run, _work_of(names, last, make), range(len(names)), chunk)
        for (kind, name), count in ((key.split(":", 1), count) for key, count in found.items()):
            (ends if kind == "end" else verbs)[name] += count
    counts: Found = {size: verbs.total(), "ends": dict(ends), "verbs": dict(verbs)}
    return run.result(counts, (run.seed, last))


def _import_all() -> None:
    """Import what children would each import anew; nothing is run, so no thread is started."""
    importlib.import_module("pandas")
    for package in ("dataset", "encodings", "file", "format", "storage", "table", "transactions"):
        path = importlib.import_module(f"lance_nb.{package}").__path__
        for one in pkgutil.walk_packages(path, f"lance_nb.{package}."):
            importlib.import_module(one.name)


def _work_of(names: Sequence[str], seed: int, make: Callable[[int], VerbRun]) -> Work:
    def work(numbers: range, tell: Tell) -> tuple[Counter[str], list[str]]:
        tried = make(seed)
        for number in numbers:
            tell(number)
            tried.all_of(names[number], seed)
        tried.close()
        counts = Counter({f"end:{name}": count for name, count in tried.ends.items()})
        counts.update({f"verb:{name}": count for name, count in tried.verbs.items()})
        return counts, tried.failures

    return work
