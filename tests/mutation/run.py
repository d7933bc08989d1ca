"""Mutation testing: change one expression of the engine, and see whether a test fails.

``python -m tests.mutation.run --count 400 --seed 1`` draws mutants of ``format``, ``encodings``,
``file``, ``table``, ``transactions``, ``writing`` and ``merging``, runs the unit and property tests
of the mutant's own package against each, and prints how many were killed. A mutant that survives is
either killed by a new test or listed in ``equivalent.toml`` with the reason why no test can see it.
Ends with status 1 if less than 85 % are killed, or a survivor is not listed.

Each worker has a copy of the repository, so the working tree is never changed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

from tests.mutation.mutants import PACKAGES, Mutant, restored, sample, statement_lines

ROOT = Path(__file__).resolve().parents[2]
LISTED = Path(__file__).with_name("equivalent.toml")
KILLED_SHARE_MIN = 0.85
# Property tests that lie beside the folders of the packages.
PROPERTY_TESTS = {
    "encodings": ("tests/property/test_repdef.py",),
    "table": ("tests/property/test_predicate.py", "tests/property/test_diff.py"),
    "writing": ("tests/property/test_merge_insert.py",),
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a mutant: ``killed``, ``timeout`` (killed too) or ``survived``."""

    mutant: Mutant
    outcome: str
    seconds: float


def suite(package: str, root: Path = ROOT) -> list[str]:
    """Return the test files of a package."""
    folders = (root / "tests/unit" / package, root / "tests/property" / package)
    found = [path for folder in folders for path in sorted(folder.rglob("test_*.py"))]
    return [
        *(path.relative_to(root).as_posix() for path in found),
        *PROPERTY_TESTS.get(package, ()),
    ]


def near_tests(package: str, mutated: str, root: Path = ROOT) -> list[str]:
    """Return the test files of a package that name the mutated module."""
    module = mutated.removesuffix(".py").replace("/", ".")
    parent, _, stem = module.rpartition(".")
    near = []
    for path in suite(package, root):
        content = (root / path).read_text()
        named = module in content or (f"from {parent} import" in content and stem in content)
        if named or Path(path).stem == f"test_{stem}":
            near.append(path)
    return near


class Coverage:
    """Which test functions of a package run each line of it."""

    def __init__(self, path: Path) -> None:
        saved = json.loads(path.read_text())
        self._tests: list[str] = saved["tests"]
        self._lines: dict[str, dict[str, list[int]]] = saved["lines"]

    def running(self, mutant: Mutant) -> list[str] | None:
        """Return the test functions that run the mutated statement; None: any may see it."""
        lines = statement_lines(ROOT / mutant.path, mutant.line)
        if lines is None:
            return None
        found = self._lines.get(mutant.path, {})
        return [
            self._tests[n] for n in sorted({n for line in lines for n in found.get(str(line), ())})
        ]


class Worker:
    """A copy of the repository, and a process that runs tests in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        environment = os.environ | {
            "PYTHONPATH": str(root),
            "PYTHONDONTWRITEBYTECODE": "1",  # a change within a second could meet stale bytecode
            "PYTEST_DEBUG_TEMPROOT": str(root),
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.mutation.worker"],
            cwd=root,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, tests: list[str], timeout: float, trace: Path | None = None) -> str:
        """Run tests until one fails; return ``survived``, ``killed`` or ``timeout``."""
        if self._process.stdin is None or self._process.stdout is None:
            raise SystemExit("the worker has no pipes")
        request = json.dumps(
            {"tests": tests, "timeout": timeout, "trace": str(trace) if trace else None}
        )
        print(request, file=self._process.stdin, flush=True)
        outcome: str = json.loads(self._process.stdout.readline())
        for left in self.root.glob("pytest-of-*"):
            shutil.rmtree(left, ignore_errors=True)
        # Pytest cannot start when the change breaks a module that a conftest.py imports. Without a
        # mutation the callers raise for this as for a failed test.
        return "killed" if outcome == "error" else outcome

    def judge(self, mutant: Mutant, timeout: float, coverage: Coverage) -> Verdict:
        """Run the tests of its package that can see a mutant, and restore the copy.

        The test functions that run the changed line come first, those of files that name the
        module before others; then these files whole, for what a fixture has run for several tests.
        """
        path = self.root / mutant.path
        original, times = path.read_text(), path.stat()
        began = time.monotonic()
        path.write_text(mutant.source)
        try:
            near = near_tests(mutant.package, mutant.path, self.root)
            running = coverage.running(mutant)
            if running is None:
                far = [one for one in suite(mutant.package, self.root) if one not in near]
                stages = [near, far]
            else:
                functions = [one for one in running if one.partition("::")[0] in near]
                far = [one for one in running if one.partition("::")[0] not in near]
                stages = [functions, far, near]
            outcome = "survived"
            for stage in stages:
                if outcome == "survived" and stage:
                    outcome = self.run(stage, timeout)
        finally:
            path.write_text(original)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        return Verdict(mutant, outcome, time.monotonic() - began)

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()


@contextmanager
def workers(count: int) -> Iterator[Queue[Worker]]:
    """Start workers, each with a copy of the repository, in memory where there is room."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    names = [name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]
    parent = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=parent, prefix="mutation-") as folder, ExitStack() as ends:
        free: Queue[Worker] = Queue()
        for number in range(count):
            target = Path(folder) / str(number)
            for name in names:
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, target / name)
            worker = Worker(target)
            ends.callback(worker.close)
            free.put(worker)
        yield free


