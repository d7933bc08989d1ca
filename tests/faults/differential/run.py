"""Run differential cases: ``python -m tests.faults differential [cases] [seed] [--seconds 1800]``.

Processes take chunks of seeds. A case that hangs or kills its process is reported with its seed.
Each kind of difference is made small once in a chunk, and printed as a script that repeats it.
"""

from __future__ import annotations

import os
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.faults import command
from tests.faults.differential.histories import Author
from tests.faults.differential.play import Finding, Player, Step, first_finding, playing
from tests.faults.differential.shrinking import shrunk

SHRINKING_S = 20.0
CASE_S = 120.0  # a case that takes longer hangs
CHUNK = 50


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


# --- many cases -----------------------------------------------------------------------------------


def share(seeds: range, tell: command.Tell) -> tuple[Counter[str], list[str]]:
    """Play cases in this process; return counts and a script for each kind of difference."""
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 2)  # panics of pylance print themselves
    counts: Counter[str] = Counter()
    scripts: dict[str, str] = {}
    for seed in seeds:
        tell(seed)
        counts["cases"] += 1
        try:
            steps, finding = play_seed(seed)
        except Exception as error:  # noqa: BLE001 (of the generator itself)
            scripts.setdefault(f"generator: {type(error).__name__}", traceback.format_exc())
            continue
        counts["checks"] += sum(1 + len(step.reads) for step in steps)
        if finding is not None:
            counts[f"kinds:{finding.signature}"] += 1
            if finding.signature not in scripts:
                text = script(seed, *minimal(steps, finding))
                scripts[finding.signature] = f"{finding.signature}\n{text}"
    return counts, list(scripts.values())


def main(arguments: list[str]) -> int:
    """Run from the command line."""
    parser = command.parser_of("differential", "cases", 100_000)
    parser.set_defaults(seconds=1800.0, jobs=2, seed=None)
    parser.add_argument("--only", action="store_true", help="play one seed and print its steps")
    options = parser.parse_args(arguments)
    if options.only:
        steps, finding = play_seed(options.seed)
        print(*steps, sep="\n")
        print("no difference" if finding is None else f"{finding.code}\n{finding.text}")
        if finding is not None:
            print(f"signature: {finding.signature}")
            print(script(options.seed, *minimal(steps, finding)))
        return int(finding is not None)

    def work(run: command.Run) -> command.Counts:
        if run.seed is None:
            run.seed = time.time_ns() // 10**9 % 10**6 * 1000
        run.hangs_s = CASE_S + SHRINKING_S
        # Nothing of pylance has run here yet, so it has no threads that a child would lack.
        warnings.filterwarnings("ignore", "lance is not fork-safe")
        print(f"differential cases from seed {run.seed}, for {run.seconds_max:g} s", flush=True)
        return command.shared(run, share, CHUNK, None, "kinds")

    return command.run("differential", parser, arguments, work)
