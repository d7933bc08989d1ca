"""A diff as a value: counts, tables, text, and no more reading than is asked for."""

from __future__ import annotations

import pytest

import lance_nb
from lance_nb.storage import memory
from lance_nb.table import filtered_scan
from lance_nb.table.diff.version_diff import Diff
from tests.unit.table.diff.conftest import rows


def _paths_read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note the path of everything that a memory store reads."""
    seen: list[str] = []
    for name in ("read", "read_range", "read_ranges", "read_tail", "map"):
        real = getattr(memory.MemoryStore, name)

        def noted(self, path, *args, _real=real):
            seen.append(path)
            return _real(self, path, *args)

        monkeypatch.setattr(memory.MemoryStore, name, noted)
    return seen


def _columns_read(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Note the names of the columns of which values are decoded."""
    seen: set[str] = set()
    real = filtered_scan.read_rows

    def noted(snapshot, fragment, columns, rows):
        seen.update(one.field.name for one in columns)
        return real(snapshot, fragment, columns, rows)

    monkeypatch.setattr(filtered_scan, "read_rows", noted)
    return seen


def test_counts_are_exact_where_rows_only_come_or_go(past) -> None:
    ds = past()
    grown, shrunk = ds.diff(1, 2).counts, ds.diff(3, 4).counts

    assert (grown.rows_in, grown.rows_out, grown.rows_exact) == (5, 0, True)
    assert (grown.fragments_added, grown.fragments_equal, grown.files_added) == (1, 2, 1)
    assert (shrunk.rows_in, shrunk.rows_out, shrunk.rows_exact) == (0, 1, True)
    assert (shrunk.fragments_changed, shrunk.rows_deleted, shrunk.transactions) == (1, 1, 1)
    assert grown.bytes_added > 0
    assert (grown.rows_before, grown.rows_after) == (10, 15)


def test_counts_are_bounds_where_rows_come_and_go(past) -> None:
    counts = past().diff(2, 3).counts

    assert (counts.rows_in, counts.rows_out, counts.rows_exact) == (2, 2, False)


def test_a_version_does_not_differ_from_itself(past) -> None:
    diff = past().diff(4, 4)

    assert diff.counts.is_empty
    assert diff.rows().read_all().num_rows == 0
    assert diff.summary().changed == 0


def test_counts_read_manifests_only(past, monkeypatch: pytest.MonkeyPatch) -> None:
    ds = past()
    seen = _paths_read(monkeypatch)

    assert lance_nb.dataset(ds.uri).diff(1, 4).counts.transactions == 3
    assert seen
    assert not [path for path in seen if path.startswith(("data/", "_deletions/"))]


def test_rows_read_the_files_that_differ_and_no_others(past, monkeypatch) -> None:
    ds = past(steps=5)
    files = {one["change"]: one["path"] for one in ds.diff(1, 2).files.to_pylist()}
    added = lance_nb.dataset(ds.uri).diff(1, 2)
    seen = _paths_read(monkeypatch)

    assert added.rows().read_all().num_rows == 5
    assert {path for path in seen if path.startswith("data/")} == {f"data/{files['added']}"}


def test_a_column_written_anew_is_read_alone(make, monkeypatch) -> None:
    ds = make()
    ds.add_columns({"w": "id * 2"})
    before = ds.version
    ds.drop_columns(["w"])
    ds.add_columns({"w": "id * 2 + id % 2"})
    diff = lance_nb.dataset(ds.uri).diff(before)
    seen = _columns_read(monkeypatch)

    assert diff.summary().cells == {"w": 5}
    assert seen == {"w"}


def test_a_compaction_is_followed_without_reading_a_value(past, monkeypatch) -> None:
    ds = past(stable=False)
    diff = lance_nb.dataset(ds.uri).diff(6, 7)
    seen = _columns_read(monkeypatch)

    summary = diff.summary()

    assert (summary.added, summary.removed, summary.changed) == (0, 0, 0)
    assert seen == set()


def test_counts_are_exact_unless_columns_or_as_many_other_rows_changed(past, make) -> None:
    ds = past()
    assert ds.diff(1, 2).counts.rows_exact  # appended
    assert ds.diff(3, 4).counts.rows_exact  # deleted
    assert not ds.diff(4, 5).counts.rows_exact  # a column was added
    other = make()
    other.delete("id = 3")
    other.checkout_version(1).restore()
    lance_nb.dataset(other.uri).delete("id = 4")
    assert not other.diff(2, 4).counts.rows_exact


def test_a_version_without_a_transaction_does_not_end_the_trace_of_a_name(past) -> None:
    ds = past()
    log = type(ds.opened[0].log(None))
    whole = log.transaction

    def forgotten(self, version):
        return None if version == 4 else whole(self, version)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log, "transaction", forgotten)
        changes = ds.diff(1).schema.select(["change", "column", "old_column"]).to_pylist()
    assert changes[0] == {"change": "renamed", "column": "u", "old_column": "v"}


