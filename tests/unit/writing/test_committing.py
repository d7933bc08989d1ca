"""

What every verb shares: how it commits, and what it starts from.
"""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pytest

import lance_nb
from lance_nb import LanceDataset, LanceOperation
from lance_nb.errors import (
    ColumnNotFoundError,
    DatasetNotFoundError,
    InvalidInputError,
    NotSupportedError,
)
from lance_nb.writing.committing import options_by_hand


def test_config_is_set_removed_and_replaced(make, uri):
    made = make()
    assert made.update_config({"a": "1", "b": "2"}) == {"a": "1", "b": "2"}
    assert made.update_config({"b": None, "c": "3"}) == {"a": "1", "c": "3"}
    made.delete_config_keys(["a", "never-set"])
    assert made.config() == {"c": "3"}
    assert made.update_config({"z": "9"}, replace=True) == {"z": "9"}
    assert lance_nb.dataset(uri).config() == {"z": "9"}
    assert made.version == 5


def test_table_metadata_is_its_own_map(make, uri):
    made = make()
    assert made.update_metadata({"owner": "ada"}) == {"owner": "ada"}
    assert lance_nb.dataset(uri).metadata == {"owner": "ada"}
    assert made.config() == {}


def test_schema_metadata_is_seen_in_the_schema(make):
    made = make()
    assert made.update_schema_metadata({"k": "v"}) == {"k": "v"}
    assert made.schema.metadata == {b"k": b"v"}
    made.replace_schema_metadata({"other": "w"})
    assert made.schema.metadata == {b"other": b"w"}


def test_field_metadata_goes_to_the_field_that_is_named(make):
    made = make()
    made.update_field_metadata({"id": {"unit": "none"}, "name": {"lang": "en"}})
    assert made.schema.field("id").metadata == {b"unit": b"none"}
    made.replace_field_metadata("id", {"x": "y"})
    assert made.schema.field("id").metadata == {b"x": b"y"}
    assert made.schema.field("name").metadata == {b"lang": b"en"}


def test_an_unknown_field_changes_nothing(make, files):
    made = make()
    before = files()
    with pytest.raises(ColumnNotFoundError, match="'nope'"):
        made.update_field_metadata({"nope": {"a": "b"}})
    assert files() == before


@pytest.mark.parametrize("values", [{"a": 1}, {1: "a"}, {"a": b"x"}])
def test_settings_are_text(make, values):
    with pytest.raises(InvalidInputError, match="text"):
        make().update_config(values)


def test_different_keys_of_two_handles_both_stay(make, uri):
    one = make()
    other = lance_nb.dataset(uri)
    one.update_config({"a": "1"})
    assert other.update_config({"b": "2"}) == {"a": "1", "b": "2"}


def test_a_restore_takes_the_place_of_the_newest_version(make, rows, uri):
    made = make()
    for number in range(3):
        made.insert(rows.slice(number, 1))
    lance_nb.dataset(uri, version=2).restore()
    assert lance_nb.dataset(uri).read_transaction(5).read_version == 4
    assert lance_nb.dataset(uri).count_rows() == 11


def test_a_restore_needs_no_version_that_a_clean_up_took(make, rows, uri):
    made = make()
    made.tags.create("first", 1)
    for number in range(3):
        made.insert(rows.slice(number, 1))
    made.cleanup_old_versions(retain_versions=1, error_if_tagged_old_versions=False)
    assert made.version_numbers() == [1, 4]
    lance_nb.dataset(uri, version="first").restore()
    assert lance_nb.dataset(uri).to_table().equals(rows)


def test_fragments_are_committed_by_an_operation(make, rows, uri):
    made = make()
    fragments = lance_nb.write_fragments(rows, uri)
    operation = LanceOperation.Append(tuple(fragments))
    done = LanceDataset.commit(uri, operation, read_version=made.version, commit_message="by hand")
    assert (done.version, done.count_rows()) == (2, 20)
    assert done.version_info(2).message == "by hand"


def test_a_dataset_is_created_by_an_overwrite(rows, uri):
    fragments = lance_nb.write_fragments(rows, uri)
    made = LanceDataset.commit(uri, LanceOperation.Overwrite(rows.schema, tuple(fragments)))
    assert made.to_table().equals(rows)


