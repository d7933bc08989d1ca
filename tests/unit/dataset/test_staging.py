from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import staging
from lance_nb.errors import (
    CommitConflictError,
    CommitStateUnknownError,
    InvalidInputError,
    PredicateError,
    SchemaMismatchError,
    VersionNotFoundError,
)


def test_edits_become_one_version(make, rows, uri):
    stage = make().stage().append(rows.slice(0, 2)).delete("id > 6").delete("name is null")
    assert stage.commit("tidy up") == 2
    made = lance_nb.dataset(uri)
    assert made.to_table()["id"].to_pylist() == [0, 1, 2, 3, 4, 5, 6, 0, 1]
    assert made.version_info(2).message == "tidy up"
    assert made.version_info(2).operation == "Update"


def test_a_data_frame_takes_the_types_of_the_dataset(make, uri):
    frame = pd.DataFrame({"id": pd.array([100], "int32"), "name": ["x"]})
    stage = make().stage().append(frame)
    assert stage.commit() == 2
    again = lance_nb.dataset(uri).stage().upsert(frame.assign(name="y"), on="id")
    assert again.commit() == 3
    assert lance_nb.dataset(uri).to_table(filter="id = 100")["name"].to_pylist() == ["y"]
    wrong = pd.DataFrame({"id": ["one"], "name": ["x"]})
    with pytest.raises(SchemaMismatchError, match="'id' must have type int64"):
        make(mode="overwrite").stage().append(wrong)


def test_appends_alone_are_one_append(make, rows, uri):
    make().stage().append(rows).append(rows).commit()
    made = lance_nb.dataset(uri)
    assert (made.version, made.count_rows()) == (2, 30)
    assert made.version_info(2).operation == "Append"


def test_nothing_is_written_but_data_files_before_the_commit(make, rows, files):
    made = make()
    before = set(files())
    stage = made.stage().append(rows).delete("id = 1")
    stage.preview()
    new = set(files()) - before
    assert len(new) == 1
    assert all(path.startswith("data/") for path in new)
    assert made.checkout_latest().version == 1


def test_discard_removes_the_files_it_wrote_and_no_others(make, rows, files):
    made = make()
    before = files()
    stage = made.stage().append(rows, max_rows_per_file=4).delete("id = 1")
    assert stage.discard() == 3
    assert files() == before


def test_a_stage_is_used_up(make, rows):
    made = make()
    done = made.stage().append(rows)
    done.commit()
    gone = made.stage()
    gone.discard()
    for stage in (done, gone):
        with pytest.raises(InvalidInputError, match="create a new one"):
            stage.append(rows)
        with pytest.raises(InvalidInputError):
            stage.commit()
        with pytest.raises(InvalidInputError, match="nothing to discard"):
            stage.discard()


def test_files_that_were_offered_to_a_commit_are_not_discarded(make, rows, uri, files):
    made = make()
    stage = made.stage().append(rows)
    lance_nb.write_dataset(pa.table({"z": [1]}), uri, mode="overwrite")
    with pytest.raises(CommitConflictError):
        stage.commit()
    before = files()
    with pytest.raises(InvalidInputError, match="offered to a commit"):
        stage.discard()
    assert files() == before


def test_an_empty_stage_has_nothing_to_commit(make):
    with pytest.raises(InvalidInputError, match="nothing is staged"):
        make().stage().commit()


@pytest.mark.parametrize("first", ["append", "delete"])
def test_what_one_transaction_cannot_say_is_refused_before_it_is_written(make, rows, files, first):
    stage = make().stage()
    stage = stage.append(rows) if first == "append" else stage.delete("id = 1")
    before = files()
    with pytest.raises(InvalidInputError, match="one transaction"):
        stage.overwrite(rows)
    with pytest.raises(InvalidInputError, match="one transaction"):
        stage.restore(1)
    assert files() == before
    assert stage.commit() == 2


def test_nothing_goes_beside_an_overwrite(make, rows):
    stage = make().stage().overwrite(rows)
    with pytest.raises(InvalidInputError, match="one transaction"):
        stage.append(rows)
    with pytest.raises(InvalidInputError, match="one transaction"):
        stage.delete("id = 1")


def test_overwrite_and_restore_are_staged_alone(make, uri):
    made = make()
    assert made.stage().overwrite(pa.table({"z": [1]})).commit() == 2
    assert lance_nb.dataset(uri).stage().restore(1).commit() == 3
    assert lance_nb.dataset(uri).count_rows() == 10


def test_a_bad_predicate_is_refused_when_it_is_staged(make):
    stage = make().stage()
    with pytest.raises(PredicateError):
        stage.delete("nope = 1")
    with pytest.raises(InvalidInputError, match="nothing is staged"):
        stage.preview()


def test_a_staged_deletion_meets_another_in_the_same_fragment(make, uri):
    stage = make().stage().delete("id = 1")
    lance_nb.dataset(uri).delete("id = 2")
    assert stage.commit() == 3
    assert 1 not in lance_nb.dataset(uri).to_table()["id"].to_pylist()
    assert 2 not in lance_nb.dataset(uri).to_table()["id"].to_pylist()


