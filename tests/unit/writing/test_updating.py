from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_nb
from lance_nb.errors import (
    ColumnNotFoundError,
    InvalidInputError,
    NotSupportedError,
    PredicateError,
)
from lance_nb.storage.local import LocalStore
from lance_nb.table import filtered_scan
from lance_nb.writing import updating


def test_rows_that_pass_get_new_values(make):
    made = make()
    done = made.update({"name": "'big'", "id": "id + 100"}, where="id >= 8")
    assert done == {"num_rows_updated": 2}
    assert made.version == 2
    found = made.to_table().to_pydict()
    assert found["id"] == [0, 1, 2, 3, 4, 5, 6, 7, 108, 109]
    assert found["name"][-2:] == ["big", "big"]


def test_every_row_changes_without_a_filter(make):
    made = make()
    assert made.update({"id": "id * 2"}) == {"num_rows_updated": 10}
    assert made.to_table()["id"].to_pylist() == list(range(0, 20, 2))
    assert [one.fragment_id for one in made.get_fragments()] == [1]


def test_values_see_the_row_as_it_was(make):
    made = make()
    made.update({"id": "id + 1", "name": "cast(id as string)"}, where=pc.field("id") == 4)
    row = made.to_table(filter="id = 5 AND name = '4'")
    assert row.num_rows == 1


def test_no_row_to_change_makes_a_version_all_the_same(make, rows):
    made = make()
    assert made.update({"id": "0"}, where="id = 99") == {"num_rows_updated": 0}
    assert made.version == 2
    assert made.to_table().equals(rows)


def test_deleted_rows_stay_deleted(make):
    made = make()
    made.delete("id < 3")
    assert made.update({"name": "'x'"}, where="id < 5") == {"num_rows_updated": 2}
    assert sorted(made.to_table()["id"].to_pylist()) == [3, 4, 5, 6, 7, 8, 9]


def test_stable_row_ids_stay_with_their_rows(make):
    made = make(enable_stable_row_ids=True, max_rows_per_file=4)
    before = made.to_table(with_row_id=True)
    made.update({"name": "'x'"}, where="id % 3 = 0")
    after = made.to_table(with_row_id=True).sort_by("id")
    assert after["_rowid"].to_pylist() == before["_rowid"].to_pylist()


@pytest.mark.parametrize(
    ("updates", "where", "error"),
    [
        ({}, None, InvalidInputError),
        ({"nope": "1"}, None, ColumnNotFoundError),
        ({"id": 7}, None, InvalidInputError),
        ({"id": "name"}, "name is not null", PredicateError),
        ({"id": "nope + 1"}, None, PredicateError),
        ({"id": "1"}, "nope = 1", PredicateError),
    ],
)
def test_a_bad_update_changes_nothing(make, files, updates, where, error):
    made = make()
    before = files()
    with pytest.raises(error):
        made.update(updates, where=where)
    assert files() == before
    assert made.version == 1


def test_a_null_where_none_may_be_is_refused(uri, files):
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    made = lance_nb.write_dataset(pa.table({"id": [1, 2]}, schema=schema), uri)
    before = files()
    with pytest.raises(InvalidInputError, match="'id'"):
        made.update({"id": "null"}, where="id = 2")
    assert files() == before


def test_nested_columns_keep_their_values(uri):
    kinds = pa.schema(
        [
            ("n", pa.int64()),
            ("s", pa.struct([("x", pa.list_(pa.int64()))])),
            ("m", pa.map_(pa.string(), pa.int64())),
        ]
    )
    rows = [{"n": 1, "s": {"x": [1, None]}, "m": [("k", 1)]}, {"n": 2, "s": None, "m": []}]
    table = pa.Table.from_pylist(rows, kinds)
    made = lance_nb.write_dataset(table, uri)
    made.update({"n": "n + 1"})
    assert made.to_table().to_pylist() == [
        {"n": 2, "s": {"x": [1, None]}, "m": [("k", 1)]},
        {"n": 3, "s": None, "m": []},
    ]


