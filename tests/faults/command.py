"""What every kind of fault has in common: a size, a seed, a limit of time, processes, a result.

    python -m tests.faults simulate 100000 1 --seconds 1200 --jobs 2 --keep

A kind gives a function that does the work of a :class:`Run` and returns its counts; what is common
to all results (seeds, seconds, failures) is added here. Work that is a row of seeds can be shared
among forked processes: a child that dies or hangs is a finding, and names its seed.
"""

from __future__ import annotations

import argparse
import importlib
import multiprocessing
import os
import pkgutil
import shlex
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, Protocol

from tests.faults.results import add, keep

FAILURE_CHARS_MAX = 2000
HANGS_S = 900.0  # without a new seed: a child is ended; busy neighbours make it slow
SHARES = 6  # of the verbs, for each process: it starts pylance once for a share
SHARED_MEMORY = "/dev/shm"

Counts = dict[str, Any]


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

    def result(self, counts: Counts, seeds: Sequence[int] = ()) -> Counts:
        """Return counts with what every stored result has."""
        first, last = (seeds[0], seeds[-1]) if seeds else (self.seed, self.seed)
        seconds = round(time.perf_counter() - self.began, 1)
        return {**counts, "seeds": [first, last], "seconds": seconds, "failures": self.failures}


def parser_of(name: str, size: str, default: int) -> argparse.ArgumentParser:
    """Return a parser of what every kind takes; ``size`` says what is counted."""
    parser = argparse.ArgumentParser(prog=f"python -m tests.faults {name}")
    parser.add_argument("size", type=int, nargs="?", default=default, help=f"{size} ({default})")
    parser.add_argument("seed", type=int, nargs="?", default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--keep", action="store_true", help="store the result for the report")
    parser.add_argument("--add", action="store_true", help="add it to what is stored")
    return parser


def run(
    result: str,
    parser: argparse.ArgumentParser,
    arguments: Sequence[str],
    work: Callable[[Run], Counts],
) -> int:
    """Do what the arguments say, print the counts and store them if asked; return the exit code."""
    options = parser.parse_args(arguments)
    counts = work(Run(options.size, options.seed, options.seconds, options.jobs, options))
    shown = {key: value for key, value in counts.items() if key not in ("failures", "verbs")}
    print(shown, flush=True)
    if options.keep or options.add:
        words = [word for word in arguments if word not in ("--keep", "--add")]
        (add if options.add else keep)(result, f"{parser.prog} {shlex.join(words)}", counts)
    return 1 if counts["failures"] else 0


def memory_folder() -> tempfile.TemporaryDirectory[str]:
    """Return a folder for datasets, in memory where that is possible: nothing waits for a disk."""
    folder = SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK) else None
    return tempfile.TemporaryDirectory(prefix="faults-", dir=folder, ignore_cleanup_errors=True)


# --- shares among processes -----------------------------------------------------------------------

Tell = Callable[[int], None]
Work = Callable[[range, Tell], tuple["Counter[str]", list[str]]]


@dataclass(slots=True)
class _Child:
    process: Any
    pipe: Any
    seeds: range
    current: Any  # the seed it is busy with
    last: tuple[int, float]  # that seed, and since when


def shared(
    run: Run, work: Work, chunk: int, start: Callable[[], None] | None = None, *kinds: str
) -> Counts:
    """Give chunks of seeds to forked children, ``run.jobs`` at a time; return the merged counts.

    ``work(seeds, tell)`` calls ``tell(seed)`` before each one, and returns counts and findings.
    Counts whose name begins with one of ``kinds`` and a colon become a dictionary of that name.
    """
    seeds = range(run.seed, run.seed + run.size)
    counts, last = _shared(run, work, seeds, chunk, start)
    merged: Counts = {kind: {} for kind in kinds}
    for key, count in counts.items():
        kind, colon, name = key.partition(":")
        if colon and kind in kinds:
            merged[kind][name] = count
        else:
            merged[key] = count
    return run.result(merged, (run.seed, last))


def each(
    seeds: range, tell: Tell, case: Callable[[int], Sequence[str]], repeat: str, most: int = 1000
) -> tuple[Counter[str], list[str]]:
    """Run a case for each seed; return how often each of the names it returns was counted.

    Whatever a case raises is a finding, shown with the command that repeats it; after ``most`` of
    them the process ends.
    """
    counts: Counter[str] = Counter()
    findings: list[str] = []
    for seed in seeds:
        tell(seed)
        counts["cases"] += 1
        try:
            counts.update(case(seed))
        except (Exception, TooSlow):  # noqa: BLE001 (whatever it is, it is a finding)
            counts["failing"] += 1
            trace = traceback.format_exc(limit=-3)[-1500:]
            findings.append(f"seed {seed}: python -m tests.faults {repeat.format(seed)}\n{trace}")
            if len(findings) == most:
                break
    return counts, findings


class TooSlow(BaseException):
    """A case did not end in time; no handler for ordinary errors may swallow this."""


