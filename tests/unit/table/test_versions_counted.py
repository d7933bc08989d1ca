"""What is counted and told of whole versions: space, verification, coverage, differences."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from uuid import uuid4

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.table.cleanup_plan import Candidate
from lance_nb.table.diff.version_diff import Diff
from lance_nb.table.survey import MANIFEST, TEMPORARY_MANIFEST, StoredFile
from lance_nb.transactions.operations.create_index import CreateIndex
from tests.support.versions import index


@pytest.fixture
def dataset() -> lance_nb.LanceDataset:
    """Four rows in two fragments."""
    table = pa.table({"id": range(4), "v": [0.0, 1.0, 2.0, 3.0]})
    uri = f"memory://counted-{uuid4().hex}/d.lance"
    return lance_nb.write_dataset(table, uri, max_rows_per_file=2, enable_stable_row_ids=True)


def test_the_versions_of_dropped_branches_are_counted(dataset) -> None:
    dev = dataset.create_branch("dev", 1)
    dev.insert(dataset.to_table())
    dev.create_branch("deep").delete("id = 1")
    space = dataset.space()
    counted = {
        names: space.freed_if(drop_branches=names).num_versions
        for names in ((), ("deep",), ("deep", "dev"))
    }
    assert counted == {(): 0, ("deep",): 2, ("deep", "dev"): 4}


@pytest.mark.parametrize(
    ("kind", "version", "reason"),
    [
        (MANIFEST, 3, "version 3 is deleted"), ("data", 0, "the newest is 0"),
        ("data", 3, "the newest is 3"), (TEMPORARY_MANIFEST, None, "interrupted"),
        ("data", None, "no version refers to it"), (TEMPORARY_MANIFEST, 4, "the newest is 4"),
    ],
)  # fmt: skip
def test_a_file_that_goes_has_a_reason(kind: str, version: int | None, reason: str) -> None:
    file = StoredFile("data/a.lance", 7, datetime(2026, 6, 1, tzinfo=UTC), "", kind)
    assert reason in Candidate(file, False, version).reason


def test_old_files_are_verified_beyond_versions_without_any_of_their_own(dataset) -> None:
    lance_nb.write_dataset(dataset.to_table().slice(0, 3), dataset.uri, mode="overwrite")
    newest = lance_nb.dataset(dataset.uri)
    newest.update_config({"a": "1"})
    newest.update_config({"a": "2"})
    assert newest.verify().num_values == 2 * (4 + 3)


def test_damage_is_found_in_every_version_that_has_it(dataset) -> None:
    for _ in range(3):
        lance_nb.write_dataset(dataset.to_table(), dataset.uri, mode="overwrite")
    newest = lance_nb.dataset(dataset.uri)
    root = newest.opened[0].root
    numbers = (1, 3)
    files = [newest.checkout_version(one).get_fragments()[0].data_files()[0] for one in numbers]
    for file in files:
        whole = bytes(root.read(f"data/{file.path}"))
        root.write(f"data/{file.path}", whole[:40] + bytes(8) + whole[48:-4] + b"FAIL")
    found = {(one.version, one.path) for one in newest.verify().findings}
    assert {
        (number, f"data/{file.path}") for number, file in zip(numbers, files, strict=True)
    } <= found


def test_indices_come_stay_and_go(dataset) -> None:
    field = dataset.lance_schema.field("id").id()
    first, second = (index(name, field, covers=(0, 1)) for name in ("one", "two"))
    dataset._change(CreateIndex((first, second)))
    dataset.drop_index("two")
    less = replace(first, fragment_bitmap=index("one", covers=(1,)).fragment_bitmap)
    dataset._change(CreateIndex((less,), (first,)))

    def told(a: int, b: int) -> list[tuple]:
        names = ("change", "name", "fragments_before", "fragments_after")
        return [tuple(row[one] for one in names) for row in dataset.diff(a, b).indices.to_pylist()]

    assert told(1, 2) == [("added", "one", None, 2), ("added", "two", None, 2)]
    assert told(2, 3) == [("removed", "two", 2, None)]
    assert told(3, 2) == [("added", "two", None, 2)]
    assert told(3, 4) == [("changed", "one", 2, 1)]
    assert told(2, 2) == []


def test_no_column_of_the_coverage_is_ever_null(dataset) -> None:
    assert [one.name for one in dataset.index_coverage().schema if one.nullable] == []


def test_what_a_diff_has_computed_is_no_part_of_it(dataset) -> None:
    dataset.delete("id = 1")
    diff = dataset.diff(1, 2)
    same = Diff(diff.ends, diff.matched_by)
    assert diff.counts.rows_out == 1
    assert diff == same
    assert repr(diff) == repr(same)


def test_a_feed_has_the_types_of_the_newest_version(dataset) -> None:
    dataset.update({"v": "v + 0.5"}, where="id = 1")
    dataset.alter_columns({"path": "v", "data_type": pa.float32()})
    dataset.update({"v": "v + 1"}, where="id = 2")
    feed = dataset.changes(1).read_all()
    assert feed.schema.field("v").type == pa.float32()
    rows = zip(feed["_commit_version"].to_pylist(), feed["v"].to_pylist(), strict=True)
    assert list(rows) == [(2, 1.0), (2, 1.5), (4, 2.0), (4, 3.0)]


def test_values_of_a_feed_that_the_newest_type_cannot_hold_are_null(dataset) -> None:
    dataset.add_columns({"n": "id + 5000000000"})
    first = dataset.version
    dataset.update({"n": "id"}, where="true")
    dataset.alter_columns({"path": "n", "data_type": pa.int32()})
    feed = dataset.changes(first).read_all()
    assert feed.schema.field("n").type == pa.int32()
    assert feed["n"].to_pylist() == [None] * 4 + [0, 1, 2, 3]
