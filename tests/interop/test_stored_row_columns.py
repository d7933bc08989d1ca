"""Files that store columns named like row columns, index files first of all, read as pylance does.

Datasets cannot have such columns.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import InvalidInputError
from lance_nb.table.projection import ROW_COLUMNS
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop

ROWS = 600
SCALAR = {
    "BTREE": "i", "BITMAP": "c", "LABEL_LIST": "l", "INVERTED": "s", "NGRAM": "s", "ZONEMAP": "i",
    "BLOOMFILTER": "i",
}  # fmt: skip
VECTOR = ("IVF_FLAT", "IVF_PQ", "IVF_SQ", "IVF_RQ", "IVF_HNSW_FLAT", "IVF_HNSW_PQ", "IVF_HNSW_SQ")
READS: tuple[Callable[[Any], pa.Table], ...] = (
    lambda reader: reader.read_all().to_table(),
    lambda reader: reader.read_all(batch_size=100).to_table(),
    lambda reader: reader.read_range(reader.num_rows() // 2, reader.num_rows() // 4).to_table(),
    lambda reader: reader.take_rows(list(range(0, reader.num_rows(), 7))).to_table(),
)


def readers(path: Path, columns: list[str] | None = None) -> tuple[Any, Any]:
    require_pylance()
    from lance.file import LanceFileReader

    ours = lance_nb.LanceFileReader(path, columns=columns)
    return ours, LanceFileReader(str(path), columns=columns)


def check(path: Path, columns: list[str] | None = None) -> pa.Table:
    """Hold every way to read a file against pylance; return all rows."""
    ours, theirs = readers(path, columns)
    for read in READS:
        found, expected = read(ours), read(theirs)
        assert found.schema.equals(expected.schema, check_metadata=True)
        assert found.equals(expected)
    return READS[0](ours)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_stored_values_are_returned(version: str, tmp_path: Path) -> None:
    lance = require_pylance()
    numbers = {name: np.arange(ROWS) * 7 + at for at, name in enumerate(ROW_COLUMNS)}
    table = pa.table({"v": np.arange(ROWS), **numbers})
    path = tmp_path / "x.lance"
    with lance.file.LanceFileWriter(str(path), table.schema, version=version) as writer:
        writer.write_batch(table)
    assert check(path).equals(table)
    for columns in ([name] for name in ROW_COLUMNS):
        assert check(path, columns).equals(table.select(columns))
    assert check(path, ["_rowaddr", "v"]).equals(table.select(["_rowaddr", "v"]))


def test_every_file_of_every_index_reads_equal(tmp_path: Path) -> None:
    lance = require_pylance()
    random = np.random.default_rng(0)
    vectors = pa.array(random.random(16 * ROWS, np.float32))
    table = pa.table({
        "i": random.integers(0, 99, ROWS), "s": [f"word{row % 50} text" for row in range(ROWS)],
        "c": [f"c{row % 5}" for row in range(ROWS)],
        "l": [[row % 3, row % 7] for row in range(ROWS)],
        "v": pa.FixedSizeListArray.from_arrays(vectors, 16),
    })  # fmt: skip
    data = lance.write_dataset(table, tmp_path / "d")
    for kind, column in SCALAR.items():
        data.create_scalar_index(column, kind, name=kind)
    for kind in VECTOR:
        options = {"num_sub_vectors": 4} if kind.endswith("PQ") else {}
        data.create_index("v", kind, name=kind, num_partitions=2, **options)
    paths = sorted((tmp_path / "d/_indices").glob("*/*"))
    found = {(path.parent.name, path.name): check(path).column_names for path in paths}
    assert len({folder for folder, _ in found}) == len(SCALAR) + len(VECTOR)
    assert sum("_rowid" in names for names in found.values()) >= len(VECTOR) + 1


@pytest.mark.parametrize("name", ROW_COLUMNS)
def test_datasets_cannot_have_columns_of_these_names(name: str, tmp_path: Path) -> None:
    """pylance refuses to write them, and panics when it reads one with such a column."""
    lance = require_pylance()
    table = pa.table({"v": [1, 2], name: pa.array([7, 8], pa.uint64())})
    with pytest.raises(OSError, match="reserved name"):
        lance.write_dataset(table, tmp_path / "theirs")
    with pytest.raises(InvalidInputError, match=f"'{name}' is reserved"):
        lance_nb.write_dataset(table, tmp_path / "ours")
    nested = pa.table({"v": [{name: 1}], name.upper(): [2]})  # these are free
    lance_nb.write_dataset(nested, tmp_path / "ours")
    assert lance.dataset(tmp_path / "ours").to_table().equals(nested)
