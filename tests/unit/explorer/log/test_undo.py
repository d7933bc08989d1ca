"""An act is undone by its inverse where that brings back everything, else by a restore."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.explorer.log.undo import RestoreUndo
from lance_nb.format.merge_record import without_marks

ROWS = pa.table({"id": pa.array(range(10), pa.int64()), "name": [f"n{n}" for n in range(10)]})
MORE = pa.table({"id": pa.array([8, 9, 10, 11], pa.int64()), "name": ["new"] * 4})
_PLACES = itertools.count()
Act = Callable[[LanceDataset], object]


def _merge(ds: LanceDataset) -> object:
    ds.create_branch("aside").insert(MORE.slice(2))
    return ds.branches.merge("aside")


def _upsert(ds: LanceDataset) -> object:
    upsert = ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    return upsert.execute(MORE)


INVERSE: dict[str, Act] = {
    "append": lambda ds: ds.insert(MORE.slice(2)),
    "delete": lambda ds: ds.delete("id IN (1, 7)"),
    "delete a file": lambda ds: ds.delete("id < 5"),
    "update": lambda ds: ds.update({"name": "'x'"}, where="id IN (1, 7)"),
    "upsert": _upsert,
    "add a column": lambda ds: ds.add_columns({"twice": "id * 2"}),
    "drop a column": lambda ds: ds.drop_columns(["name"]),
    "rename a column": lambda ds: ds.alter_columns({"path": "name", "name": "title"}),
    "configure": lambda ds: ds.update_config({"team": "blue"}),
    "index": lambda ds: ds.create_scalar_index("id", "BTREE"),
    "drop an index": lambda ds: ds.drop_index("name_idx"),
    "merge": _merge,
}
WHOLE: dict[str, Act] = {
    "overwrite": lambda ds: ds.insert(MORE, mode="overwrite"),
    "compact": lambda ds: ds.optimize.compact_files(),
}


def _state(ds: LanceDataset) -> dict[str, Any]:
    rows = ds.to_table(with_row_id=ds.has_stable_row_ids).sort_by("id")
    manifest = ds.opened[1].manifest
    return {
        "rows": rows.to_pylist(),
        "schema": ds.schema,
        "config": without_marks(manifest.config),
        "indices": sorted(one["name"] for one in ds.list_indices()),
        "field ids": [one.id for one in manifest.schema.walk()],
    }


@pytest.fixture(params=[False, True], ids=["addresses", "stable ids"])
def main(request: pytest.FixtureRequest) -> LanceDataset:
    uri = f"memory://undone/{next(_PLACES)}"
    ds = lance_nb.write_dataset(ROWS, uri, max_rows_per_file=5, enable_stable_row_ids=request.param)
    ds.create_scalar_index("name", "BTREE")
    return ds


def _act_and_undo(main: LanceDataset, act: Act) -> tuple[dict[str, Any], LanceDataset]:
    before = _state(main)
    act(main)
    newest = lance_nb.dataset(main.uri)
    undo = RestoreUndo(None, newest.version)
    assert undo.reason(newest) == ""
    undone = undo.run(newest, lambda _done, _total: None)
    newest = lance_nb.dataset(main.uri)
    assert undone.version == newest.version
    return before, newest


@pytest.mark.parametrize("name", [*INVERSE, *WHOLE])
def test_what_an_act_changed_is_as_it_was(main: LanceDataset, name: str) -> None:
    before, undone = _act_and_undo(main, (INVERSE | WHOLE)[name])

    assert _state(undone) == before
    again = RestoreUndo(None, undone.version)
    again.run(undone, lambda _done, _total: None)
    redone = lance_nb.dataset(main.uri)
    assert _state(redone)["rows"] == _state(redone.checkout_version(undone.version - 1))["rows"]


@pytest.mark.parametrize("name", [*INVERSE, "overwrite"])
def test_an_undone_act_is_not_in_the_way_of_a_merge(main: LanceDataset, name: str) -> None:
    """Also without row ids and key."""
    dev = main.create_branch("dev")
    before, undone = _act_and_undo(main, (INVERSE | WHOLE)[name])
    assert (undone.history(1)[0].operation == "Restore") == (name in WHOLE)
    dev.update({"name": "'dev'"}, where="id = 3")

    merged = undone.branches.plan_merge("dev")

    assert merged.conflicts == ()
    merged.commit()
    rows = _state(lance_nb.dataset(main.uri))["rows"]
    expected = [{**row, "name": "dev"} if row["id"] == 3 else row for row in before["rows"]]
    assert rows == expected


@pytest.mark.parametrize("name", WHOLE)
def test_what_has_no_useful_inverse_is_restored(main: LanceDataset, name: str) -> None:
    _, undone = _act_and_undo(main, WHOLE[name])
    assert undone.history(1)[0].operation == "Restore"
