"""What jobs on Spark cost beside their work, by number of fragments.

For 100, 10,000 and 100,000 fragments of three rows, each in a process of its own, a count with a
filter is planned with one task for each fragment and run on a session of two cores. Prints a
Markdown table:

=====================  ===========================================================================
column                 meaning
=====================  ===========================================================================
plan s, pack s         processor seconds of the driver to make the tasks, and to pickle them
bytes per task         pickled
driver MB, JVM MB      most memory of the Python driver above an idle session's, and of the JVM
job s                  by the clock
ms per task            processor time of driver, JVM and workers together, per task
of which the task      the same task in this process, without Spark
=====================  ===========================================================================

All fragments name the same data file, so the table is about plans, descriptors and manifests, and
not about the disk. ``--sizes 100,1000`` chooses others. Files go below ``tests/benchmarks/data``
and are removed again.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

import lance_nb
from lance_nb import spark
from lance_nb.spark.plan import group_tasks
from lance_nb.spark.spark_engine import pack_groups
from tests.benchmarks.spark import processes, settle_environment, spent
from tests.benchmarks.stored import DATA

OPTIONS = {
    "--sizes": {"default": "100,10000,100000"},
    "--one": {"type": int, "help": argparse.SUPPRESS},  # one size, in this process
}
HOME = DATA / "spark-scale"
CORES = 2
SAMPLED = 200
HEADER = (
    "| fragments | plan s | pack s | bytes per task | driver MB | JVM MB | job s | ms per task "
    "| of which the task |\n" + "|---" * 9 + "|"
)


def written(num_fragments: int) -> str:
    """Write a dataset whose fragments all name one file of three rows; return its URI."""
    uri = str(HOME / f"{num_fragments}.lance")
    shutil.rmtree(uri, ignore_errors=True)
    made = lance_nb.write_dataset(pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]}), uri)
    (fragment,) = made.get_fragments()
    more = lance_nb.LanceOperation.Append([fragment.metadata] * (num_fragments - 1))
    lance_nb.LanceDataset.commit(uri, more, read_version=1)
    return uri


def most_memory(process: int) -> float:
    """Return the most MB of memory that a process has had."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1000
    return 0.0


def jvm() -> int:
    """Return the process of the JVM below this one."""
    return next(
        one for one in processes()
        if Path(f"/proc/{one}/comm").read_text().strip() == "java"
    )  # fmt: skip


def cpu_of(action: Callable[[], Any]) -> tuple[float, Any]:
    """Return the processor seconds of this process in an action, and its result."""
    begin = time.process_time()
    found = action()
    return time.process_time() - begin, found


def row(num_fragments: int) -> str:
    """Measure one size; return its row of the table."""
    uri = written(num_fragments)
    session = spark.start_session(
        spark__master=f"local[{CORES}]", spark__driver__memory="1g", spark__ui__enabled="false"
    )
    small = written(CORES * 4)
    for _ in range(3):  # compiled code of the JVM, modules of the workers
        spark.count(small, "id > 1", engine="spark", spark=session)
    idle = most_memory(os.getpid())
    dataset = lance_nb.dataset(uri)
    plan_s, plan = cpu_of(lambda: spark.plan_count(dataset, "id > 1", task_bytes=1))
    groups = group_tasks([one.size_bytes for one in plan.tasks], CORES)
    numbered = [[(at, plan.tasks[at]) for at in group] for group in groups]
    pack_s, (shared, packed) = cpu_of(lambda: pack_groups(numbered))
    num_bytes = (len(shared) + sum(map(len, packed))) / len(plan.tasks)
    before, began = processes(), time.perf_counter()
    counts = spark.run_edits(plan, engine="spark", spark=session)
    job_s = time.perf_counter() - began
    all_ms = spent(before, processes()) / num_fragments * 1e3
    assert sum(one.num_rows for one in counts) == 2 * num_fragments
    memory = most_memory(os.getpid()) - idle, most_memory(jvm())
    session.stop()
    sampled = plan.tasks[:SAMPLED]
    sampled[0].run()
    task_s, _ = cpu_of(lambda: [one.run() for one in sampled])
    task_ms = task_s / len(sampled) * 1e3
    return (
        f"| {num_fragments:,} | {plan_s:.2f} | {pack_s:.2f} | {num_bytes:.0f} | {memory[0]:.0f} "
        f"| {memory[1]:.0f} | {job_s:.1f} | {all_ms:.2f} | {task_ms:.2f} |"
    )


def run(options: argparse.Namespace) -> None:
    """Measure each size in a process of its own and print the table."""
    settle_environment(HOME)
    if options.one is not None:
        print(row(options.one), flush=True)
        return
    print(f"{CORES} cores, load at the beginning {os.getloadavg()[0]:.1f}\n\n{HEADER}", flush=True)
    try:
        for size in options.sizes.split(","):
            subprocess.run(
                [sys.executable, "-m", "tests.benchmarks", "spark-scale", "--one", size],
                check=True, stderr=subprocess.DEVNULL,
            )  # fmt: skip
    finally:
        shutil.rmtree(HOME, ignore_errors=True)
