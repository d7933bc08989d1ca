"""Marks of streams beside pylance: it carries them on, reads the rows, and takes no harm."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import CommitConflictError
from lance_nb.spark.plan import Label
from lance_nb.spark.row_writer import RowWriter, WriteSettings
from lance_nb.transactions.stream_mark import StreamMark
from tests.support.requirements import require_pylance

lance = require_pylance()
KEY = "lance_nb.stream.s"


def numbers(start: int, stop: int) -> pa.Table:
    return pa.table({"id": pa.array(range(start, stop), pa.int64())})


@pytest.fixture
def uri(tmp_path: Path) -> str:
    uri = str(tmp_path / "rows.lance")
    lance.write_dataset(numbers(0, 20), uri, max_rows_per_file=10)
    return uri


def write(at: Any, batch: int) -> None:
    """Commit ten rows as a batch."""
    rows = RowWriter.of(at, numbers(0, 1).schema, WriteSettings())
    made = rows.write(numbers(100 * batch, 100 * batch + 10))
    rows.plan("stream", "x").commit([made], Label(mark=StreamMark("s", batch)))


def appending(dataset: Any) -> None:
    dataset.insert(numbers(50, 60))


def deleting(dataset: Any) -> None:
    dataset.delete("id = 3")


def updating(dataset: Any) -> None:
    dataset.update({"id": "id + 1000"}, "id = 4")


def upserting(dataset: Any) -> None:
    dataset.merge_insert("id").when_not_matched_insert_all().execute(numbers(5, 30))


def compacting(dataset: Any) -> None:
    dataset.optimize.compact_files()


def configuring(dataset: Any) -> None:
    dataset.update_config({"a": "b"})


def growing(dataset: Any) -> None:
    dataset.add_columns({"twice": "id * 2"})


def overwriting(dataset: Any) -> None:
    lance.write_dataset(numbers(0, 1), dataset.uri, mode="overwrite")


CHANGES = [
    appending, deleting, updating, upserting, compacting, configuring, growing, overwriting,
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_pylance_carries_a_mark_on(uri: str, change: Callable[[Any], None]) -> None:
    write(uri, 1)
    change(lance.dataset(uri))
    found = lance.dataset(uri)
    assert found.version >= 3
    assert found.config()[KEY] == "1"
    found.validate()
    assert lance_nb.dataset(uri).config()[KEY] == "1"


@pytest.mark.parametrize("change", [appending, deleting, updating, compacting, configuring])
def test_pylance_loses_no_mark_that_was_set_since_it_looked(
    uri: str, change: Callable[[Any], None]
) -> None:
    stale = lance.dataset(uri)
    write(uri, 1)
    change(stale)
    found = lance.dataset(uri)
    assert found.version >= 3
    assert found.config()[KEY] == "1"
    assert found.count_rows(filter="id >= 100 and id < 110") == 10
    found.validate()


@pytest.mark.parametrize("change", [appending, deleting, configuring])
def test_a_mark_is_set_over_what_pylance_has_committed(
    uri: str, change: Callable[[Any], None]
) -> None:
    stale = lance_nb.dataset(uri)
    change(lance.dataset(uri))
    write(stale, 1)
    found = lance.dataset(uri)
    assert (found.version, found.config()[KEY]) == (3, "1")
    assert found.count_rows(filter="id >= 100") == 10
    found.validate()


def test_two_sinks_with_one_id_conflict_across_a_commit_of_pylance(uri: str) -> None:
    stale = lance_nb.dataset(uri)
    write(uri, 1)
    lance.dataset(uri).insert(numbers(50, 60))
    with pytest.raises(CommitConflictError, match="batch 1 of stream 's' was committed meanwhile"):
        write(stale, 1)
    assert lance.dataset(uri).count_rows() == 40


def test_pylance_reads_the_transaction_of_a_batch(uri: str) -> None:
    write(uri, 1)
    found = lance.dataset(uri)
    (transaction, *_) = found.get_transactions(1)
    assert type(transaction.operation).__name__ == "Append"
    assert found.to_table()["id"].to_pylist() == [*range(20), *range(100, 110)]
