"""Spark through lance_nb against Spark alone, in one run.

Prints a Markdown table: seconds by the clock, processor seconds of all processes (driver, JVM,
Python workers), each the least of ``--runs``, and both as ratios to what Spark does by itself with
the same files: the median of the ratios within a turn, whose figures are seconds apart, so that
what slows the machine for a while slows both.

Set-up: ``local[2]`` with 3 GB; "base" is 5 million rows of a number, a fraction and a text of 19
letters, "emb" half a million rows of a number and a vector of 64 floats, "wide" 75,000 rows of a
number and a vector of 384 floats, of which only the numbers are summed, each in four Parquet files
(snappy). The session is one of ``start_session``, with the settings that it makes; all ways to
write, then all to read are taken in turn in this one session, so each runs in a JVM whose compiled
code knows the others. ``--rows`` scales both tables, ``--only`` takes one. Files go below
``tests/benchmarks/data`` and are removed again; compiled modules of Spark's Python processes stay
there, as an installed wheel has them.

``--dispatch`` times appends and updates of growing size by every engine: the sizes in
``lance_nb/spark/run.py`` come from there.

Ratios to what Spark does by itself with the same files, wall / processor, on two idle cores
(Spark 4.3.0); of "wide": 0.76 / 0.80 by ``spark.sql``, 0.54 / 0.53 with ``columns=``, 0.89 / 1.17
with a schema:

==============================  ===========  ===========
what                            base         emb
==============================  ===========  ===========
DataFrame append                0.98 / 0.97  0.39 / 0.37
write format("lance_nb")        1.88 / 1.98  0.46 / 0.42
files, on Spark                 0.32 / 0.30  0.14 / 0.13
lance_nb.spark.read             0.78 / 0.85  0.95 / 0.92
read format("lance_nb")         1.82 / 2.10  1.55 / 1.61
count() of lance_nb.spark.read  0.24 / 0.22  0.21 / 0.22
count() of format("lance_nb")   6.94 / 6.70  2.73 / 3.71
==============================  ===========  ===========

"format" is short because PySpark's data source is told neither columns nor counts, because the JVM
spends more time on its batches, and because Spark measures the batches that it writes row by row
(lance_nb/spark/frame_batches.py).

Settings that reach beyond lance_nb's own work are not made, such as frozen garbage collection in
workers and unchecked Arrow memory in the JVM. MIMALLOC_PURGE_DELAY is set for the workers of a
session that ``start_session`` starts: workers that returned freed memory between tasks took 1.5
times as long for "files, on Spark" of base.
"""

from __future__ import annotations

import os
import shutil
import time
import warnings
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

import lance_nb
from lance_nb import spark
from tests.benchmarks.stored import DATA
from tests.benchmarks.timing import Timing, median

OPTIONS = {
    "--rows": {"type": int, "default": 5_000_000},
    "--runs": {"type": int, "default": 3},
    "--only": {"choices": ["base", "emb", "wide"]},
    "--dispatch": {"action": "store_true", "help": "appends and updates by every engine"},
}
HOME = DATA / "spark"
NUM_FILES = 4
WARM_UPS = 3
CHANGES = {"value": "value * 2"}
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Process:
    """Processor seconds of a process, and of those below it that ended and that it waited for."""

    parent: int
    own: float
    waited: float