def test_blobs_become_what_their_files_hold(uri):
    field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    table = pa.table({"b": pa.array([b"x" * 10, None], pa.large_binary())})
    table = table.cast(pa.schema([field]))
    fragments = lance_nb.write_fragments(table, uri)
    made = LanceDataset.commit(uri, LanceOperation.Overwrite(table.schema, tuple(fragments)))
    assert made.take_blobs("b", indices=[0])[0].read() == b"x" * 10


def test_a_read_version_is_asked_for_where_it_matters(make, uri):
    make()
    with pytest.raises(InvalidInputError, match="read_version is required"):
        LanceDataset.commit(uri, LanceOperation.Delete())
    assert LanceDataset.commit(uri, LanceOperation.Restore(1)).version == 2


def test_a_transaction_is_committed_once(make, rows, uri):
    make()
    transaction = lance_nb.write_fragments(rows, uri, return_transaction=True)
    first = LanceDataset.commit(uri, transaction)
    second = LanceDataset.commit(uri, transaction)
    assert first.version == second.version == 2
    assert second.count_rows() == 20


def test_appends_are_committed_together(make, rows, uri):
    make()
    parts = [
        lance_nb.write_fragments(rows.slice(n, 1), uri, return_transaction=True) for n in range(3)
    ]
    done = LanceDataset.commit_batch(uri, parts)
    assert done["dataset"].version == 2
    assert done["dataset"].to_table()["id"].slice(10).to_pylist() == [0, 1, 2]
    assert len(done["merged"].operation.fragments) == 3


def test_a_batch_takes_appends_to_what_is_there(make, rows, uri):
    with pytest.raises(DatasetNotFoundError):
        LanceDataset.commit_batch(uri, [])
    made = make()
    with pytest.raises(InvalidInputError, match="no transactions"):
        LanceDataset.commit_batch(uri, [])
    with pytest.raises(NotSupportedError, match="only appends"):
        LanceDataset.commit_batch(uri, [made.read_transaction(1)])


def test_a_detached_version_is_outside_of_the_history(make, rows, uri):
    made = make()
    fragments = lance_nb.write_fragments(rows, uri)
    done = LanceDataset.commit(
        uri, LanceOperation.Append(tuple(fragments)), read_version=1, detached=True
    )
    assert done.version >= 1 << 63
    assert done.count_rows() == 20
    assert made.version_numbers() == [1]
    assert lance_nb.dataset(uri).count_rows() == 10


def test_transactions_are_read_back(make, rows):
    made = make()
    made.insert(rows)
    made.delete("id = 1")
    kinds = [type(one.operation).__name__ for one in made.get_transactions()]
    assert kinds == ["Delete", "Append", "Overwrite"]
    assert made.get_transactions(0) == []
    assert len(made.get_transactions(2)) == 2
    assert made.read_transaction(2).read_version == 1
    assert made.checkout_version(2).get_transactions(1)[0] == made.read_transaction(2)


@pytest.mark.parametrize("operation", ["append", None, 7])
def test_what_is_no_operation_is_refused(make, uri, operation):
    make()
    with pytest.raises(InvalidInputError, match="LanceOperation"):
        LanceDataset.commit(uri, operation, read_version=1)


def test_a_commit_to_nothing_is_refused(uri):
    with pytest.raises(DatasetNotFoundError):
        LanceDataset.commit(uri, LanceOperation.Append(()), read_version=1)


def test_a_merge_adds_a_column(make, uri):
    made = make()
    fragment, schema = made.get_fragments()[0].merge_columns({"double": "id * 2"})
    operation = LanceOperation.Merge((fragment,), schema)
    done = LanceDataset.commit(uri, operation, read_version=1)
    assert done.to_table()["double"].to_pylist() == list(range(0, 20, 2))
    assert done.schema.names == ["id", "name", "double"]
    assert isinstance(done.schema, pa.Schema)


def test_a_limit_of_time_is_in_seconds_and_none_is_no_limit() -> None:
    assert options_by_hand(timedelta(minutes=2)).timeout_s == 120
    assert options_by_hand(None).timeout_s is None
