"""Measure an operation: a process for each engine, and a call in each of them by turns."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Self

from tests.benchmarks.stored import DATA, process_environment
from tests.benchmarks.tables.operations import Operation, Workplace
from tests.benchmarks.tables.report import Figures, Row
from tests.benchmarks.tables.sizes import PROCESSORS, Size
from tests.benchmarks.timing import Timing, best

ROOT = Path(__file__).resolve().parents[3]
ENGINES = ("lance_nb", "lance")
PROCESS = f"""
import os, time
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:{PROCESSORS}])
import ENGINE as engine
import pyarrow as pa
uri, source = "URI", "SOURCE"
rows = pa.ipc.open_file(source).read_all() if source else None
wall, cpu = time.perf_counter(), time.process_time()
dataset = engine.dataset(uri)
SCRIPT
print(time.perf_counter() - wall, time.process_time() - cpu)
print([line for line in open("/proc/self/status") if "VmHWM" in line][0].split()[1])
"""

Turns = dict[str, list[Timing]]
Ends = dict[str, dict[str, Any]]
Workers = dict[str, "_Worker"]


def write_data(operations: Iterable[Operation], size: Size) -> None:
    """Write what the operations need and is not there, in a process of its own."""
    names = sorted({name for operation in operations for name in operation.data})
    missing = [name for name in names if not (size.folder / f"{name}.done").exists()]
    if missing:
        _run_module("data", size.name, *missing)


@contextmanager
def shared_workers(size: Size) -> Iterator[Workers | None]:
    """Start the processes that all operations share, where the size has such."""
    if not size.shared_processes:
        yield None
        return
    with ExitStack() as stack:
        yield _start_workers(size, ENGINES, stack)


def measure(operation: Operation, size: Size, shared: Workers | None = None) -> Row:
    """Measure both engines in one operation, in processes of its own if none are given.

    Raises RuntimeError where their answers differ: the time of a wrong answer means nothing.
    """
    turns = _process_turns if operation.run is None else partial(_worker_turns, shared)
    firsts: Turns = {engine: [] for engine in ENGINES}
    laters: Turns = {engine: [] for engine in ENGINES}
    peaks = dict.fromkeys(ENGINES, 0.0)
    for number in range(size.processes):
        # Who begins changes with each pair.
        order = ENGINES if number % 2 == 0 else ENGINES[::-1]
        found, ends = turns(operation, size, order)
        if ends["lance_nb"]["answer"] != ends["lance"]["answer"]:
            raise RuntimeError(f"{operation.key}: the answers differ in size: {ends}")
        for engine in ENGINES:
            firsts[engine].append(found[engine][0])
            laters[engine] += found[engine][1:]
            peaks[engine] = max(peaks[engine], ends[engine]["peak"])
    ours, theirs = (
        Figures(best(firsts[engine]), best(laters[engine]), peaks[engine]) for engine in ENGINES
    )
    return Row(operation.key, operation.title(size), operation.goal, ours, theirs)


def _by_turns(call: Callable[[str], Timing], size: Size, order: tuple[str, ...]) -> Turns:
    """Call each engine once, then by turns until both had enough rounds and time."""
    found: Turns = {engine: [call(engine)] for engine in order}
    begun = time.perf_counter()
    for number in range(size.most_rounds):
        if number >= size.rounds and time.perf_counter() - begun > size.seconds:
            break
        for engine in order:
            found[engine].append(call(engine))
    return found


def _worker_turns(
    shared: Workers | None, operation: Operation, size: Size, order: tuple[str, ...]
) -> tuple[Turns, Ends]:
    """Let a worker of each engine, who stays, run the operation."""
    with ExitStack() as stack:
        workers = shared or _start_workers(size, order, stack)
        for worker in workers.values():
            worker.ask(f"load {operation.key}")  # it has imported its engine
        found = _by_turns(lambda engine: Timing(**workers[engine].ask("go")), size, order)
        return found, {engine: worker.ask("end") for engine, worker in workers.items()}


def _start_workers(size: Size, order: tuple[str, ...], stack: ExitStack) -> Workers:
    return {engine: stack.enter_context(_Worker(engine, size)) for engine in order}


class _Worker:
    """A process of tests.benchmarks.tables.worker, as a context: it ends with it."""

    def __init__(self, engine: str, size: Size) -> None:
        # On the disk of the data: copies are links, and what is written goes to a disk.
        DATA.mkdir(parents=True, exist_ok=True)
        self._folder = tempfile.TemporaryDirectory(dir=DATA)
        self._process = subprocess.Popen(
            _command("worker", engine, size.name, self._folder.name),
            cwd=ROOT,
            env=process_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe
            with suppress(BrokenPipeError):
                pipe.close()
        self._folder.cleanup()

    def ask(self, line: str) -> Any:
        """Return what it answers to a line."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"a worker ended early: {self._process.args}")
        return json.loads(answer)


def _process_turns(operation: Operation, size: Size, order: tuple[str, ...]) -> tuple[Turns, Ends]:
    """Let new processes of each engine run a script, their starts and imports included.

    The first of the timings is what the script took beyond the import, at best.
    """
    ends: Ends = {}
    beyond: Turns = {engine: [] for engine in order}
    turns: Turns = {engine: [] for engine in order}

    def call(engine: str, folder: Path) -> None:
        work = Workplace(None, size, folder / "target")
        work.replace_target(operation.copied or "")
        uri = work.target if operation.copied else size.folder / operation.reads
        script = PROCESS.replace("ENGINE", engine).replace("URI", str(uri))
        source = str(size.folder / operation.source) if operation.source else ""
        script = script.replace("SOURCE", source).replace("SCRIPT", operation.script)
        wall, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [sys.executable, "-c", script],
            cwd=ROOT,
            env=process_environment(),
            capture_output=True,
            text=True,
            check=True,
        )
        wall, after = time.perf_counter() - wall, resource.getrusage(resource.RUSAGE_CHILDREN)
        *answer, script_wall, script_cpu, peak = done.stdout.split()
        ends[engine] = {"answer": answer, "peak": int(peak) / 1e3}
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        beyond[engine].append(Timing(float(script_wall), float(script_cpu)))
        turns[engine].append(Timing(wall, cpu))

    DATA.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=DATA) as folder:
        for _ in range(1 + size.process_rounds):  # the first compiles what has no bytecode yet
            for engine in order:
                call(engine, Path(folder))
    return {engine: [best(beyond[engine][1:]), *turns[engine][1:]] for engine in order}, ends


def _command(module: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", f"tests.benchmarks.tables.{module}", *arguments]


def _run_module(module: str, *arguments: str) -> None:
    subprocess.run(_command(module, *arguments), cwd=ROOT, env=process_environment(), check=True)
