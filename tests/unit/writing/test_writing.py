from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb import DatasetBasePath
from lance_nb.errors import (
    BasePathError,
    CommitConflictError,
    DatasetAlreadyExistsError,
    InvalidInputError,
    NotSupportedError,
    SchemaMismatchError,
)


def test_created_dataset_returns_what_was_written(make, rows, uri):
    made = make()
    assert (made.version, made.count_rows()) == (1, 10)
    assert made.to_table().equals(rows)
    assert lance_nb.dataset(uri).to_table().equals(rows)


def test_append_adds_rows_as_a_new_version(make, rows, uri):
    make()
    made = lance_nb.write_dataset(rows.slice(0, 3), uri, mode="append")
    assert (made.version, made.count_rows()) == (2, 13)
    assert made.to_table().slice(10).equals(rows.slice(0, 3))
    assert made.checkout_version(1).count_rows() == 10


def test_append_and_overwrite_create_what_is_not_there(rows, uri):
    assert lance_nb.write_dataset(rows, uri, mode="append").version == 1
    other = uri.replace(".lance", "-b.lance")
    assert lance_nb.write_dataset(rows, other, mode="overwrite").version == 1


def test_overwrite_brings_its_own_schema_and_keeps_the_old_versions(make, rows, uri):
    make()
    made = lance_nb.write_dataset(pa.table({"z": [1.5]}), uri, mode="overwrite")
    assert made.version == 2
    assert made.to_table().to_pydict() == {"z": [1.5]}
    assert made.checkout_version(1).to_table().equals(rows)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
def test_overwrite_keeps_the_file_version_unless_it_asks_for_another(make, rows, uri, version):
    make(data_storage_version=version)
    made = lance_nb.write_dataset(rows, uri, mode="overwrite")
    assert made.data_storage_version == version
    made.insert(rows.slice(0, 0), mode="overwrite")
    assert made.data_storage_version == version
    made.insert(rows, mode="overwrite", data_storage_version="2.1")
    assert made.data_storage_version == "2.1"


def test_creating_what_exists_is_refused_before_anything_is_written(make, rows, uri, files):
    make()
    before = files()
    with pytest.raises(DatasetAlreadyExistsError, match="mode='append'"):
        lance_nb.write_dataset(rows, uri)
    assert files() == before


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda t: t.append_column("c", pa.array(range(10))), "'c' is not in the dataset"),
        (lambda t: t.set_column(0, "id", t["id"].cast(pa.int32())), "'id' must have type int64"),
        (lambda t: t.rename_columns(["ID", "name"]), "'ID'"),
    ],
)
def test_rows_of_another_schema_are_refused_and_nothing_remains(make, rows, files, change, reason):
    made = make()
    before = files()
    with pytest.raises(SchemaMismatchError, match=reason):
        made.insert(change(rows))
    assert files() == before


def test_columns_may_come_in_another_order_and_nullable_ones_may_be_missing(make, rows, uri):
    make()
    made = lance_nb.write_dataset(rows.select(["name", "id"]), uri, mode="append")
    assert made.to_table().slice(10).equals(rows)
    made = lance_nb.write_dataset(rows.select(["id"]), uri, mode="append")
    assert made.to_table()["name"].slice(20).null_count == 10


def test_null_in_a_column_without_nulls_is_refused_and_nothing_remains(uri, files):
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False)])
    lance_nb.write_dataset(pa.table({"id": [1]}, schema=schema), uri)
    before = files()
    with pytest.raises(SchemaMismatchError, match="'id'"):
        lance_nb.write_dataset(pa.table({"id": pa.array([1, None])}), uri, mode="append")
    assert files() == before


def test_a_source_that_fails_half_way_leaves_nothing_behind(make, rows, uri, files):
    make()
    before = files()

    def flow():
        yield rows.to_batches()[0]
        raise RuntimeError("the source is gone")

    reader = pa.RecordBatchReader.from_batches(rows.schema, flow())
    with pytest.raises(RuntimeError, match="the source is gone"):
        lance_nb.write_dataset(reader, uri, mode="append", max_rows_per_file=4)
    assert files() == before