def _shared(
    run: Run, work: Work, seeds: range, chunk: int, start: Callable[[], None] | None = None
) -> tuple[Counter[str], int]:
    context = multiprocessing.get_context("fork")
    counts: Counter[str] = Counter()
    children: list[_Child] = []
    next_seed, end, last = seeds.start, seeds.stop, seeds.start

    def begin(seeds: range) -> None:
        ours, theirs = context.Pipe(duplex=False)
        current = context.Value("q", seeds.start, lock=False)
        process = context.Process(target=_child, args=(theirs, current, seeds, work, start))
        process.start()
        theirs.close()
        children.append(_Child(process, ours, seeds, current, (seeds.start, time.monotonic())))

    while children or (next_seed < end and not run.is_over()):
        while len(children) < run.jobs and next_seed < end and not run.is_over():
            chosen = range(next_seed, min(next_seed + chunk, end))
            next_seed, last = chosen.stop, chosen.stop - 1
            begin(chosen)
        wait([child.pipe for child in children], timeout=1)
        for child in list(children):
            left = _collected(run, child, counts)
            if left is not None:
                children.remove(child)
                if left:
                    begin(left)
    return counts, last


def _child(
    pipe: Any, current: Any, seeds: range, work: Work, start: Callable[[], None] | None
) -> None:
    def tell(seed: int) -> None:
        current.value = seed

    if start is not None:
        start()
    pipe.send(work(seeds, tell))
    pipe.close()


def _collected(run: Run, child: _Child, counts: Counter[str]) -> range | None:
    """Take a child's result; return the seeds that a dead one leaves, None while it is busy."""
    seed = child.current.value
    if child.pipe.poll():
        try:
            child_counts, failures = child.pipe.recv()
        except EOFError:
            child.process.join()
            return _ended(run, child, seed, f"the process ended with {child.process.exitcode}")
        child.process.join()
        counts.update(child_counts)
        for text in failures:
            run.fail(text)
        return range(0)
    if child.last[0] != seed:
        child.last = (seed, time.monotonic())
    if time.monotonic() - child.last[1] > run.hangs_s:
        child.process.kill()
        child.process.join()
        return _ended(run, child, seed, f"no end after {run.hangs_s:.0f} s")
    return None


def _ended(run: Run, child: _Child, seed: int, text: str) -> range:
    """Note the seed; what the child had counted before is lost, so it is done again without it."""
    run.fail(f"{run.label(seed)}: {text}")
    return range(seed + 1, child.seeds.stop)


# --- verb by verb ---------------------------------------------------------------------------------


class VerbCase(Protocol):
    """A verb on the dataset of a seed, and the faults that are tried on it."""

    where: str  # what is tried, for the text of a finding

    def rounds(self) -> Iterator[Any]:
        """Yield faults."""

    def round(self, fault: Any) -> str:
        """Let a fault happen and look; return how it ended. Raises what is wrong."""

    def tidy(self) -> None:
        """Remove what a round left that ended in a finding."""


NOT_REACHED = "not reached"  # the end of a round in which the fault did not happen

# Make the case of (name of a verb, seed, folder).
MakeCase = Callable[[str, int, Path], VerbCase]


def each_verb(
    run: Run, names: Sequence[str], make: Callable[[], tuple[MakeCase, Callable[[], None]]]
) -> Counts:
    """Give verbs to forked children, seed after seed, until the size is reached; return counts.

    Every verb is through with a seed before the next one begins. ``make()`` is called in each child
    and returns what makes cases, and what ends what it started.
    """
    ends: Counter[str] = Counter()
    verbs: Counter[str] = Counter()
    last = run.seed - 1
    run.label = names.__getitem__
    chunk = max(1, len(names) // (run.jobs * SHARES))
    _import_all()
    while verbs.total() < run.size and not run.is_over():
        last += 1
        counts, _ = _shared(run, _work_of(names, last, make), range(len(names)), chunk)
        for (kind, name), count in ((key.split(":", 1), count) for key, count in counts.items()):
            (ends if kind == "end" else verbs)[name] += count
    return run.result(
        {"rounds": verbs.total(), "ends": dict(ends), "verbs": dict(verbs)}, (run.seed, last)
    )


def _work_of(names: Sequence[str], seed: int, make: Any) -> Work:
    def work(numbers: range, tell: Tell) -> tuple[Counter[str], list[str]]:
        counts: Counter[str] = Counter()
        failures: list[str] = []
        make_case, close = make()
        for number in numbers:
            tell(number)
            with memory_folder() as folder:
                case = make_case(names[number], seed, Path(folder) / "case")
                counts += try_verb(case, f"{names[number]}, seed {seed}", failures)
        close()
        return counts, failures

    return work


def try_verb(case: VerbCase, title: str, failures: list[str]) -> Counter[str]:
    """Try all rounds of a case; return counts, and add findings to ``failures``."""
    began = time.perf_counter()
    counts: Counter[str] = Counter()
    for fault in case.rounds():
        case.where = str(fault)
        try:
            end = case.round(fault)
        except Exception as error:  # noqa: BLE001 (whatever it is, it is a finding)
            end = "found"
            failures.append(f"{title}, {case.where}: {type(error).__name__}: {error}")
            case.tidy()
        if end != NOT_REACHED:
            counts.update((f"end:{end}", f"verb:{title.partition(', seed')[0]}"))
    rounds = sum(count for key, count in counts.items() if key.startswith("end:"))
    print(f"{title}: {rounds} rounds, {time.perf_counter() - began:.1f} s", flush=True)
    return counts


def _import_all() -> None:
    """Import what children would each import anew; nothing is run, so no thread is started."""
    importlib.import_module("pandas")
    package = importlib.import_module("lance_nb")
    for module in pkgutil.walk_packages(package.__path__, "lance_nb."):
        if not any(name in module.name for name in (".explorer", ".magic", ".spark", ".demo")):
            importlib.import_module(module.name)