def with_blobs(uri):
    field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    table = pa.table({"id": [1, 2], "b": pa.array([b"x", b"y"], pa.large_binary())})
    table = table.cast(pa.schema([pa.field("id", pa.int64()), field]))
    return lance_nb.write_dataset(table, uri, data_storage_version="2.1")


@pytest.mark.parametrize("mode", ["rows", "columns"])
def test_rows_take_their_blobs_along(uri, mode):
    made = with_blobs(uri)
    made.update({"id": "7"}, "id = 1", mode=mode)
    made.update({"b": "X'6e6577'"}, "id = 2", mode=mode)
    ids = made.to_table(["id"])["id"].to_pylist()
    found = [one.read() for one in made.take_blobs("b", indices=[0, 1])]
    assert dict(zip(ids, found, strict=True)) == {7: b"x", 2: b"new"}


def test_whole_columns_spare_blobs_from_being_copied(uri):
    """The payloads are weighed: rows that hold them are dearer than a column of numbers."""
    field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    schema = pa.schema([pa.field("id", pa.int64()), field])
    blobs = pa.array([bytes(200_000)] * 30, pa.large_binary())
    for version in ("2.1", "2.2"):
        table = pa.table([range(30), blobs], schema=schema)
        made = lance_nb.write_dataset(table, f"{uri}{version}", data_storage_version=version)
        made.update({"id": "id + 1"})
        assert len(made.get_fragments()) == 1
        assert sum(len(one.metadata.files) for one in made.get_fragments()) == 2
        made.update({"id": "id + 1"}, "id = 5")
        assert made.count_rows() == 30


def test_other_columns_are_updated_beside_blobs(uri):
    made = with_blobs(uri)
    assert made.update({"id": "id + 5"}, "id = 2") == {"num_rows_updated": 1}
    assert made.to_table(["id"]).to_pydict() == {"id": [1, 7]}
    assert [one.read() for one in made.take_blobs("b", indices=[0, 1])] == [b"x", b"y"]


def test_handles_that_change_different_rows_both_succeed(make, uri):
    one = make()
    other = lance_nb.dataset(uri)
    one.update({"name": "'one'"}, where="id = 1")
    other.update({"name": "'other'"}, where="id = 2")
    names = dict(zip(*other.to_table().to_pydict().values(), strict=True))
    assert (names[1], names[2]) == ("one", "other")
    assert other.count_rows() == 10


def test_counters_lose_no_step(make, uri):
    make()
    handles = [lance_nb.dataset(uri) for _ in range(4)]
    for handle in handles:
        handle.update({"id": "id + 1"}, where="name = 'n5'")
    assert lance_nb.dataset(uri).to_table(filter="name = 'n5'")["id"].to_pylist() == [9]


def test_updates_are_staged_with_other_edits(make, rows, uri):
    stage = make().stage().update({"name": "'x'"}, where="id = 3").delete("id = 4")
    seen = stage.append(rows.slice(0, 1)).preview()
    assert (seen.operation, seen.num_rows_before, seen.num_rows_after) == ("Update", 10, 10)
    stage.commit()
    found = lance_nb.dataset(uri).to_table()
    assert found.num_rows == 10
    assert 4 not in found["id"].to_pylist()


def test_edits_of_the_same_rows_are_not_staged_together(make):
    stage = make().stage().update({"name": "'x'"}, where="id < 5").delete("id = 4")
    with pytest.raises(InvalidInputError, match="same rows"):
        stage.commit()


def wide(uri, **options):
    columns = {
        "id": range(20),
        "x": [n * 1.5 for n in range(20)],
        "s": [f"s{n}" for n in range(20)],
    }
    return lance_nb.write_dataset(pa.table(columns), uri, max_rows_per_file=8, **options)