def test_tables_of_the_manifest_level_say_what_differs(past) -> None:
    diff = past().diff(1)

    assert diff.schema.select(["change", "column", "old_column"]).to_pylist() == [
        {"change": "renamed", "column": "u", "old_column": "v"},
        {"change": "added", "column": "w", "old_column": None},
    ]
    assert diff.fragments.column("change").to_pylist() == ["removed", "removed", "added"]
    assert diff.transactions.column("operation").to_pylist() == [
        "Append", "Update", "Delete", "Merge", "Project", "Rewrite",
    ]  # fmt: skip
    assert diff.indices.num_rows == 0
    assert diff.config.num_rows == 0


def test_deletions_are_counted_by_fragment(past) -> None:
    ds = past()

    assert ds.diff(3, 4).deletions.to_pylist() == [
        {"fragment_id": 0, "physical_rows": 5, "deleted_before": 1, "deleted_after": 2,
         "rows_deleted": 1, "rows_undeleted": 0}
    ]  # fmt: skip
    back = ds.diff(4, 3).deletions.to_pylist()[0]
    assert (back["rows_deleted"], back["rows_undeleted"]) == (0, 1)


def test_settings_differ_by_key(make) -> None:
    ds = make()
    ds.update_config({"a": "1", "b": "2"})
    ds.update_config({"a": "3"})

    told = ds.diff(1).config.select(["change", "key", "old", "new"]).to_pylist()
    assert told == [
        {"change": "added", "key": "a", "old": None, "new": "3"},
        {"change": "added", "key": "b", "old": None, "new": "2"},
    ]
    assert ds.diff(2).config.column("old").to_pylist() == ["1"]
    ds.update_config({"b": None, "c": "4"})
    counts = ds.diff(2).counts
    assert (counts.config_added, counts.config_removed, counts.config_changed) == (1, 1, 1)
    assert "settings   +1 -1 ~1" in repr(ds.diff(2))
    assert "settings   +2\n" in f"{ds.diff(1, 2)!r}\n"


def test_the_text_tells_the_numbers_and_how_rows_are_matched(past) -> None:
    text = repr(past().diff(1))

    assert text.startswith("<lance_nb.Diff main:1 .. main:7, 6 transactions>")
    assert "at most +14 -10 (10 -> 14), matched by stable row id" in text
    assert "fields     +1 ~1" in text


def test_what_was_found_is_kept(past) -> None:
    diff = past().diff(1)

    assert diff.fragments is diff.fragments
    assert diff.counts is diff.counts


def test_drift_profiles_the_columns_that_both_have(past) -> None:
    diff = past().diff(1)

    drifts = {one.name: one for one in diff.drift(exact=True)}
    assert set(drifts) == {"id", "u", "t"}
    assert (drifts["u"].before.maximum, drifts["u"].after.maximum) == (9.0, 107.0)
    with pytest.raises(ValueError, match="sample"):
        diff.drift(sample=0)


def test_a_diff_of_a_dataset_that_is_not_open(past) -> None:
    ds = past(steps=2)

    assert lance_nb.diff(ds.uri, "HEAD~1").summary().added == 5
    assert lance_nb.diff(ds.uri, 2, 1).summary().removed == 5
    other = lance_nb.write_dataset(rows(0, 2), "memory://unit-diff/other.lance")
    with pytest.raises(ValueError, match="different datasets"):
        ds.diff(other)


def test_counts_of_branches_that_deleted_other_rows_are_bounds(past) -> None:
    ds = past(steps=2)
    ds.create_branch("dev", 2)
    ds.delete("id = 0")
    lance_nb.dataset(ds.uri, ("dev", None)).delete("id IN (1, 2)")
    diff = lance_nb.dataset(ds.uri).diff("main:3", "dev:3")

    assert (diff.counts.rows_in, diff.counts.rows_out, diff.counts.rows_exact) == (1, 2, False)
    assert (diff.summary().added, diff.summary().removed) == (1, 2)
    one_sided = lance_nb.dataset(ds.uri).diff("main:2", "dev:3").counts
    assert (one_sided.rows_in, one_sided.rows_out, one_sided.rows_exact) == (0, 2, True)


def test_fragments_that_a_branch_took_over_are_equal(past) -> None:
    ds = past(steps=2)
    branch = ds.create_branch("dev", 2)
    branch.delete("id = 3")

    for diff, added in ((ds.diff(2, "dev"), 0), (ds.diff("dev", 1), 0)):
        counts = diff.counts
        assert (counts.fragments_changed, counts.fragments_added) == (1, added)
        assert counts.fragments_equal == (2 if diff.a[0] is None else 1)


def test_new_columns_count_as_changes_only_where_that_is_asked_for(past) -> None:
    diff = past().diff(4, 5)  # adds a column to 14 rows

    assert diff.summary().changed == diff.rows().read_all().num_rows == 0
    assert diff.cells().read_all().num_rows == 0
    assert diff.rows(new_columns=True).read_all().num_rows == 14
    assert diff.cells(new_columns=True).read_all().num_rows == 14


def test_what_a_diff_has_computed_is_no_part_of_it(two_fragments) -> None:
    two_fragments.delete("id = 1")
    diff = two_fragments.diff(1, 2)
    same = Diff(diff.ends, diff.matched_by)
    assert diff.counts.rows_out == 1
    assert diff == same
    assert repr(diff) == repr(same)
