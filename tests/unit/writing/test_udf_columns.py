""" """

from __future__ import annotations

import sqlite3

import pyarrow as pa
import pytest

import lance_nb
from lance_nb import BatchUDF, BatchUDFCheckpoint, batch_udf
from lance_nb.errors import InvalidInputError, SchemaMismatchError
from lance_nb.writing.udf_columns import FunctionColumns, as_batch

BATCH = pa.record_batch({"a": [1, 2]})


def test_a_decorated_function_can_still_be_called():
    @batch_udf(output_schema=BATCH.schema)
    def double(batch):
        return pa.record_batch({"a": pa.compute.multiply(batch["a"], 2)})

    assert isinstance(double, BatchUDF)
    assert double.cache is None
    assert double(BATCH)["a"].to_pylist() == [2, 4]
    with pytest.raises(InvalidInputError, match="function"):
        BatchUDF(3)


def test_a_checkpoint_keeps_batches_and_fragments(tmp_path):
    kept = BatchUDFCheckpoint(tmp_path / "c.sqlite")
    kept.begin(3, "x")
    assert kept.get_batch(BatchUDFCheckpoint.BatchInfo(3, 0)) is None
    kept.insert_batch(BatchUDFCheckpoint.BatchInfo(3, 0), BATCH)
    again = BatchUDFCheckpoint(str(tmp_path / "c.sqlite"))
    again.begin(3, "x")
    assert again.get_batch(BatchUDFCheckpoint.BatchInfo(3, 0)).equals(BATCH)
    again.insert_fragment(3, "{}")
    assert again.get_fragment(3) == "{}"
    assert again.get_batch(BatchUDFCheckpoint.BatchInfo(3, 0)) is None
    again.begin(3, "of something else")
    assert again.get_fragment(3) is None
    again.cleanup()
    again.cleanup()
    assert not (tmp_path / "c.sqlite").exists()


def test_what_is_no_checkpoint_is_refused_or_made_again(tmp_path):
    place = tmp_path / "c.sqlite"
    place.write_bytes(b"no database" * 100)
    with pytest.raises(InvalidInputError, match="checkpoint file"):
        BatchUDFCheckpoint(place)
    place.unlink()
    kept = BatchUDFCheckpoint(place)
    with sqlite3.connect(place) as connection:
        connection.execute("INSERT INTO batches VALUES (0, 0, x'80')")
    connection.close()
    assert kept.get_batch(BatchUDFCheckpoint.BatchInfo(0, 0)) is None


def test_results_of_several_kinds_become_batches():
    pandas = pytest.importorskip("pandas")
    table = pa.table({"a": [1, 2]})
    for made in (BATCH, table, pandas.DataFrame({"a": [1, 2]})):
        assert as_batch(made, 2, BATCH.schema).equals(BATCH)
    assert as_batch(table.slice(0, 0), 0, None).num_rows == 0
    for made, reason in (
        (7, "not int"),
        (BATCH.slice(1), "returned 1 row for 2 input rows"),
        (pa.record_batch({"b": [1, 2]}), "it returned b: int64"),
    ):
        with pytest.raises(SchemaMismatchError, match=reason):
            as_batch(made, 2, BATCH.schema)


def interrupted(made, place, *, after):
    """Add columns with a function that fails after so many calls; return the ids it was given."""
    seen = []

    @batch_udf(checkpoint_file=place)
    def count(batch):
        if len(seen) == after:
            raise RuntimeError("the power went")
        seen.append(batch["id"].to_pylist())
        return pa.record_batch({"n": batch["id"]})

    try:
        made.add_columns(count, read_columns=["id"], batch_size=2)
    except RuntimeError:
        assert "n" not in made.schema.names
    return seen


