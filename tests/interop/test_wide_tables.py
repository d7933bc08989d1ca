"""Tables of many columns and few rows: pylance reads what we write, and the reverse."""

from __future__ import annotations

from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_nb
from tests.support.wide_tables import mixed_table

VERSIONS = ("2.0", "2.1", "2.2")
ROWS = (1, 10, 50, 63, 64, 500, 1500, 4095)


def tables_of(rows: int, version: str) -> pa.Table:
    return mixed_table(rows, 3, structs_of_nulls=version != "2.0")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("rows", ROWS)
def test_what_is_written_is_read_alike(tmp_path: Path, rows: int, version: str):
    table = tables_of(rows, version)
    ours = lance_nb.write_dataset(table, tmp_path / "ours", data_storage_version=version)
    by_pylance = lance.dataset(str(tmp_path / "ours"))
    assert by_pylance.to_table().equals(table)
    assert by_pylance.schema.equals(table.schema)
    assert ours.to_table().equals(table)
    wanted = list(range(0, rows, 7))
    assert by_pylance.take(wanted).equals(table.take(wanted))
    names = ["int641?", "text2", "struct3"]
    assert by_pylance.to_table(columns=names, limit=5).equals(table.select(names).slice(0, 5))


@pytest.mark.parametrize("version", VERSIONS)
def test_wide_rows_are_appended_by_both(tmp_path: Path, version: str):
    path = str(tmp_path / "both")
    parts = [tables_of(rows, version) for rows in (10, 300, 3)]
    lance.write_dataset(parts[0], path, data_storage_version=version)
    lance_nb.write_dataset(parts[1], path, mode="append")
    lance.write_dataset(parts[2], path, mode="append")
    whole = pa.concat_tables(part.unify_dictionaries() for part in parts)
    for answer in (lance.dataset(path).to_table(), lance_nb.dataset(path).to_table()):
        assert answer.to_pylist() == whole.to_pylist()


@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize("kind", ["int64", "int32", "double", "flag"])
@pytest.mark.parametrize("rows", [50, 1000])
def test_files_are_as_small_as_those_of_pylance(tmp_path: Path, rows: int, kind: str, version: str):
    table = tables_of(rows, version).select([f"{kind}{number}" for number in range(12)])
    sizes = []
    for engine in (lance_nb, lance):
        path = tmp_path / engine.__name__
        engine.write_dataset(table, str(path), data_storage_version=version)
        (file,) = (path / "data").iterdir()
        sizes.append(file.stat().st_size)
    assert sizes[0] <= 1.01 * sizes[1]
