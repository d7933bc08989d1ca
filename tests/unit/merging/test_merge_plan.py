"""Merges as they are planned."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.errors import CommitConflictError
from lance_nb.format.merge_record import without_marks
from lance_nb.merging import merge_plan
from lance_nb.merging.row_merge import NOWHERE, ConflictingRows, conflict_table
from lance_nb.table.verification.transactions import _is_next_merge

Make = Callable[..., LanceDataset]


def _rows(ids: range, name: str = "new") -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "name": [name] * len(ids)})


def _content(ds: LanceDataset) -> list[dict[str, Any]]:
    return ds.to_table().sort_by("id").to_pylist()


def _ids(ds: LanceDataset) -> list[int]:
    return sorted(ds.checkout_latest().to_table(columns=["id"])["id"].to_pylist())


@pytest.fixture(params=[False, True], ids=["addresses", "stable ids"])
def pair(request: pytest.FixtureRequest, make: Make) -> tuple[LanceDataset, LanceDataset]:
    """Main, and a branch of it."""
    main = make(enable_stable_row_ids=request.param, max_rows_per_file=5)
    return main, main.create_branch("dev")


Pair = tuple[LanceDataset, LanceDataset]


# --- strategies -----------------------------------------------------------------------------------


def test_a_branch_that_did_nothing_is_up_to_date(pair: Pair) -> None:
    main, _ = pair

    plan = main.branches.merge("dev")

    assert (plan.strategy, plan.version) == ("up-to-date", None)
    assert main.latest_version == 1


def test_a_plan_writes_nothing(pair: Pair, files: Callable[[], dict[str, bytes]]) -> None:
    main, dev = pair
    dev.delete("id = 3")
    main.delete("id = 4")
    before = files()

    plan = main.branches.plan_merge("dev")
    again = main.branches.merge("dev", dry_run=True)

    assert "merging dev:2 into main:2 (base main:1): replay" in str(plan)
    assert "main:2 delete where id = 4" in str(plan)
    assert plan == again
    assert (plan.num_rows_before, plan.num_rows_after, plan.operation) == (9, 8, "Delete")
    assert plan.fragments["change"].to_pylist() == ["changed"]
    assert files() == before


def test_a_fast_forward_can_be_asked_for_and_is_refused_when_the_target_moved(pair: Pair) -> None:
    main, dev = pair
    dev.insert(_rows(range(20, 22)))
    main.delete("id = 1")

    with pytest.raises(
        lance_nb.CommitConflictError, match="main has new versions since the merge base"
    ):
        main.branches.merge("dev", strategy="fast-forward")
    with pytest.raises(lance_nb.InvalidInputError, match="strategy must be one of auto"):
        main.branches.merge("dev", strategy="octopus")
    assert main.latest_version == 2


def test_the_record_names_branch_versions_and_transactions(pair: Pair) -> None:
    main, dev = pair
    dev.insert(_rows(range(20, 22)))
    dev.delete("id = 20")
    uuids = [dev.transaction(version).uuid for version in (2, 3)]  # type: ignore[union-attr]

    main.branches.merge("dev", message="done")

    info = main.checkout_latest().history(1)[0]
    assert info.message == "done"
    found = {key.removeprefix("lance_nb.merge."): value for key, value in info.properties.items()}
    identity = main.branches.list()["dev"]["branch_identifier"][-1][1]
    assert {key: found[key] for key in found if key != "__lance_commit_message"} == {
        "kind": "merge",
        "source_branch": "dev",
        "source_id": identity,
        "source_version": "3",
        "base_branch": "main",
        "base_version": "1",
        "target_version": "1",
        "strategy": "fast-forward",
        "pin": "merged-dev-3",
        "transactions": ",".join(uuids),
        "fields": "{}",
    }


def test_one_version_per_version_of_the_source(pair: Pair) -> None:
    main, dev = pair
    dev.insert(_rows(range(20, 22)))
    dev.delete("id = 2")
    dev.add_columns({"twice": "id * 2"})
    main.insert(_rows(range(30, 31)))
    told: list[tuple[int, int]] = []

    plan = main.branches.merge("dev", squash=False, progress=lambda *done: told.append(done))

    assert plan.version == 5
    assert [one.operation for one in main.checkout_latest().history(3)] == [
        "Merge", "Delete", "Append"
    ]  # fmt: skip
    assert told == [(1, 3), (2, 3), (3, 3)]
    assert _ids(main) == [0, 1, *range(3, 10), 20, 21, 30]
    assert main.branches.merge("dev").strategy == "up-to-date"


def test_no_version_is_merged_when_a_later_one_conflicts_with_itself_undone(pair: Pair) -> None:
    """As a whole the source changes nothing, but its second version conflicts."""
    main, dev = pair
    dev.insert(_rows(range(20, 22)))
    dev.update({"name": "'dev'"}, where="id = 1")
    dev.checkout_version(("dev", dev.version - 1)).restore()
    main.update({"name": "'main'"}, where="id = 1")
    before = main.checkout_latest().version
    main.branches.plan_merge("dev", key="id").check()

    with pytest.raises(lance_nb.CommitConflictError, match="nothing was changed"):
        main.branches.merge("dev", key="id", squash=False)

    assert main.checkout_latest().version == before


_OUTCOMES = ("fail", "ours", "theirs")


@pytest.mark.parametrize("on_conflict", _OUTCOMES)
@pytest.mark.parametrize("copy", [True, False])
def test_a_merge_after_clean_ups_of_both_sides_goes_on_from_the_last_one(
    pair: Pair, on_conflict: str, copy: bool
) -> None:
    main, dev = pair
    dev.optimize.compact_files()
    dev.insert(_rows(range(20, 22)))
    main.branches.merge("dev", key="id", copy=copy)
    main = lance_nb.dataset(main.uri)
    main.delete("id = 20")  # comes back if the merge is not known any more
    main.update({"name": "'main'"}, where="id = 2")
    dev.update({"name": "'dev'"}, where="id = 3")
    dev.insert(_rows(range(30, 31)))
    for side in (main, dev):
        side.cleanup_old_versions(older_than=timedelta(0), error_if_tagged_old_versions=False)

    main = lance_nb.dataset(main.uri)
    plan = main.branches.plan_merge("dev", key="id", copy=copy, on_conflict=on_conflict)
    plan.commit()

    main = lance_nb.dataset(main.uri)
    names = dict(zip(*main.to_table(columns=["id", "name"]).to_pydict().values(), strict=True))
    assert sorted(names) == [*range(10), 21, 30]
    assert (names[2], names[3], plan.conflicts) == ("main", "dev", ())


@pytest.mark.parametrize("on_conflict", _OUTCOMES)
def test_a_restore_counts_as_the_difference_of_contents(pair: Pair, on_conflict: str) -> None:
    main, dev = pair
    main.update({"name": "'main'"}, where="id = 2")
    main.delete("id = 4")
    main.checkout_version(main.version - 1).restore()  # without the deletion
    dev.update({"name": "'dev'"}, where="id = 3")

    main.checkout_latest()
    main.branches.merge("dev", key="id", on_conflict=on_conflict)

    main.checkout_latest()
    names = dict(zip(*main.to_table(columns=["id", "name"]).to_pydict().values(), strict=True))
    assert (sorted(names), names[2], names[3]) == ([*range(10)], "main", "dev")


def test_a_merge_that_was_restored_away_does_not_come_back_after_a_clean_up(pair: Pair) -> None:
    main, dev = pair
    dev.insert(_rows(range(20, 22)))
    main.branches.merge("dev", copy=True)
    main.checkout_version(1).restore()
    dev.insert(_rows(range(30, 31)))
    main.checkout_latest()
    main.cleanup_old_versions(older_than=timedelta(0), error_if_tagged_old_versions=False)

    lance_nb.dataset(main.uri).branches.merge("dev", key="id")

    assert _ids(main) == [*range(10), 30]


def test_a_dropped_column_that_was_restored_and_compacted_takes_changes(pair: Pair) -> None:
    """No file of the base is left that says which column it is."""
    main, dev = pair
    main.drop_columns(["name"])
    main.checkout_version(1).restore()
    main.optimize.compact_files()
    dev.update({"name": "'dev'"}, where="id = 3")

    main.branches.merge("dev", key="id")

    names = dict(zip(*main.to_table(columns=["id", "name"]).to_pydict().values(), strict=True))
    assert (names[3], sorted(names)) == ("dev", [*range(10)])


@pytest.mark.parametrize("cleaned", [False, True])
@pytest.mark.parametrize("renamed_on", ["main", "dev"])
def test_a_column_that_a_merge_by_value_renumbered_is_followed_through_a_new_name(
    pair: Pair, renamed_on: str, cleaned: bool
) -> None:
    main, dev = pair
    main.add_columns({"mine": "id"})  # takes the id that dev gives to its column
    dev.add_columns({"twice": "id * 2"})
    dev.optimize.compact_files()
    main.branches.merge("dev", key="id")
    side = main if renamed_on == "main" else dev
    side.alter_columns({"path": "twice", "name": "double"})
    dev.update({"twice" if renamed_on == "main" else "double": "-1"}, where="id = 3")
    if cleaned:
        for one in (main, dev):
            one.cleanup_old_versions(older_than=timedelta(0), error_if_tagged_old_versions=False)

    main = lance_nb.dataset(main.uri)
    main.branches.merge("dev", key="id")

    main = lance_nb.dataset(main.uri)
    values = dict(zip(*main.to_table(columns=["id", "double"]).to_pydict().values(), strict=True))
    assert values == {id_: -1 if id_ == 3 else 2 * id_ for id_ in range(10)}
    assert "twice" not in main.schema.names


_ACTS: dict[str, Callable[[LanceDataset], object]] = {
    "update": lambda ds: ds.update({"name": "'main'"}, where="id = 4"),
    "delete": lambda ds: ds.delete("id IN (3, 4)"),
    "append": lambda ds: ds.insert(_rows(range(50, 52))),
    "compact": lambda ds: ds.optimize.compact_files(),
    "overwrite": lambda ds: ds.insert(_rows(range(50, 52)), mode="overwrite"),
    "drop": lambda ds: ds.drop_columns(["name"]),
    "add": lambda ds: ds.add_columns({"twice": "id * 2"}),
    "rename": lambda ds: ds.alter_columns({"path": "name", "name": "title"}),
}


@pytest.mark.parametrize("cleaned", [False, True])
@pytest.mark.parametrize("name", _ACTS)
def test_what_was_restored_away_is_not_in_the_way(pair: Pair, name: str, cleaned: bool) -> None:
    """Without a key, with row ids and without."""
    main, dev = pair
    before = _content(main)
    _ACTS[name](main)
    main.checkout_version(1).restore()
    dev.update({"name": "'dev'"}, where="id = 4")
    main = lance_nb.dataset(main.uri)
    if cleaned:
        main.cleanup_old_versions(older_than=timedelta(0), error_if_tagged_old_versions=False)

    plan = main.branches.merge("dev")

    assert plan.conflicts == ()
    rows = [{**row, "name": "dev"} if row["id"] == 4 else row for row in before]
    assert _content(lance_nb.dataset(main.uri)) == rows


@pytest.mark.parametrize("undo", ["restore", "revert"])
@pytest.mark.parametrize("cleaned", [False, True])
def test_a_column_that_a_merge_left_out_takes_changes_when_it_is_back(
    pair: Pair, undo: str, cleaned: bool
) -> None:
    main, dev = pair
    main.drop_columns(["name"])
    dropped = main.version
    dev.delete("id = 1")
    main.branches.merge("dev", key="id")
    main.checkout_latest()
    if undo == "restore":
        main.checkout_version(dropped - 1).restore()
    else:
        main.revert(dropped)
    dev.update({"name": "'dev'"}, where="id = 3")
    if cleaned:
        main.cleanup_old_versions(older_than=timedelta(0), error_if_tagged_old_versions=False)

    main = lance_nb.dataset(main.uri)
    main.branches.merge("dev", key="id")

    main = lance_nb.dataset(main.uri)
    names = dict(zip(*main.to_table(columns=["id", "name"]).to_pydict().values(), strict=True))
    assert names[3] == "dev"


def test_merging_a_branch_again_changes_its_entry_and_loses_no_setting(pair: Pair) -> None:
    main, dev = pair
    for number in (20, 30):
        dev.insert(_rows(range(number, number + 1)))
        main.branches.merge("dev")
    assert main.checkout_latest().verify().findings == ()

    manifest = main.opened[1].manifest
    cleared = without_marks(manifest.config)
    main.update_config(dict.fromkeys(manifest.config.keys() - cleared.keys()))
    assert main.verify().findings == ()
    assert _is_next_merge("lance_nb.merged_from.a", "{}", None) is False


def test_rows_that_a_restore_brought_back_arrive(make: Make) -> None:
    """They are older than the base, which has them not, and their file is here without them."""
    main = make(enable_stable_row_ids=True, max_rows_per_file=5)
    dev = main.create_branch("dev")
    dev.delete("id IN (3, 4)")
    dev.optimize.compact_files()
    main.branches.merge("dev")
    main.update({"name": "'main'"}, where="id = 5")
    dev.checkout_version(("dev", 1)).restore()

    lance_nb.dataset(main.uri).branches.merge("dev")

    main = lance_nb.dataset(main.uri)
    assert _ids(main) == [*range(10)]
    row_ids = main.to_table(columns=["id"], with_row_id=True).sort_by("id")["_rowid"].to_pylist()
    assert row_ids == [*range(10)]


@pytest.mark.parametrize("seed", range(12))
def test_after_an_undo_the_contents_are_merged_or_the_conflict_is_reported(seed: int) -> None:
    """Without row ids and a key: nothing is lost, doubled, or taken from the wrong side."""
    chance = random.Random(seed)
    uri = f"memory://undone/{seed}.lance"
    main = lance_nb.write_dataset(_rows(range(12)), uri, max_rows_per_file=5)
    _change(chance, main, "base", 3)
    dev = main.create_branch("dev")
    base = {row["id"]: row for row in _content(main)}
    undone = main if seed % 2 else dev
    for side in (main, dev):
        _change(chance, side, side.branch or "main", 2)
        if side is undone:
            older = chance.choice(side.version_numbers())
            side.checkout_version((side.branch, older)).restore()
    sides = [lance_nb.dataset(uri, version=(name, None)) for name in (None, "dev")]
    ours, theirs = ({row["id"]: row for row in _content(side)} for side in sides)
    expected, clashes = {}, False
    for key in base.keys() | ours.keys() | theirs.keys():
        before, mine, other = (rows.get(key) for rows in (base, ours, theirs))
        clashes |= before not in (mine, other) and mine != other
        expected[key] = mine if before == other else other
    try:
        sides[0].branches.merge("dev")
    except CommitConflictError:
        return  # the sides met in rows of which nothing says where they went
    assert not clashes
    assert _content(lance_nb.dataset(uri)) == [expected[key] for key in sorted(expected)
                                               if expected[key] is not None]  # fmt: skip


def test_an_undo_on_one_side_is_no_conflict_with_other_rows(pair: Pair) -> None:
    main, _ = pair
    main.update({"name": "'wrong'"}, where="id = 2")
    fork = main.create_branch("later")
    fork.update({"name": "'later'"}, where="id = 7")
    main.checkout_version(1).restore()
    plan = main.checkout_latest().branches.plan_merge("later")
    assert plan.conflicts == ()
    plan.commit()
    names = {row["id"]: row["name"] for row in _content(lance_nb.dataset(main.uri))}
    assert (len(names), names[7], "wrong" in names.values()) == (10, "later", False)


def test_rows_that_an_undo_moved_back_and_the_other_side_changed_are_a_conflict(make: Make) -> None:
    """They are at another place than in the base, and a deletion at the old one would be lost."""
    main = make(max_rows_per_file=5)
    main.optimize.compact_files()
    dev = main.create_branch("dev")
    dev.delete("id = 3")
    main.checkout_version(1).restore()
    with pytest.raises(CommitConflictError, match="a version was restored"):
        main.checkout_latest().branches.merge("dev")
    main.checkout_latest().branches.merge("dev", key="id")
    assert _ids(main) == [0, 1, 2, *range(4, 10)]


def _change(chance: random.Random, ds: LanceDataset, name: str, times: int) -> None:
    for turn in range(times):
        ds.checkout_latest()
        row = chance.randrange(12)
        if (kind := chance.randrange(5)) == 0:
            ds.delete(f"id = {row}")
        elif kind == 1:
            ds.optimize.compact_files()
        elif kind == 2:
            start = {"base": 100, "main": 200, "dev": 300}[name] + 10 * turn
            ds.insert(_rows(range(start, start + 2), name))
        else:
            ds.update({"name": f"'{name} {turn}'"}, where=f"id = {row}")


def test_rows_that_nothing_identifies_are_not_merged_after_a_clean_up(pair: Pair) -> None:
    main, dev = pair
    if main.has_stable_row_ids:
        pytest.skip("row ids identify rows")
    dev.delete("id = 3")
    main.optimize.compact_files()
    main.cleanup_old_versions(older_than=timedelta(0))

    for on_conflict in _OUTCOMES:
        with pytest.raises(lance_nb.CommitConflictError, match="cannot be found again"):
            main.branches.merge("dev", on_conflict=on_conflict)

    main.branches.merge("dev", key="id")
    assert _ids(main) == [0, 1, 2, *range(4, 10)]


def test_a_branch_of_a_branch_is_merged_from_where_both_meet(pair: Pair) -> None:
    main, dev = pair
    dev.insert(_rows(range(20, 21)))
    exp = dev.create_branch("dev/exp")
    exp.insert(_rows(range(30, 31)))
    dev.insert(_rows(range(40, 41)))

    plan = main.branches.merge("dev/exp")

    assert (plan.base.branch, plan.base.version) == (None, 1)
    assert _ids(main) == [*range(10), 20, 30]
    main.branches.merge("dev")
    assert _ids(main) == [*range(10), 20, 30, 40]
    exp.branches.merge("main")
    assert _ids(exp) == [*range(10), 20, 30, 40]


def test_a_merge_goes_on_from_the_last_one_both_ways(pair: Pair) -> None:
    main, dev = pair
    for number in range(3):
        dev.insert(_rows(range(100 + number, 101 + number)))
        main.insert(_rows(range(200 + number, 201 + number)))
        main.branches.merge("dev")
        dev.branches.merge("main", into="dev")
        dev.checkout_latest()
        main.checkout_latest()
        assert _content(dev) == _content(main)
    assert main.branches.merge("dev").strategy == "up-to-date"
    assert _ids(main) == [*range(10), 100, 101, 102, 200, 201, 202]


def test_a_branch_made_again_under_its_name_is_another_branch(pair: Pair) -> None:
    main, dev = pair
    dev.insert(_rows(range(20, 21)))
    main.branches.merge("dev", copy=True)
    main.branches.delete("dev")
    main.checkout_latest()
    again = main.create_branch("dev")
    again.insert(_rows(range(21, 22)))

    plan = main.branches.merge("dev")

    assert plan.base.version == 2
    assert _ids(main) == [*range(10), 20, 21]


# --- what cannot be merged ------------------------------------------------------------------------


def test_sources_that_do_not_exist_are_named(pair: Pair) -> None:
    main, _ = pair
    with pytest.raises(lance_nb.RefNotFoundError, match="nope"):
        main.branches.merge("nope")
    with pytest.raises(lance_nb.RefNotFoundError, match="nope"):
        main.branches.merge("dev", into="nope")
    with pytest.raises(lance_nb.VersionNotFoundError):
        main.branches.merge(("dev", 9))
    with pytest.raises(lance_nb.InvalidInputError, match="into itself"):
        main.branches.merge("main")
    with pytest.raises(lance_nb.InvalidInputError, match="on_conflict is one of"):
        main.branches.merge("dev", on_conflict="mine")
    with pytest.raises(lance_nb.InvalidInputError, match="key must be a column name"):
        main.branches.merge("dev", key=[1])  # type: ignore[list-item]


def test_an_unknown_key_column_is_refused(pair: Pair) -> None:
    main, dev = pair
    dev.delete("id = 1")
    with pytest.raises(lance_nb.ColumnNotFoundError, match="nope"):
        main.branches.merge("dev", key="nope")


@pytest.mark.parametrize("choice", ["ours", "theirs"])
def test_rows_changed_on_both_sides_are_listed_and_decided(pair: Pair, choice: str) -> None:
    main, dev = pair
    dev.update({"name": "'dev'"}, where="id IN (2, 3)")
    main.update({"name": "'main'"}, where="id IN (3, 4)")
    dev.update({"name": "'dev'"}, where="id = 9")
    main.delete("id IN (6, 9)")
    dev.delete("id = 6")

    with pytest.raises(lance_nb.CommitConflictError, match="2 rows changed on both sides"):
        main.branches.merge("dev", key="id")
    assert main.latest_version == 3
    plan = main.branches.plan_merge("dev", key="id")
    pairs = {
        (row["source_version"], row["target_version"]): (row["verdict"], row["outcome"])
        for row in plan.transactions.to_pylist()
    }
    assert pairs[2, 2] == ("rebasable", "conflict")
    assert pairs[3, 2] == ("compatible", "replayed")
    assert plan.conflict_rows()["base"].to_pylist() == [
        {"id": 3, "name": "n3"}, {"id": 9, "name": None}
    ]  # fmt: skip
    assert plan.conflict_rows()["source"].to_pylist()[0] == {"id": 3, "name": "dev"}
    assert plan.conflict_rows()["target"].to_pylist() == [{"id": 3, "name": "main"}, None]

    made = main.branches.merge("dev", on_conflict=choice, key="id")

    assert made.properties["lance_nb.merge.on_conflict"] == choice
    found = {row["id"]: row["name"] for row in _content(main.checkout_latest())}
    assert (found[2], found[4]) == ("dev", "main")
    assert found[3] == ("main" if choice == "ours" else "dev")
    assert (9 in found) == (choice == "theirs")
    assert 6 not in found


def test_without_ids_and_keys_conflicting_rows_cannot_be_decided(make: Make) -> None:
    main = make()
    dev = main.create_branch("dev")
    dev.update({"name": "'dev'"}, where="id = 3")
    main.update({"name": "'main'"}, where="id = 3")

    with pytest.raises(lance_nb.CommitConflictError, match="name the columns that identify a row"):
        main.branches.merge("dev", on_conflict="theirs")


def test_rows_of_one_key_added_on_both_sides_collide_when_there_is_a_key(pair: Pair) -> None:
    main, dev = pair
    dev.insert(_rows(range(20, 23), "dev"))
    main.insert(_rows(range(22, 24), "main"))

    assert not main.branches.plan_merge("dev").conflicts
    with pytest.raises(lance_nb.CommitConflictError, match="1 row of the same id added on both"):
        main.branches.merge("dev", key="id")
    main.branches.merge("dev", key="id", on_conflict="theirs")

    found = {row["id"]: row["name"] for row in _content(main.checkout_latest())}
    assert len(found) == 14
    assert (found[22], found[23]) == ("dev", "main")


def test_settings_of_both_sides_are_merged_key_by_key(pair: Pair) -> None:
    main, dev = pair
    dev.update_config({"a": "1", "b": "1", "same": "x"})
    main.update_config({"b": "2", "c": "2", "same": "x"})
    dev.update_metadata({"t": "dev"})
    dev.update_schema_metadata({"s": "dev"})
    dev.update_field_metadata({"name": {"f": "dev"}})

    with pytest.raises(lance_nb.CommitConflictError, match="config key 'b' is '1' on the source"):
        main.branches.merge("dev")
    main.branches.merge("dev", on_conflict="ours")

    main.checkout_latest()
    assert without_marks(main.config()) == {"a": "1", "b": "2", "c": "2", "same": "x"}
    assert main.metadata == {"t": "dev"}
    assert main.schema_metadata == {"s": "dev"}
    assert main.schema.field("name").metadata == {b"f": b"dev"}


def test_columns_of_both_sides_are_merged(pair: Pair) -> None:
    main, dev = pair
    dev.add_columns({"d": "id + 1"})
    main.add_columns({"m": "id + 2"})
    dev.alter_columns({"path": "name", "name": "title"})

    main.branches.merge("dev")

    main.checkout_latest()
    assert main.schema.names == ["id", "title", "m", "d"]
    assert _content(main)[1] == {"id": 1, "title": "n1", "m": 3, "d": 2}
    assert len({field.id for field in main.lance_schema.tree.walk()}) == 4


@pytest.mark.parametrize("choice", ["ours", "theirs"])
def test_a_column_added_on_both_sides_is_a_conflict(pair: Pair, choice: str) -> None:
    main, dev = pair
    dev.add_columns({"c": "id + 1"})
    main.add_columns({"c": "id + 2"})

    with pytest.raises(lance_nb.CommitConflictError, match="column 'c' was added on both sides"):
        main.branches.merge("dev")
    main.branches.merge("dev", on_conflict=choice)

    assert _content(main.checkout_latest())[0]["c"] == (2 if choice == "ours" else 1)


def test_a_column_changed_here_and_dropped_there_is_a_conflict(pair: Pair) -> None:
    main, dev = pair
    dev.drop_columns(["name"])
    main.alter_columns({"path": "name", "name": "title"})

    with pytest.raises(lance_nb.CommitConflictError, match="dropped on the source and changed"):
        main.branches.merge("dev")
    main.branches.merge("dev", on_conflict="theirs")

    assert main.checkout_latest().schema.names == ["id"]


def test_rows_updated_here_lack_a_column_that_was_added_there(pair: Pair) -> None:
    main, dev = pair
    dev.add_columns({"c": "id + 1"})
    main.update({"name": "'x'"}, where="id = 3")
    main.delete("id = 4")

    lacks = main.branches.plan_merge("dev").unresolved
    if lacks:  # without row ids
        assert "1 row of fragment 0 updated here" in str(lacks[0])
    main.branches.merge("dev", on_conflict="ours")

    found = {row["id"]: row for row in _content(main.checkout_latest())}
    assert found[3] == {"id": 3, "name": "x", "c": None if lacks else 4}
    assert found[2]["c"] == 3
    assert 4 not in found


def test_rows_compacted_on_one_side_are_found_again_by_a_key(pair: Pair) -> None:
    main, dev = pair
    dev.optimize.compact_files()
    dev.update({"name": "'x'"}, where="id = 3")
    main.delete("id = 2")

    main.branches.merge("dev", key="id")

    rows = lance_nb.dataset(main.uri).to_table().to_pylist()
    assert sorted(one["id"] for one in rows) == [0, 1, *range(3, 10)]
    assert next(one for one in rows if one["id"] == 3)["name"] == "x"


def test_a_compaction_is_replayed_where_the_other_side_left_its_fragments_alone(
    pair: Pair,
) -> None:
    main, dev = pair
    dev.optimize.compact_files()
    dev.checkout_latest()
    main.insert(_rows(range(20, 21)))

    plan = main.branches.merge("dev")

    assert plan.operation == "Update"
    assert _ids(main) == [*range(10), 20]
    assert len(main.get_fragments()) == 2


@pytest.mark.parametrize("choice", ["ours", "theirs"])
def test_content_that_was_replaced_is_decided_as_a_whole(pair: Pair, choice: str) -> None:
    main, dev = pair
    dev.insert(_rows(range(50, 52)), mode="overwrite")
    main.insert(_rows(range(20, 21)))

    with pytest.raises(lance_nb.CommitConflictError, match=r"replaced on the source \(overwrite\)"):
        main.branches.merge("dev")
    main.branches.merge("dev", on_conflict=choice)

    assert _ids(main) == ([*range(10), 20] if choice == "ours" else [50, 51])
    assert main.branches.merge("dev").strategy == "up-to-date"


# --- files ----------------------------------------------------------------------------------------


def test_no_data_is_copied_and_a_tag_keeps_it(
    pair: Pair, files: Callable[[], dict[str, bytes]]
) -> None:
    main, dev = pair
    dev.insert(_rows(range(20, 22)))
    before = [path for path in files() if path.startswith("data/")]

    main.branches.merge("dev")

    assert [path for path in files() if path.startswith("data/")] == before
    assert main.tags.list()["merged-dev-2"]["branch"] == "dev"
    with pytest.raises(lance_nb.errors.RefConflictError, match=r"merged-dev-2.*main \(version 2"):
        main.branches.delete("dev")
    main.tags.delete("merged-dev-2")
    with pytest.raises(lance_nb.errors.RefConflictError, match=r"main \(version 2"):
        main.branches.delete("dev")


def test_deletions_alone_need_neither_tag_nor_branch(pair: Pair) -> None:
    main, dev = pair
    dev.delete("id = 3")

    main.branches.merge("dev")

    assert main.tags.names() == []
    main.branches.delete("dev")
    assert _ids(main) == [0, 1, 2, *range(4, 10)]


def test_copied_files_stand_alone(pair: Pair) -> None:
    main, dev = pair
    dev.insert(_rows(range(20, 22)))
    dev.add_columns({"c": "id"})
    told: list[tuple[int, int]] = []

    main.branches.merge("dev", copy=True, progress=lambda *done: told.append(done))

    assert told[-1] == (len(told), len(told))
    assert main.tags.names() == []
    assert main.checkout_latest().base_paths() == {}
    main.branches.delete("dev")
    assert _content(main)[-1] == {"id": 21, "name": "new", "c": 21}


# --- others at the same time ----------------------------------------------------------------------


def test_who_commits_meanwhile_is_planned_for_again(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    main, dev = pair
    dev.insert(_rows(range(20, 22)))
    plan = main.branches.plan_merge("dev")
    others = iter(range(2))
    real = merge_plan.commit_merge

    def slow(*args: Any, **options: Any) -> Any:
        number = next(others, None)
        if number is not None:
            lance_nb.dataset(main.uri).delete(f"id = {number}")
        return real(*args, **options)

    monkeypatch.setattr(merge_plan, "commit_merge", slow)
    made = plan.commit()

    assert (plan.strategy, made.version) == ("fast-forward", 4)
    assert _ids(main) == [*range(2, 10), 20, 21]


def test_a_conflict_that_comes_up_meanwhile_ends_the_commit(pair: Pair) -> None:
    main, dev = pair
    dev.update_config({"k": "dev"})
    plan = main.branches.plan_merge("dev")
    main.update_config({"k": "main"})

    with pytest.raises(lance_nb.CommitConflictError, match="config key 'k'"):
        plan.commit()
    assert main.latest_version == 2


def test_a_plan_is_committed_once(pair: Pair) -> None:
    main, dev = pair
    dev.delete("id = 1")
    made = main.branches.plan_merge("dev").commit("once")

    with pytest.raises(lance_nb.InvalidInputError, match="already committed, as version 2"):
        made.commit()


# --- one change -----------------------------------------------------------------------------------


def test_changes_are_picked_in_any_order_and_merged_afterwards(pair: Pair) -> None:
    main, dev = pair
    dev.insert(_rows(range(30, 32)))
    dev.delete("id = 4")
    dev.update({"name": "'up'"}, where="id = 30")
    main.insert(_rows(range(40, 41)))

    assert main.cherry_pick(("dev", 3)).operation == "Delete"
    assert main.cherry_pick(("dev", 2), message="rows").operation == "Append"
    assert main.version == 4
    with pytest.raises(
        lance_nb.InvalidInputError, match="version 2 of dev is already present here"
    ):
        main.cherry_pick(("dev", 2))
    main.cherry_pick(("dev", 4))
    plan = main.branches.merge("dev")

    assert not plan.conflicts
    assert _ids(main) == [0, 1, 2, 3, *range(5, 10), 30, 31, 40]
    assert [row["name"] for row in _content(main) if row["id"] == 30] == ["up"]


def test_a_change_of_the_parent_is_picked_without_a_pin(pair: Pair) -> None:
    main, dev = pair
    main.insert(_rows(range(20, 22)))

    assert dev.cherry_pick(("main", 2)).operation == "Append"
    assert _ids(dev) == [*range(10), 20, 21]
    assert main.tags.list() == {}


def test_rows_deleted_from_a_fragment_that_was_picked_are_merged(pair: Pair) -> None:
    main, dev = pair
    dev.insert(_rows(range(30, 34)))
    main.insert(_rows(range(40, 41)))
    main.cherry_pick(("dev", 2))
    dev.checkout_latest().delete("id IN (31, 32)")
    main.delete("id = 33")

    main.branches.merge("dev")

    assert _ids(main) == [*range(10), 30, 40]


def test_picking_needs_a_change(pair: Pair) -> None:
    main, dev = pair
    for ref in (("dev", 1), 1):
        with pytest.raises(lance_nb.InvalidInputError, match="is its first version"):
            main.cherry_pick(ref)
    with pytest.raises(
        lance_nb.errors.InvalidRefError, match="expected the version that made the change"
    ):
        dev.cherry_pick(("dev", None))


def test_every_change_is_undone_newest_first(pair: Pair) -> None:
    main, _ = pair
    states = [_content(main)]
    main.insert(_rows(range(20, 22)))
    states.append(_content(main))
    main.delete("id IN (1, 20) OR id >= 5 AND id < 10")
    states.append(_content(main))
    main.update({"name": "'up'"}, where="id IN (2, 21)")
    states.append(_content(main))
    main.add_columns({"c": "id + 1"})
    states.append(_content(main))
    main.drop_columns(["name"])

    for version in range(6, 1, -1):
        main.revert(version)
        assert _content(main) == states[version - 2], version
    assert main.version == 11


def test_a_change_in_the_middle_is_undone_and_later_ones_stay(pair: Pair) -> None:
    main, _ = pair
    main.delete("id = 1")
    main.insert(_rows(range(20, 22)))
    main.update_config({"k": "v"})

    plan = main.revert(2, message="oops")

    assert (plan.kind, plan.operation) == ("revert", "Update")
    assert _ids(main) == [*range(10), 20, 21]
    assert main.history(1)[0].message == "oops"
    with pytest.raises(lance_nb.InvalidInputError, match="nothing to revert"):
        main.revert(2)


def test_an_overwrite_is_undone_while_it_is_the_newest(pair: Pair) -> None:
    main, _ = pair
    before = _content(main)
    main.insert(pa.table({"z": ["a"]}), mode="overwrite")

    main.revert(2)

    assert _content(main) == before
    main.insert(_rows(range(1)), mode="overwrite")
    main.insert(_rows(range(1, 2)))
    with pytest.raises(lance_nb.CommitConflictError, match="whole content was replaced"):
        main.revert(4)


def test_reverting_is_refused_where_later_versions_changed_the_same_rows(pair: Pair) -> None:
    main, _ = pair
    main.insert(_rows(range(20, 22)))
    main.update({"name": "'later'"}, where="id = 20")

    with pytest.raises(lance_nb.CommitConflictError, match="reverting main:2 on main:3"):
        main.revert(2)
    plan = main.revert(2, dry_run=True, key="id", on_conflict="theirs")
    assert [one.num_rows for one in plan.conflicts] == [1]
    assert main.latest_version == 3
    plan.commit()
    assert _ids(main) == list(range(10))


def test_a_compaction_cannot_be_reverted(pair: Pair) -> None:
    main, _ = pair
    main.optimize.compact_files()
    main.checkout_latest()

    with pytest.raises(lance_nb.InvalidInputError, match="rewrote files and changed no row"):
        main.revert(main.version)


def test_row_versions_say_when_the_target_changed(make: Make) -> None:
    main = make(enable_stable_row_ids=True)
    dev = main.create_branch("dev")
    for _ in range(3):
        dev.update_config({"x": "1"})
    dev.insert(_rows(range(20, 21)))
    dev.update({"name": "'up'"}, where="id = 3")
    main.insert(_rows(range(30, 31)))

    main.branches.merge("dev")

    columns = ["id", "_row_created_at_version", "_row_last_updated_at_version", "_rowid"]
    rows = {row["id"]: row for row in main.checkout_latest().to_table(columns).to_pylist()}
    assert rows[20]["_row_created_at_version"] == rows[20]["_row_last_updated_at_version"] == 3
    assert rows[3]["_row_created_at_version"] == 1
    assert rows[3]["_row_last_updated_at_version"] == 3
    assert rows[30]["_row_created_at_version"] == 2
    assert len({row["_rowid"] for row in rows.values()}) == 12
    assert rows[3]["_rowid"] == 3


@pytest.mark.parametrize("version", ["2.1", "2.2"])
def test_an_overwrite_that_starts_anew_is_restored_not_undone(pair: Pair, version: str) -> None:
    main, _ = pair
    before, rows = _content(main), {"id": [{"a": 1}]} if version == "2.2" else {"z": [1]}
    main.insert(pa.table(rows), mode="overwrite", data_storage_version=version)
    with pytest.raises(lance_nb.InvalidInputError, match=r"restore\(\)"):
        main.revert(2)
    main.checkout_version(1).restore()
    main.checkout_latest()
    assert _content(main) == before


def test_a_branch_is_not_merged_into_itself(pair: Pair) -> None:
    main, dev = pair
    with pytest.raises(lance_nb.InvalidInputError, match="branch 'main' cannot be merged into its"):
        main.branches.merge("main")
    with pytest.raises(lance_nb.InvalidInputError, match="branch 'dev' cannot be merged into its"):
        dev.branches.merge("dev", into="dev")


def test_the_primary_key_identifies_rows_where_both_sides_have_it(make: Make) -> None:
    def keyed(*positions: int) -> pa.Schema:
        fields = [
            pa.field(name, pa.int64(), False,
                     {"lance-schema:unenforced-primary-key": "true",
                      "lance-schema:unenforced-primary-key:position": str(position)})
            for name, position in zip("ab", positions, strict=True)
        ]  # fmt: skip
        return pa.schema([*fields, ("v", pa.int64())])

    rows = pa.table([[1, 1, 2], [1, 2, 1], [0, 0, 0]], schema=keyed(2, 1))
    main = make(rows)
    dev = main.create_branch("dev")
    more = pa.table([[7, 8], [7, 7], [1, 1]], schema=keyed(2, 1))
    dev.insert(more)
    main.insert(more.slice(1).set_column(2, "v", [[2]]))

    with pytest.raises(lance_nb.CommitConflictError, match=r"1 row of the same b, a added on both"):
        main.branches.merge("dev")
    main.branches.merge("dev", on_conflict="ours")
    assert lance_nb.dataset(main.uri).count_rows() == 5


def test_rows_that_both_changed_are_shown_in_their_order(pair: Pair) -> None:
    main, dev = pair
    dev.update({"name": "'dev'"}, where="id IN (8, 1, 6)")
    main.update({"name": "'main'"}, where="id IN (8, 1)")
    main.delete("id = 6")

    plan = main.branches.plan_merge("dev", key="id")

    found = plan.conflict_rows().to_pylist()
    assert {row["base"]["id"]: (row["source"], row["target"]) for row in found} == {
        1: ({"id": 1, "name": "dev"}, {"id": 1, "name": "main"}),
        6: ({"id": 6, "name": "dev"}, None),
        8: ({"id": 8, "name": "dev"}, {"id": 8, "name": "main"}),
    }
    assert {row["_rowaddr"] for row in found} == {1, 1 << 32 | 1, 1 << 32 | 3}
    assert plan.conflict_rows(2).num_rows == 2


def test_conflicting_rows_are_shown_in_any_order(pair: Pair) -> None:
    main, dev = pair
    dev.update({"name": "'dev'"}, where="id IN (8, 6)")
    main.update({"name": "'main'"}, where="id IN (8, 6)")
    ends = main.branches.plan_merge("dev", key="id").ends
    base = np.array([[1, 3], [0, 4], [1, 1], [0, 0]], np.int64)
    nowhere = np.full_like(base, NOWHERE)

    found = conflict_table(ends, ConflictingRows(base, nowhere, nowhere), 4)

    assert [row["id"] for row in found["base"].to_pylist()] == [8, 4, 6, 0]
    assert found["source"].null_count == 4


def test_a_merge_that_does_not_land_leaves_no_pin(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    def overtaken(*_: object, **__: object) -> None:
        raise lance_nb.CommitConflictError("overtaken")

    main, dev = pair
    dev.insert(_rows(range(20, 22)))
    monkeypatch.setattr(merge_plan, "commit", overtaken)

    with pytest.raises(lance_nb.CommitConflictError, match="overtaken"):
        main.branches.merge("dev")
    assert main.tags.list() == {}


def test_a_pin_that_the_winner_has_pruned_does_not_hide_why_a_merge_failed(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    main, dev = pair
    dev.insert(_rows(range(20, 22)))
    commit, is_first = merge_plan.commit, True

    def overtaken_once(*args: Any, **options: Any) -> Any:
        nonlocal is_first
        if is_first:
            is_first = False
            other = main.checkout_latest()
            other.insert(_rows(range(30, 31)))
            (pin,) = other.tags.list()
            other.tags.delete(pin)
        return commit(*args, **options)

    monkeypatch.setattr(merge_plan, "commit", overtaken_once)

    plan = main.branches.merge("dev")

    assert plan.version == 3
    assert _ids(main)[-3:] == [20, 21, 30]
    assert list(main.tags.list()) == ["merged-dev-2"]


def test_the_first_row_of_a_branch_that_was_picked_and_deleted_stays_deleted(make: Make) -> None:
    """Its row id is the next one of the base."""
    main = make(enable_stable_row_ids=True, max_rows_per_file=5)
    dev = main.create_branch("dev")
    dev.insert(_rows(range(20, 22)))
    main.cherry_pick(("dev", dev.version))
    main.delete("id = 20")
    dev.update({"name": "'dev'"}, where="id = 3")

    main.branches.merge("dev", resolve="theirs")

    assert [number for number in _ids(main) if number >= 20] == [21]


def test_a_single_row_that_got_another_id_in_a_merge_is_not_taken_for_another(make: Make) -> None:
    main = make(enable_stable_row_ids=True, max_rows_per_file=5)
    dev = main.create_branch("dev")
    main.insert(_rows(range(30, 31)))
    dev.insert(_rows(range(20, 21)))
    main.branches.merge("dev")
    main.optimize.compact_files()
    dev.update({"name": "'dev'"}, where="id = 20")

    (conflict,) = main.branches.plan_merge("dev").conflicts

    assert conflict.needs_key
    assert "got other ids" in conflict.remedy
