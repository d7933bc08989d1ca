"""What checksums cost a writer: the same rows with them, without, and by pylance, in one run.

Prints a Markdown table per place: a disk (below ``tests/benchmarks/data``, ignored by git, unless
``--disk`` names another folder) and memory (``/dev/shm``). The three writers take turns, in another
order in each round; times are the best of all rounds.

The limit is ``LIMIT``: a checksummed write may take so much longer than a plain one, by the clock
or by processor time, whichever differs less (the clock of a shared machine is not to be trusted).
Ours syncs every file before it returns and pylance does not, so on a disk pylance's clock is ahead.
"""

from __future__ import annotations

import itertools
import os
import shutil
from argparse import Namespace
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import lance
import numpy as np
import pyarrow as pa

import lance_nb
from tests.benchmarks.stored import DATA
from tests.benchmarks.timing import ONLY, Timing, best, markdown, timed

OPTIONS = {
    "--bytes": {"type": int, "default": 1_000_000_000, "help": "of Arrow data, each"},
    "--rounds": {"type": int, "default": 12},
    "--disk": {"type": Path, "default": DATA, "help": "a folder on a disk"},
    "--only": ONLY,
}
LIMIT = 1.05
MEMORY = Path("/dev/shm")
# A writer's time depends on what ran before it: each one follows each other one as often.
ORDERS = tuple(itertools.permutations(range(3)))
_SEED = 5


def _numbers(size_bytes: int) -> pa.Table:
    random = np.random.default_rng(_SEED)
    rows = size_bytes // 24
    return pa.table(
        {
            "id": np.arange(rows),
            "key": random.integers(-(2**62), 2**62, rows),
            "x": random.random(rows),
        }
    )


def _strings(size_bytes: int) -> pa.Table:
    rows = size_bytes // 36  # 32 letters and an offset
    letters = np.random.default_rng(_SEED).integers(97, 123, rows * 32).astype(np.uint8)
    offsets = pa.py_buffer(np.arange(0, rows * 32 + 1, 32, dtype=np.int32))
    buffers = [None, offsets, pa.py_buffer(letters)]
    return pa.table({"text": pa.Array.from_buffers(pa.string(), rows, buffers)})


def _words(size_bytes: int) -> pa.Table:
    rows = size_bytes // 40
    random = np.random.default_rng(_SEED)
    words = pa.array([f"word{number:05d} of a text " for number in range(10_000)])
    parts = [words.take(pa.array(random.integers(0, 10_000, rows))) for _ in range(2)]
    return pa.table({"text": pa.compute.binary_join_element_wise(*parts, "")})


def _vectors(size_bytes: int) -> pa.Table:
    rows = size_bytes // (768 * 4)
    values = np.random.default_rng(_SEED).standard_normal(rows * 768, np.float32)
    return pa.table({"vector": pa.FixedSizeListArray.from_arrays(pa.array(values), 768)})


SCHEMAS: Mapping[str, Callable[[int], pa.Table]] = {
    "numbers": _numbers,
    "strings, random letters": _strings,
    "strings, words": _words,
    "vectors of 768 float32": _vectors,
}


class Cost(NamedTuple):
    """The best times of the three writers, and the bytes that ours wrote."""

    name: str
    plain: Timing
    summed: Timing
    theirs: Timing
    size_bytes: int

    @property
    def ratio(self) -> float:
        """Time with checksums over time without, by wall or CPU, whichever is smaller."""
        growth = self.plain.faster_than(self.summed)
        return min(growth.wall, growth.cpu)


def measure(name: str, data: pa.Table, folder: Path, rounds: int) -> Cost:
    """Write ``data`` with each writer once to warm up, then in turns."""
    target = folder / "target.lance"
    writers: list[Callable[[], object]] = [
        lambda: lance_nb.write_dataset(data, str(target)),
        lambda: lance_nb.write_dataset(data, str(target), checksums=True),
        lambda: lance.write_dataset(data, str(target)),
    ]
    timings: list[list[Timing]] = [[] for _ in writers]
    size_bytes = 0
    for turn in range(rounds + 1):
        for number in ORDERS[turn % len(ORDERS)]:
            taken = timed(writers[number])
            if turn:
                timings[number].append(taken)
            if number == 1:
                size_bytes = sum(path.stat().st_size for path in target.rglob("*.lance"))
            shutil.rmtree(target)
            if folder != MEMORY:
                os.sync()  # freeing the blocks of one file is no part of writing the next
    return Cost(name, *map(best, timings), size_bytes)


def table(costs: list[Cost]) -> str:
    """Lay the costs out as a Markdown table."""
    titles = (
        "rows", "MB", "plain s (wall / cpu)", "checksums s", "wall", "cpu", "pylance s",
        "checksums : pylance", "",
    )  # fmt: skip
    rows = []
    for cost in costs:
        growth = cost.plain.faster_than(cost.summed)
        rows.append(
            (
                cost.name,
                f"{cost.size_bytes / 1e6:.0f}",
                cost.plain,
                cost.summed,
                f"{growth.wall - 1:+.1%}",
                f"{growth.cpu - 1:+.1%}",
                cost.theirs,
                cost.theirs.faster_than(cost.summed),
                "within" if cost.ratio <= LIMIT else "over",
            )
        )
    return markdown(titles, rows)


def run(options: Namespace) -> int:
    """Measure in both places, print the tables, and fail where a cost is over the limit."""
    is_over = False
    for place in (options.disk, MEMORY):
        folder = place / f"checksums-{os.getpid()}"
        folder.mkdir(parents=True)
        try:
            costs = [
                measure(name, make(options.bytes), folder, options.rounds)
                for name, make in SCHEMAS.items()
                if options.only in name
            ]
        finally:
            shutil.rmtree(folder)
        print(f"{place}\n\n{table(costs)}\n", flush=True)
        is_over |= any(cost.ratio > LIMIT for cost in costs)
    return int(is_over)
