from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import InvalidInputError, LanceError
from tests.golden.copies import expected
from tests.golden.opening import WatchedStore, open_over


def test_describing_a_scan_reads_nothing(stores):
    store = WatchedStore(stores["history"])
    dataset = open_over(store, 9)
    store.forget()
    scanner = dataset.scanner(["id", "point.x"], limit=5, with_row_id=True)
    assert scanner.projected_schema.names == ["id", "point.x", "_rowid"]
    assert not store.reads


def test_a_scanner_may_be_read_more_than_once(at):
    scanner = at(9).scanner(["id"], limit=50, offset=9)
    whole = expected("history", 9).select(["id"]).slice(9, 50)
    assert scanner.to_table().equals(whole)
    assert pa.Table.from_batches(scanner.to_batches()).equals(whole)
    assert scanner.to_reader().read_all().equals(whole)
    assert pa.table(scanner).equals(whole)


def test_the_reader_has_the_projected_schema_even_without_rows(at):
    reader = at(9).scanner(["id"], limit=0).to_reader()
    assert reader.schema.names == ["id"]
    assert reader.read_all().num_rows == 0


def test_batches_have_the_size_asked_for(at):
    sizes = [batch.num_rows for batch in at(2).scanner(["id"], batch_size=16).to_batches()]
    assert sizes == [16, 16, 8, 16, 14]
    with pytest.raises(InvalidInputError):
        list(at(2).scanner(["id"], batch_size=0).to_batches())


def test_batches_are_read_as_they_are_asked_for(stores):
    store = WatchedStore(stores["history"])
    batches = open_over(store, 2).scanner(["id"], batch_size=10).to_batches()
    store.forget()
    next(batches)
    assert len([path for path in store.reads if path.startswith("data/")]) == 1


def test_an_unknown_argument_is_refused(at):
    with pytest.raises((InvalidInputError, TypeError)):
        at(2).scanner(nonsense=1)


def test_a_scan_without_columns_counts_rows(at):
    table = at(9).to_table([])
    assert (table.num_rows, table.num_columns) == (107, 0)
    assert sum(batch.num_rows for batch in at(9).to_batches([])) == 107


@pytest.mark.parametrize("read", [
    lambda ds: ds.to_table(filter="nope > 1"), lambda ds: ds.to_batches(filter="nope > 1"),
    lambda ds: ds.head(1, filter="nope > 1"), lambda ds: ds.insert(pa.table({"nope": [1]})),
    lambda ds: ds.get_fragments()[0].to_table(filter="nope > 1"),
    lambda ds: ds.get_fragments()[0].to_batches(filter="nope > 1"),
    lambda ds: ds.get_fragments()[0].head(1, filter="nope > 1"),
    lambda ds: lance_nb.LanceFragment.create(ds.uri, pa.table({"a": []}), mode="nope"),
], ids=["to_table", "to_batches", "head", "insert", "fragment to_table", "fragment to_batches",
        "fragment head", "fragment create"])  # fmt: skip
def test_an_error_is_shown_without_the_arguments_that_are_passed_on(
    tmp_path: Path, read: Any
) -> None:
    """Notebooks show a call of each frame whole, however many lines its arguments take."""
    ds = lance_nb.write_dataset(pa.table({"a": [1]}), tmp_path / "d")
    with pytest.raises(LanceError) as caught:
        read(ds)
    lengths = {}
    for frame in caught.traceback:
        code = frame.frame.code.raw
        if "lance_nb/dataset" not in str(frame.path):
            continue
        positions = list(code.co_positions())[frame._rawentry.tb_lasti // 2]
        lengths[code.co_qualname] = positions[1] - positions[0] + 1
    assert lengths
    assert max(lengths.values()) < 10, lengths
