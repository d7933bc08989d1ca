from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.errors import CommitConflictError, InvalidInputError
from lance_nb.spark.plan import Label
from lance_nb.spark.row_writer import RowWriter, WriteSettings
from lance_nb.transactions.stream_mark import StreamMark

_NUMBERS = count()


def numbers(start: int, stop: int) -> pa.Table:
    return pa.table({"id": pa.array(range(start, stop), pa.int64())})


@pytest.fixture
def dataset() -> LanceDataset:
    uri = f"memory://marks/{next(_NUMBERS)}.lance"
    return lance_nb.write_dataset(numbers(0, 3), uri)


def write(dataset: LanceDataset, mark: StreamMark, mode: str = "append") -> LanceDataset:
    """Commit one row of a stream, planned on the version at hand."""
    rows = RowWriter.of(dataset, numbers(0, 1).schema, WriteSettings(mode))
    return rows.plan("stream", "x").commit([rows.write(numbers(100, 101))], Label(mark=mark))


def test_the_version_that_has_the_rows_has_the_mark(dataset: LanceDataset) -> None:
    made = write(dataset, StreamMark("s", 0))
    assert (made.version, made.count_rows()) == (2, 4)
    assert made.config() == {"lance_nb.stream.s": "0"}
    made = write(write(made, StreamMark("other", 41)), StreamMark("s", 7))
    assert made.config() == {"lance_nb.stream.s": "7", "lance_nb.stream.other": "41"}
    made = write(made, StreamMark("s", 8), "overwrite")
    assert (made.count_rows(), made.config()["lance_nb.stream.s"]) == (1, "8")
    assert made.opened[1].manifest.writer_feature_flags & 8  # a config is announced to writers
    made.validate()


@pytest.mark.parametrize("batch", [2, 1])
def test_of_two_writers_with_one_id_one_wins(dataset: LanceDataset, batch: int) -> None:
    write(dataset, StreamMark("s", 2))
    with pytest.raises(CommitConflictError, match="batch 2 of stream 's' was committed meanwhile"):
        write(dataset, StreamMark("s", batch))  # planned before the other one was committed
    newest = lance_nb.dataset(dataset.uri)
    assert (newest.version, newest.count_rows()) == (2, 4)


def deleting(dataset: LanceDataset) -> None:
    dataset.delete("id = 0")


def upserting(dataset: LanceDataset) -> None:
    builder = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    builder.execute(numbers(1, 9))


def compacting(dataset: LanceDataset) -> None:
    dataset.insert(numbers(20, 21))
    dataset.optimize.compact_files()


def growing(dataset: LanceDataset) -> None:
    dataset.add_columns({"twice": "id * 2"})


def configuring(dataset: LanceDataset) -> None:
    dataset.update_config({"a": "b"})


def overwriting(dataset: LanceDataset) -> None:
    dataset.insert(numbers(0, 1), mode="overwrite")


@pytest.mark.parametrize(
    "change", [deleting, upserting, compacting, growing, configuring, overwriting]
)
def test_a_mark_outlives_what_others_commit(
    dataset: LanceDataset, change: Callable[[LanceDataset], None]
) -> None:
    change(write(dataset, StreamMark("s", 5)))
    newest = lance_nb.dataset(dataset.uri)
    assert newest.version > 2
    assert StreamMark("s", 0).last_in(newest.config()) == 5


def test_a_mark_is_set_over_what_others_committed_meanwhile(dataset: LanceDataset) -> None:
    lance_nb.dataset(dataset.uri).update_config({"a": "b"})
    lance_nb.dataset(dataset.uri).insert(numbers(50, 60))
    made = write(dataset, StreamMark("s", 5))
    assert made.config() == {"a": "b", "lance_nb.stream.s": "5"}
    assert made.count_rows() == 14


def test_a_restored_version_has_its_own_mark(dataset: LanceDataset) -> None:
    write(write(dataset, StreamMark("s", 5)), StreamMark("s", 6))
    older = lance_nb.dataset(dataset.uri, version=2)
    older.restore()
    assert StreamMark("s", 0).last_in(lance_nb.dataset(dataset.uri).config()) == 5


@pytest.mark.parametrize("value", ["", "x", "-1", "1.0", "٣", "9" * 20])
def test_a_value_that_is_no_number_is_named(dataset: LanceDataset, value: str) -> None:
    dataset.update_config({"lance_nb.stream.s": value})
    with pytest.raises(InvalidInputError, match=r"stream\.s.* is not the number of a batch"):
        write(dataset, StreamMark("s", 1))


@pytest.mark.parametrize(("stream", "batch"), [("", 1), ("x" * 201, 1), ("s", -1), ("s", 10**19)])
def test_marks_that_cannot_be_are_refused(stream: str, batch: int) -> None:
    with pytest.raises(InvalidInputError, match=r"of a (stream|batch)"):
        StreamMark(stream, batch)


@pytest.mark.parametrize("length", [0, 1, 200, 201])
def test_ids_have_up_to_two_hundred_characters(length: int):
    if 0 < length <= 200:
        assert len(StreamMark("x" * length, 0).stream) == length
    else:
        with pytest.raises(InvalidInputError):
            StreamMark("x" * length, 0)
