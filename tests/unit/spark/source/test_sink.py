"""Batches of streams, committed without Spark."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.errors import InvalidInputError
from lance_nb.spark.plan import Label
from lance_nb.spark.row_writer import RowWriter, WriteSettings
from lance_nb.spark.source.options import SourceOptions
from lance_nb.spark.source.sink import BATCH, QUERY, STREAM, SourceWrite
from lance_nb.transactions.stream_mark import StreamMark
from tests.unit.spark.conftest import rows


def sink(uri: str, query_id: str | None = None, mark: StreamMark | None = None) -> SourceWrite:
    """What a query makes anew for every batch."""
    made = RowWriter.of(uri, rows(0, 1).schema, WriteSettings())
    return SourceWrite(made, made.plan("append", "a DataFrame"), query_id, mark)


def written(write: SourceWrite, at: int) -> Sequence[Any]:
    """What the tasks of a batch return: ten rows."""
    return [write.rows.write(rows(at, at + 10)), None]


def batch(
    uri: str, number: int, stream: str | None = "s", query_id: str | None = None
) -> int | None:
    write = sink(uri, query_id)
    return write.commit_batch(written(write, 1000 + 10 * number), number, stream)


@pytest.mark.parametrize(
    ("mode", "name", "version"),
    [
        ("append", None, (2, 1)),
        ("append", "2.1", (2, 1)),
        ("append", "stable", (2, 2)),
        ("append", "0.3", (2, 0)),
        ("overwrite", None, (2, 1)),
        ("overwrite", "2.0", (2, 0)),
    ],
)
def test_rows_are_written_in_the_version_that_the_option_names(
    tmp_path: Path, mode: str, name: str | None, version: tuple[int, int]
) -> None:
    dataset = lance_nb.write_dataset(rows(0, 5), tmp_path / "t.lance", data_storage_version="2.1")
    options = SourceOptions.of({} if name is None else {"dataStorageVersion": name})
    settings = WriteSettings(mode, files=options.files)
    writer = RowWriter.of(dataset, rows(0, 1).schema, settings)
    plan = writer.plan(mode, "a DataFrame")
    written_dataset = plan.commit([writer.write(rows(5, 10))], Label())
    files = written_dataset.get_fragments()[-1].data_files()
    assert [file.file_version for file in files] == [version]
    written_dataset.validate()
    legacy = WriteSettings("append", files={"data_storage_version": "legacy"})
    with pytest.raises(InvalidInputError, match="cannot be added"):
        RowWriter.of(written_dataset, rows(0, 1).schema, legacy)


def test_a_batch_is_committed_once(dataset: LanceDataset, caplog: pytest.LogCaptureFixture) -> None:
    assert [batch(dataset.uri, number) for number in (0, 1, 1, 0, 2)] == [2, 3, None, None, 4]
    assert lance_nb.dataset(dataset.uri).count_rows() == 130
    assert [one.levelno for one in caplog.records] == [logging.WARNING] * 2
    assert "skipped batch 1 of stream s" in caplog.text
    newest = lance_nb.dataset(dataset.uri)
    assert newest.version_info(4).properties.items() >= {STREAM: "s", BATCH: "2"}.items()


def test_a_replay_after_a_cleanup_is_skipped(dataset: LanceDataset) -> None:
    batch(dataset.uri, 0)
    batch(dataset.uri, 1)
    other = lance_nb.dataset(dataset.uri)
    for at in range(5):
        other.delete(f"id = {at}")
    other.cleanup_old_versions(older_than=timedelta(0))
    assert len(other.versions()) == 1
    assert batch(dataset.uri, 1) is None
    assert lance_nb.dataset(dataset.uri).count_rows() == 115


def test_another_checkpoint_is_another_stream(dataset: LanceDataset) -> None:
    assert batch(dataset.uri, 0, "first", "q") == 2
    assert batch(dataset.uri, 0, "second", "q") == 3
    assert batch(dataset.uri, 0, "first", "q") is None
    newest = lance_nb.dataset(dataset.uri)
    assert newest.config() == {"lance_nb.stream.first": "0", "lance_nb.stream.second": "0"}
    assert newest.version_info(3).properties[QUERY] == "q"


def test_a_query_without_an_id_goes_by_its_name(dataset: LanceDataset) -> None:
    assert batch(dataset.uri, 0, None, "q") == 2
    assert batch(dataset.uri, 0, None, "q") is None
    with pytest.raises(InvalidInputError, match=r"option\('queryId', NAME\)"):
        batch(dataset.uri, 0, None)


def test_the_first_batch_makes_the_dataset(tmp_path: Path) -> None:
    uri = str(tmp_path / "new.lance")
    first, again = sink(uri), sink(uri)
    assert first.commit_batch(written(first, 0), 0, "s") == 1
    assert again.commit_batch(written(again, 0), 0, "s") is None
    empty = sink(uri)
    assert empty.commit_batch([None], 1, "s") == 2
    newest = lance_nb.dataset(uri)
    assert (newest.count_rows(), newest.config()) == (10, {"lance_nb.stream.s": "1"})


def test_a_batch_write_is_known_by_application_and_number(dataset: LanceDataset) -> None:
    def write(version: str) -> int | None:
        options = SourceOptions.of({"txnAppId": "nightly", "txnVersion": version})
        made = sink(dataset.uri, None, options.mark)
        return made.commit(written(made, 100))

    assert [write(number) for number in ("7", "7", "6", "8")] == [2, None, None, 3]
    assert lance_nb.dataset(dataset.uri).config() == {"lance_nb.stream.nightly": "8"}


@pytest.mark.parametrize(
    ("mark", "is_lost"), [("9", False), ("3", True), (None, True), ("x", True)]
)
def test_a_mark_rises_with_batches_and_is_lost_otherwise(
    dataset: LanceDataset, mark: str | None, is_lost: bool
) -> None:
    for number in (7, 8):
        batch(dataset.uri, number)
    assert lance_nb.verify(dataset.uri).ok
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(StreamMark, "last_in", lambda *_: None)
        config = {} if mark is None else {"lance_nb.stream.s": mark}
        patched.setattr(StreamMark, "set_in", lambda *_: config)
        batch(dataset.uri, 9)
    codes = [one.code for one in lance_nb.verify(dataset.uri).findings]
    assert codes == (["config-lost"] if is_lost else [])


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"txnAppId": "a"}, "set together"),
        ({"txnVersion": "1"}, "set together"),
        ({"txnAppId": "a", "txnVersion": "x"}, "txnVersion 'x' is not a number"),
        ({"txnAppId": "", "txnVersion": "1"}, "id of a stream"),
    ],
)
def test_half_a_transaction_id_is_refused(options: dict[str, str], problem: str) -> None:
    with pytest.raises(InvalidInputError, match=problem):
        _ = SourceOptions.of(options).mark
