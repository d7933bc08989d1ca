"""merge_insert: every clause, refusals that change nothing, conflicts, staging."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.errors import (
    InvalidInputError,
    MergeInsertError,
    NotSupportedError,
    PredicateError,
    RetryableCommitConflictError,
    SchemaMismatchError,
    TooMuchWriteContentionError,
)
from lance_nb.format.fragment import InlineSequence
from lance_nb.format.key_filter import KeyFilter
from lance_nb.format.row_sequences import RowIdSegments
from lance_nb.table.snapshot import Snapshot
from lance_nb.writing import upsert_join, upserting
from lance_nb.writing.committing import commit_staged
from lance_nb.writing.fragment_writer import WriteOptions
from lance_nb.writing.staged import MergePlan, combine
from lance_nb.writing.upsert_source import MergeClauses, SourceRows, WhenMatched
from lance_nb.writing.upserting import (
    plan_bucket,
    plan_fragments,
    plan_inserts,
    plan_merge,
    united_plans,
    windows_of,
    without_rows,
)
from lance_nb.writing.writing import WriteRequest

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


_NUMBERS = count()
UPSERT = MergeClauses(("k",), matched=WhenMatched.UPDATE, inserts=True, write_mode="rewrite_rows")


def snapshot_of(rows: pa.Table, **options: Any) -> Snapshot:
    """Return the first version of a dataset with two rows per fragment."""
    made = lance_nb.write_dataset(
        rows, f"memory://upserts/{next(_NUMBERS)}", max_rows_per_file=2, **options
    )
    return made._snapshot


def plan(
    snapshot: Snapshot,
    source: pa.Table,
    clauses: MergeClauses,
    rows_per_file: int = 1000,
    progress: Callable[[int, int], object] | None = None,
) -> MergePlan:
    with SourceRows(source.to_reader()) as rows:
        options = WriteOptions(max_rows_per_file=rows_per_file)
        return plan_merge(snapshot, rows, clauses, options, progress)


def rows_of(keys: list[int | None], first: int = 0) -> pa.Table:
    values = pa.array(range(first, first + len(keys)), pa.int64())
    return pa.table({"k": pa.array(keys, pa.int64()), "v": values})


def deleted(found: MergePlan) -> dict[int, list[int]]:
    """Return the offsets that go, by fragment."""
    return {key: one.offsets().tolist() for key, one in found.deletion.affected_rows.items()}


CASES: dict[str, tuple[MergeClauses, dict[int, list[int]], dict[str, int]]] = {
    "update": (
        MergeClauses(("k",), matched=WhenMatched.UPDATE, write_mode="rewrite_rows"),
        {0: [1], 1: [1]},
        {"num_inserted_rows": 0, "num_updated_rows": 2, "num_deleted_rows": 0},
    ),
    "update and insert": (
        UPSERT,
        {0: [1], 1: [1]},
        {"num_inserted_rows": 2, "num_updated_rows": 2, "num_deleted_rows": 0},
    ),
    "update where a condition holds": (
        MergeClauses(
            ("k",), matched=WhenMatched.UPDATE, condition="source.v > 100", inserts=True,
            write_mode="rewrite_rows",
        ),
        {1: [1]},
        {"num_inserted_rows": 2, "num_updated_rows": 1, "num_deleted_rows": 0},
    ),
    "insert": (
        MergeClauses(("k",), inserts=True),
        {},
        {"num_inserted_rows": 2, "num_updated_rows": 0, "num_deleted_rows": 0},
    ),
    "delete": (
        MergeClauses(("k",), matched=WhenMatched.DELETE),
        {0: [1], 1: [1]},
        {"num_inserted_rows": 0, "num_updated_rows": 0, "num_deleted_rows": 2},
    ),
    "delete rows without a partner": (
        MergeClauses(("k",), deletes_unmatched=True),
        {0: [0], 1: [0], 2: [0, 1]},
        {"num_inserted_rows": 0, "num_updated_rows": 0, "num_deleted_rows": 4},
    ),
    "delete all": (
        MergeClauses(("k",), matched=WhenMatched.DELETE, deletes_unmatched=True),
        {0: [0, 1], 1: [0, 1], 2: [0, 1]},
        {"num_inserted_rows": 0, "num_updated_rows": 0, "num_deleted_rows": 6},
    ),
}  # fmt: skip
TARGET = rows_of([10, 11, 12, 13, 14, None])
SOURCE = rows_of([11, 77, 13, None], first=100)


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_rows_go_and_come_as_the_clauses_say(name: str, stable: bool) -> None:
    clauses, gone, stats = CASES[name]

    found = plan(snapshot_of(TARGET, enable_stable_row_ids=stable), SOURCE, clauses)

    assert deleted(found) == gone
    assert found.stats == stats
    written = sum(one.physical_rows for one in found.fragments)
    assert written == found.num_updated_rows + found.num_inserted_rows
    assert found.fields == (0, 1)


@pytest.mark.parametrize(
    ("together", "expected"), [(1 << 17, [6, 10]), (5, [6, 10]), (4, [4, 6, 10]), (1, [4, 6, 10])]
)
def test_progress_counts_rows_as_windows_are_looked_up(
    monkeypatch: pytest.MonkeyPatch, together: int, expected: list[int]
) -> None:
    """At least as many rows together as the source has: 4; its rows count as well, at the end."""
    monkeypatch.setattr(upsert_join, "_TOGETHER_ROWS", together)
    seen: list[tuple[int, int]] = []

    found = plan(snapshot_of(TARGET), SOURCE, UPSERT, progress=lambda *one: seen.append(one))

    assert deleted(found) == {0: [1], 1: [1]}
    assert seen == [(done, 10) for done in expected]


@pytest.mark.parametrize("rows_per_file", [1, 2, 3, 1000])
def test_rows_that_move_keep_their_ids_and_new_ones_get_theirs_later(rows_per_file: int) -> None:
    snapshot = snapshot_of(TARGET, enable_stable_row_ids=True)

    found = plan(snapshot, SOURCE, UPSERT, rows_per_file)

    known = [
        RowIdSegments.from_bytes(one.row_ids.data).to_numpy().tolist()
        if isinstance(one.row_ids, InlineSequence)
        else None
        for one in found.fragments
    ]
    assert (
        known
        == {
            1: [[1], [3], None, None],
            2: [[1, 3], None],
            3: [[1, 3], None],
            1000: [[1, 3]],
        }[rows_per_file]
    )


def test_without_stable_row_ids_no_row_has_one() -> None:
    found = plan(snapshot_of(TARGET), SOURCE, UPSERT)

    assert [one.row_ids for one in found.fragments] == [None]


@pytest.mark.parametrize(
    ("matched", "keys", "text"),
    [
        (WhenMatched.FAIL, [77, 13], "found matching row with key values: k = 13"),
        (WhenMatched.UPDATE, [12, 77, 12], r"multiple source rows.*\(k = 12\)"),
        (WhenMatched.DELETE, [12, 77, 12], r"multiple source rows.*\(k = 12\)"),
    ],
)
def test_matches_that_are_not_allowed_are_named(
    matched: WhenMatched, keys: list[int], text: str
) -> None:
    snapshot = snapshot_of(TARGET)
    before = snapshot.locations.home.list_recursive("")

    with pytest.raises(MergeInsertError, match=text):
        plan(snapshot, rows_of(keys), MergeClauses(("k",), matched=matched))

    assert snapshot.locations.home.list_recursive("") == before


def test_new_keys_are_recorded_only_for_the_primary_key() -> None:
    snapshot = snapshot_of(TARGET)

    assert plan(snapshot, SOURCE, UPSERT).inserted_keys is None


OPTIONS = WriteRequest().write_options("2.2")
PART_TARGET = pa.table(
    {
        "id": pa.array([None, *range(59)], pa.int64()),
        "name": [f"t{one}" for one in range(60)],
        "price": pa.array(range(60), pa.int32()),
    }
)
PART_SOURCE = pa.table(
    {
        "id": pa.array([*range(10, 70, 4), None, 1000], pa.int64()),
        "name": [f"s{one}" for one in range(17)],
    }
)
CLAUSES: dict[str, Callable[[Any], Any]] = {
    "upsert": lambda it: it.when_matched_update_all().when_not_matched_insert_all(),
    "conditional": lambda it: it.when_matched_update_all("target.price > 30"),
    "insert": lambda it: it.when_not_matched_insert_all(),
    "delete": lambda it: it.when_matched_delete(),
    "replace": lambda it: (
        it.when_matched_update_all().when_not_matched_insert_all()
        .when_not_matched_by_source_delete()
    ),
    "some unmatched": lambda it: it.when_not_matched_by_source_delete("price < 20"),
}  # fmt: skip


def dataset(tmp_path: Any, name: str, *, stable: bool = False) -> LanceDataset:
    made = lance_nb.write_dataset(
        PART_TARGET, str(tmp_path / name), max_rows_per_file=11, enable_stable_row_ids=stable
    )
    made.delete("id = 14")
    return made


def clauses_of(target: LanceDataset, name: str) -> MergeClauses:
    return CLAUSES[name](target.merge_insert("id"))._clauses


def source_rows(table: pa.Table) -> SourceRows:
    return SourceRows(table.to_reader(), None)


def travelled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))  # noqa: S301 - our own


def by_fragments(target: LanceDataset, clauses: MergeClauses, source: pa.Table) -> MergePlan:
    _, snapshot = target.opened
    with source_rows(source) as rows:
        parts = [
            travelled(plan_fragments(snapshot, rows, clauses, OPTIONS, [one]))
            for one in snapshot.manifest.fragments
        ]
        rest = plan_inserts(snapshot, rows, clauses, OPTIONS, parts)
    return united_plans([*(one.plan for one in parts), rest])


BUCKETS = 50  # so that some have rows of one side only


def by_keys(target: LanceDataset, clauses: MergeClauses, source: pa.Table) -> MergePlan:
    _, snapshot = target.opened
    keys = target.to_table(["id"], with_row_address=True)
    made = []
    for bucket in range(BUCKETS):
        mine = [in_bucket(one, bucket) for one in (keys, source)]
        addresses = mine[0]["_rowaddr"].to_numpy()[::-1].copy()  # Spark knows no order
        windows = list(windows_of(snapshot, addresses, mine[0].select(["id"])[::-1]))
        with source_rows(mine[1]) as rows:
            made.append(plan_bucket(snapshot, rows, clauses, OPTIONS, windows))
    return united_plans(travelled(made))


def in_bucket(table: pa.Table, bucket: int) -> pa.Table:
    ids: Iterable[int | None] = table["id"].to_pylist()
    return table.filter(pa.array([(one or 0) % BUCKETS == bucket for one in ids]))


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("form", [by_fragments, by_keys])
@pytest.mark.parametrize("name", CLAUSES)
def test_parts_change_what_the_whole_does(tmp_path, name: str, form: Any, stable: bool) -> None:
    whole = dataset(tmp_path, "whole.lance", stable=stable)
    source = (
        PART_SOURCE
        if "replace" not in name
        else PART_SOURCE.append_column("price", PART_SOURCE["id"].cast(pa.int32()))
    )
    stats = CLAUSES[name](whole.merge_insert("id").write_mode("rewrite_rows")).execute(source)
    apart = dataset(tmp_path, "apart.lance", stable=stable)
    plan = form(apart, clauses_of(apart, name), source)
    assert plan.stats == stats
    session, snapshot = apart.opened
    commit_staged(session, None, combine(snapshot, [plan]))
    made = lance_nb.dataset(apart.uri)
    made.validate()
    assert in_order(made) == in_order(whole)
    assert made.version == whole.version


def in_order(one: LanceDataset) -> pa.Table:
    return one.to_table().sort_by([("name", "ascending"), ("id", "ascending")])


def test_a_part_counts_the_rows_that_change_or_go(tmp_path) -> None:
    target = dataset(tmp_path, "rows.lance")
    _, snapshot = target.opened
    source = PART_SOURCE.append_column("price", PART_SOURCE["id"].cast(pa.int32()))
    with source_rows(source) as rows:
        parts = [
            plan_fragments(snapshot, rows, clauses_of(target, "replace"), OPTIONS, [one])
            for one in snapshot.manifest.fragments
        ]
    live = [one.num_rows for one in snapshot.manifest.fragments]
    assert [one.num_rows for one in parts] == live  # what has no partner goes
    assert sum(one.plan.num_updated_rows for one in parts) > 0


@pytest.mark.parametrize("form", [by_fragments, by_keys])
def test_two_rows_for_one_are_refused(tmp_path, form: Any) -> None:
    target = dataset(tmp_path, "rows.lance")
    twice = pa.concat_tables([PART_SOURCE, PART_SOURCE.slice(3, 1)])
    with pytest.raises(MergeInsertError, match="multiple source rows match"):
        form(target, clauses_of(target, "upsert"), twice)


def test_columns_alone_are_united_too(tmp_path) -> None:
    target = dataset(tmp_path, "rows.lance")
    clauses = replace(
        CLAUSES["conditional"](target.merge_insert("id"))._clauses,
        write_mode="rewrite_columns", condition=None,
    )  # fmt: skip
    _, snapshot = target.opened
    with source_rows(PART_SOURCE) as rows:
        parts = [
            plan_fragments(snapshot, rows, clauses, OPTIONS, [one])
            for one in snapshot.manifest.fragments
        ]
    plan = united_plans([one.plan for one in parts])
    session, _ = target.opened
    commit_staged(session, None, combine(snapshot, [plan]))
    made = lance_nb.dataset(target.uri)
    expected = dataset(tmp_path, "whole.lance")
    expected.merge_insert("id").when_matched_update_all().execute(PART_SOURCE)
    assert in_order(made) == in_order(expected)
    assert len(made.get_fragments()) == len(target.get_fragments())


def test_nothing_is_a_plan_as_well(tmp_path) -> None:
    target = dataset(tmp_path, "rows.lance")
    plan = without_rows(target.opened[1], clauses_of(target, "upsert"))
    assert set(plan.stats.values()) == {0}


def test_filters_of_keys_are_united() -> None:
    arrays = [pa.array(np.arange(start, start + 50)) for start in (0, 1000)]
    filters = [KeyFilter.of_keys([3], [one]) for one in arrays]
    both = KeyFilter.united(filters)
    assert both == KeyFilter.of_keys([3], [pa.concat_arrays(arrays)])
    assert all(both.may_overlap(one) for one in filters)
    assert not both.may_overlap(KeyFilter.of_keys([3], [pa.array([500_000])]))
    dates = [KeyFilter.of_keys([3], [one.cast(pa.time64("ns"))]) for one in arrays]
    assert KeyFilter.united(dates).may_overlap(dates[1])
    assert KeyFilter.united([filters[0], dates[0]]).hashes is None
