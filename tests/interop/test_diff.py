"""Diffs of histories that pylance wrote, and its own delta beside ours."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_nb
from tests.support.diffs import Rows, check_diff
from tests.support.random_history import RandomHistory

pytestmark = pytest.mark.interop


def rows(start: int, stop: int) -> pa.Table:
    numbers = range(start, stop)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "v": pa.array(map(float, numbers), pa.float64()),
            "t": pa.array([[str(one), None] for one in numbers], pa.list_(pa.string())),
        }
    )


def history(path: str, *, stable: bool) -> list[int]:
    """Write a history with most kinds of changes; returns the versions worth comparing."""
    lance.write_dataset(rows(0, 12), path, enable_stable_row_ids=stable, max_rows_per_file=5)
    lance.write_dataset(rows(12, 18), path, mode="append")
    lance.dataset(path).update({"v": "v + 100"}, where="id % 5 = 1")
    lance.dataset(path).delete("id in (3, 4, 16)")
    upsert = lance.dataset(path).merge_insert("id").when_matched_update_all()
    upsert.when_not_matched_insert_all().execute(
        pa.table({"id": [2, 90], "v": [0.5, 0.25], "t": [["x"], None]}, rows(0, 0).schema)
    )
    lance.dataset(path).add_columns({"w": "id * 2"})
    lance.dataset(path).optimize.compact_files()
    lance.dataset(path).alter_columns({"path": "v", "data_type": pa.float32()})
    lance.dataset(path).drop_columns(["t"])
    lance.dataset(path, version=5).restore()
    lance.dataset(path).delete("id = 90")
    return [int(one["version"]) for one in lance.dataset(path).versions()]


def held(path: str, version: Any, by: str = "id") -> Rows:
    ds = lance.dataset(path, version=version)
    return {row[by]: row for row in ds.to_table().to_pylist()}


@pytest.mark.parametrize("stable", [True, False])
def test_a_diff_of_a_history_by_pylance_gives_the_other_version(
    tmp_path: Path, stable: bool
) -> None:
    path = str(tmp_path / "history.lance")
    versions = history(path, stable=stable)
    found = {version: held(path, version) for version in versions}
    ds = lance_nb.dataset(path)

    for a, b in permutations(versions[::2], 2):
        for key in (None, "id"):
            check_diff(ds.diff(a, b, key=key), found[a], found[b])


@pytest.mark.parametrize("stable", [True, False])
def test_branches_by_pylance_are_compared_from_their_fork(tmp_path: Path, stable: bool) -> None:
    path = str(tmp_path / "forked.lance")
    ds = lance.write_dataset(rows(0, 10), path, enable_stable_row_ids=stable, max_rows_per_file=5)
    lance.write_dataset(rows(10, 12), path, mode="append")
    dev = lance.dataset(path).create_branch("dev")
    dev.delete("id = 7")
    dev = lance.write_dataset(rows(50, 53), dev, mode="append")
    dev.update({"v": "-1.0"}, where="id in (1, 51)")
    ds = lance.dataset(path)
    ds.delete("id = 2")
    ds = lance.write_dataset(rows(80, 84), ds, mode="append")
    ds.optimize.compact_files()
    ours = lance_nb.dataset(path)
    diff = ours.diff("dev", key="id")

    here = held(path, None)
    there = {row["id"]: row for row in dev.checkout_version(("dev", None)).to_table().to_pylist()}
    check_diff(diff, there, here)
    check_diff(ours.diff("dev"), there, here)
    check_diff(ours.diff("main", "dev"), here, there)
    assert diff.ancestor is not None
    assert (diff.ancestor.branch, diff.ancestor.version) == (None, 2)
    sides = diff.transactions.column("side").to_pylist()
    assert sides.count("a") == 3
    assert sides.count("b") == len(sides) - 3


def test_a_compaction_by_pylance_changes_no_row(tmp_path: Path) -> None:
    path = str(tmp_path / "compacted.lance")
    lance.write_dataset(rows(0, 100), path, max_rows_per_file=9)
    lance.dataset(path).delete("id % 7 = 0")
    before = lance.dataset(path).version
    lance.dataset(path).optimize.compact_files(target_rows_per_fragment=1000)

    diff = lance_nb.dataset(path).diff(before)

    assert diff.identity == "row address"
    assert (diff.summary().added, diff.summary().removed, diff.summary().changed) == (0, 0, 0)
    assert diff.counts.fragments_added >= 1


@pytest.mark.parametrize("stable", [True, False])
@pytest.mark.parametrize("seed", [3, 11])
def test_random_histories_by_pylance_are_compared(tmp_path: Path, seed: int, stable: bool) -> None:
    made = RandomHistory(tmp_path, seed, stable_row_ids=stable)
    made.run(10)
    versions = [one["version"] for one in lance.dataset(made.path).versions()]
    found = {number: held(made.path, number, by="a") for number in versions[::3]}
    ds = lance_nb.dataset(made.path)

    for a, b in permutations(found, 2):
        check_diff(ds.diff(a, b, key="a"), found[a], found[b], by="a")
    check_diff(ds.diff(min(found), max(found), key="_rowaddr"), *_ends(found), by="a")


def _ends(found: dict[int, Rows]) -> tuple[Rows, Rows]:
    return found[min(found)], found[max(found)]


RANGES = [(1, 2), (1, 3), (2, 3), (3, 4), (4, 5), (1, 12), (5, 12), (0, 3), (3, 3), (6, 7), (7, 8)]


def _table(reader: pa.RecordBatchReader) -> list[dict[str, Any]]:
    return sorted(reader.read_all().to_pylist(), key=lambda row: row["_rowid"])


@pytest.mark.parametrize("stable", [True, False])
def test_delta_finds_what_pylance_finds(tmp_path: Path, stable: bool) -> None:
    path = str(tmp_path / "delta.lance")
    versions = history(path, stable=stable)
    for begin, end in [pair for pair in RANGES if pair[1] <= versions[-1]]:
        theirs = lance.dataset(path).delta(begin_version=begin, end_version=end)
        ours = lance_nb.dataset(path).delta(begin_version=begin, end_version=end)

        assert _table(ours.get_inserted_rows()) == _table(theirs.get_inserted_rows())
        assert _table(ours.get_updated_rows()) == _table(theirs.get_updated_rows())
        names = [type(one.operation).__name__ for one in theirs.list_transactions()]
        mine = [type(one.operation).__name__ for one in ours.list_transactions()]
        assert len(mine) == len(names)
        assert all(
            name in (other, "BaseOperation") for name, other in zip(names, mine, strict=True)
        )
        if stable or not begin:
            deleted = _table(ours.get_deleted_row_ids())
            assert deleted == _table(theirs.get_deleted_row_ids())
            gone = _table(ours.get_deleted_rows())
            assert [row["_rowid"] for row in gone] == [row["_rowid"] for row in deleted]
        else:
            for one in (theirs, ours):
                with pytest.raises(ValueError, match="stable row ids"):
                    one.get_deleted_row_ids()


@pytest.mark.parametrize(
    "versions",
    [{}, {"begin_version": 1}, {"end_version": 2}],
    ids=["nothing", "begin alone", "end alone"],
)
def test_delta_refuses_what_pylance_refuses(tmp_path: Path, versions: dict[str, int]) -> None:
    path = str(tmp_path / "refused.lance")
    lance.write_dataset(rows(0, 3), path, enable_stable_row_ids=True)

    for module in (lance, lance_nb):
        with pytest.raises(ValueError, match="begin_version"):
            module.dataset(path).delta(**versions)


def test_the_change_feed_replays_a_history_by_pylance(tmp_path: Path) -> None:
    path = str(tmp_path / "feed.lance")
    versions = history(path, stable=True)
    last = 7  # the history changes a type after this
    state = held(path, 1)
    feed = lance_nb.dataset(path, last).changes(1).read_all().to_pylist()

    for version in versions[1:last]:
        for row in (one for one in feed if one["_commit_version"] == version):
            match row["_change_type"]:
                case "delete":
                    del state[row["id"]]
                case "insert" | "update_postimage":
                    state[row["id"]] = row
                case "update_preimage":
                    assert state[row["id"]]["v"] == row["v"]
        expected = held(path, version)
        assert {key: row["v"] for key, row in state.items()} == {
            key: row["v"] for key, row in expected.items()
        }


@pytest.mark.parametrize("stable", [True, False])
def test_the_life_of_a_row_by_pylance_is_reported(tmp_path: Path, stable: bool) -> None:
    path = str(tmp_path / "life.lance")
    history(path, stable=stable)
    ds = lance_nb.dataset(path)

    life = ds.row_history(key={"id": 6}, columns=["v"]).steps()

    told = [(one.version, one.event) for one in life if one.event in ("created", "updated")]
    assert told[:2] == [(1, "created"), (3, "updated")]
    assert (life[1].old, life[1].new) == ({"v": 6.0}, {"v": 106.0})
    gone = ds.row_history(key={"id": 3}).steps()
    assert (gone[-1].version, gone[-1].event) == (4, "deleted")
    if stable:
        by_id = ds.row_history(6, columns=["v"]).steps()
        assert [(one.version, one.event) for one in by_id] == [
            (one.version, one.event) for one in life
        ]
