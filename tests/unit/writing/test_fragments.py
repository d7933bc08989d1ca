from __future__ import annotations

import pyarrow as pa
import pytest

import lance_nb
from lance_nb import LanceDataset, LanceFragment, LanceOperation
from lance_nb.errors import (
    ColumnNotFoundError,
    InvalidInputError,
    SchemaMismatchError,
)


@pytest.fixture
def fragment(make):
    """A fragment of which row 1 is deleted."""
    made = make()
    made.delete("id = 1")
    return made.get_fragments()[0]


def merged(uri, made):
    """Commit what merge or merge_columns returned."""
    fragment, schema = made
    version = lance_nb.dataset(uri).version
    operation = LanceOperation.Merge((fragment,), schema)
    return LanceDataset.commit(uri, operation, read_version=version)


def test_fragments_belong_to_no_version_yet(make, rows, uri):
    made = make()
    fragments = lance_nb.write_fragments(rows, uri, max_rows_per_file=6)
    assert [one.physical_rows for one in fragments] == [6, 4]
    assert [one.id for one in fragments] == [0, 0]
    assert made.checkout_latest().count_rows() == 10


def test_fragments_fit_the_dataset_unless_they_replace_it(make, uri):
    make()
    other = pa.table({"z": [1]})
    with pytest.raises(SchemaMismatchError):
        lance_nb.write_fragments(other, uri)
    transaction = lance_nb.write_fragments(other, uri, mode="overwrite", return_transaction=True)
    assert LanceDataset.commit(uri, transaction).to_table().to_pydict() == {"z": [1]}


def test_one_fragment_is_made_of_all_rows(rows, uri):
    made = LanceFragment.create(uri, rows, fragment_id=7)
    assert (made.id, made.physical_rows, len(made.files)) == (7, 10, 1)
    with pytest.raises(InvalidInputError, match="no rows"):
        LanceFragment.create(uri, rows.slice(0, 0))
    with pytest.raises(InvalidInputError, match="fragment id"):
        LanceFragment.create(uri, rows, fragment_id=-1)


def test_rows_are_deleted_from_a_fragment_alone(fragment, uri):
    changed = fragment.delete("id < 3")
    assert changed.deletion_file.num_deleted_rows == 3
    assert lance_nb.dataset(uri).count_rows() == 9
    operation = LanceOperation.Delete((changed,), (), "id < 3")
    made = LanceDataset.commit(uri, operation, read_version=2)
    assert made.to_table()["id"].to_pylist() == [3, 4, 5, 6, 7, 8, 9]


def test_a_fragment_without_rows_is_none(fragment):
    assert fragment.delete("true") is None
    assert fragment.delete_rows(range(10)) is None
    assert fragment.delete("id = 99") == fragment.metadata


def test_rows_are_deleted_by_physical_offset(fragment):
    assert fragment.delete_rows([0, 1, 2, 2]).deletion_file.num_deleted_rows == 3
    assert fragment.delete_rows([]) == fragment.metadata
    for offset in (-1, 10):
        with pytest.raises(InvalidInputError, match="10 physical rows"):
            fragment.delete_rows([offset])


def test_columns_come_from_expressions(fragment, uri):
    made = merged(uri, fragment.merge_columns({"twice": "id * 2", "known": "name is not null"}))
    assert made.to_table()["twice"].to_pylist() == [0, 4, 6, 8, 10, 12, 14, 16, 18]
    assert made.to_table()["known"].to_pylist() == [True] * 8 + [False]


def test_columns_come_from_a_function_of_batches(fragment, uri):
    seen = []

    def shout(batch):
        seen.append(batch.schema.names)
        return pa.record_batch({"loud": pa.compute.utf8_upper(batch["name"])})

    made = merged(uri, fragment.merge_columns(shout, columns=["name"], batch_size=4))
    assert made.to_table()["loud"].to_pylist()[:2] == ["N0", "N2"]
    assert set(map(tuple, seen)) == {("name",)}


def test_a_function_returns_as_many_rows_as_it_got(fragment, files):
    before = files()
    with pytest.raises(InvalidInputError, match="returned 1 row for 9 input rows"):
        fragment.merge_columns(lambda _: pa.record_batch({"x": [1]}))
    with pytest.raises(InvalidInputError, match="DataFrame, not int"):
        fragment.merge_columns(lambda _: 7)
    assert files() == before


def test_columns_are_streamed_for_the_rows_that_live(fragment, uri):
    made = merged(uri, fragment.merge_columns(pa.table({"n": list(range(9))})))
    assert made.to_table()["n"].to_pylist() == list(range(9))
    for wrong, reason in ((8, "too early"), (10, "too many rows")):
        with pytest.raises(InvalidInputError, match=reason):
            fragment.merge_columns(pa.table({"m": list(range(wrong))}))


def test_a_column_that_exists_is_not_added(fragment, files):
    before = files()
    with pytest.raises(InvalidInputError, match="'name' already exists"):
        fragment.merge_columns({"name": "id"})
    assert files() == before


def test_columns_are_joined(fragment, uri):
    right = pa.table({"key": [9, 3, 3, 77], "note": ["nine", "three", "drei", "nobody"]})
    made = merged(uri, fragment.merge(right, "id", "key"))
    found = dict(zip(*(made.to_table()[name].to_pylist() for name in ("id", "note")), strict=True))
    assert {key: note for key, note in found.items() if note} == {3: "drei", 9: "nine"}
    assert made.schema.names == ["id", "name", "note"]
    with pytest.raises(ColumnNotFoundError, match="'nope'"):
        fragment.merge(right, "id", "nope")


def test_values_are_replaced_where_a_row_has_a_partner(fragment, uri):
    right = pa.table({"id": [2, 9, 50], "name": ["two", "nine", "nobody"]})
    changed, fields = fragment.update_columns(right, left_on="id")
    assert fields == [1]
    assert [file.fields for file in changed.files] == [(0, -2), (1,)]
    operation = LanceOperation.Update(updated_fragments=(changed,), fields_modified=tuple(fields))
    made = LanceDataset.commit(uri, operation, read_version=2)
    assert made.to_table()["name"].to_pylist() == [
        "n0", "two", "n3", "n4", "n5", "n6", "n7", "n8", "nine",
    ]  # fmt: skip


def test_values_are_replaced_by_row_id_and_offsets_are_reported(fragment):
    right = pa.table({"_rowid": pa.array([4, 0], pa.uint64()), "name": ["four", None]})
    _, _, offsets = fragment.update_columns(right, with_offsets=True)
    from pyroaring import BitMap

    assert list(BitMap.deserialize(offsets)) == [0, 4]


def test_replacing_wants_columns_that_exist_and_their_type(fragment, files):
    before = files()
    with pytest.raises(ColumnNotFoundError, match="'nope'"):
        fragment.update_columns(pa.table({"id": [1], "nope": [1]}), left_on="id")
    with pytest.raises(SchemaMismatchError, match="int64"):
        fragment.update_columns(pa.table({"id": [1], "name": [1]}), left_on="id")
    assert files() == before


def test_a_file_with_nothing_left_in_it_is_not_listed(fragment, uri):
    made = merged(uri, fragment.merge_columns({"x": "id + 1"}))
    one = made.get_fragments()[0]
    changed, _ = one.update_columns(pa.table({"id": [2], "x": [0]}), left_on="id")
    assert [file.fields for file in changed.files] == [(0, 1), (2,)]
