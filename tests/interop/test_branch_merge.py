"""Branches that pylance made and both sides changed: after our merge pylance agrees with us."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.format.merge_record import without_marks

pytestmark = pytest.mark.interop


def _rows(ids: range, value: int = 0) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "v": pa.array([value] * len(ids), pa.int64()),
            "t": [f"row {number}" for number in ids],
        }
    )


@pytest.fixture(params=[False, True], ids=["addresses", "stable ids"])
def forked(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A dataset of two fragments with an index on ``id``, and a branch ``dev`` of it."""
    uri = str(tmp_path / "t.lance")
    ds = lance.write_dataset(_rows(range(60)), uri, enable_stable_row_ids=request.param)
    ds = lance.write_dataset(_rows(range(60, 100)), uri, mode="append")
    ds.create_scalar_index("id", "BTREE")
    ds.create_branch("dev")
    return uri


def _pylance(uri: str, branch: str | None = None) -> lance.LanceDataset:
    return lance.dataset(uri).checkout_version((branch, None))


def _content(table: pa.Table) -> list[dict[str, object]]:
    return table.sort_by("id").to_pylist()


def _check(uri: str, branch: str | None = None) -> list[dict[str, object]]:
    """Compare every version of a line as both read it; return the newest content."""
    theirs, ours = _pylance(uri, branch), lance_nb.dataset(uri).checkout_version((branch, None))
    theirs.validate()
    assert theirs.version == ours.version
    for version in ours.version_numbers():
        one = theirs.checkout_version((branch, version))
        other = ours.checkout_version((branch, version))
        assert one.to_table() == other.to_table()
        assert one.count_rows() == other.count_rows()
    some = theirs.to_table(with_row_id=True)
    assert theirs.take(list(range(some.num_rows))) == some.drop_columns(["_rowid"])
    for value in (3, 70, 205):
        indexed = theirs.to_table(filter=f"id = {value}")
        assert indexed == theirs.scanner(filter=f"id = {value}", use_scalar_index=False).to_table()
    return _content(ours.to_table())


def test_a_fast_forward_gives_the_content_of_the_branch(forked: str) -> None:
    dev = _pylance(forked, "dev")
    lance.write_dataset(_rows(range(200, 210), 1), dev, mode="append")
    dev = _pylance(forked, "dev")
    dev.delete("id < 5 OR id = 203")
    dev.update({"v": "9"}, where="id % 10 = 7")
    dev.add_columns({"c": "id * 2"})
    dev.create_scalar_index("v", "BTREE")
    branch = _check(forked, "dev")

    plan = lance_nb.dataset(forked).branches.merge("dev", message="all of dev")

    assert plan.strategy == "fast-forward"
    assert _check(forked) == branch
    main = _pylance(forked)
    assert main.version == plan.version
    assert {one.name for one in main.describe_indices()} == {"id_idx", "v_idx"}
    nine = main.scanner(filter="v = 9")
    assert "ScalarIndexQuery" in nine.explain_plan()
    assert nine.to_table().num_rows == 11
    assert lance_nb.dataset(forked).history(1)[0].message == "all of dev"


def test_both_sides_moved_and_one_version_holds_both(forked: str) -> None:
    dev = _pylance(forked, "dev")
    lance.write_dataset(_rows(range(200, 210), 1), dev, mode="append")
    dev = _pylance(forked, "dev")
    dev.delete("id IN (10, 61, 203)")
    dev.update({"v": "9"}, where="id = 20")
    dev.add_columns({"c": "id * 2"})
    main = lance.write_dataset(_rows(range(300, 320), 2), forked, mode="append")
    main.delete("id IN (11, 62, 10)")
    main.update_config({"who": "main"})

    plan = lance_nb.dataset(forked).branches.merge("dev")

    assert plan.strategy == "replay"
    assert set(plan.transactions["outcome"].to_pylist()) == {"replayed", "merged"}
    merged = _check(forked)
    gone = {10, 11, 61, 62, 203}
    assert [row["id"] for row in merged] == [
        number for number in (*range(100), *range(200, 210), *range(300, 320)) if number not in gone
    ]
    assert next(row for row in merged if row["id"] == 20)["v"] == 9
    assert [row["c"] for row in merged[-2:]] == [None, None]
    assert merged[0]["c"] == 0
    assert without_marks(_pylance(forked).config()) == {"who": "main"}
    _check(forked, "dev")