def test_files_end_where_they_are_reported_to(make, rows):
    made = make(max_rows_per_file=4)
    assert [one.physical_rows for one in made.get_fragments()] == [4, 4, 2]
    assert made.to_table().equals(rows)


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2", "stable"])
def test_file_version_is_the_one_asked_for_and_kept_by_appends(make, rows, uri, version):
    made = make(data_storage_version=version)
    assert made.data_storage_version == {"stable": "2.2"}.get(version, version)
    made = lance_nb.write_dataset(rows, uri, mode="append")
    versions = {file.file_version for one in made.get_fragments() for file in one.data_files()}
    assert len(versions) == 1
    assert made.count_rows() == 20


@pytest.mark.parametrize("version", ["0.1", "legacy", "2.3", "next"])
def test_file_versions_that_cannot_be_written_are_refused(rows, uri, version):
    with pytest.raises(NotSupportedError, match="cannot be written"):
        lance_nb.write_dataset(rows, uri, data_storage_version=version)


def test_rows_of_another_file_version_stand_beside_the_others(make, rows, uri):
    make(data_storage_version="2.1")
    made = lance_nb.write_dataset(rows, uri, mode="append", data_storage_version="stable")
    assert made.data_storage_version == "2.1"
    assert [one.metadata.files[0].file_version for one in made.get_fragments()[-1:]] == [(2, 2)]
    assert made.count_rows() == 20
    with pytest.raises(InvalidInputError, match=r"files of version 2\.1"):
        lance_nb.write_dataset(rows, uri, mode="append", data_storage_version="legacy")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"mode": "upsert"}, InvalidInputError),
        ({"nonsense": 1}, TypeError),
        ({"data_storage_version": "9.9"}, InvalidInputError),
        ({"max_rows_per_file": 0}, InvalidInputError),
        ({"target_bases": ["x"]}, BasePathError),
        ({"external_blob_mode": "copy"}, InvalidInputError),
        ({"blob_pack_file_size_threshold": 0}, InvalidInputError),
        ({"base_store_params": {"s3://x": {"key": "k"}}}, NotSupportedError),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_written(rows, uri, files, options, error):
    with pytest.raises(error):
        lance_nb.write_dataset(rows, uri, **options)
    assert files() == {}


def test_arguments_that_change_nothing_are_accepted(make):
    assert make(max_rows_per_group=7, data_cache_bytes=1 << 20, session=None).version == 1


def test_message_and_properties_are_kept_with_the_version(make):
    made = make(commit_message="first rows", transaction_properties={"author": "ada"})
    info = made.version_info(1)
    assert info.message == "first rows"
    assert info.properties["author"] == "ada"


def test_stable_row_ids_outlive_a_deletion(make, rows, uri):
    made = make(enable_stable_row_ids=True)
    made.delete("id < 5")
    made.insert(rows.slice(0, 2))
    ids = made.to_table(with_row_id=True)["_rowid"].to_pylist()
    assert ids == [5, 6, 7, 8, 9, 10, 11]


def test_insert_moves_the_handle_to_its_version(make, rows):
    made = make()
    made.insert(rows)
    assert (made.version, made.count_rows()) == (2, 20)
    made.insert(rows.slice(0, 1), mode="overwrite")
    assert (made.version, made.count_rows()) == (3, 1)


def test_insert_from_an_old_handle_is_added_to_the_newest_version(make, rows, uri):
    old = make()
    lance_nb.dataset(uri).insert(rows)
    old.insert(rows.slice(0, 1))
    assert (old.version, old.count_rows()) == (3, 21)


def test_insert_from_before_an_overwrite_is_a_conflict_that_says_so(make, rows, uri):
    old = make()
    lance_nb.write_dataset(pa.table({"z": [1]}), uri, mode="overwrite")
    with pytest.raises(CommitConflictError, match=r"(?s)Append.*Overwrite.*version 2"):
        old.insert(rows)
    assert lance_nb.dataset(uri).version == 2


def test_rows_without_any_make_a_version_without_fragments(make, rows, uri):
    made = make(rows.slice(0, 0))
    assert (made.version, made.count_rows(), made.get_fragments()) == (1, 0, [])
    assert made.schema == rows.schema
    made.insert(rows)
    assert made.to_table().equals(rows)


def test_progress_is_reported_while_rows_are_written(make, rows):
    seen = []
    make(rows.to_reader(max_chunksize=2), progress=seen.append)
    assert seen[-1].num_rows == 10
    assert seen[-1].num_files == 1
    assert [one.num_rows for one in seen] == sorted(one.num_rows for one in seen)


