"""Data files written by pylance read back equal to the bit, whole and in parts.

One file per (file version, size, family), with every column of the family in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.encodings.base import Rows
from lance_nb.errors import LanceError
from lance_nb.file.reader import FileReader
from lance_nb.storage.registry import open_store
from tests.interop.matrix import FAMILIES, SIZES, VERSIONS, columns
from tests.support.reading import (
    Columns,
    RemoteLikeStore,
    first_difference,
    positions_of,
    rows_of,
    same,
    single_rows,
)
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop
SEED = 11
FILE = "x.lance"


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_file_of_pylance_reads_equal(
    version: str, size: int, family: str, tmp_path: Path
) -> None:
    wrong = []
    for number, group in enumerate(_same_length(columns(family, size, version, SEED))):
        table = pa.table(group)
        folder = tmp_path / str(number)
        _write(folder, table, version)
        local = FileReader(open_store(str(folder)), FILE)
        remote = FileReader(RemoteLikeStore(open_store(str(folder)), 4096), FILE)
        rng = np.random.default_rng([SEED, size])
        for reader in (local, remote):
            assert reader.num_rows == table.num_rows
            for rows in _row_sets(rng, table.num_rows):
                wrong += _differences(reader, table, rows)
    assert not wrong


def _same_length(found: Iterator[tuple[str, pa.Array]]) -> list[dict[str, pa.Array]]:
    groups: dict[int, dict[str, pa.Array]] = {}
    for name, array in found:
        groups.setdefault(len(array), {})[name] = array
    return list(groups.values())


def _write(folder: Path, table: pa.Table, version: str) -> None:
    require_pylance()
    from lance.file import LanceFileWriter

    folder.mkdir()
    with LanceFileWriter(str(folder / FILE), table.schema, version=version) as writer:
        writer.write_batch(table)


def _row_sets(rng: Any, n: int) -> Iterator[Rows]:
    yield rows_of()
    if n:
        yield rows_of((0, n))
        yield single_rows([0, n - 1])
        yield single_rows(rng.integers(0, n, 40))
    if n > 10:
        low, high = sorted(rng.choice(n, 2, replace=False).tolist())
        yield rows_of((low, high))
        cuts = np.unique(rng.integers(0, n, 21))
        cuts = cuts[: cuts.size // 2 * 2].reshape(-1, 2)
        yield rows_of(*(tuple(pair) for pair in cuts.tolist()))


def _differences(reader: FileReader, table: pa.Table, rows: Rows) -> Iterator[str]:
    view = Columns(table.schema)
    wanted = table.take(pa.array(positions_of(rows)))
    for name, expected in zip(wanted.column_names, wanted.columns, strict=True):
        place = f"{name}, {rows.num_rows} of {table.num_rows} rows"
        try:
            got = view.read(reader, name, rows)
        except LanceError as exc:
            yield f"{place}: {exc} {getattr(exc, '__notes__', '')}"
            continue
        for chunk in got.chunks:
            chunk.validate(full=True)
        if not same(got, expected):
            yield f"{place}: {first_difference(got, expected)}"