def test_pylance_goes_on_after_a_merge_and_a_second_merge_starts_there(forked: str) -> None:
    lance.write_dataset(_rows(range(200, 210), 1), _pylance(forked, "dev"), mode="append")
    lance.write_dataset(_rows(range(300, 305), 2), forked, mode="append")
    ours = lance_nb.dataset(forked)
    ours.branches.merge("dev")

    main = _pylance(forked)
    main.delete("id = 201")  # a row whose file lies in the branch's folder
    main.optimize.optimize_indices()
    dev = _pylance(forked, "dev")
    dev.update({"v": "5"}, where="id = 202")
    lance.write_dataset(_rows(range(210, 212)), _pylance(forked, "dev"), mode="append")
    plan = ours.branches.merge("dev")

    assert plan.base.branch == "dev"
    merged = _check(forked)
    assert [row["id"] for row in merged if row["id"] >= 200] == [
        200, *range(202, 212), *range(300, 305)
    ]  # fmt: skip
    assert next(row for row in merged if row["id"] == 202)["v"] == 5
    assert ours.branches.merge("dev").strategy == "up-to-date"
    _pylance(forked).optimize.compact_files()
    assert _check(forked) == merged


def test_a_copied_merge_survives_the_end_of_the_branch(forked: str) -> None:
    lance.write_dataset(_rows(range(200, 210), 1), _pylance(forked, "dev"), mode="append")
    _pylance(forked, "dev").add_columns({"c": "id * 2"})
    ours = lance_nb.dataset(forked)
    ours.branches.merge("dev", copy=True)
    before = _check(forked)

    ours.branches.delete("dev")

    assert _check(forked) == before
    assert not _pylance(forked).get_fragments()[-1].metadata.files[0].base_id


def test_files_that_a_merge_reads_survive_pylances_cleaning(forked: str) -> None:
    lance.write_dataset(_rows(range(200, 210), 1), _pylance(forked, "dev"), mode="append")
    lance.write_dataset(_rows(range(210, 220), 1), _pylance(forked, "dev"), mode="append")
    ours = lance_nb.dataset(forked)
    ours.branches.merge("dev")

    with pytest.raises(lance_nb.errors.RefConflictError, match=r"main \(version"):
        ours.branches.delete("dev")
    with pytest.raises(OSError, match="merged-dev-5"):
        lance.dataset(forked).branches.delete("dev")

    dev = _pylance(forked, "dev")
    dev.optimize.compact_files()
    old = timedelta(0)
    _pylance(forked, "dev").cleanup_old_versions(old, error_if_tagged_old_versions=False)
    _check(forked)


@pytest.mark.parametrize(
    ("change", "arm"),
    [
        (lambda ds: ds.delete("id < 30 OR id = 77"), "Update"),
        (lambda ds: ds.update({"v": "3"}, where="id % 7 = 0"), "Update"),
        (lambda ds: ds.insert(_rows(range(200, 205))), "Delete"),
        (lambda ds: ds.add_columns({"c": "id + 1"}), "Project"),
        (lambda ds: ds.drop_columns(["t"]), "Project"),
        (lambda ds: ds.update_config({"k": "1"}), "UpdateConfig"),
    ],
    ids=["delete", "update", "append", "add column", "drop column", "config"],
)
def test_a_change_of_pylance_is_reverted_and_picked_again(
    forked: str, change: Callable[[lance.LanceDataset], object], arm: str
) -> None:
    main = _pylance(forked)
    before, config = _check(forked), main.config()
    change(main)
    version, after = _pylance(forked).version, _check(forked)
    _pylance(forked).update_config({"between": "1"})
    ours = lance_nb.dataset(forked)

    undone = ours.revert(version)

    assert undone.operation == arm
    assert _check(forked) == before
    assert {**config, "between": "1"} == _pylance(forked).config()
    ours.cherry_pick(version)
    assert _check(forked) == after


@pytest.mark.parametrize("resolve", ["ours", "theirs", "base", ["3.v:=77", "theirs"]])
def test_cells_that_were_chosen_are_those_that_pylance_reads(
    forked: str, resolve: str | list[str]
) -> None:
    dev = _pylance(forked, "dev")
    dev.update({"v": "1"}, where="id IN (3, 70)")
    dev.delete("id = 5")
    main = lance.dataset(forked)
    main.update({"v": "2"}, where="id IN (3, 8)")
    main.optimize.compact_files()
    lance_nb.dataset(forked).branches.merge("dev", key="id", resolve=resolve)
    found = {one["id"]: one["v"] for one in _check(forked)}
    wanted = 77 if isinstance(resolve, list) else {"ours": 2, "theirs": 1, "base": 0}[resolve]
    assert (found[3], found[8], found[70]) == (wanted, 2, 1)
    assert 5 not in found
    theirs = lance.dataset(forked)
    theirs.update({"v": "9"}, where="id = 3")
    theirs.insert(_rows(range(200, 203)))
    theirs.optimize.compact_files()
    assert {one["id"]: one["v"] for one in _check(forked)}[3] == 9