def listed_reasons() -> dict[tuple[str, str, str], str]:
    """Return the reasons of mutants that no test can kill, by their key."""
    entries = tomllib.loads(LISTED.read_text()).get("mutant", [])
    return {(one["path"], one["before"], one["after"]): one["reason"] for one in entries}


def verdicts(mutants: list[Mutant], jobs: int) -> Iterator[Verdict]:
    """Judge the mutants with ``jobs`` workers, in the order in which they are done."""
    with workers(jobs) as free, ThreadPoolExecutor(jobs) as pool:
        packages = sorted({mutant.package for mutant in mutants})

        def without_mutation(package: str) -> tuple[float, Coverage]:
            worker = free.get()
            began = time.monotonic()
            trace = worker.root / f"{package}.lines.json"
            try:
                if worker.run(suite(package, worker.root), 1800, trace) != "survived":
                    raise SystemExit(f"the tests of {package} fail without a mutation")
            finally:
                free.put(worker)
            return 60 + 3 * (time.monotonic() - began), Coverage(trace)

        measured = dict(zip(packages, pool.map(without_mutation, packages), strict=True))

        def work(mutant: Mutant) -> Verdict:
            worker = free.get()
            try:
                return worker.judge(mutant, *measured[mutant.package])
            finally:
                free.put(worker)

        for future in as_completed([pool.submit(work, mutant) for mutant in mutants]):
            yield future.result()
        # What breaks the environment meanwhile would count as killed mutants.
        worker = free.get()
        if worker.run(suite("format", worker.root), 1800) != "survived":
            raise SystemExit("at the end tests fail without a mutation")


def survivors_of(path: Path) -> list[Mutant]:
    """Return the survivors that an earlier run saved, as far as their lines are still there."""
    saved = [one for one in json.loads(path.read_text()) if one["outcome"] == "survived"]
    again = [restored(ROOT, one["key"][0], one["line"], *one["key"][1:]) for one in saved]
    gone = sum(mutant is None for mutant in again)
    print(f"{len(saved)} survivors, of {gone} of them the line is gone")
    return [mutant for mutant in again if mutant is not None]


def main() -> int:
    """Run, print a line for each survivor and a table, and return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--package", action="append", choices=PACKAGES)
    parser.add_argument("--again", help="the JSON file of an earlier run: judge its survivors")
    parser.add_argument("--save", help="write every verdict to this JSON file")
    parser.add_argument("--resume", help="the JSON file of a run that was cut off: go on with it")
    options = parser.parse_args()
    packages = tuple(options.package or PACKAGES)
    if options.again:
        mutants = survivors_of(Path(options.again))
    else:
        mutants = sample(ROOT, options.count, options.seed, packages)
    print(f"{len(mutants)} mutants, seed {options.seed}", flush=True)
    reasons = listed_reasons()
    counts: dict[str, Counter[str]] = {package: Counter() for package in packages}
    saved = json.loads(Path(options.resume).read_text()) if options.resume else []
    for one in saved:
        counts[one["key"][0].split("/")[1]][one["outcome"]] += 1
    judged = {tuple(one["key"]) for one in saved}
    mutants = [mutant for mutant in mutants if mutant.key not in judged]
    unlisted = sum(one["outcome"] == "survived" for one in saved)
    for verdict in verdicts(mutants, options.jobs):
        mutant, outcome = verdict.mutant, verdict.outcome
        if outcome == "survived":
            reason = reasons.get(mutant.key)
            outcome = "equivalent" if reason else "survived"
            unlisted += not reason
            print(f"{outcome}: {mutant.path}:{mutant.line} {mutant.operator}\n  - {mutant.before}\n"
                  f"  + {mutant.after}\n  {reason or ''}", flush=True)  # fmt: skip
        counts[mutant.package][outcome] += 1
        saved.append({"key": mutant.key, "line": mutant.line, "operator": mutant.operator,
                      "outcome": outcome, "seconds": round(verdict.seconds, 1)})  # fmt: skip
        if options.save:
            Path(options.save).write_text(json.dumps(saved, indent=1))
    total = sum(counts.values(), Counter())
    for name, row in [*counts.items(), ("all", total)]:
        killed = row["killed"] + row["timeout"]
        print(f"{name:13} {sum(row.values()):4} mutants  {killed:4} killed "
              f"({row['timeout']} by timeout)  {row['survived']:3} survived  "
              f"{row['equivalent']:3} equivalent")  # fmt: skip
    share = (total["killed"] + total["timeout"]) / max(1, sum(total.values()))
    wanted = f"at least {KILLED_SHARE_MIN:.0%} wanted"
    print(f"killed: {share:.1%} of all, {wanted}; survivors that are not listed: {unlisted}")
    return int(share < KILLED_SHARE_MIN or unlisted > 0)


if __name__ == "__main__":
    raise SystemExit(main())
