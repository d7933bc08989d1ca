"""One engine in a process of its own, which runs operations whenever it is told to.

``python -m tests.benchmarks.tables.worker ENGINE SIZE FOLDER``: answers each line that it reads by
one of its own. ``load KEY``: what the operation needs is there; ``go``: the seconds of a run;
``end``: its peak of memory and the size of the answer, by which the answers of both engines are
compared.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from tests.benchmarks.tables.operations import GROWTH, OPERATIONS, Operation, Workplace
from tests.benchmarks.tables.sizes import PROCESSORS, SIZES
from tests.benchmarks.timing import cpu_seconds

BY_KEY = {operation.key: operation for operation in (*OPERATIONS, *GROWTH)}


def main() -> None:
    """Load the engine, then do what each line says."""
    engine, size, folder = sys.argv[1:]
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:PROCESSORS])
    work = Workplace(importlib.import_module(engine), SIZES[size], Path(folder) / "target")
    operation: Any = None
    answer: Any = None
    for line in sys.stdin:
        word, _, key = line.strip().partition(" ")
        if word == "load":
            operation, answer = BY_KEY[key], None
            _load(operation, work)
            _say("ready")
        elif word == "go":
            answer = None  # not beside the next one
            if operation.copied is not None:
                work.replace_target(operation.copied)
            gc.collect()
            wall, cpu = time.perf_counter(), cpu_seconds()
            answer = operation.run(work)
            _say({"wall": time.perf_counter() - wall, "cpu": cpu_seconds() - cpu})
        else:
            _say({"peak": _peak_megabytes(), "answer": _size(answer, work)})


def _load(operation: Operation, work: Workplace) -> None:
    """Read the table that the operation writes, and leave nothing of the one before."""
    work.source = None
    work.replace_target("")
    if operation.source:
        import pyarrow as pa

        with pa.OSFile(str(work.size.folder / operation.source)) as file:
            work.source = pa.ipc.open_file(file).read_all()


def _say(what: object) -> None:
    print(json.dumps(what), flush=True)


def _peak_megabytes() -> float:
    """Return the most memory that this process had.

    What getrusage says holds the memory of the parent before the program was loaded.
    """
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    peak = next(line for line in lines if line.startswith("VmHWM"))
    return int(peak.split()[1]) / 1e3


def _size(answer: Any, work: Workplace) -> int:
    """Return the number that was the answer, the rows of a table, or those that a change left."""
    if isinstance(answer, int):
        return answer
    if answer is not None:
        return int(answer.num_rows)
    return int(work.open_target().count_rows())


if __name__ == "__main__":
    main()
