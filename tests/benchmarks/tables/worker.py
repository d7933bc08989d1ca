"""One engine and one operation in a process of its own, which runs it whenever it is told to.

``python -m tests.benchmarks.tables.worker ENGINE SIZE KEY FOLDER``: prints a line when it is ready,
then the seconds of a run for each line that it reads, and at the end its peak of memory and the
size of the answer, by which the answers of both engines are compared.
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

from tests.benchmarks.tables.operations import BY_KEY, Workplace
from tests.benchmarks.tables.sizes import PROCESSORS, SIZES
from tests.benchmarks.timing import cpu_seconds


def main() -> None:
    """Load the engine and what is written, then run as often as a line comes."""
    engine, size, key, folder = sys.argv[1:]
    operation = BY_KEY[key]
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:PROCESSORS])
    work = Workplace(importlib.import_module(engine), SIZES[size], Path(folder) / "target")
    if operation.source:
        import pyarrow as pa

        with pa.OSFile(str(work.size.folder / operation.source)) as file:
            work.source = pa.ipc.open_file(file).read_all()
    _say("ready")
    answer: Any = None
    for _ in sys.stdin:
        answer = None
        if operation.copied is not None:
            work.replace_target(operation.copied)
        gc.collect()
        wall, cpu = time.perf_counter(), cpu_seconds()
        answer = operation.run(work)
        _say({"wall": time.perf_counter() - wall, "cpu": cpu_seconds() - cpu})
    _say({"peak": _peak_megabytes(), "answer": _size(answer, work)})


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