def test_columns_are_written_anew_and_rows_stay(uri):
    made = wide(uri, enable_stable_row_ids=True)
    made.delete("id = 3")
    before = made.to_table([], with_row_id=True, with_row_address=True)
    assert made.update({"x": "x + id"}, "id < 6", mode="columns") == {"num_rows_updated": 5}
    assert made.to_table([], with_row_id=True, with_row_address=True).equals(before)
    found = made.to_table(["id", "x", "s", "_row_last_updated_at_version"]).to_pydict()
    assert found["x"] == [n * 2.5 if n < 6 else n * 1.5 for n in range(20) if n != 3]
    assert found["s"] == [f"s{n}" for n in range(20) if n != 3]
    assert found["_row_last_updated_at_version"] == [3] * 5 + [1] * 14
    operation = made.read_transaction(3).operation
    assert (operation.fields_modified, len(operation.updated_fragments)) == ((1,), 1)
    assert [one.fields for one in operation.updated_fragments[0].files] == [(0, -2, 2), (1,)]


def test_columns_can_be_written_anew_twice(uri):
    made = wide(uri)
    made.update({"s": "upper(s)", "x": "0"}, mode="columns")
    made.update({"s": "NULL"}, "id = 19", mode="columns")
    assert made.to_table(["s"]).to_pydict()["s"] == [f"S{n}" for n in range(19)] + [None]
    assert made.update({"x": "1"}, "id > 99", mode="columns") == {"num_rows_updated": 0}
    assert made.version == 4


def test_small_datasets_move_rows_unless_asked_otherwise(uri):
    made = wide(uri)
    made.update({"x": "0"})
    assert made.read_transaction(2).operation.fields_modified == ()
    with pytest.raises(InvalidInputError, match="'auto', 'rows', 'columns'"):
        made.update({"x": "0"}, mode="cells")
    with pytest.raises(NotSupportedError, match=r"version 2\.3"):
        made.update({"x": "0"}, data_storage_version="2.3")


@pytest.mark.parametrize(("where", "by_columns"), [("id % 2 = 0", True), ("id = 1", False)])
def test_the_cheaper_way_is_taken(uri, monkeypatch, where, by_columns):
    monkeypatch.setattr("lance_nb.writing.rewriting.SAVED_BYTES_MIN", 0)
    monkeypatch.setattr(updating, "SAVED_BYTES_MIN", 0)
    made = wide(uri)
    expected = made.to_table(["x"], filter=f"NOT ({where})").num_rows
    made.update({"x": "-1"}, where)
    assert made.count_rows("x >= 0") == expected
    assert bool(made.read_transaction(2).operation.fields_modified) is by_columns


def test_columns_give_way_to_a_concurrent_change_of_the_fragment(uri):
    one = wide(uri)
    other = lance_nb.dataset(uri)
    other.delete("id = 1")
    one.update({"x": "-1"}, "id < 3", mode="columns")  # planned again on the newest version
    assert one.version == 3
    assert one.to_table(["id"], filter="x = -1").to_pydict() == {"id": [0, 2]}


def test_a_failing_update_of_columns_leaves_no_file(uri, files):
    made = wide(uri)
    before = files()
    with pytest.raises(PredicateError):
        made.update({"id": "CAST(s AS BIGINT)"}, mode="columns")
    assert files() == before


def test_each_fragment_is_read_once_and_no_deletion_file_that_was_just_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    data = pa.table({"id": range(40), "name": [str(number) for number in range(40)]})
    dataset = lance_nb.write_dataset(data, tmp_path / "t.lance", max_rows_per_file=10)
    dataset.update({"name": "name || '!'"}, where="id % 10 = 3")
    reads: list[str] = []
    read, read_rows = LocalStore.read, filtered_scan.read_rows
    monkeypatch.setattr(
        LocalStore, "read", lambda store, path: (reads.append(path), read(store, path))[1]
    )
    monkeypatch.setattr(
        filtered_scan, "read_rows", lambda *args: (reads.append("rows"), read_rows(*args))[1]
    )
    dataset.update({"name": "name || '?'"}, where="id % 10 = 4")
    assert reads.count("rows") == 4
    assert not [path for path in reads if path.startswith("_deletions/")]
    names = lance_nb.dataset(dataset.uri).to_table().sort_by("id")["name"].to_pylist()
    assert names[33:35] == ["33!", "34?"]
