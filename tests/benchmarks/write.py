"""Writing, ours against pylance, in one run.

Prints a Markdown table of medians, ratios and file sizes. Columns are those of the read benchmark,
at the sizes of the goals (10 million numbers, 5 million texts, 100,000 vectors); ``--rows`` scales
them. Files are removed again.

Ours makes every file durable (fsync of file and folder) before it returns; pylance does not, and
its time on the clock is that much shorter. ``--no-sync`` leaves that out of ours.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import time
import uuid
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
from lance.file import LanceFileWriter

import lance_nb
from tests.benchmarks.read import COLUMNS
from tests.benchmarks.stored import DATA
from tests.benchmarks.timing import ONLY, Comparison, Timing, compare, markdown, table

OPTIONS = {
    "--rows": {"type": int, "default": 10_000_000},
    "--only": ONLY,
    "--no-sync": {"action": "store_true", "help": "leave fsync out of ours"},
}
HOME = DATA / "write"
RUNS = 5
APPEND_RUNS = 25  # of a few milliseconds each
PROCESSES, APPENDS = 4, 25
# Text that does not repeat is stored as it is; the goal for strings was found with it.
LETTERS = "text, random letters"
# name of a column of the read benchmark -> (share of the rows, goal)
FILES: dict[str, tuple[float, float | None]] = {
    "flat int64": (1, 2),
    "bit-packed int64, narrow": (1, 1.4),
    "bit-packed float64, wide": (1, None),
    "bool": (1, None),
    "nullable int32": (0.5, None),
    LETTERS: (0.5, 5),
    "text (FSST)": (0.5, None),
    "low-cardinality text": (0.5, None),
    "list<int32>": (0.2, None),
    "embeddings 64": (0.05, 3),
    "embeddings 768": (0.01, 3),
}


@dataclass(frozen=True, slots=True)
class Written:
    """A comparison and the bytes that both wrote."""

    comparison: Comparison
    ours_bytes: int = 0
    theirs_bytes: int = 0


Case = tuple[str, Callable[[], Written]]


def _column(name: str, rows: int) -> pa.Array:
    if name != LETTERS:
        return COLUMNS[name][0](rows)
    letters = np.random.default_rng(11).integers(97, 123, rows * 20).astype(np.uint8)
    offsets = pa.py_buffer(np.arange(0, rows * 20 + 1, 20, dtype=np.int32))
    return pa.Array.from_buffers(pa.string(), rows, [None, offsets, pa.py_buffer(letters)])


def files(rows: int) -> Iterator[Case]:
    """One column into one data file."""
    for name, (share, goal) in FILES.items():
        yield f"file {name}", partial(_file, name, int(rows * share), goal)


def _file(name: str, rows: int, goal: float | None) -> Written:
    data = pa.table({"c": _column(name, rows)})
    mine, other = HOME / "ours.lance", HOME / "theirs.lance"

    def write(kind: type, path: Path) -> None:
        with kind(str(path), data.schema) as writer:
            for batch in data.to_batches(max_chunksize=1 << 20):
                writer.write_batch(batch)

    def idle_disk() -> None:
        # Freeing the blocks of the file of the turn before is no part of writing a new one.
        mine.unlink()
        other.unlink()
        os.sync()

    compared = compare(
        f"file {name}, {rows:,} rows",
        lambda: write(lance_nb.LanceFileWriter, mine),
        lambda: write(LanceFileWriter, other),
        goal=goal,
        runs=RUNS,
        before=idle_disk,
    )
    return Written(compared, mine.stat().st_size, other.stat().st_size)


def datasets(rows: int) -> Iterator[Case]:
    """A new dataset, its commit included."""
    for name in ("flat int64", LETTERS):
        share, goal = FILES[name]
        yield f"dataset {name}", partial(_dataset, name, int(rows * share), goal)


def _dataset(name: str, rows: int, goal: float | None) -> Written:
    data = pa.table({"c": _column(name, rows)})
    numbers = itertools.count()

    def write(module: object, who: str) -> None:
        number = next(numbers)
        shutil.rmtree(HOME / f"{who}{number - 2}", ignore_errors=True)
        module.write_dataset(data, str(HOME / f"{who}{number}"))  # type: ignore[attr-defined]

    compared = compare(
        f"dataset {name}, {rows:,} rows",
        lambda: write(lance_nb, "ours"),
        lambda: write(lance, "theirs"),
        goal=goal,
        runs=RUNS,
    )
    for path in (*HOME.glob("ours*"), *HOME.glob("theirs*")):
        shutil.rmtree(path, ignore_errors=True)
    return Written(compared)


def appends(_: int) -> Iterator[Case]:
    """One row more, onto datasets of some fragments."""
    for fragments, goal in ((1, 2.0), (10_000, 5.0), (100_000, 10.0)):
        name = f"append to {fragments:,} fragments"
        yield name, partial(_append, name, fragments, goal)


def _append(name: str, fragments: int, goal: float) -> Written:
    rows = pa.table({"c": [1, 2, 3]})
    mine, other = str(HOME / f"append_ours_{fragments}"), str(HOME / f"append_theirs_{fragments}")
    for path in (mine, other):
        # All fragments share one data file: cheap to write, as many to carry along.
        dataset = lance.write_dataset(rows, path, mode="overwrite")
        one = dataset.get_fragments()[0].metadata
        if fragments > 1:
            operation = lance.LanceOperation.Append([one] * (fragments - 1))
            lance.LanceDataset.commit(path, operation, read_version=1)
    compared = compare(
        name,
        lambda: lance_nb.write_dataset(rows, mine, mode="append"),
        lambda: lance.write_dataset(rows, other, mode="append"),
        goal=goal,
        runs=APPEND_RUNS,
    )
    return Written(compared)


def changes(rows: int) -> Iterator[Case]:
    """Rows that change: an upsert of a tenth of the rows, half of them new; one column of all."""
    count = rows // 10
    random = np.random.default_rng(3)
    target = {"id": np.arange(count), "x": random.random(count)}
    target |= {"s": [f"value {i % 1000}" for i in range(count)]}
    half = count // 20
    keys = np.concatenate([random.choice(count, half, replace=False), count + np.arange(half)])
    source = pa.table(
        {
            "id": random.permutation(keys),
            "x": random.random(2 * half),
            "s": [f"new {i}" for i in range(2 * half)],
        }
    )

    def upsert(dataset: Any) -> None:
        merge = dataset.merge_insert("id").when_matched_update_all()
        merge.when_not_matched_insert_all().execute(source)

    name = f"upsert {2 * half:,} rows into {count:,}"
    yield name, partial(_change, name, pa.table(target), upsert)
    wide = {**target, **{f"w{n}": random.random(count) for n in range(8)}}
    name = f"update one of 11 columns, {count:,} rows"
    yield name, partial(_change, name, pa.table(wide), lambda one: one.update({"x": "x + 1"}))


def compactions(rows: int) -> Iterator[Case]:
    """A hundred small fragments that become one; a tenth of the rows is deleted or none."""
    count = rows // 10
    random = np.random.default_rng(4)
    target = {"id": np.arange(count), "x": random.random(count)}
    target |= {"s": [f"value {i % 1000}" for i in range(count)], "t": _column(LETTERS, count)}
    for share, what in (("", ""), ("id % 10 = 3", ", 10 % deleted")):
        name = f"compact 100 fragments, {count:,} rows{what}"
        run = partial(_change, name, pa.table(target), _compact, count // 100, share)
        yield name, run


def _compact(dataset: Any) -> None:
    done = dataset.optimize.compact_files()
    if done.fragments_removed != 100:
        raise SystemExit(f"compacted {done.fragments_removed} fragments of 100")


def _change(
    name: str,
    target: pa.Table,
    change: Callable[[Any], object],
    rows_per_file: int = 1 << 20,
    deleted: str = "",
) -> Written:
    base = lance.write_dataset(target, str(HOME / "base"), max_rows_per_file=rows_per_file)
    if deleted:
        base.delete(deleted)
    numbers = itertools.count()
    for number in range(2 * (RUNS + 1)):
        shutil.copytree(HOME / "base", HOME / f"change{number}", copy_function=os.link)
    compared = compare(
        name,
        lambda: change(lance_nb.dataset(str(HOME / f"change{next(numbers)}"))),
        lambda: change(lance.dataset(str(HOME / f"change{next(numbers)}"))),
        runs=RUNS,
    )
    for path in (HOME / "base", *HOME.glob("change*")):
        shutil.rmtree(path)
    return Written(compared)


def wide(_: int) -> Iterator[Case]:
    """A new dataset of many columns and few rows: what a column costs besides its bytes."""
    name = "dataset of 1,000 columns and 10 rows"
    yield name, partial(_wide, name)


def _wide(name: str) -> Written:
    columns = [pa.array(range(10)), pa.array([f"text {at}" for at in range(10)])]
    data = pa.table({f"c{at}": columns[at % 2] for at in range(1000)})
    mine, other = str(HOME / "wide_ours"), str(HOME / "wide_theirs")
    compared = compare(
        name,
        lambda: lance_nb.write_dataset(data, mine, mode="overwrite"),
        lambda: lance.write_dataset(data, other, mode="overwrite"),
        runs=RUNS,
    )
    return Written(compared)


def deletions(rows: int) -> Iterator[Case]:
    """A tenth of the rows, from a dataset without deleted ones."""
    yield "delete 10 %", partial(_delete, rows)


def _delete(rows: int) -> Written:
    start = str(HOME / "delete")
    lance.write_dataset(pa.table({"c": _column("bit-packed int64, narrow", rows)}), start)

    def delete(module: Any) -> None:
        module.dataset(start, version=1).restore()
        module.dataset(start).delete("c < 100")

    name = f"delete 10 % of {rows:,} rows, restored before"
    compared = compare(name, lambda: delete(lance_nb), lambda: delete(lance), goal=1.5, runs=RUNS)
    return Written(compared)


def processes(_: int) -> Iterator[Case]:
    """Four processes that append to one dataset, each as fast as it can."""
    yield "4 processes appending", _processes


APPENDING = """
import sys, pyarrow as pa
module, path = __import__(sys.argv[1]), sys.argv[2]
rows = pa.table({"c": [1, 2, 3]})
module.write_dataset(rows, path + sys.argv[3])
module.write_dataset(rows, path + sys.argv[3], mode="append")
print("ready", flush=True)
sys.stdin.readline()
for _ in range(APPENDS):
    module.write_dataset(rows, path, mode="append")
