"""Damage data files many times and read them each time; a program of its own, so that a crash, a
hang or eaten memory shows.

    python -m tests.faults files 150000 [seed] [--jobs 2] [--seconds 900] [--keep] [--data FILE]

Each seed stands for one damage, of one file of ``golden`` or of those named: repeat one with a size
of 1. Ends with 1 and the tracebacks if a reading takes too long, raises anything but a LanceError,
or returns arrays that Arrow finds invalid.
"""

from __future__ import annotations

import faulthandler
import random
import resource
import signal
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

import numpy as np
import pyarrow as pa

from lance_nb.encodings.base import Rows
from lance_nb.errors import LanceError
from lance_nb.file.columns import assemble, leaves_of
from lance_nb.file.metadata import parse_descriptor
from lance_nb.file.reader import FileReader
from lance_nb.format.schema import Schema
from tests.faults import command
from tests.faults.command import TooSlow
from tests.faults.damage.mutate import mutate
from tests.support.reading import BytesStore, rows_of, same, single_rows

SECONDS_MAX = 8.0  # of processor time; 0.3 on a quiet machine, but neighbours slow a processor down
GOLDEN = Path(__file__).parent / "golden"
CHUNK = 4000
FINDINGS_MAX = 20  # of one process, which then ends
MEMORY_BYTES_MAX = 3 << 30  # of address space, interpreter and libraries included


class Golden:
    """An undamaged file: its bytes, schema and contents."""

    def __init__(self, path: Path) -> None:
        self.data = path.read_bytes()
        reader = FileReader(BytesStore(self.data), "golden")
        position, size = _descriptor_place(reader)
        found, self.num_rows = parse_descriptor(memoryview(self.data)[position : position + size])
        self.schema = Schema.from_pb(found.fields, {})
        self.types = {field.name: field.type for field in self.schema.to_arrow()}
        old = reader.footer.file_version < (2, 1)  # then every field owns a column, not only leaves
        owning = self.schema.walk() if old else self.schema.leaves()
        self.owners = {field.id: number for number, field in enumerate(owning)}
        self.expected = self.read(self.data, mapped=True, rows=rows_of((0, self.num_rows)))
        for column in self.expected.values():
            assert same(column, column)

    def read(self, data: bytes, *, mapped: bool, rows: Rows) -> dict[str, pa.ChunkedArray | None]:
        """Read rows of every column; None for a column that is refused."""
        reader = FileReader(BytesStore(data, mapped=mapped), "damaged.lance")
        if not 0 <= reader.num_rows < 1 << 63:
            raise ValueError(reader.num_rows)
        found: dict[str, pa.ChunkedArray | None] = {}
        for field in self.schema:
            kind = self.types[field.name]
            leaves = list(leaves_of(field, kind, self.owners))
            try:
                parts = reader.read_leaves(leaves, self.owners, rows)
                column = assemble(field, kind, parts, rows.num_rows)
            except LanceError as exc:
                str(exc)
                found[field.name] = None
                continue
            for chunk in column.chunks:
                chunk.validate(full=True)
            if len(column) != rows.num_rows:
                raise ValueError(f"{len(column)} rows instead of {rows.num_rows}")
            found[field.name] = column
        return found

    def outcome(self, seed: int) -> str:
        """Damage, read, and say how it went."""
        rng = random.Random(seed)
        data = mutate(self.data, rng)
        rows = rows_of((0, self.num_rows))
        whole = rng.random() < 0.5
        if not whole:
            rows = single_rows(rng.sample(range(self.num_rows), min(self.num_rows, 9)))
        try:
            found = self.read(data, mapped=rng.random() < 0.5, rows=rows)
        except LanceError as exc:
            str(exc)
            return "file refused"
        if None in found.values():
            return "column refused"
        if not whole:
            return "some rows read"
        equal = all(same(found[name], column) for name, column in self.expected.items())
        return "same" if equal else "different"


def _descriptor_place(reader: FileReader) -> tuple[int, int]:
    return reader._table(reader.footer.global_table_start, reader.footer.num_global_buffers)[0]


def _stop(signum: int, frame: FrameType | None) -> None:
    raise TooSlow


class Files:
    """The undamaged files, each read when its first case comes."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths
        self._read: dict[Path, Golden] = {}

    def path(self, seed: int) -> Path:
        """Return the file that a seed damages."""
        return self._paths[seed % len(self._paths)]

    def outcome(self, seed: int) -> str:
        """Damage a file, read it, and say how it went."""
        path = self.path(seed)
        if path not in self._read:
            self._read[path] = Golden(path)
        signal.setitimer(signal.ITIMER_PROF, SECONDS_MAX)
        try:
            return self._read[path].outcome(seed)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)


def _start() -> None:
    faulthandler.enable()
    pa.array(["late"], mask=np.array([True]))  # pyarrow imports pandas here: not within a limit
    signal.signal(signal.SIGPROF, _stop)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))


def _work(run: command.Run) -> command.Counts:
    paths = [Path(path) for path in run.options.data] or sorted(GOLDEN.glob("*.lance"))

    def share(seeds: range, tell: command.Tell) -> tuple[Counter[str], list[str]]:
        files = Files(paths)
        data = "".join(f" --data {path}" for path in run.options.data)
        return command.each(
            seeds, tell, lambda seed: [f"ends:{files.outcome(seed)}"], f"files 1 {{}}{data}",
            FINDINGS_MAX,
        )  # fmt: skip

    return command.shared(run, share, CHUNK, _start, "ends")


def main(arguments: list[str]) -> int:
    """Damage files as often as asked; return the exit code."""
    parser = command.parser_of("files", "damaged files", 150_000)
    parser.add_argument("--data", action="append", default=[], help="a file; all of them without")
    return command.run("hostile_files", parser, arguments, _work)
