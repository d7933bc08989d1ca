"""merge_insert: every clause, refusals that change nothing, conflicts, staging."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import (
    InvalidInputError,
    MergeInsertError,
    NotSupportedError,
    PredicateError,
    RetryableCommitConflictError,
    SchemaMismatchError,
    TooMuchWriteContentionError,
)
from lance_nb.writing import upserting

NEW = pa.table({"id": pa.array([8, 9, 10], pa.int64()), "name": ["eight", "nine", "ten"]})
KEYED = pa.schema(
    [
        pa.field("id", pa.int64(), False, {"lance-schema:unenforced-primary-key": "true"}),
        pa.field("name", pa.string()),
    ]
)


def pairs(made) -> dict:
    found = made.to_table().to_pydict()
    return dict(zip(found["id"], found["name"], strict=True))


def upsert(made, on="id"):
    return made.merge_insert(on).when_matched_update_all().when_not_matched_insert_all()


def counts(inserted: int, updated: int, deleted: int) -> dict[str, int]:
    return {
        "num_inserted_rows": inserted,
        "num_updated_rows": updated,
        "num_deleted_rows": deleted,
    }


def test_an_upsert_updates_what_is_there_and_inserts_the_rest(make):
    made = make()
    assert upsert(made).execute(NEW) == counts(1, 2, 0)
    assert made.version == 2
    assert made.count_rows() == 11
    assert [pairs(made)[n] for n in (7, 8, 9, 10)] == ["n7", "eight", "nine", "ten"]


def test_each_clause_does_its_part(make, rows):
    made = make()
    assert made.merge_insert("id").when_matched_delete().execute(NEW) == counts(0, 0, 2)
    assert sorted(pairs(made)) == list(range(8))
    keep = made.merge_insert("id").when_not_matched_by_source_delete("id > 3")
    assert keep.execute(rows.slice(5, 2)) == counts(0, 0, 2)
    assert sorted(pairs(made)) == [0, 1, 2, 3, 5, 6]
    replace = upsert(made).when_not_matched_by_source_delete()
    assert replace.execute(NEW) == counts(3, 0, 6)
    assert pairs(made) == {8: "eight", 9: "nine", 10: "ten"}
    only_new = made.merge_insert("id").when_not_matched_insert_all()
    assert only_new.execute(rows) == counts(8, 0, 0)
    assert pairs(made)[8] == "eight"


def test_a_condition_sees_both_sides(make):
    made = make()
    merge = made.merge_insert("id").when_matched_update_all("source.name > target.name")
    assert merge.execute(NEW) == counts(0, 0, 0)
    merge = made.merge_insert("id").when_matched_update_all("target.name IS NULL AND source.id = 9")
    assert merge.execute(NEW) == counts(0, 1, 0)
    assert (pairs(made)[8], pairs(made)[9]) == ("n8", "nine")


def test_a_failing_match_changes_nothing(make, files):
    made = make()
    before = files()
    with pytest.raises(
        MergeInsertError, match=r"found matching row with key values: id = 8"
    ) as one:
        made.merge_insert("id").when_matched_fail().when_not_matched_insert_all().execute(NEW)
    assert isinstance(one.value, OSError)
    assert files() == before
    fresh = made.merge_insert("id").when_matched_fail().when_not_matched_insert_all()
    assert fresh.execute(NEW.slice(2)) == counts(1, 0, 0)


def test_two_source_rows_for_one_row_are_refused(make, files):
    made = make()
    before = files()
    twice = pa.concat_tables([NEW, NEW.slice(0, 1)])
    with pytest.raises(MergeInsertError, match="id = 8"):
        upsert(made).execute(twice)
    with pytest.raises(MergeInsertError, match="Ambiguous"):
        made.merge_insert("id").when_matched_delete().execute(twice)
    assert files() == before
    fresh = pa.concat_tables([NEW.slice(2), NEW.slice(2)])
    assert upsert(made).execute(fresh) == counts(2, 0, 0)  # both are new: as pylance does


def test_what_does_not_fit_is_refused_and_changes_nothing(make, files):
    made = make()
    before = files()
    extra = NEW.append_column("z", pa.array([1, 2, 3]))
    with pytest.raises(SchemaMismatchError, match="'z' is not in the dataset"):
        upsert(made).execute(extra)
    with pytest.raises(SchemaMismatchError, match="no column 'id'"):
        upsert(made).execute(NEW.select(["name"]))
    with pytest.raises(SchemaMismatchError, match="must have type int64"):
        upsert(made).execute(NEW.set_column(0, "id", pa.array([1, 2, 3], pa.int32())))
    with pytest.raises(PredicateError, match=r"source\.column or target\.column"):
        made.merge_insert("id").when_matched_update_all("name = 'a'").execute(NEW)
    with pytest.raises(PredicateError):
        made.merge_insert("id").when_not_matched_by_source_delete("source.id > 1")
    with pytest.raises(InvalidInputError, match="does nothing"):
        made.merge_insert("id").execute(NEW)
    with pytest.raises(InvalidInputError, match="needs schema"):
        upsert(made).execute(iter(NEW.to_batches()))
    assert files() == before


def test_arguments_are_checked_where_they_are_given(make):
    made = make()
    with pytest.raises(ValueError, match="'nope'"):
        made.merge_insert("nope")
    with pytest.raises(InvalidInputError, match="primary key"):
        made.merge_insert()
    with pytest.raises(TypeError, match="not int"):
        made.merge_insert(5)
    with pytest.raises(TypeError, match="a list of column names"):
        made.merge_insert([5])
    merge = made.merge_insert("ID").use_index(False).retry_timeout(timedelta(1)).conflict_retries(3)
    assert merge.target_all_bases().data_storage_version("stable") is merge
    for wrong, error in (
        (lambda: merge.conflict_retries("x"), TypeError),
        (lambda: merge.conflict_retries(-1), OverflowError),
        (lambda: merge.retry_timeout(3), TypeError),
        (lambda: merge.retry_timeout(timedelta(-1)), ValueError),
        (lambda: merge.use_index(1), TypeError),
        (lambda: merge.write_mode("zz"), ValueError),
        (lambda: merge.target_bases([]), OSError),
        (lambda: merge.target_bases(["x"]), OSError),
        (lambda: merge.target_all_bases(include_primary=False), OSError),
        (lambda: merge.data_storage_version("2.3"), NotSupportedError),
        (lambda: merge.data_storage_version("zz"), ValueError),
        (lambda: merge.mark_sstables_as_compacted([1]), ValueError),
    ):
        with pytest.raises(error):
            wrong()


def test_a_source_of_some_columns_leaves_the_others(uri):
    wide = pa.table({"id": [1, 2], "a": ["x", "y"], "p": [{"u": 1, "v": 2}, {"u": 3, "v": 4}]})
    made = lance_nb.write_dataset(wide, uri)
    part = pa.table({"p": [{"v": 40}, {"v": 50}], "id": [2, 3]})
    assert upsert(made).execute(part) == counts(1, 1, 0)
    assert made.to_table().to_pylist() == [
        {"id": 1, "a": "x", "p": {"u": 1, "v": 2}},
        {"id": 2, "a": "y", "p": {"u": 3, "v": 40}},
        {"id": 3, "a": None, "p": {"u": None, "v": 50}},
    ]


def test_columns_can_be_rewritten_instead_of_rows(uri):
    wide = pa.table({"id": range(10), "a": ["x"] * 10, "b": [1.5] * 10})
    made = lance_nb.write_dataset(wide, uri, max_rows_per_file=5, enable_stable_row_ids=True)
    made.delete("id = 7")
    part = pa.table({"id": [8, 1, 7], "a": ["eight", "one", "gone"]})
    merge = made.merge_insert("id").when_matched_update_all().write_mode("rewrite_columns")
    assert merge.execute(part) == counts(0, 2, 0)
    found = made.to_table(["id", "a", "b", "_row_last_updated_at_version"]).to_pydict()
    assert found["id"] == [0, 1, 2, 3, 4, 5, 6, 8, 9]  # rows stay where they are
    assert found["a"] == ["x", "one", *["x"] * 5, "eight", "x"]
    assert found["_row_last_updated_at_version"] == [1, 3, 1, 1, 1, 1, 1, 3, 1]
    operation = made.read_transaction(made.version).operation
    assert (operation.update_mode.value, operation.fields_modified) == ("rewrite_columns", (1,))
    with pytest.raises(MergeInsertError, match="rows are inserted"):
        upsert(made).write_mode("rewrite_columns").execute(part)


def test_moved_rows_keep_their_ids_and_new_ones_get_new_ids(make):
    made = make(enable_stable_row_ids=True)
    before = made.to_table(["id"], with_row_id=True).to_pydict()
    upsert(made).execute(NEW)
    columns = ["id", "_row_created_at_version", "_row_last_updated_at_version"]
    after = made.to_table(columns, with_row_id=True).to_pydict()
    ids = dict(zip(after["id"], after["_rowid"], strict=True))
    assert {key: ids[key] for key in before["id"]} == dict(
        zip(before["id"], before["_rowid"], strict=True)
    )
    assert ids[10] == 10
    versions = {
        key: (created, updated)
        for key, created, updated in zip(*(after[name] for name in columns), strict=True)
    }
    assert (versions[7], versions[8], versions[10]) == ((1, 1), (1, 2), (2, 2))


def test_a_merge_without_effect_makes_a_version_too(make):
    made = make()
    assert upsert(made).execute(NEW.slice(0, 0)) == counts(0, 0, 0)
    assert made.version == 2
    assert made.count_rows() == 10


@pytest.mark.parametrize("form", ["reader", "dict", "list", "batch", "iterator", "dataset"])
def test_sources_of_every_form_are_read(make, form, tmp_path):
    made = make()
    stored = lance_nb.write_dataset(NEW, str(tmp_path / "s.lance"))
    source = {
        "reader": NEW.to_reader(1),
        "dict": {"id": [8, 9, 10], "name": ["eight", "nine", "ten"]},
        "list": NEW.to_pylist(),
        "batch": NEW.to_batches()[0],
        "iterator": iter(NEW.to_batches(1)),
        "dataset": stored,
    }[form]
    assert upsert(made).execute(source, schema=NEW.schema) == counts(1, 2, 0)
    assert pairs(made)[10] == "ten"


def test_progress_is_reported_to_its_end(make):
    seen = []
    upsert(make()).execute(NEW, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (13, 13)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_an_interrupt_leaves_no_trace(make, files):
    made = make()
    before = files()

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        upsert(made).execute(NEW, progress=stop)
    assert files() == before


def test_concurrent_upserts_of_one_key_leave_one_row(make, uri):
    one, other = make(), lance_nb.dataset(uri)
    upsert(one).execute(NEW)
    assert upsert(other).execute(NEW) == counts(0, 3, 0)  # done again on the newest version
    assert sorted(pairs(other)) == list(range(11))
    assert other.count_rows() == 11
    late = lance_nb.dataset(uri, version=1)
    with pytest.raises(TooMuchWriteContentionError):
        upsert(late).conflict_retries(0).execute(NEW)


def test_keys_of_the_primary_key_are_recorded(uri):
    made = lance_nb.write_dataset(pa.table({"id": [1], "name": ["a"]}).cast(KEYED), uri)
    one, other, third = (lance_nb.dataset(uri) for _ in range(3))
    new = NEW.cast(KEYED)
    assert upsert(one, None).execute(new) == counts(3, 0, 0)
    operation = one.read_transaction(2).operation
    assert operation.inserted_rows.field_ids == (0,)
    assert upsert(other, "id").execute(new.slice(2)) == counts(0, 1, 0)
    different = pa.table({"id": [77], "name": ["x"]}).cast(KEYED)
    assert upsert(third, None).conflict_retries(0).execute(different) == counts(1, 0, 0)
    assert third.count_rows() == 5
    upsert(made, "name").execute(different)
    assert made.read_transaction(made.version).operation.inserted_rows is None


def test_a_plan_is_reported_without_doing_it(make, files):
    made = make()
    before = files()
    plan = upsert(made).when_not_matched_by_source_delete("id > 5").explain_plan()
    assert plan.startswith("MergeInsert: on=[id], when_matched=UpdateAll, when_not_matched=")
    assert "DeleteIf(id > 5)" in plan
    analysis = upsert(made).analyze_plan(NEW)
    assert "num_inserted_rows=1, num_updated_rows=2, num_deleted_rows=0" in analysis
    assert "num_files_written=1" in analysis
    assert files() == before
    assert made.version == 1


def test_an_uncommitted_merge_is_committed_later(make):
    made = make()
    transaction, stats = upsert(made).execute_uncommitted(NEW)
    assert stats == counts(1, 2, 0)
    assert made.version == 1
    assert pairs(lance_nb.LanceDataset.commit(made, transaction))[8] == "eight"


def test_a_staged_upsert_is_previewed_and_committed(make):
    made = make()
    stage = made.stage().upsert(NEW, on="id").delete("id = 0")
    preview = stage.preview()
    assert (preview.num_inserted_rows, preview.num_updated_rows, preview.num_removed_rows) == (
        1, 2, 1,
    )  # fmt: skip
    assert sorted(preview.removed["id"].to_pylist()) == [0, 8, 9]
    assert sorted(preview.added["name"].to_pylist()) == ["eight", "nine", "ten"]
    assert "1 inserted, 2 updated, 1 deleted" in str(preview)
    assert stage.commit() == 2
    assert 0 not in pairs(made.checkout_version(2))


def test_a_staged_upsert_foresees_an_upsert_of_others(make, uri):
    stage = make().stage()
    stage.merge_insert("id").when_not_matched_insert_all().stage(NEW)
    upsert(lance_nb.dataset(uri)).execute(NEW)
    (meeting,) = stage.preview().conflicts
    assert "both insert rows" in meeting.overlap
    with pytest.raises(RetryableCommitConflictError):
        stage.commit()


def test_a_stage_holds_one_upsert_and_can_be_thrown_away(make, files):
    made = make()
    before = files()
    stage = made.stage().upsert(NEW, on="id")
    with pytest.raises(InvalidInputError, match="two upserts"):
        stage.upsert(NEW, on="id")
    with pytest.raises(InvalidInputError, match="same rows"):
        stage.update({"name": "'x'"}, where="id = 9").preview()
    assert stage.discard() == 2
    assert files() == before


def test_a_source_beyond_memory_goes_through_a_file(make, monkeypatch, tmp_path):
    monkeypatch.setattr(upserting, "MEMORY_BYTES", 1)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    made = make(max_rows_per_file=3)
    merge = upsert(made).when_not_matched_by_source_delete("id < 2")
    assert merge.execute(NEW.to_reader(1)) == counts(1, 2, 2)
    assert sorted(pairs(made)) == list(range(2, 11))
    assert not list(tmp_path.iterdir())


def test_auto_takes_columns_where_they_are_cheaper(uri, monkeypatch):
    monkeypatch.setattr("lance_nb.writing.rewriting.SAVED_BYTES_MIN", 0)
    wide = pa.table({"id": range(100), "a": [1.5] * 100, "text": [f"{n:0200}" for n in range(100)]})
    made = lance_nb.write_dataset(wide, uri)
    part = pa.table({"id": range(60), "a": [2.5] * 60})
    assert made.merge_insert("id").when_matched_update_all().execute(part) == counts(0, 60, 0)
    assert made.read_transaction(2).operation.fields_modified == (1,)
    assert upsert(made).execute(part) == counts(0, 60, 0)
    assert made.read_transaction(3).operation.fields_modified == ()
    assert made.to_table(["text"]).num_rows == 100


def test_blobs_are_no_keys(uri):
    rows = pa.table(
        [[1], lance_nb.blob_array([b"x"])],
        schema=pa.schema([("id", pa.int64()), lance_nb.blob_field("blob")]),
    )
    made = lance_nb.write_dataset(rows, uri, data_storage_version="2.2")
    with pytest.raises(NotSupportedError, match="the key 'blob' holds blobs"):
        upsert(made, "blob").execute(rows)
