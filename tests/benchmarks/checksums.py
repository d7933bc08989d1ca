"""What checksums cost a writer: the same rows with them, without, and by pylance, in one run.

Prints a Markdown table per place: a disk (below ``tests/benchmarks/data``, ignored by git, unless
``--disk`` names another folder) and memory (``/dev/shm``). The three writers take turns, in another
order in each round; times are the best of all rounds. ``make bench-checksums``.

The limit is ``LIMIT``: a checksummed write may take so much longer than a plain one, by the clock
or by processor time, whichever differs less (the clock of a shared machine is not to be trusted).
Ours syncs every file before it returns and pylance does not, so on a disk pylance's clock is ahead.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import lance
import numpy as np
import pyarrow as pa

import lance_nb
from tests.benchmarks.stored import DATA
from tests.benchmarks.timing import Timing

LIMIT = 1.05
ROUNDS = 12
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
        wall = self.summed.wall / self.plain.wall
        return min(wall, self.summed.cpu / self.plain.cpu)


def measure(name: str, data: pa.Table, folder: Path, rounds: int) -> Cost:
    """Write ``data`` with each writer once to warm up, then in turns."""
    target = folder / "target.lance"
    writers: list[Callable[[], object]] = [
        lambda: lance_nb.write_dataset(data, str(target)),
        lambda: lance_nb.write_dataset(data, str(target), checksums=True),
        lambda: lance.write_dataset(data, str(target)),
    ]
    best = [Timing(float("inf"), float("inf"))] * len(writers)
    size_bytes = 0
    for turn in range(rounds + 1):
        for at in ORDERS[turn % len(ORDERS)]:
            taken = _timed(writers[at])
            if turn:
                best[at] = Timing(min(best[at].wall, taken.wall), min(best[at].cpu, taken.cpu))
            if at == 1:
                size_bytes = sum(one.stat().st_size for one in target.rglob("*.lance"))
            shutil.rmtree(target)
            if folder != MEMORY:
                os.sync()  # freeing the blocks of one file is no part of writing the next
    return Cost(name, *best, size_bytes)


def _timed(action: Callable[[], object]) -> Timing:
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    action()
    return Timing(time.perf_counter() - wall, time.process_time() - cpu)


def table(found: list[Cost]) -> str:
    """Lay the costs out as a Markdown table."""
    lines = [
        (
            "| rows | MB | plain s (wall / cpu) | checksums s | wall | cpu | pylance s "
            "| checksums : pylance | |"
        ),
        "|---|--:|--:|--:|--:|--:|--:|--:|---|",
    ]
    for one in found:
        plain, summed, theirs = one.plain, one.summed, one.theirs
        lines.append(
            f"| {one.name} | {one.size_bytes / 1e6:.0f} "
            f"| {plain.wall:.2f} / {plain.cpu:.2f} | {summed.wall:.2f} / {summed.cpu:.2f} "
            f"| {summed.wall / plain.wall - 1:+.1%} | {summed.cpu / plain.cpu - 1:+.1%} "
            f"| {theirs.wall:.2f} / {theirs.cpu:.2f} "
            f"| {summed.wall / theirs.wall:.2f} / {summed.cpu / theirs.cpu:.2f} "
            f"| {'within' if one.ratio <= LIMIT else 'over'} |"
        )
    return "\n".join(lines)


def costs(folder: Path, size_bytes: int, rounds: int, only: str) -> Iterator[Cost]:
    """Measure each schema whose name has ``only`` in it, below a folder."""
    for name, make in SCHEMAS.items():
        if only in name:
            yield measure(name, make(size_bytes), folder, rounds)


def main() -> None:
    """Measure in both places, print the tables, and fail where a cost is over the limit."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bytes", type=int, default=1_000_000_000, help="of Arrow data, each")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--disk", type=Path, default=DATA, help="a folder on a disk")
    parser.add_argument("--only", default="", help="a part of the names of the rows wanted")
    options = parser.parse_args()
    failed = False
    for place in (options.disk, MEMORY):
        folder = place / f"checksums-{os.getpid()}"
        folder.mkdir(parents=True)
        try:
            found = list(costs(folder, options.bytes, options.rounds, options.only))
        finally:
            shutil.rmtree(folder)
        print(f"{place}\n\n{table(found)}\n", flush=True)
        failed |= any(one.ratio > LIMIT for one in found)
    sys.exit(failed)


if __name__ == "__main__":
    main()
