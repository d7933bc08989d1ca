"""Write a table with our writer and hold what pylance and we read from it against the table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import lance_nb
from lance_nb.file.versions import file_version_of
from lance_nb.file.writer import FileOptions, FileWriter
from lance_nb.format.schema import Schema
from lance_nb.storage.local import LocalStore
from tests.support.reading import decoded, first_difference, same
from tests.support.requirements import require_pylance

FILE = "x.lance"


def write_file(
    folder: Path, table: pa.Table, version: str, page_bytes: int, batch_rows: int
) -> str:
    """Write the table, in batches, and return the path of the file."""
    writer = FileWriter(
        LocalStore(str(folder)),
        FILE,
        Schema.from_arrow(table.schema),
        file_version=file_version_of(version),
        options=FileOptions(page_bytes=page_bytes),
    )
    with writer:
        for batch in table.to_batches(max_chunksize=batch_rows):
            writer.write(batch)
        writer.finish()
    return str(folder / FILE)


def differences(path: str, table: pa.Table, rng: np.random.Generator) -> list[str]:
    """Read all, ranges and single rows, by pylance and by us; name what is not equal to the bit."""
    require_pylance()
    from lance.file import LanceFileReader

    wrong = []
    for reader in (LanceFileReader(path), lance_nb.LanceFileReader(path)):
        who = type(reader).__module__.split(".")[0]
        if reader.num_rows() != table.num_rows:
            wrong.append(f"{who}: {reader.num_rows()} rows instead of {table.num_rows}")
            continue
        wrong += _compared(f"{who}, all", reader.read_all(batch_size=100_000).to_table(), table)
        for start, size in _ranges(rng, table.num_rows):
            found = reader.read_range(start, size, batch_size=100_000).to_table()
            wrong += _compared(f"{who}, rows {start}+{size}", found, table.slice(start, size))
        if table.num_rows:
            rows = np.unique(rng.integers(0, table.num_rows, 20))
            found = reader.take_rows(rows.tolist(), batch_size=100_000).to_table()
            wrong += _compared(f"{who}, take", found, table.take(pa.array(rows)))
    return wrong


def _ranges(rng: np.random.Generator, n: int) -> Iterator[tuple[int, int]]:
    if n > 2:
        low, high = sorted(rng.choice(n, 2, replace=False).tolist())
        yield low, high - low


def _compared(what: str, found: pa.Table, expected: pa.Table) -> Iterator[str]:
    for name in expected.column_names:
        left, right = decoded(found.column(name)), decoded(expected.column(name))
        if not same(left, right):
            yield f"{name}: {what}: {first_difference(left, right)}"


def same_length(found: Iterator[tuple[str, Any]]) -> list[pa.Table]:
    """Group columns of one length into tables."""
    groups: dict[int, dict[str, Any]] = {}
    for name, array in found:
        groups.setdefault(len(array), {})[name] = array
    return [pa.table(group) for group in groups.values()]
