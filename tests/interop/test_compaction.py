"""Compaction by us, read, indexed and continued by pylance; tasks that either of us runs."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop

LINEAGE = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]


@pytest.fixture
def lance() -> Any:
    found = require_pylance()
    import_module("lance.optimize")
    return found


def table(count: int = 2000) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "name": [None if n % 9 == 0 else f"name {n % 300}" for n in range(count)],
            "tags": [[n, None] if n % 3 else [] for n in range(count)],
            "point": [{"x": n / 2, "y": None} if n % 4 else None for n in range(count)],
        }
    )


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("stable", [False, True])
def test_pylance_reads_and_continues_what_we_compacted(
    lance: Any, tmp_path: Path, version: str, stable: bool
) -> None:
    uri = str(tmp_path / "t.lance")
    rows = table().drop_columns(["point"]) if version == "2.0" else table()
    theirs = lance.write_dataset(
        rows, uri, max_rows_per_file=150, data_storage_version=version,
        enable_stable_row_ids=stable,
    )  # fmt: skip
    theirs.delete("id % 7 = 0")
    theirs.update({"name": "'changed'"}, where="id % 11 = 5")
    columns = [*rows.schema.names, *(LINEAGE if stable else [])]
    before = lance.dataset(uri).to_table(columns=columns)
    ours = lance_nb.dataset(uri)
    done = ours.optimize.compact_files(target_rows_per_fragment=700)
    assert done.fragments_removed > done.fragments_added
    found = lance.dataset(uri)
    found.validate()
    assert found.to_table(columns=columns).equals(before)
    found.optimize.compact_files()
    found.delete("id = 12")
    assert lance_nb.dataset(uri).to_table().equals(lance.dataset(uri).to_table())


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("kind", ["BTREE", "BITMAP"])
def test_indices_give_right_answers_after_our_compaction(
    lance: Any, tmp_path: Path, stable: bool, kind: str
) -> None:
    uri = str(tmp_path / "t.lance")
    theirs = lance.write_dataset(table(), uri, max_rows_per_file=150, enable_stable_row_ids=stable)
    theirs.create_scalar_index("name", kind)
    theirs.insert(table(400))
    theirs.delete("id % 5 = 0")
    lance_nb.dataset(uri).optimize.compact_files(target_rows_per_fragment=600)
    found = lance.dataset(uri)
    found.validate()
    for predicate in ("name = 'name 7'", "name >= 'name 29'", "name IS NULL"):
        plain = found.to_table(filter=predicate, use_scalar_index=False).sort_by("id")
        indexed = found.to_table(filter=predicate, use_scalar_index=True).sort_by("id")
        assert indexed.equals(plain)
        assert plain.num_rows == lance_nb.dataset(uri).count_rows(predicate)
    found.optimize.optimize_indices()
    again = found.to_table(filter="name = 'name 7'", use_scalar_index=True)
    assert again.num_rows == lance_nb.dataset(uri).count_rows("name = 'name 7'")


def small(lance: Any, uri: str, *, stable: bool = False) -> Any:
    """Write ten small fragments, some rows deleted."""
    theirs = lance.write_dataset(
        table(1000), uri, max_rows_per_file=100, enable_stable_row_ids=stable
    )
    theirs.delete("id % 10 = 3")
    return theirs


OPTIONS = {"target_rows_per_fragment": 300}


@pytest.mark.parametrize("stable", [False, True])
def test_either_runs_the_tasks_of_the_other(lance: Any, tmp_path: Path, stable: bool) -> None:
    uri = str(tmp_path / "t.lance")
    theirs = small(lance, uri, stable=stable)
    before = theirs.to_table().sort_by("id")
    plan = lance.optimize.Compaction.plan(theirs, OPTIONS)
    ours = lance_nb.dataset(uri)
    mine = lance_nb.Compaction.plan(ours, OPTIONS)
    said = lance_nb.CompactionPlan.from_json(plan.json())
    assert [one.task for one in said.tasks] == [one.task for one in mine.tasks]
    first, *more = (lance_nb.CompactionTask.from_json(one.json()) for one in plan.tasks)
    by_us = lance.optimize.RewriteResult.from_json(first.execute(ours).json())
    (again, *_) = mine.tasks
    again = lance.optimize.CompactionTask.from_json(again.json())
    assert again.execute(theirs).metrics.fragments_removed == by_us.metrics.fragments_removed
    lance.optimize.Compaction.commit(theirs, [by_us])
    by_them = lance.optimize.CompactionTask.from_json(more[0].json()).execute(theirs)
    ours.checkout_latest()
    ours.optimize.commit_compaction([lance_nb.RewriteResult.from_json(by_them.json())])
    found = lance.dataset(uri)
    found.validate()
    assert found.to_table().sort_by("id").equals(before)


def test_pylance_writes_between_our_plan_and_our_commit(lance: Any, tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    theirs = small(lance, uri)
    theirs.create_scalar_index("id", "BTREE")
    ours = lance_nb.dataset(uri)
    plan = lance_nb.Compaction.plan(ours, OPTIONS)
    results = [task.execute(ours) for task in plan.tasks]
    theirs.insert(table(50))
    theirs.delete("id = 999")  # in the last fragments
    theirs.create_scalar_index("name", "BITMAP")
    with pytest.raises(lance_nb.CommitError, match="changed since"):
        lance_nb.Compaction.commit(ours, results)
    lance_nb.Compaction.commit(ours, results[:-1])
    found = lance.dataset(uri)
    found.validate()
    assert found.count_rows() == ours.count_rows() == 900 + 50 - 1
    for text in ("id = 555", "id < 20", "name = 'name 7'"):
        assert "ScalarIndexQuery" in found.scanner(filter=text).explain_plan(True)
        plain = found.to_table(filter=text, use_scalar_index=False).sort_by("id")
        assert found.to_table(filter=text).sort_by("id").equals(plain)


def test_pylance_compacts_between_our_plan_and_our_commit(lance: Any, tmp_path: Path) -> None:
    uri = str(tmp_path / "t.lance")
    theirs = small(lance, uri)
    theirs.create_scalar_index("id", "BTREE")
    ours = lance_nb.dataset(uri)
    first, *others = [task.execute(ours) for task in lance_nb.Compaction.plan(ours, OPTIONS).tasks]
    plan = lance.optimize.Compaction.plan(theirs, OPTIONS)
    deferred = {"defer_index_remap": True}
    done = plan.tasks[-1].execute(theirs)
    lance.optimize.Compaction.commit(theirs, [done], deferred)
    with pytest.raises(lance_nb.CommitError, match="removed since"):
        lance_nb.Compaction.commit(ours, [first, *others])
    lance_nb.Compaction.commit(ours, [first])
    found = lance.dataset(uri)
    found.validate()
    for text in ("id = 5", "id = 995", "id = 400"):
        assert "ScalarIndexQuery" in found.scanner(filter=text).explain_plan(True)
        assert found.to_table(filter=text).num_rows == 1
