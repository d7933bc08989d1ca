"""Columns that are described alike are decoded as one: the same values, and errors of their own."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_nb
from lance_nb.encodings.base import Rows
from lance_nb.errors import CorruptFileError, LanceError
from lance_nb.file import reader as reader_module
from lance_nb.file.alike_columns import ALIKE_ROWS_MAX, AlikeColumns
from lance_nb.file.columns import Leaf
from lance_nb.file.reader import FileReader
from lance_nb.storage.registry import open_store
from tests.support.manifests import flipped

ROWS = 700
COLUMNS_OF_A_KIND = 4


def values_of(kind: str, seed: int) -> pa.Array:
    """Return ``ROWS`` values of a kind, different for each seed."""
    random = np.random.default_rng(seed)
    numbers = random.integers(0, 50 + 900 * seed, ROWS)
    holes = random.random(ROWS) < 0.2
    match kind:
        case "integer":
            return pa.array(numbers)
        case "nullable":
            return pa.array(numbers, mask=holes)
        case "wide":
            return pa.array(random.integers(-(2**62), 2**62, ROWS))
        case "float":
            return pa.array(random.random(ROWS), mask=holes)
        case "bool":
            return pa.array(numbers % 3 == 0, mask=holes)
        case "words":
            return pa.array([f"{seed} word {number % 9}" for number in numbers], mask=holes)
        case "text":
            return pa.array([f"{number * 7919} of {seed}" * (number % 4) for number in numbers])
        case "bytes":
            return pa.array(
                [bytes([number % 251]) * (number % 5) for number in numbers], mask=holes
            )
        case "decimal":
            return pa.array([Decimal(int(number)) / 4 for number in numbers], pa.decimal128(12, 2))
        case "time":
            return pa.array(numbers.astype("datetime64[s]").astype("datetime64[us]"), mask=holes)
        case "constant":
            return pa.array(np.full(ROWS, seed))
        case "constant text":
            return pa.array([f"text {seed} " * 9] * ROWS, mask=holes)
        case "null":
            return pa.nulls(ROWS, pa.int32())
        case "item":
            return pa.FixedSizeListArray.from_arrays(pa.array(random.random(3 * ROWS)), 3)
        case "list":
            return pa.array([[int(number)] * (number % 3) for number in numbers])
    raise AssertionError(kind)


KINDS = (
    "integer", "nullable", "wide", "float", "bool", "words", "text", "bytes", "decimal", "time",
    "constant", "constant text", "null", "item", "list",
)  # fmt: skip


def wide_table() -> pa.Table:
    """Return columns of all kinds by turns."""
    seeds = range(COLUMNS_OF_A_KIND)
    return pa.table({f"{kind} {n}": values_of(kind, n) for n in seeds for kind in KINDS})


@pytest.fixture(params=["2.1", "2.2"])
def stored(
    request: pytest.FixtureRequest, tmp_path: Path
) -> tuple[lance_nb.LanceDataset, pa.Table]:
    table = wide_table()
    options = {"data_storage_version": request.param}
    return lance_nb.write_dataset(table, tmp_path / "d", **options), table


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Note how many columns are decoded together."""
    noted: list[int] = []
    original = AlikeColumns.read

    def noting(self: AlikeColumns, rows: Rows, source: object) -> object:
        noted.append(len(self.numbers))
        return original(self, rows, source)

    monkeypatch.setattr(AlikeColumns, "read", noting)
    return noted


def test_all_rows_are_those_that_were_written(stored, reads):
    dataset, table = stored
    assert dataset.to_table().equals(table)
    assert dataset.to_table().equals(table), "with groups that are kept"
    assert max(reads) >= COLUMNS_OF_A_KIND
    assert sum(reads) // 2 > len(table.schema) // 2


@pytest.mark.parametrize(("offset", "limit"), [(0, 5), (0, 1), (3, 300), (640, 60), (699, 1)])
def test_some_rows_are_those_that_were_written(stored, reads, offset, limit):
    dataset, table = stored
    assert dataset.to_table(offset=offset, limit=limit).equals(table.slice(offset, limit))
    assert reads


