from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lance_nb
from lance_nb.errors import PredicateError
from lance_nb.writing import deleting


def test_rows_that_pass_are_gone_and_counted(make, rows, uri):
    made = make()
    assert made.delete("id > 3 AND name IS NOT NULL") == {"num_deleted_rows": 5}
    assert made.version == 2
    assert made.to_table().equals(rows.filter(pc.field("id").isin([0, 1, 2, 3, 9])))
    assert lance_nb.dataset(uri, 1).to_table().equals(rows)


def test_an_arrow_expression_deletes_too(make):
    made = make()
    assert made.delete(pc.field("id") < 2) == {"num_deleted_rows": 2}


def test_deleting_twice_adds_up(make):
    made = make()
    made.delete("id < 2")
    assert made.delete("id < 4") == {"num_deleted_rows": 2}
    assert made.get_fragments()[0].num_deletions == 4
    assert made.to_table()["id"].to_pylist() == [4, 5, 6, 7, 8, 9]


def test_a_fragment_without_rows_is_dropped(make):
    made = make(max_rows_per_file=4)
    made.delete("id < 4")
    assert [one.fragment_id for one in made.get_fragments()] == [1, 2]
    made.delete("true")
    assert made.get_fragments() == []
    assert made.count_rows() == 0


def test_nothing_to_delete_makes_a_version_all_the_same(make):
    made = make()
    assert made.delete("id = 99") == {"num_deleted_rows": 0}
    assert (made.version, made.count_rows()) == (2, 10)


@pytest.mark.parametrize("predicate", ["nope = 1", "id =", "id", "id + 'x' > 1"])
def test_a_bad_predicate_changes_nothing(make, files, predicate):
    made = make()
    before = files()
    with pytest.raises(PredicateError):
        made.delete(predicate)
    assert files() == before
    assert made.version == 1


def test_two_handles_delete_different_rows_of_one_fragment(make, uri):
    one = make()
    other = lance_nb.dataset(uri)
    one.delete("id = 1")
    assert other.delete("id = 2") == {"num_deleted_rows": 1}
    assert other.version == 3
    assert other.to_table()["id"].to_pylist() == [0, 3, 4, 5, 6, 7, 8, 9]


def test_a_row_that_another_handle_deleted_is_not_deleted_twice(make, uri):
    one = make()
    other = lance_nb.dataset(uri)
    one.delete("id <= 1")
    assert other.delete("id = 1 or id = 2", retry_timeout=timedelta(seconds=5)) == {
        "num_deleted_rows": 1
    }
    assert other.to_table()["id"].to_pylist() == [3, 4, 5, 6, 7, 8, 9]


def test_nested_columns_can_be_asked_for(uri):
    table = pa.table({"s": [{"x": 1}, {"x": 2}, None]})
    made = lance_nb.write_dataset(table, uri)
    assert made.delete("s.x = 2") == {"num_deleted_rows": 1}
    assert made.to_table().to_pydict() == {"s": [{"x": 1}, None]}


def test_fragments_with_and_without_deleted_rows_are_reported_in_order(make, monkeypatch):
    monkeypatch.setattr("lance_nb.table.scan.WINDOW_BYTES", 16)  # several windows per fragment
    made = make(max_rows_per_file=4)
    made.delete("id = 5")
    assert made.delete("id IN (1, 4, 5, 9) OR id = 6") == {"num_deleted_rows": 4}
    assert made.to_table()["id"].to_pylist() == [0, 2, 3, 7, 8]
    assert [one.num_deletions for one in made.get_fragments()] == [1, 3, 1]


def test_a_predicate_that_is_null_deletes_nothing(make):
    made = make()
    assert made.delete("name = NULL") == {"num_deleted_rows": 0}


def test_progress_is_reported_by_parts_and_the_result_is_the_same(make, monkeypatch):
    monkeypatch.setattr(deleting, "ROWS_PER_PART", 3)
    dataset = make(max_rows_per_file=2)
    told: list[tuple[int, int]] = []
    done = dataset.delete("id % 2 = 1", progress=lambda *step: told.append(step))
    assert done == {"num_deleted_rows": 5}
    assert told == [(4, 10), (8, 10), (10, 10)]
    assert dataset.to_table()["id"].to_pylist() == [0, 2, 4, 6, 8]
