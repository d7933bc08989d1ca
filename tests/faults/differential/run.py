"""Run differential cases: ``python -m tests.faults differential [cases] [seed] [--seconds 1800]``.

Two worker processes take seeds in turns. A case that hangs or kills its process is reported with
its seed. Each kind of difference is made small once, and printed as a script that repeats it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from queue import Empty, Queue
from typing import Any

from tests.faults import command
from tests.faults.differential.histories import Author
from tests.faults.differential.play import Finding, Player, Step, first_finding, playing
from tests.faults.differential.shrinking import shrunk

SHRINKING_S = 20.0
CASE_S = 120.0  # a case that takes longer hangs
WORKERS = 2


def play_seed(seed: int) -> tuple[list[Step], Finding | None]:
    """Make the case of a seed while playing it; return its steps and the first difference."""
    with warnings.catch_warnings(), playing() as player:
        warnings.simplefilter("ignore")  # pylance's, about its own arguments
        return play_author(Author(seed), player)


def play_author(author: Author, player: Player) -> tuple[list[Step], Finding | None]:
    """Let an author make steps while they are played; return them and the first difference."""
    steps: list[Step] = []
    while (step := author.operation(player)) is not None:
        finding = player.operate(step)
        if finding is not None:
            return [*steps, step], finding
        reads: tuple[str, ...] = ()
        for code in author.reads(player, step.branch):
            reads = (*reads, code)
            finding = player.read(code, step.branch)
            if finding is not None:
                return [*steps, replace(step, reads=reads)], finding
        steps.append(replace(step, reads=reads))
    return steps, None


def minimal(
    steps: list[Step],
    finding: Finding,
    seconds: float = SHRINKING_S,
    first: Callable[..., tuple[int, Finding] | None] = first_finding,
) -> tuple[Any, Any]:
    """Make a failing case small; return it and what it finds."""
    last = [finding]

    def fails(candidate: tuple[Step, ...]) -> bool:
        try:
            found = first(candidate)
        except Exception:  # noqa: BLE001 (the simpler values cannot be made)
            return False
        if found is None or found[1].signature != finding.signature:
            return False
        last[0] = found[1]
        return True

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return shrunk(steps, fails, seconds), last[0]


def script(seed: int, steps: Any, finding: Finding) -> str:
    """Write a case as a script that repeats it."""
    lines = "".join(f"    {step!r},\n" for step in steps)
    return (
        f"# seed {seed}: {finding.code}\n# {finding.text[:600]}\n"
        "import pyarrow as pa\n"
        "from tests.faults.differential.play import Step, reproduce\n"
        "from tests.faults.differential.values import BFloat16Type, BlobType, Column, Rows\n\n"
        f"reproduce([\n{lines}])\n"
    ).replace("\r", " ")


# --- processes ---------------------------------------------------------------------------------


def work() -> None:
    """Answer seeds from standard input with one line of JSON each."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)  # panics of pylance print themselves
    known: set[str] = set()
    for line in sys.stdin:
        asked = json.loads(line)
        known.update(asked["known"])
        seed = asked["seed"]
        answer: dict[str, Any] = {"seed": seed}
        try:
            steps, finding = play_seed(seed)
            answer["checks"] = sum(1 + len(one.reads) for one in steps)
            if finding is not None:
                answer["signature"] = finding.signature
                if asked["shrinks"] and finding.signature not in known:
                    known.add(finding.signature)
                    small, last = minimal(steps, finding)
                    answer["script"] = script(seed, small, last)
        except Exception as error:  # noqa: BLE001 (of the generator itself)
            answer["signature"] = f"generator: {type(error).__name__}"
            answer["script"] = traceback.format_exc()
        answers.write(json.dumps(answer) + "\n")