def test_many_rows_come_back_the_same(make):
    chance = np.random.default_rng(7)
    table = pa.table(
        {
            "i": chance.integers(0, 1000, 50_000),
            "f": chance.random(50_000),
            "s": pa.array([f"value {n % 977}" for n in range(50_000)]),
            "v": pa.FixedSizeListArray.from_arrays(
                pa.array(chance.random(50_000 * 8, np.float32)), 8
            ),
        }
    )
    made = make(table, max_rows_per_file=17_000)
    assert made.to_table().equals(table)
    assert made.take([49_999, 3]).equals(table.take([49_999, 3]))


_NUMBERS = count()


def bases_of(dataset: lance_nb.LanceDataset) -> list[int | None]:
    return [file.base_id for one in dataset.get_fragments() for file in one.data_files()]


@pytest.fixture
def places() -> list[DatasetBasePath]:
    number = next(_NUMBERS)
    paths = [f"memory://bases/{number}/{name}" for name in ("hot", "cold")]
    return [DatasetBasePath(paths[0], "hot"), DatasetBasePath(paths[1], "cold", True)]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [None, None, None]),
        ({"target_bases": ["hot"]}, [1, 1, 1]),
        ({"target_bases": ["cold", "hot"]}, [2, 1, 2]),
        ({"target_bases": []}, [None, None, None]),
        ({"target_all_bases": True}, [None, 1, 2]),
        ({"target_all_bases": False}, [1, 2, 1]),
    ],
)
def test_files_go_to_the_bases_in_turn(make, rows, places, options: Any, expected: Any) -> None:
    made = make(initial_bases=places, max_rows_per_file=4, **options)
    assert bases_of(made) == expected
    assert made.to_table() == rows


def test_a_place_is_trusted_by_its_path_or_when_it_is_allowed(
    make, rows, places, uri, as_another_process
) -> None:
    make(initial_bases=places)
    as_another_process()
    with pytest.raises(InvalidInputError, match="allow_bases"):
        lance_nb.write_dataset(rows, uri, mode="append", target_bases=["hot"])
    by_path = lance_nb.write_dataset(rows, uri, mode="append", target_bases=[places[0].path])
    allowed = lance_nb.write_dataset(
        rows, uri, mode="overwrite", target_bases=["cold"], allow_bases=["memory://bases"]
    )
    assert (bases_of(by_path), bases_of(allowed)) == ([None, 1], [2])
    assert by_path.count_rows("id >= 0") == 20


@pytest.mark.parametrize(
    "options",
    [
        {"target_bases": ["nope"]},
        {"target_bases": ["hot"], "target_all_bases": True},
        {"initial_bases": [DatasetBasePath("memory://bases/more", "more")]},
    ],
)
def test_what_fits_no_base_is_refused_and_changes_nothing(
    make, rows, places, files, options: Any
) -> None:
    made = make(initial_bases=places)
    before = files()
    with pytest.raises(BasePathError):
        lance_nb.write_dataset(rows, made, mode="append", **options)
    assert files() == before


def test_all_bases_but_the_own_folder_need_one(make) -> None:
    with pytest.raises(BasePathError, match="add_bases"):
        make(target_all_bases=False)


def test_bases_are_added_later(make, rows, places) -> None:
    made = make()
    assert made.add_bases(places, {"why": "room"}) is made
    made.insert(rows, target_bases=["hot"])
    assert bases_of(made) == [None, 1]
    assert made.read_transaction(2).properties["why"] == "room"
    with pytest.raises(BasePathError, match="there already"):
        made.add_bases(places[:1])
    assert made.version == 3


def test_upserts_put_new_rows_where_they_are_reported_to(make, rows, places) -> None:
    made = make(initial_bases=places)
    merge = made.merge_insert("id").when_not_matched_insert_all()
    merge.target_bases(["cold"]).execute(rows.set_column(0, "id", [range(100, 110)]))
    assert bases_of(made) == [None, 2]
    assert made.count_rows() == 20


def test_fragments_for_a_later_commit_lie_there_too(make, rows, places, uri) -> None:
    made = make(initial_bases=places)
    (fragment,) = lance_nb.write_fragments(rows, made, target_bases=["hot"])
    operation = lance_nb.LanceOperation.Append((fragment,))
    after = lance_nb.LanceDataset.commit(made, operation, read_version=1)
    assert bases_of(after) == [None, 1]
    assert after.to_table().num_rows == 20