def processes() -> dict[int, Process]:
    """Return this process and all below it."""
    known: dict[int, Process] = {}
    below: dict[int, list[int]] = {}
    for path in Path("/proc").iterdir():
        if not path.name.isdecimal():
            continue
        try:
            fields = (path / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # ended meanwhile
            continue
        own, waited = (sum(map(int, fields[at : at + 2])) / TICKS for at in (11, 13))
        known[int(path.name)] = Process(int(fields[1]), own, waited)
        below.setdefault(int(fields[1]), []).append(int(path.name))
    found = [os.getpid()]
    for one in found:
        found += below.get(one, [])
    return {one: known[one] for one in found if one in known}


def spent(before: dict[int, Process], after: dict[int, Process]) -> float:
    """Return the processor seconds of all processes between two looks at them.

    Spark ends workers that were idle for a minute, and nobody waits for them: what they had used
    before is no part of the difference.
    """
    none = Process(0, 0.0, 0.0)
    ended: dict[int, float] = {}
    for at, one in before.items():
        if at not in after:
            ended[one.parent] = ended.get(one.parent, 0.0) + one.own + one.waited
    total = 0.0
    for at, one in after.items():
        was = before.get(at, none)
        total += one.own - was.own + max(0.0, one.waited - was.waited - ended.get(at, 0.0))
    return total


def timed(
    actions: Sequence[Callable[[], object]], runs: int, before_each: Callable[[], object] = int
) -> list[list[Timing]]:
    """Run all in turn to warm up, then ``runs`` times; return what each took in each turn.

    In turn, since the JVM compiles for minutes: what comes later is faster, whatever it does. The
    writes also warm up Spark's own reading of Parquet, so each way has several turns to do so. What
    is done ``before_each`` is not timed.
    """
    found: list[list[Timing]] = [[] for _ in actions]
    for at in range(WARM_UPS + runs):
        for action, kept in zip(actions, found, strict=True):
            before_each()
            before, wall = processes(), time.perf_counter()
            action()
            took = Timing(time.perf_counter() - wall, spent(before, processes()))
            if at >= WARM_UPS:
                kept.append(took)
    return found


def ratios(timings: Sequence[Timing], reference: Sequence[Timing]) -> Timing:
    """Return the median of the ratios of one way to another in the same turn.

    Two figures of one turn are seconds apart: what slows the machine for a while slows both.
    """
    pairs = zip(timings, reference, strict=True)
    return median(
        Timing(timing.wall / other.wall, timing.cpu / max(other.cpu, 0.01))
        for timing, other in pairs
    )


def base(start: int, stop: int) -> pa.Table:
    """A narrow table with text."""
    ids = np.arange(start, stop)
    texts = pa.array(np.char.add("a text of row ", np.char.zfill((ids % 99_991).astype("U"), 5)))
    return pa.table(
        {"id": ids, "value": np.random.default_rng(start).random(len(ids)), "text": texts}
    )


def emb(start: int, stop: int) -> pa.Table:
    """Vectors."""
    values = np.random.default_rng(start).random((stop - start) * 64, dtype=np.float32)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(values), 64)
    return pa.table({"id": np.arange(start, stop), "vector": vectors})


def wide(start: int, stop: int) -> pa.Table:
    """Vectors of 384 floats, of which only the numbers beside them are read."""
    values = np.random.default_rng(start).random((stop - start) * 384, dtype=np.float32)
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(values), 384)
    return pa.table({"id": np.arange(start, stop), "vector": vectors})


def written(name: str, make: Callable[[int, int], pa.Table], num_rows: int) -> str:
    """Write the Parquet files of a table and return their pattern."""
    folder = HOME / name
    folder.mkdir(parents=True)
    for at in range(NUM_FILES):
        start, stop = num_rows * at // NUM_FILES, num_rows * (at + 1) // NUM_FILES
        parquet.write_table(make(start, stop), folder / f"{at}.parquet", compression="snappy")
    return str(folder / "*.parquet")


class Bench:
    """Everything that is timed for one table."""

    def __init__(self, session: Any, name: str, files: str, runs: int) -> None:
        self.session = session
        self.name = name
        self.files = files
        self.runs = runs
        self.folder = HOME / f"{name}-out"
        self.uri = str(self.folder / "rows.lance")

    def clear(self) -> None:
        """Remove what was written and let the disk finish: no way pays for what another left."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        os.sync()

    def frame(self) -> Any:
        """Return the files as a DataFrame."""
        return self.session.read.parquet(str(Path(self.files).parent))

    def writes(self) -> dict[str, Callable[[], object]]:
        """Return the ways to write, Spark's own first."""
        on: Any = {"engine": "spark", "spark": self.session}
        hint = {"lance_nb.dimension": 64}

        def frame() -> Any:
            found = self.frame()
            return found.withMetadata("vector", hint) if "vector" in found.columns else found

        return {
            "df.write.parquet": lambda: self.frame().write.mode("overwrite").parquet(
                str(self.folder / "parquet")
            ),
            "DataFrame append": lambda: spark.write(frame(), self.uri),
            'format("lance_nb")': lambda: frame().write.format("lance_nb").mode("append").save(
                self.uri
            ),
            "files, on Spark": lambda: spark.write(self.files, self.uri, **on),
            "files, local": lambda: spark.write(self.files, self.uri, engine="local"),
        }  # fmt: skip

    def reads(self) -> dict[str, Callable[[], object]]:
        """Return the ways to read all, Spark's own first."""

        def drained(frame: Any) -> None:
            frame.write.format("noop").mode("overwrite").save()

        return {
            "spark.read.parquet": lambda: drained(self.frame()),
            "lance_nb.spark.read": lambda: drained(spark.read(self.uri, spark=self.session)),
            'read format("lance_nb")': lambda: drained(
                self.session.read.format("lance_nb").load(self.uri)
            ),
        }

    def counts(self) -> dict[str, Callable[[], object]]:
        """Return the ways to count, Spark's own first."""
        return {
            "count() of parquet": lambda: self.frame().count(),
            "count() of lance_nb.spark.read": lambda: spark.read(
                self.uri, spark=self.session
            ).count(),
            'count() of format("lance_nb")': lambda: (
                self.session.read.format("lance_nb").load(self.uri).count()
            ),
        }

    def projections(self) -> dict[str, Callable[[], object]]:
        """Return the ways to read one column, Spark's own first."""

        def total(frame: Any) -> None:
            frame.agg({"id": "sum"}).collect()

        def reader() -> Any:
            return self.session.read.format("lance_nb")

        query = "SELECT sum(id) FROM rows"
        return {
            "sum(id) of parquet": lambda: total(self.frame()),
            "sum(id) by lance_nb.spark.sql": lambda: spark.sql(
                query, spark=self.session, tables={"rows": self.uri}
            ).collect(),
            "sum(id) of lance_nb.spark.read(columns=)": lambda: total(
                spark.read(self.uri, spark=self.session, columns=["id"])
            ),
            'sum(id) of format("lance_nb").schema': lambda: total(
                reader().schema("id long").load(self.uri)
            ),
        }

    def run(self, *, is_wide: bool) -> None:
        """Time and print everything; of wide rows only the reading of one column."""
        writes = self.writes()
        groups = [writes, self.reads(), self.counts()]
        if is_wide:
            self.clear()
            writes["files, local"]()
            groups = [self.projections()]
        for group in groups:
            before_each = self.clear if group is writes else int
            timings = timed(list(group.values()), self.runs, before_each)
            for name, took in zip(group, timings, strict=True):
                ratio = ratios(took, timings[0])
                print(
                    f"| {self.name} | {name} | {min(one.wall for one in took):.2f} "
                    f"| {ratio.wall:.2f} | {min(one.cpu for one in took):.2f} | {ratio.cpu:.2f} |",
                    flush=True,
                )


