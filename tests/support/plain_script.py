"""A script as people write it: two appends at its top level, without a ``__main__`` guard.

A process that an engine starts, and that imports the script, makes the first append again. The
second one is taken for two gigabytes. Arguments: dataset, folder of the files, engine.
"""

PLAIN = """
import sys
from dataclasses import replace

import lance_nb
from lance_nb import spark
from lance_nb.spark.run import RunOptions, run_once

uri, folder, engine = sys.argv[1:]
made = spark.append(uri, folder + "/small.parquet")
plan = spark.plan_append(made, folder + "/big-*.parquet")
large = [replace(one.part, part=replace(one.part.part, size_bytes=2**30)) for one in plan.tasks]
tasks = tuple(replace(one, part=part) for one, part in zip(plan.tasks, large, strict=True))
run_once(replace(plan, tasks=tasks), RunOptions(engine=engine))
made = lance_nb.dataset(uri)
print(f"{made.count_rows()} rows, version {made.version}")
"""
