"""LanceFileReader on files that pylance wrote, next to pylance's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import ColumnNotFoundError, InvalidInputError, LanceError
from tests.support.datasets import everything_table
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop

ROWS = 3000


@pytest.fixture(params=["2.0", "2.1", "2.2"])
def readers(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Any, Any]:
    """Write one file and open it with both."""
    require_pylance()
    from lance.file import LanceFileReader, LanceFileWriter

    table = everything_table(ROWS)
    if request.param == "2.0":  # no maps and no null structs before 2.1
        keep = [f.name for f in table.schema if not pa.types.is_nested(f.type)]
        table = table.select(keep)
    path = tmp_path / "one file.lance"
    with LanceFileWriter(str(path), table.schema, version=request.param) as writer:
        for batch in table.to_batches(max_chunksize=700):
            writer.write_batch(batch)
    return lance_nb.LanceFileReader(path), LanceFileReader(str(path))


def test_all_rows_and_their_schema_are_equal(readers: tuple[Any, Any]) -> None:
    ours, theirs = readers

    assert ours.num_rows() == theirs.num_rows() == ROWS
    assert ours.metadata().schema.equals(theirs.metadata().schema, check_metadata=True)
    assert ours.read_all().to_table().equals(theirs.read_all().to_table())


@pytest.mark.parametrize(("start", "count"), [(0, 0), (0, 1), (699, 3), (1234, 1000), (2999, 1)])
def test_ranges_are_equal(readers: tuple[Any, Any], start: int, count: int) -> None:
    ours, theirs = readers

    got = ours.read_range(start, count).to_table()

    if count:  # pylance refuses an empty range
        assert got.equals(theirs.read_range(start, count).to_table())
    assert got.num_rows == count


def test_taken_rows_are_equal(readers: tuple[Any, Any]) -> None:
    ours, theirs = readers
    indices = [0, 5, 699, 700, 701, 2998, 2999]

    assert ours.take_rows(indices).to_table().equals(theirs.take_rows(indices).to_table())
    assert ours.take_rows([7, 3]).to_table().num_rows == 2


def test_metadata_and_statistics_agree(readers: tuple[Any, Any]) -> None:
    ours, theirs = readers[0].metadata(), readers[1].metadata()

    assert ours.num_rows == theirs.num_rows
    assert len(ours.columns) == len(theirs.columns)
    for mine, other in zip(ours.columns, theirs.columns, strict=True):
        pages = [[(b.position, b.size) for b in page.buffers] for page in mine.pages]
        assert pages == [[(b.position, b.size) for b in page.buffers] for page in other.pages]
    assert [(c.num_pages, c.size_bytes) for c in readers[0].file_statistics().columns] == [
        (c.num_pages, c.size_bytes) for c in readers[1].file_statistics().columns
    ]
    assert readers[0].read_global_buffer(0) == readers[1].read_global_buffer(0)


def test_columns_are_chosen_by_name(readers: tuple[Any, Any]) -> None:
    name = readers[0].metadata().schema.names[1]
    path = readers[0]._reader.path

    chosen = lance_nb.LanceFileReader(path, columns=[name]).read_all().to_table()

    assert chosen.equals(readers[1].read_all().to_table().select([name]))
    with pytest.raises(ColumnNotFoundError):
        lance_nb.LanceFileReader(path, columns=["nope"])


def test_what_is_not_in_the_file_is_refused(readers: tuple[Any, Any]) -> None:
    ours, _ = readers

    for start, count in ((0, ROWS + 1), (-1, 1), (ROWS, 1)):
        with pytest.raises(InvalidInputError):
            ours.read_range(start, count)
    with pytest.raises(InvalidInputError):
        ours.take_rows([ROWS])
    with pytest.raises(InvalidInputError):
        ours.read_global_buffer(1)


def test_a_missing_or_foreign_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.lance").write_text("not a data file at all, but long enough to have a tail")

    for path in ("missing.lance", "text.lance", ""):
        with pytest.raises((LanceError, FileNotFoundError)):
            lance_nb.LanceFileReader(tmp_path / path)