def dispatch(session: Any, num_rows: int, runs: int) -> None:
    """Time appends and updates of growing size by every engine."""
    engines: list[dict[str, Any]] = [
        {"engine": "local"}, {"engine": "spark", "spark": session}
    ]  # fmt: skip
    print("\n| what | MB as estimated | tasks | local s | spark s |\n" + "|---" * 5 + "|")
    for share in (100, 8, 4, 2, 1):
        shutil.rmtree(HOME, ignore_errors=True)
        count = num_rows // share
        files = written("part", base, count)
        bench = Bench(session, "part", files, 1)
        bench.clear()
        made = spark.write(files, bench.uri, engine="local")
        plans = (spark.plan_append(made, files), spark.plan_update(made, CHANGES))
        ways: tuple[Callable[[Any], object], ...] = (
            lambda on, files=files, uri=made.uri: spark.write(files, uri, **on),
            lambda on, uri=made.uri: spark.update(uri, CHANGES, **on),
        )
        for plan, way, before_each in zip(plans, ways, (bench.clear, int), strict=True):
            timings = timed([partial(way, on) for on in engines], runs, before_each)
            said = " | ".join(f"{min(one.wall for one in took):.2f}" for took in timings)
            size = plan.size_bytes / 1e6
            print(f"| {plan.verb} | {size:.0f} | {len(plan.tasks)} | {said} |", flush=True)


def settle_environment(home: Path) -> None:
    """Keep caches below ``home`` and compiled modules for all processes, and hide warnings."""
    warnings.simplefilter("ignore")
    os.environ["XDG_CACHE_HOME"] = str(home / "cache")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(DATA / "bytecode")


def run(options: Namespace) -> None:
    """Measure what was asked for and print the table, row by row."""
    settle_environment(HOME)
    session = spark.start_session(spark__master="local[2]", spark__driver__memory="3g")
    spark.register(session)
    load = os.getloadavg()[0]
    print(f"{options.rows:,} rows, {os.cpu_count()} cores, load at the beginning {load:.1f}, "
          f"Spark {session.version}, lance_nb {lance_nb.__version__}\n")  # fmt: skip
    shutil.rmtree(HOME, ignore_errors=True)
    try:
        if options.dispatch:
            dispatch(session, options.rows, options.runs)
            return
        print("| table | what | wall s | ratio | CPU s | ratio |\n|---|---|---|---|---|---|")
        tables = (
            ("base", base, options.rows), ("emb", emb, options.rows // 10),
            ("wide", wide, options.rows * 3 // 200),
        )  # fmt: skip
        for name, make, count in tables:
            if options.only in (None, name):
                bench = Bench(session, name, written(name, make, count), options.runs)
                bench.run(is_wide=name == "wide")
    finally:
        shutil.rmtree(HOME, ignore_errors=True)
        session.stop()
