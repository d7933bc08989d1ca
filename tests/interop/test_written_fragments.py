"""Fragments written by us in a dataset of pylance: it changes them as its own, and we read it back.

Rows of every nesting; pylance commits, filters, takes, appends, updates, deletes, builds an index
and compacts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.file.versions import file_version_of
from lance_nb.file.writer import FileOptions
from lance_nb.format.schema import Schema
from lance_nb.storage.local import LocalStore
from lance_nb.writing.fragment_writer import WriteOptions, write_fragments
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop
ROWS = 5000


def rows_of(start: int, count: int, version: str) -> pa.Table:
    """Rows that tell their number in every column."""
    numbers = range(start, start + count)
    table = pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "text": [None if k % 11 == 0 else f"row {k} of the dataset" for k in numbers],
            "list": pa.array(
                [None if k % 7 == 0 else [k] * (k % 4) for k in numbers], pa.list_(pa.int32())
            ),
            "point": pa.array([{"x": k, "y": [str(k)] * (k % 3)} for k in numbers]),
            "vector": pa.FixedSizeListArray.from_arrays(
                pa.array(np.repeat(np.arange(start, start + count), 8).astype("f4")), 8
            ),
            "flag": [k % 3 == 0 for k in numbers],
        }
    )
    if version == "2.0":
        return table
    nullable = pa.array([None if k % 5 == 0 else {"a": [k]} for k in numbers])
    return table.append_column("maybe", nullable)


def commit(root: Path, table: pa.Table, version: str) -> Any:
    """Write with our fragment writer, commit with pylance, return its dataset."""
    lance = require_pylance()
    options = WriteOptions(
        max_rows_per_file=2000,
        file_version=file_version_of(version),
        file=FileOptions(page_bytes=50_000),
    )
    schema = Schema.from_arrow(table.schema)
    written = write_fragments(
        table.to_reader(max_chunksize=700), schema, LocalStore(str(root)), options
    )
    fragments = []
    for number, one in enumerate(written):
        (file,) = one.files
        name = lance.fragment.DataFile(
            file.path,
            list(file.fields),
            list(file.column_indices),
            *file.file_version,
            file.size_bytes,
        )
        fragments.append(lance.fragment.FragmentMetadata(number, [name], one.physical_rows))
    operation = lance.LanceOperation.Overwrite(table.schema, fragments)
    return lance.LanceDataset.commit(str(root), operation)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_pylance_works_on_top_of_our_fragments(version: str, tmp_path: Path) -> None:
    table = rows_of(0, ROWS, version)
    dataset = commit(tmp_path, table, version)
    dataset.validate()
    assert len(dataset.get_fragments()) == 3
    assert dataset.data_storage_version == version
    assert dataset.to_table().equals(table)
    assert dataset.to_table(filter="id % 100 = 7 and flag").num_rows == 16
    picks = [4999, 0, 2000, 1999, 77]
    assert dataset.take(picks).equals(table.take(pa.array(picks)))
    dataset.insert(rows_of(ROWS, 1000, version))
    dataset.delete("id >= 1000 and id < 1500")
    dataset.update({"text": "'changed'"}, where="id < 10")
    dataset.create_scalar_index("id", "BTREE")
    assert dataset.to_table(filter="id = 4321").num_rows == 1
    dataset.optimize.compact_files(target_rows_per_fragment=10_000)
    dataset.validate()
    found = lance_nb.dataset(str(tmp_path)).to_table().sort_by("id")
    expected = dataset.to_table().sort_by("id")
    assert found.num_rows == ROWS + 500
    assert found.to_pylist() == expected.to_pylist()
    kept = table.slice(10, 990)
    assert found.slice(10, 990).to_pylist() == kept.to_pylist()


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_columns_that_are_missing_read_as_null(version: str, tmp_path: Path) -> None:
    lance = require_pylance()
    table = rows_of(0, 100, version)
    dataset = commit(tmp_path, table, version)
    options = WriteOptions(file_version=file_version_of(version))
    schema = lance_nb.dataset(str(tmp_path)).lance_schema.tree
    part = table.select(["text", "id"])
    (one,) = write_fragments(part.to_reader(), schema, LocalStore(str(tmp_path)), options)
    (file,) = one.files
    name = lance.fragment.DataFile(
        file.path, list(file.fields), list(file.column_indices), *file.file_version
    )
    fragment = lance.fragment.FragmentMetadata(0, [name], one.physical_rows)
    operation = lance.LanceOperation.Append([fragment])
    dataset = lance.LanceDataset.commit(str(tmp_path), operation, read_version=dataset.version)
    added = dataset.to_table(offset=100)
    assert added.column("id").to_pylist() == list(range(100))
    assert added.column("vector").null_count == 100
    assert added.to_pylist() == lance_nb.dataset(str(tmp_path)).to_table(offset=100).to_pylist()
