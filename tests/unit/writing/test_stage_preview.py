from __future__ import annotations

import pyarrow as pa
import pytest

import lance_nb


def test_counts_and_rows_of_both_kinds(make, rows):
    stage = make(max_rows_per_file=4).stage().append(rows.slice(0, 2)).delete("id >= 3")
    seen = stage.preview()
    assert (seen.operation, seen.read_version) == ("Update", 1)
    assert (seen.num_rows_before, seen.num_rows_after) == (10, 5)
    assert (seen.num_added_rows, seen.num_deleted_rows) == (2, 7)
    assert seen.removed["id"].to_pylist() == [3, 4, 5, 6, 7]
    assert seen.added.equals(rows.slice(0, 2))
    assert seen.fragments.to_pylist() == [
        {"fragment_id": 0, "change": "changed", "rows_before": 4, "rows_after": 3},
        {"fragment_id": 1, "change": "dropped", "rows_before": 4, "rows_after": 0},
        {"fragment_id": 2, "change": "dropped", "rows_before": 2, "rows_after": 0},
        {"fragment_id": 3, "change": "new", "rows_before": 0, "rows_after": 2},
    ]
    assert seen.size_bytes > 0
    assert seen.meetings == ()


def test_a_preview_shows_as_many_rows_as_asked_for(make, rows):
    seen = make().stage().append(rows).delete("id > 1").preview(num_rows=1)
    assert (seen.removed.num_rows, seen.added.num_rows) == (1, 1)
    nothing = make(mode="append").stage().delete("id > 1").preview(num_rows=0)
    assert nothing.removed.num_rows == 0
    assert nothing.num_deleted_rows == 16


def test_preview_and_commit_agree(make, rows, uri):
    stage = make().stage().append(rows).delete("id % 2 = 0")
    seen = stage.preview()
    stage.commit()
    assert lance_nb.dataset(uri).count_rows() == seen.num_rows_after


def test_an_overwrite_removes_everything(make):
    seen = make().stage().overwrite(pa.table({"z": [1.5]})).preview()
    assert (seen.num_rows_before, seen.num_rows_after) == (10, 1)
    assert (seen.num_added_rows, seen.num_deleted_rows) == (1, 10)
    assert seen.removed["id"].to_pylist() == [0, 1, 2, 3, 4]
    assert seen.added.to_pydict() == {"z": [1.5]}


def test_a_restore_says_what_comes_back(make):
    made = make()
    made.delete("id < 4")
    seen = made.stage().restore(1).preview()
    assert (seen.num_rows_before, seen.num_rows_after) == (6, 10)
    assert seen.fragments["change"].to_pylist() == ["changed"]


def test_what_others_committed_since_is_judged(make, rows, uri):
    made = make()
    stage = made.stage().delete("id = 1")
    assert stage.preview().conflicts == ()
    lance_nb.dataset(uri).insert(rows)
    lance_nb.dataset(uri).delete("id = 2")
    seen = stage.preview()
    assert [(one.version, one.operation, one.verdict) for one in seen.meetings] == [
        (2, "Append", "compatible"),
        (3, "Delete", "rebasable"),
    ]
    assert seen.conflicts == ()
    lance_nb.write_dataset(rows, uri, mode="overwrite")
    (meeting,) = stage.preview().conflicts
    assert (meeting.version, meeting.operation, meeting.verdict) == (4, "Overwrite", "incompatible")


def test_the_text_names_operation_rows_and_conflicts(make, rows, uri):
    stage = make().stage().append(rows)
    lance_nb.write_dataset(rows, uri, mode="overwrite")
    text = str(stage.preview())
    assert "Append on version 1" in text
    assert "10 -> 20 (+10 -0)" in text
    assert "version 2 Overwrite: incompatible" in text


@pytest.mark.parametrize("stable", [False, True])
def test_previews_leave_no_trace(make, files, stable):
    made = make(enable_stable_row_ids=stable)
    before = files()
    stage = made.stage().delete("id > 3")
    for _ in range(3):
        stage.preview()
    assert files() == before
    assert made.count_rows() == 10
    assert made.to_table().num_rows == 10