@pytest.mark.parametrize("rows", [[0], [699], [3, 4, 5, 77, 300, 301], list(range(0, 700, 3))])
def test_single_rows_are_those_that_were_written(stored, reads, rows):
    dataset, table = stored
    assert dataset.take(rows).equals(table.take(rows))
    assert reads


def test_batches_and_filters_see_the_same_values(stored):
    dataset, table = stored
    assert pa.Table.from_batches(list(dataset.to_batches(batch_size=64))).equals(table)
    mask = pc.less(table["integer 1"], 200)
    assert dataset.to_table(filter="`integer 1` < 200").equals(table.filter(mask))


def test_deleted_rows_are_left_out(stored):
    dataset, table = stored
    dataset.delete("`integer 0` < 10")
    left = table.filter(pc.greater_equal(table["integer 0"], 10))
    assert dataset.to_table().equals(left)
    assert dataset.head(5).equals(left.slice(0, 5))


def test_many_rows_are_read_column_by_column(tmp_path, reads):
    numbers = np.arange(ALIKE_ROWS_MAX + 1)
    table = pa.table({name: numbers * factor for factor, name in enumerate("abcd")})
    dataset = lance_nb.write_dataset(table, tmp_path / "d")
    assert dataset.to_table().equals(table)
    assert not reads
    assert dataset.head(ALIKE_ROWS_MAX).equals(table.slice(0, ALIKE_ROWS_MAX))
    assert reads == [3]  # the first column is constant


def opened(tmp_path: Path, table: pa.Table) -> tuple[FileReader, list[Leaf], dict[int, int]]:
    dataset = lance_nb.write_dataset(table, tmp_path / "d")
    path = dataset.get_fragments()[0].metadata.files[0].path
    leaves = [
        Leaf(number, field.name, field.type, depth=1) for number, field in enumerate(table.schema)
    ]
    reader = FileReader(open_store(tmp_path / "d"), f"data/{path}")
    return reader, leaves, {number: number for number in range(len(leaves))}


def rows(start: int, stop: int) -> Rows:
    return Rows(np.array([start]), np.array([stop]))


def test_rows_that_are_not_there_are_an_error_of_the_column(tmp_path):
    reader, leaves, owners = opened(tmp_path, pa.table({"a": [1, 2, 5], "b": [7, 9, 8]}))
    assert len(reader.read_leaves(leaves, owners, rows(0, 3))) == 2
    for wrong, count in ((rows(0, 4), None), (rows(0, 3), 4), (rows(0, 2), 2)):
        with pytest.raises(CorruptFileError, match="column 'a'"):
            reader.read_leaves(leaves, owners, wrong, count)


def test_the_groups_of_few_requests_are_kept(tmp_path, monkeypatch):
    reader, leaves, owners = opened(tmp_path, pa.table({"a": [1, 2, 5], "b": [7, 9, 8]}))
    made = []
    original = reader_module.alike_columns
    monkeypatch.setattr(
        reader_module, "alike_columns", lambda *given: made.append(1) or original(*given)
    )
    for _ in range(3):
        reader.read_leaves(leaves, owners, rows(0, 3))
    assert len(made) == 1
    for _ in range(20):
        reader.read_leaves(list(leaves), owners, rows(0, 3))
    assert len(made) == 21
    assert len(reader._alike) <= reader_module._ALIKE_MAX


def test_damage_is_an_error_that_names_the_file_or_changes_what_it_hits(tmp_path):
    table = wide_table().select([f"{kind} {n}" for kind in KINDS[:11] for n in range(3)])
    dataset = lance_nb.write_dataset(table, tmp_path / "d")
    name = f"data/{dataset.get_fragments()[0].metadata.files[0].path}"
    data = (tmp_path / "d" / name).read_bytes()
    refused = 0
    for what, broken in flipped(data, 120, seed=5):
        (tmp_path / "d" / name).unlink()
        (tmp_path / "d" / name).write_bytes(broken)
        try:
            result = lance_nb.dataset(tmp_path / "d").to_table()
        except LanceError as error:
            refused += 1
            message = "\n".join([str(error), *getattr(error, "__notes__", ())])
        else:
            message = name
            same = [result[each].equals(table[each]) for each in table.column_names]
            assert same.count(False) <= 1, what  # a flipped bit is of one column
        assert name.rpartition("/")[2] in message, what
    assert refused > 10
