"""Modes of writing, and overwriting the rows that pass a condition; pylance reads the outcome."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from pyarrow import parquet

import lance_nb
from lance_nb import spark
from lance_nb.dataset import LanceDataset
from lance_nb.errors import (
    DatasetAlreadyExistsError,
    InvalidInputError,
    PredicateError,
    RetryableCommitConflictError,
)
from tests.unit.spark.conftest import at_commit


def read(uri: str) -> list[tuple[Any, ...]]:
    found = lance.dataset(uri)
    found.validate()
    return sorted(tuple(row.values()) for row in found.to_table().to_pylist())


def expected(kept: pa.Table, new: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in (*kept.to_pylist(), *new.to_pylist()))


def new_rows(name: str = "n3", start: int = 500) -> pa.Table:
    return pa.table({"id": pa.array(range(start, start + 5), pa.int64()), "name": [name] * 5})


def in_form(form: str, table: pa.Table, folder: Path) -> Any:
    """Return rows as a table, as files, or as a dataset."""
    if form == "files":
        parquet.write_table(table, folder / "new.parquet")
        return str(folder / "new.parquet")
    return table if form == "table" else lance_nb.write_dataset(table, folder / "new.lance")


@pytest.mark.parametrize("form", ["table", "files", "dataset"])
def test_rows_that_pass_are_replaced_in_one_version(
    dataset: LanceDataset, tmp_path: Path, form: str
) -> None:
    new = in_form(form, new_rows(), tmp_path)
    kept = dataset.to_table(filter="name <> 'n3'")
    made = spark.write(new, dataset, "overwrite", where="name = 'n3'", message="day", journal=False)
    assert made.version == dataset.version + 1
    assert made.version_info(made.version).message == "day"
    assert made.history()[0].operation == "Update"
    assert read(dataset.uri) == expected(kept, new_rows())
    again = spark.write(new, dataset.uri, "overwrite", where="name = 'n3'")
    assert read(dataset.uri) == expected(kept, new_rows())
    assert lance_nb.verify(again.uri).ok


@pytest.mark.parametrize("form", ["table", "files", "dataset"])
def test_new_rows_have_to_pass_too(dataset: LanceDataset, tmp_path: Path, form: str) -> None:
    wrong = in_form(form, pa.concat_tables([new_rows(), new_rows("n4")]), tmp_path)
    with pytest.raises(InvalidInputError, match=r"5 rows of a batch .*'name': 'n4'"):
        spark.write(wrong, dataset, "overwrite", where="name = 'n3'")
    assert lance_nb.dataset(dataset.uri).version == dataset.version


def test_nothing_to_replace_appends_and_nothing_to_write_deletes(dataset: LanceDataset) -> None:
    before = dataset.to_table()
    made = spark.write(new_rows("x"), dataset, "overwrite", where="name = 'x'")
    assert made.history()[0].operation == "Append"
    assert read(dataset.uri) == expected(before, new_rows("x"))
    made = spark.write(new_rows().slice(0, 0), made, "overwrite", where="name = 'x'")
    assert made.history()[0].operation == "Delete"
    assert read(dataset.uri) == expected(before, new_rows().slice(0, 0))
    same = spark.write(new_rows().slice(0, 0), made, "overwrite", where="name = 'x'")
    assert same.version == made.version


def test_a_new_dataset_is_created_with_rows_that_pass(tmp_path: Path) -> None:
    uri = str(tmp_path / "new.lance")
    with pytest.raises(InvalidInputError, match="have to pass it"):
        spark.write(new_rows("n4"), uri, "overwrite", where="name = 'n3'")
    assert not (tmp_path / "new.lance" / "_versions").exists()
    spark.write(new_rows(), uri, "overwrite", where="name = 'n3'")
    assert read(uri) == expected(new_rows(), new_rows().slice(0, 0))


def test_what_makes_no_sense_is_refused(dataset: LanceDataset) -> None:
    with pytest.raises(InvalidInputError, match="needs mode='overwrite', not 'append'"):
        spark.write(new_rows(), dataset, "append", where="name = 'n3'")
    with pytest.raises(PredicateError):
        spark.write(new_rows(), dataset, "overwrite", where="nope = 3")
    with pytest.raises(InvalidInputError, match="cluster_by sorts a DataFrame"):
        spark.write(new_rows(), dataset, "append", cluster_by="id")
    assert lance_nb.dataset(dataset.uri).version == dataset.version


def test_a_change_of_the_same_rows_is_a_conflict_and_an_append_is_not(
    dataset: LanceDataset,
) -> None:
    def update() -> None:
        lance.dataset(dataset.uri).update({"name": "'mine'"}, where="id = 3")

    def append() -> None:
        lance.write_dataset(new_rows("n3", 900), dataset.uri, mode="append")

    with at_commit([update]), pytest.raises(RetryableCommitConflictError):
        spark.write(new_rows(), dataset.uri, "overwrite", where="name = 'n3'")
    kept = lance_nb.dataset(dataset.uri).to_table(filter="name <> 'n3'")
    with at_commit([append]):
        spark.write(new_rows(), dataset.uri, "overwrite", where="name = 'n3'")
    assert read(dataset.uri) == expected(kept, pa.concat_tables([new_rows(), new_rows("n3", 900)]))


def test_every_mode_of_a_lakehouse(dataset: LanceDataset, tmp_path: Path) -> None:
    for mode in ("create", "error", "errorifexists"):
        with pytest.raises(DatasetAlreadyExistsError):
            spark.write(new_rows(), dataset.uri, mode)
    same = spark.write(new_rows(), dataset.uri, "ignore")
    assert (same.version, same.count_rows()) == (dataset.version, 100)
    for mode in ("error", "ignore"):
        uri = str(tmp_path / f"{mode}.lance")
        assert spark.write(new_rows(), uri, mode).count_rows() == 5
    with pytest.raises(InvalidInputError, match="mode"):
        spark.write(new_rows(), dataset.uri, "sometimes")