print("done", flush=True)
""".replace("APPENDS", str(APPENDS))


def _processes() -> Written:
    def begin(module: str, path: str) -> list[subprocess.Popen[str]]:
        command = [sys.executable, "-c", APPENDING, module, path]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        begun = [subprocess.Popen([*command, str(at)], **pipes) for at in range(PROCESSES)]
        for one in begun:
            one.stdout.readline()  # imports are done
        return begun

    def rate(module: str) -> Timing:
        path = str(HOME / f"appended_{module}_{uuid.uuid4().hex}")
        lance.write_dataset(pa.table({"c": [1, 2, 3]}), path)
        begun = begin(module, path)
        wall, cpu = time.perf_counter(), os.times()
        for one in begun:
            one.stdin.write("go\n")
            one.stdin.flush()
        for one in begun:
            one.stdout.readline()
        wall = time.perf_counter() - wall
        for one in begun:
            one.communicate()  # how long an interpreter takes to end is no part of an append
        after = os.times()
        used = after.children_user + after.children_system
        count = PROCESSES * APPENDS
        if lance.dataset(path).count_rows() != 3 * (count + 1):
            raise SystemExit(f"{module} lost rows of {path}")
        used -= cpu.children_user + cpu.children_system
        return Timing(wall / count, used / count)

    found = [(rate("lance_nb"), rate("lance")) for _ in range(3)]
    ours = min((one for one, _ in found), key=lambda one: one.wall)
    theirs = min((one for _, one in found), key=lambda one: one.wall)
    name = f"append of {PROCESSES} processes at a time (cpu with imports)"
    return Written(Comparison(name, ours, theirs, goal=1))


def run(options: Namespace) -> None:
    """Measure what was asked for and print the tables."""
    if options.no_sync:
        os.fsync = lambda _: None
    shutil.rmtree(HOME, ignore_errors=True)
    HOME.mkdir(parents=True)
    try:
        kinds = (files, datasets, appends, changes, compactions, wide, deletions, processes)
        cases = [case for kind in kinds for case in kind(options.rows)]
        results = [measure() for name, measure in cases if options.only in name]
    finally:
        shutil.rmtree(HOME, ignore_errors=True)
    print(table(result.comparison for result in results))
    sizes = (
        (
            result.comparison.name,
            f"{result.ours_bytes / 1e6:.2f}",
            f"{result.theirs_bytes / 1e6:.2f}",
            f"{result.ours_bytes / result.theirs_bytes:.2f}",
        )
        for result in results
        if result.theirs_bytes
    )
    print()
    print(markdown(("file", "lance_nb MB", "pylance MB", "ratio"), sizes))