def test_finished_batches_are_not_made_again(make, tmp_path, files):
    made = make(max_rows_per_file=5)
    made.delete("id = 6")
    place = tmp_path / "c.sqlite"
    assert interrupted(made, place, after=4) == [[0, 1], [2, 3], [4], [5]]
    assert interrupted(made, place, after=1) == [[7, 8]]
    assert interrupted(made, place, after=-1) == [[9]]
    assert not place.exists()
    assert made.to_table().sort_by("id")["n"].to_pylist() == [0, 1, 2, 3, 4, 5, 7, 8, 9]
    used = {file.path for one in made.get_fragments() for file in one.data_files()}
    assert {path for path in files() if path.startswith("data/")} == {f"data/{one}" for one in used}


def test_what_was_made_of_something_else_is_made_again(make, tmp_path, uri):
    made = make(max_rows_per_file=5)
    place = tmp_path / "c.sqlite"
    assert len(interrupted(made, place, after=4)) == 4
    lance_nb.dataset(uri).delete("id = 0")
    made.checkout_latest()
    assert interrupted(made, place, after=-1) == [[1], [2, 3], [4], [7, 8], [9]]


def test_a_written_fragment_whose_file_is_gone_is_made_again(make, tmp_path):
    made = make(max_rows_per_file=5)
    place = tmp_path / "c.sqlite"
    interrupted(made, place, after=4)
    session, snapshot = made.opened
    known = {file.path for one in made.get_fragments() for file in one.data_files()}
    for one in list(session.root.list_recursive("data")):
        if one.name not in known:
            snapshot.locations.home.delete(f"data/{one.name}")
    assert interrupted(made, place, after=-1)[:3] == [[0, 1], [2, 3], [4]]


def test_columns_must_be_known(make):
    made = make()
    made.truncate_table()
    with pytest.raises(InvalidInputError, match="output_schema"):
        made.add_columns(lambda batch: batch)
    made.add_columns(BatchUDF(lambda batch: batch, pa.schema([("n", pa.int64())])))
    assert made.schema.names == ["id", "name", "n"]


def test_row_ids_can_be_read(make):
    made = make(max_rows_per_file=5)
    made.delete("id = 0")
    made.add_columns(
        lambda batch: pa.record_batch({"where": batch["_rowid"], "at": batch["_rowaddr"]}),
        read_columns=["_rowid", "_rowaddr"],
    )
    found = made.to_table(with_row_id=True)
    assert found["where"].to_pylist() == found["_rowid"].to_pylist() == found["at"].to_pylist()


@pytest.fixture
def made(make):
    """Ten rows in one fragment, those in the middle deleted."""
    made = make()
    made.delete("id >= 3 AND id < 7")
    return made


def values(made, function, schema=None, batch_size=2):
    return FunctionColumns(made.opened[1], BatchUDF(function, schema), ["id"], batch_size)


def test_a_function_sees_live_rows_and_its_values_fill_all(made):
    seen = []

    def name(batch):
        seen.append(batch["id"].to_pylist())
        return pa.record_batch({"n": batch["id"]})

    columns = values(made, name)
    (fragment,) = made.opened[1].manifest.fragments
    assert columns.schema.names == ["n"]
    batches = list(columns.batches(fragment))
    assert seen == [[0, 1], [2], [7], [8, 9]]  # the first was not computed twice
    found = [one for batch in batches for one in batch["n"].to_pylist()]
    assert len(found) == 10
    assert [found[at] for at in (0, 1, 2, 7, 8, 9)] == [0, 1, 2, 7, 8, 9]
    assert None not in found


def test_deleted_rows_before_any_live_one_are_null(make):
    made = make()
    made.delete("id < 4")
    columns = values(made, lambda batch: pa.record_batch({"n": batch["id"]}))
    (fragment,) = made.opened[1].manifest.fragments
    found = [one for batch in columns.batches(fragment) for one in batch["n"].to_pylist()]
    assert found == [None] * 4 + [4, 5, 6, 7, 8, 9]


def test_without_a_checkpoint_nothing_is_known(made):
    columns = values(made, lambda batch: batch)
    (fragment,) = made.opened[1].manifest.fragments
    assert not columns.is_checkpointed
    columns.keep_fragment(fragment)
    assert columns.known_fragment(fragment, made.lance_schema.tree) is None
