"""The rule of all verbs: a commit moves the handle that it was made with to the new version."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb import LanceDataset

ROWS = pa.table({"id": pa.array(range(10), pa.int64()), "x": pa.array([1.5] * 10)})
Verb = Callable[[LanceDataset], object]


def merge_plan(ds: LanceDataset) -> object:
    experiment = ds.create_branch("plan")
    experiment.insert(ROWS)
    return ds.branches.plan_merge("plan").commit()


def merge(ds: LanceDataset, **options: Any) -> object:
    experiment = ds.create_branch("experiment")
    experiment.insert(ROWS)
    experiment.insert(ROWS)
    return ds.branches.merge("experiment", **options)


def pick(ds: LanceDataset) -> object:
    experiment = ds.create_branch("experiment")
    experiment.insert(ROWS)
    return ds.cherry_pick(("experiment", experiment.version))


def revert(ds: LanceDataset, *, dry_run: bool = False) -> object:
    ds.delete("id = 5")
    plan = ds.revert(ds.version, dry_run=dry_run)
    return plan.commit() if dry_run else plan


def restore(ds: LanceDataset) -> object:
    ds.delete("id = 5")
    old = ds.checkout_version(1)
    old.restore()
    assert old.version == 3
    return ds.checkout_latest()


def join_stages(ds: LanceDataset) -> object:
    return ds.stage().delete("id = 1").joined(ds.stage().append(ROWS)).commit()


def upsert(ds: LanceDataset) -> object:
    builder = ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    return builder.execute(ROWS)


VERBS: dict[str, Verb] = {
    "insert": lambda ds: ds.insert(ROWS),
    "delete": lambda ds: ds.delete("id < 3"),
    "update": lambda ds: ds.update({"x": "2.5"}, where="id = 1"),
    "edit": lambda ds: ds.edit({0: {"x": 4.5}}),
    "merge_insert": upsert,
    "restore": restore,
    "update_config": lambda ds: ds.update_config({"k": "v"}),
    "delete_config_keys": lambda ds: (ds.update_config({"k": "v"}), ds.delete_config_keys(["k"])),
    "update_metadata": lambda ds: ds.update_metadata({"k": "v"}),
    "update_schema_metadata": lambda ds: ds.update_schema_metadata({"k": "v"}),
    "replace_schema_metadata": lambda ds: ds.replace_schema_metadata({"k": "v"}),
    "update_field_metadata": lambda ds: ds.update_field_metadata({"x": {"k": "v"}}),
    "replace_field_metadata": lambda ds: ds.replace_field_metadata("x", {"k": "v"}),
    "add_columns": lambda ds: ds.add_columns({"y": "x + 1"}),
    "alter_columns": lambda ds: ds.alter_columns({"path": "x", "name": "z"}),
    "drop_columns": lambda ds: ds.drop_columns(["x"]),
    "merge": lambda ds: ds.merge(pa.table({"id": [1], "w": ["a"]}), "id"),
    "truncate_table": lambda ds: ds.truncate_table(),
    "create_scalar_index": lambda ds: ds.create_scalar_index("id", "BTREE"),
    "drop_index": lambda ds: (ds.create_scalar_index("id", "BTREE"), ds.drop_index("id_idx")),
    "compact_files": lambda ds: (ds.insert(ROWS), ds.optimize.compact_files()),
    "optimize_indices": lambda ds: (
        ds.create_scalar_index("id", "BTREE"),
        ds.insert(ROWS),
        ds.optimize.optimize_indices(),
    ),
    "stage": lambda ds: ds.stage().delete("id = 1").append(ROWS).commit(),
    "stage of a compaction": lambda ds: (ds.insert(ROWS), ds.stage().compact().commit()),
    "stages joined": join_stages,
    "branches.merge": merge,
    "branches.merge in replay": lambda ds: merge(ds, strategy="replay"),
    "branches.merge step by step": lambda ds: merge(ds, squash=False),
    "branches.plan_merge": merge_plan,
    "cherry_pick": pick,
    "revert": revert,
    "plan of a revert": lambda ds: revert(ds, dry_run=True),
    "expectations": lambda ds: ds.expectations.add("id IS NOT NULL"),
}


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS.keys())
def test_a_verb_moves_its_handle(tmp_path: Any, verb: Verb) -> None:
    ds = lance_nb.write_dataset(ROWS, tmp_path / "t", enable_stable_row_ids=True)
    verb(ds)
    newest = lance_nb.dataset(tmp_path / "t")
    assert 1 < ds.version == newest.version
    assert ds.to_table().equals(newest.to_table())


def test_a_merge_into_another_branch_leaves_the_handle(tmp_path: Any) -> None:
    ds = lance_nb.write_dataset(ROWS, tmp_path / "t")
    experiment = ds.create_branch("experiment")
    experiment.insert(ROWS)  # so that the number of the merge is greater than the handle's
    ds.insert(ROWS)
    ds.branches.merge("main", "experiment")
    assert (ds.branch, ds.version, ds.count_rows()) == (None, 2, 20)
    assert experiment.version == 2
    experiment.checkout_latest()
    assert (experiment.version, experiment.count_rows()) == (3, 30)


def test_an_older_commit_does_not_move_a_handle_back(tmp_path: Any) -> None:
    ds = lance_nb.write_dataset(ROWS, tmp_path / "t")
    stage = ds.stage().append(ROWS)
    stage.commit()
    ds.insert(ROWS)
    assert stage.look_again() == 2
    assert ds.version == 3


def unpickled(part: Any) -> Any:
    return pickle.loads(pickle.dumps(part))  # noqa: S301 - made here


@pytest.mark.parametrize("duplicate", [copy.copy, unpickled])
def test_branches_are_copied_with_their_handle(tmp_path: Any, duplicate: Any) -> None:
    ds = lance_nb.write_dataset(ROWS, tmp_path / "t")
    ds.create_branch("experiment").insert(ROWS)
    duplicate(ds.branches).merge("experiment")
    assert ds.checkout_latest().count_rows() == 20