def test_it_says_what_it_is(make):
    stage = make().stage().delete("id = 1")
    assert repr(stage) == "<lance_nb.Stage on main:1, open, 1 edit>"
    assert stage.read_version == 1


def test_columns_are_changed_when_the_stage_is_committed(make, files):
    made = make(max_rows_per_file=4)
    before = files()
    stage = made.stage().add_columns({"twice": "id * 2"})
    assert made.version == 1
    assert stage.preview().num_rows_after == 10
    assert len(stage.staged.data_files) == 3
    assert stage.discard() == 3
    assert files() == before
    assert made.stage().add_columns({"twice": "id * 2"}).commit("more") == 2
    made = made.checkout_latest() or made
    made.stage().alter_columns({"path": "twice", "name": "double"}).commit()
    made.checkout_latest()
    made.stage().drop_columns(["name"]).commit()
    made.checkout_latest()
    assert made.schema.names == ["id", "double"]
    assert made.to_table()["double"].to_pylist() == list(range(0, 20, 2))


def test_a_compaction_waits_for_the_commit(make, files, rows):
    made = make(max_rows_per_file=2)
    before = files()
    assert made.stage().compact(target_rows_per_fragment=4).discard() == 2
    assert files() == before
    stage = made.stage().compact()
    with pytest.raises(InvalidInputError, match="one transaction"):
        stage.delete("id = 1")
    assert stage.commit("compacted") == 2
    made.checkout_latest()
    assert len(made.get_fragments()) == 1
    assert made.version_info(2).message == "compacted"
    assert made.to_table().equals(rows)
    with pytest.raises(InvalidInputError, match="no fragment"):
        made.stage().compact()


def test_stages_of_one_version_are_joined_into_one_commit(make, rows, uri):
    made = make()
    first, second = made.stage().append(rows), made.stage().delete("id < 3")
    joined = first.joined(second)
    assert joined.preview().num_rows_after == 17
    assert joined.commit("both") == 2
    assert (first.state, second.state) == ("committed", "committed")
    with pytest.raises(InvalidInputError, match="committed"):
        second.commit()


def test_what_cannot_be_joined_stays_as_it_was(make, rows, uri):
    made = make()
    stage, alone = made.stage().append(rows), made.stage().restore(1)
    with pytest.raises(InvalidInputError, match="one transaction"):
        stage.joined(alone)
    lance_nb.dataset(uri).delete("id = 1")
    newer = lance_nb.dataset(uri).stage().delete("id = 2")
    with pytest.raises(InvalidInputError, match="based on the same version"):
        stage.joined(newer)
    assert stage.commit() == 3


def test_edits_made_elsewhere_are_included(make, rows):
    made = make()
    edits = made.stage().append(rows).delete("id = 1").edits
    assert made.stage().include(*edits).commit() == 2
    with pytest.raises(InvalidInputError, match="one transaction"):
        made.stage().delete("id = 2").include(*made.stage().restore(1).edits)


def test_who_was_met_is_reported_without_reading_rows(make, uri):
    stage = make().stage().delete("id = 1")
    assert stage.meetings() == ()
    lance_nb.dataset(uri).delete("id = 2")
    (met,) = stage.meetings()
    assert (met.version, met.operation, met.verdict) == (2, "Delete", "rebasable")


@pytest.mark.parametrize("landed", [True, False])
def test_after_an_unknown_outcome_one_looks_again(make, rows, uri, monkeypatch, landed):
    real = staging.commit_staged

    def lost(session, branch, staged, options, properties):
        if landed:
            real(session, branch, staged, options, properties)
        raise CommitStateUnknownError("the reply was lost", options.environment.new_uuid(), 2)

    stage = make().stage().append(rows)
    with monkeypatch.context() as patched:
        patched.setattr(staging, "commit_staged", lost)
        with pytest.raises(CommitStateUnknownError):
            stage.commit()
    assert stage.state == "of unknown outcome"
    assert stage.look_again() == (2 if landed else None)
    if not landed:
        assert stage.commit() == 2
    assert lance_nb.dataset(uri).count_rows() == 20


def test_a_clean_up_of_the_version_of_a_stage_is_explained(rows, tmp_path):
    uri = str(tmp_path / "cleaned.lance")
    stage = lance_nb.write_dataset(rows, uri).stage().append(rows).delete("id < 1")
    other = lance_nb.dataset(uri)
    other.insert(rows)
    assert other.cleanup_old_versions(retain_versions=1).old_versions == 1
    with pytest.raises(VersionNotFoundError) as caught:
        stage.preview()
    (note,) = caught.value.__notes__
    assert "stage the edits again on the newest version" in note
    assert stage.commit() == 3  # what others did does not concern it
    assert lance_nb.dataset(uri).count_rows() == 3 * rows.num_rows - 1
