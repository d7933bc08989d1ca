"""Data files written by pylance read back equal to the bit, whole and in parts.

One file per (file version, size, family), with every column of the family in it: 4,344 columns.
Versions 2.0 and forced encodings have one file per column, about 2,400.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.file.reader import FileReader
from lance_nb.storage.registry import open_store
from lance_nb.table.single_file import open_single_file
from tests.interop.matrix import FAMILIES, ROUNDS, SCALE, SIZES_OF, VERSIONS, columns
from tests.interop.predicates import filtered_differences
from tests.support.reading import (
    RemoteLikeStore,
    file_differences,
    row_sets,
    rows_of,
    scattered,
    single_rows,
)
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop
SEED = 11
FILE = "x.lance"


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("version", "size"), [(version, size) for version in VERSIONS for size in SIZES_OF[version]]
)
@pytest.mark.parametrize("seed", range(SEED, SEED + ROUNDS))
def test_a_file_of_pylance_reads_equal(
    seed: int, version: str, size: int, family: str, tmp_path: Path
) -> None:
    wrong = []
    found = columns(family, size, version, seed, in_turns=True)
    for number, group in enumerate(_same_length(found)):
        table = pa.table(group)
        folder = tmp_path / str(number)
        _write(folder, table, version)
        local = FileReader(open_store(str(folder)), FILE)
        remote = FileReader(RemoteLikeStore(open_store(str(folder)), 4096), FILE)
        rng = np.random.default_rng([seed, size])
        assert local.num_rows == remote.num_rows == table.num_rows
        for rows in row_sets(rng, table.num_rows):
            wrong += file_differences(local, table, rows)
        wrong += file_differences(remote, table, scattered(rng, table.num_rows))
        snapshot = open_single_file(folder / FILE).snapshot
        wrong += filtered_differences(snapshot, table, rng)
    assert not wrong


def _same_length(found: Iterator[tuple[str, pa.Array]]) -> list[dict[str, pa.Array]]:
    groups: dict[int, dict[str, pa.Array]] = {}
    for name, array in found:
        groups.setdefault(len(array), {})[name] = array
    return list(groups.values())


def _write(folder: Path, tables: pa.Table | list[pa.Table], version: str) -> None:
    tables = tables if isinstance(tables, list) else [tables]
    require_pylance()
    from lance.file import LanceFileWriter

    folder.mkdir()
    with LanceFileWriter(str(folder / FILE), tables[0].schema, version=version) as writer:
        for table in tables:
            writer.write_batch(table)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("size", [1, 1025, 4097])
def test_a_file_of_version_2_0_reads_equal(size: int, family: str, tmp_path: Path) -> None:
    """Every column of its own file: version 2.0 has no null structs and no maps."""
    wrong, written = [], 0
    for number, (name, array) in enumerate(columns(family, size, "2.1", SEED)):
        if not name.endswith(("/full", "/some", "/all")):
            continue
        table = pa.table({name: array})
        folder = tmp_path / str(number)
        if not _accepted(folder, table, "2.0"):
            continue
        written += 1
        local = FileReader(open_store(str(folder)), FILE)
        remote = FileReader(RemoteLikeStore(open_store(str(folder)), 4096), FILE)
        rng = np.random.default_rng(SEED)
        wrong += file_differences(local, table, rows_of((0, len(array))))
        wrong += file_differences(remote, table, scattered(rng, len(array)))
    assert not wrong
    assert written


FORCED = {
    "zstd": {"lance-encoding:compression": "zstd"},
    "lz4": {"lance-encoding:compression": "lz4"},
    "zstd at level 9": {
        "lance-encoding:compression": "zstd",
        "lance-encoding:compression-level": "9",
    },
    "no compression": {"lance-encoding:compression": "none"},
    "split": {"lance-encoding:compression": "lz4", "lance-encoding:bss": "on"},
    "full-zip": {"lance-encoding:structural-encoding": "fullzip"},
    "mini-block": {"lance-encoding:structural-encoding": "miniblock"},
    "run lengths": {"lance-encoding:rle-threshold": "0.9"},
    "packed": {"lance-encoding:packed": "true"},
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("forced", FORCED)
@pytest.mark.parametrize("family", ["numbers", "texts", "vectors", "nested"])
def test_forced_encodings_read_equal(
    family: str, forced: str, version: str, tmp_path: Path
) -> None:
    """Every column of its own file: the reference refuses some requests, which are left out."""
    wrong, written = [], 0
    for number, (name, array) in enumerate(columns(family, 1500, version, SEED)):
        if not name.endswith(("/full", "/some") if version == "2.2" or SCALE > 1 else "/some"):
            continue
        field = pa.field(name, array.type, metadata=FORCED[forced])
        table = pa.table([array], schema=pa.schema([field]))
        folder = tmp_path / str(number)
        if not _accepted(folder, table, version):
            continue
        written += 1
        reader = FileReader(open_store(str(folder)), FILE)
        rng = np.random.default_rng(SEED)
        for rows in (rows_of((0, len(array))), scattered(rng, len(array))):
            wrong += file_differences(reader, table, rows)
    assert not wrong
    assert written


def _accepted(folder: Path, table: pa.Table, version: str) -> bool:
    """Write the file if the reference can: some requests it refuses, some make it panic."""
    try:
        _write(folder, table, version)
    except Exception:  # noqa: BLE001 (it has many ways to refuse)
        return False
    except BaseException as exc:
        if type(exc).__name__ != "PanicException":
            raise
        return False
    return True


@pytest.mark.parametrize("version", VERSIONS)
def test_columns_of_several_pages_read_equal(version: str, tmp_path: Path) -> None:
    """Batches of 8 MiB and more make their own pages; rows are asked for across the borders."""
    num_rows = int(60_000 * min(SCALE, 5))
    rng = np.random.default_rng(SEED)
    batches = []
    for _ in range(3):
        columns_of = {
            "number": pa.array(rng.integers(-(2**62), 2**62, num_rows)),
            "text": pa.array([f"{k:x}" * 9 for k in rng.integers(0, 2**60, num_rows).tolist()]),
            "list": pa.array([[i] * (i % 40) if i % 9 else None for i in range(num_rows)]),
            "struct": pa.array([{"a": i, "b": "x" * (i % 300)} for i in range(num_rows)]),
        }
        batches.append(pa.table(columns_of))
    table = pa.concat_tables(batches)
    folder = tmp_path / "pages"
    _write(folder, batches, version)
    reader = FileReader(open_store(str(folder)), FILE)
    assert max(len(reader.column_metadata(number).pages) for number in range(5)) > 1
    n = table.num_rows
    ends = [num_rows - 5, num_rows + 5, 2 * num_rows - 1, 2 * num_rows + 1]
    for rows in (rows_of((0, n)), rows_of(tuple(ends[:2]), tuple(ends[2:])), scattered(rng, n)):
        assert list(file_differences(reader, table, rows)) == []


@pytest.mark.parametrize("version", VERSIONS)
def test_structs_without_fields_read_equal(version: str, tmp_path: Path) -> None:
    array = pa.array([{}] * 9, pa.struct([]))
    table = pa.table({"alone": array, "beside": pa.array(range(9))})
    _write(tmp_path / "d", table, version)
    reader = FileReader(open_store(str(tmp_path / "d")), FILE)
    assert list(file_differences(reader, table, rows_of((0, 9)))) == []
    assert list(file_differences(reader, table, single_rows([1, 5]))) == []