class Worker:
    """A process that plays cases; it is replaced when it hangs or dies."""

    def __init__(self, root: Path | None = None) -> None:
        """Start a process, with the package and the generator below ``root`` if given."""
        environment = None if root is None else {**os.environ, "PYTHONPATH": str(root)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.differential.run"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root, env=environment,
        )  # fmt: skip
        self._lines: Queue[str] = Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put("")

    def play(self, seed: int, known: list[str], *, shrinks: bool = True) -> dict[str, Any] | None:
        """Return the answer for a seed; None when the process died or hangs."""
        assert self._process.stdin is not None
        asked = {"seed": seed, "known": known, "shrinks": shrinks}
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        try:
            line = self._lines.get(timeout=CASE_S + SHRINKING_S)
        except Empty:
            line = ""
        return json.loads(line) if line else None

    def stop(self) -> int | None:
        """End the process; return its status if it had ended by itself."""
        status = self._process.poll()
        self._process.kill()
        self._process.wait()
        return status


class Campaign:
    """Many cases, by several workers, until a time or a number of cases."""

    def __init__(self, first: int, cases: int, seconds: float) -> None:
        self._next = first
        self._last = first + cases if cases else None
        self._deadline = time.monotonic() + seconds
        self._lock = threading.Lock()
        self.played = 0
        self.checks = 0
        self.findings: Counter[str] = Counter()
        self.scripts: dict[str, str] = {}

    def run(self, workers: int = WORKERS) -> None:
        """Play until the end."""
        threads = [threading.Thread(target=self._serve) for _ in range(workers)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()

    def _take(self) -> int | None:
        with self._lock:
            done = self._last is not None and self._next >= self._last
            if done or time.monotonic() > self._deadline:
                return None
            self._next += 1
            return self._next - 1

    def _serve(self) -> None:
        worker = Worker()
        while (seed := self._take()) is not None:
            answer = worker.play(seed, list(self.scripts))
            if answer is None:
                status = worker.stop()
                what = "hangs" if status is None else f"ends the process with status {status}"
                answer = {"seed": seed, "signature": what, "script": f"# seed {seed} {what}\n"}
                worker = Worker()
            with self._lock:
                self._note(answer)
        worker.stop()

    def _note(self, answer: dict[str, Any]) -> None:
        self.played += 1
        self.checks += answer.get("checks", 0)
        signature = answer.get("signature")
        if signature is None:
            return
        self.findings[signature] += 1
        if "script" in answer and signature not in self.scripts:
            self.scripts[signature] = answer["script"]
            print(f"\n--- {signature}\n{answer['script']}", flush=True)


def main(arguments: list[str]) -> int:
    """Run from the command line."""
    parser = command.parser_of("differential", "cases, as many as time allows", 10**9)
    parser.set_defaults(seconds=1800.0, jobs=WORKERS, seed=None)
    parser.add_argument("--only", action="store_true", help="play one seed and print its steps")
    options = parser.parse_args(arguments)
    if options.only:
        steps, finding = play_seed(options.seed)
        print(*steps, sep="\n")
        print("no difference" if finding is None else f"{finding.code}\n{finding.text}")
        if finding is not None:
            print(script(options.seed, *minimal(steps, finding)))
        return int(finding is not None)
    first = options.seed
    if first is None:
        first = time.time_ns() // 10**9 % 10**6 * 1000
    print(f"differential cases from seed {first}, for {options.seconds:g} s", flush=True)
    began = time.monotonic()
    campaign = Campaign(first, options.size, options.seconds)
    campaign.run(options.jobs)
    took = time.monotonic() - began
    print(f"\n{campaign.played} cases (seeds {first} to {first + campaign.played - 1}), "
          f"{campaign.checks} operations and reads compared in {took:.0f} s")  # fmt: skip
    for signature, count in campaign.findings.most_common():
        print(f"{count:5} {signature}")
    print(f"{len(campaign.findings) or 'no'} kinds of difference")
    return int(bool(campaign.findings))


if __name__ == "__main__":
    work()
