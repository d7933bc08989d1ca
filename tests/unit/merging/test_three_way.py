"""Whole merges of two branches of small datasets in memory."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.errors import CommitConflictError
from tests.support.merged_branches import Act, adding, both, deleting, pair


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize(
    ("on_main", "on_dev", "expected", "fragments"),
    [
        (deleting("id = 0"), deleting("id = 1"), [2, 3, 4, 5, 6, 7, 8], 3),
        (deleting("id < 2"), deleting("id = 2"), [3, 4, 5, 6, 7, 8], 2),
        (deleting("id = 2"), deleting("id < 3"), [3, 4, 5, 6, 7, 8], 2),
        (deleting("id < 3"), deleting("id = 2"), [3, 4, 5, 6, 7, 8], 2),
        (deleting("id < 3"), deleting("id > 5"), [3, 4, 5], 1),
        (deleting("true"), adding(20, 21), [20, 21], 1),
        (adding(20), adding(30, 31), [*range(9), 20, 30, 31], 5),
        (adding(20), both(adding(30, 31), deleting("id in (0, 31)")), [*range(1, 9), 20, 30], 5),
        (adding(20), both(adding(30), deleting("id = 30"), adding(31)), [*range(9), 20, 31], 5),
        (adding(20), both(adding(30), deleting("id < 40")), [20], 1),
    ],
    ids=[
        "rows of one fragment", "its last row", "all of it on the source", "all of it here",
        "a fragment each", "all and new ones", "new ones on both sides", "new ones less some",
        "new ones that are gone", "all of the source",
    ],
)  # fmt: skip
def test_what_both_sides_did_is_there_once(
    stable: bool, on_main: Act, on_dev: Act, expected: list[int], fragments: int
) -> None:
    main, dev = pair(stable)
    on_main(main)
    on_dev(dev)

    plan = main.branches.merge("dev")
    main = lance_nb.dataset(main.uri)

    assert plan.version == main.version
    assert sorted(main.to_table()["id"].to_pylist()) == expected
    numbers = [one.fragment_id for one in main.get_fragments()]
    assert len(set(numbers)) == len(numbers) == fragments
    ids = main.to_table([], with_row_id=True)["_rowid"].to_pylist()
    assert len(set(ids)) == len(expected)
    main.validate()
    assert main.branches.plan_merge("dev").strategy == "up-to-date"


def updating(text: str, where: str, mode: str = "columns") -> Act:
    return lambda made: made.update({"v": text}, where, mode=mode)


def compacting(made: LanceDataset) -> None:
    made.optimize.compact_files()
    made.checkout_latest()


def doubling(made: LanceDataset) -> None:
    made.add_columns({"w": "id * 2"})


def content(made: LanceDataset) -> dict[int, tuple[int | None, ...]]:
    """Return the values of every row by its id."""
    rows = lance_nb.dataset(made.uri).to_table().to_pylist()
    return {row.pop("id"): tuple(row.values()) for row in rows}


START = {n: (n,) for n in range(9)}
DOUBLED = {n: (n, 2 * n) for n in range(9)}
MOVED_100, FIRST_100 = updating("v + 100", "id < 3", "rows"), updating("v + 100", "id < 3")
MOVED_1000, FIRST_1000 = updating("v + 1000", "id < 2", "rows"), updating("v + 1000", "id = 1")


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize(
    ("on_main", "on_dev", "expected"),
    [
        (updating("v + 100", "id = 4"), FIRST_1000, {4: (104,), 1: (1001,)}),
        (deleting("id = 1"), updating("0", "id < 3"), {0: (0,), 1: None, 2: (0,)}),
        (FIRST_100, deleting("id = 1"), {0: (100,), 1: None, 2: (102,)}),
        (FIRST_100, deleting("id < 3"), {0: None, 1: None, 2: None}),
        (deleting("id < 3"), FIRST_100, {0: None, 1: None, 2: None}),
        (both(FIRST_100, FIRST_1000), updating("7", "id = 8"),
         {0: (100,), 1: (1101,), 2: (102,), 8: (7,)}),
    ],
    ids=["other fragments", "rows deleted here", "rows deleted there", "a fragment gone there",
         "a fragment gone here", "twice here"],
)  # fmt: skip
def test_columns_written_anew_meet_other_changes(
    stable: bool, on_main: Act, on_dev: Act, expected: dict[int, tuple[int, ...] | None]
) -> None:
    main, dev = pair(stable)
    on_main(main)
    on_dev(dev)

    main.branches.merge("dev")

    wanted = START | expected
    assert content(main) == {key: row for key, row in wanted.items() if row is not None}
    lance_nb.dataset(main.uri).validate()


HERE_LACKS = "updated here while columns were written on the source"
THERE_LACKS = "updated on the source while columns were written here"


COMPACTED = "rows of fragment 0 were compacted on one side and changed on the other"


@pytest.mark.parametrize(
    ("on_main", "on_dev", "said", "decided"),
    [
        (FIRST_100, MOVED_1000, f"2 rows of fragment 0 {THERE_LACKS}",
         {"theirs": START | {0: (1000,), 1: (1001,), 2: (102,)}}),
        (FIRST_100, updating("-v", "id < 3", "rows"), f"3 rows of fragment 0 {THERE_LACKS}",
         {"theirs": START | {1: (-1,), 2: (-2,)}}),
        (MOVED_100, updating("v + 1000", "id < 3"), f"3 rows of fragment 0 {HERE_LACKS}",
         {"ours": START | {0: (100,), 1: (101,), 2: (102,)}}),
        (updating("v + 100", "id = 0"), FIRST_1000,
         "values of column 'v' of fragment 0 were written on both sides",
         {"ours": START | {0: (100,)}, "theirs": START | {1: (1001,)}}),
        (updating("v + 100", "id = 4", "rows"), doubling, f"1 row of fragment 1 {HERE_LACKS}",
         {"ours": DOUBLED | {4: (104, None)}}),
        (doubling, updating("v + 100", "id = 4", "rows"), f"1 row of fragment 1 {THERE_LACKS}",
         {"theirs": DOUBLED | {4: (104, None)}}),
        (compacting, deleting("id = 1"),
         COMPACTED, {}),
        (compacting, deleting("id < 3"),
         COMPACTED, {}),
        (deleting("id < 3"), compacting,
         COMPACTED, {}),
        (deleting("id = 1"), compacting,
         COMPACTED, {}),
    ],
    ids=["some rows moved there", "all rows moved there", "all rows moved here",
         "one column on both sides", "a row moved here, a new column there",
         "a row moved there, a new column here", "compacted here, rows deleted there",
         "compacted here, a fragment gone there", "a fragment gone here, compacted there",
         "rows deleted here, compacted there"],
)  # fmt: skip
def test_without_row_ids_and_a_key_some_changes_are_conflicts(
    on_main: Act, on_dev: Act, said: str, decided: dict[str, dict[int, object]]
) -> None:
    main, dev = pair(stable=False)
    on_main(main)
    on_dev(dev)
    before = content(main)

    for choice in ("fail", *({"ours", "theirs"} - decided.keys())):
        with pytest.raises(CommitConflictError) as caught:
            main.branches.merge("dev", on_conflict=choice)
        assert said in str(caught.value)
        assert "has 1 conflict;" in str(caught.value)
    assert content(main) == before

    for choice, expected in decided.items():
        main, dev = pair(stable=False)
        on_main(main)
        on_dev(dev)
        main.branches.merge("dev", on_conflict=choice)
        assert content(main) == expected
        lance_nb.dataset(main.uri).validate()


ALL = {n: (n,) for n in range(9)}


@pytest.mark.parametrize("key", [None, "id"], ids=["row ids", "key"])
@pytest.mark.parametrize(
    ("on_main", "on_dev", "ours", "theirs"),
    [
        (updating("v + 100", "id = 4", "rows"), doubling, DOUBLED | {4: (104, 8)}, None),
        (doubling, updating("v + 100", "id = 4", "rows"), DOUBLED | {4: (104, 8)}, None),
        (FIRST_100, MOVED_1000, ALL | {0: (100,), 1: (101,), 2: (102,)},
         ALL | {0: (1000,), 1: (1001,), 2: (102,)}),
        (compacting, deleting("id = 1"), ALL | {1: None}, None),
        (compacting, deleting("id < 3"), ALL | {0: None, 1: None, 2: None}, None),
        (deleting("id < 3"), compacting, ALL | {0: None, 1: None, 2: None}, None),
        (both(compacting, deleting("id = 7")), both(deleting("id = 1"), compacting),
         ALL | {1: None, 7: None}, None),
        (both(compacting, updating("5", "id = 1")), deleting("id = 1"), ALL | {1: (5,)},
         ALL | {1: None}),
    ],
    ids=["a row moved here, a new column there", "a row moved there, a new column here",
         "rows moved there", "compacted here, a row gone", "compacted here, a fragment gone",
         "a fragment gone here", "compacted on both sides", "updated here, gone there"],
)  # fmt: skip
def test_rows_are_found_again_by_row_id_or_key(
    key: str | None,
    on_main: Act,
    on_dev: Act,
    ours: dict[int, object],
    theirs: dict[int, object] | None,
) -> None:
    for choice, wanted in (("ours", ours), ("theirs", theirs or ours)):
        main, dev = pair(stable=key is None)
        on_main(main)
        on_dev(dev)
        is_conflict = theirs is not None
        assert bool(main.branches.plan_merge("dev", key=key).unresolved) is is_conflict
        main.branches.merge("dev", key=key, on_conflict=choice if is_conflict else "fail")
        assert content(main) == {one: row for one, row in wanted.items() if row is not None}
        lance_nb.dataset(main.uri).validate()


def indexing(made: LanceDataset) -> None:
    made.create_scalar_index("v", "BTREE")


def renaming(made: LanceDataset) -> None:
    made.alter_columns({"path": "v", "name": "w"})


def configuring(made: LanceDataset) -> None:
    made.update_config({"k": "v"})


def annotating(made: LanceDataset) -> None:
    made.update_schema_metadata({"k": "v"})


def annotating_a_field(made: LanceDataset) -> None:
    made.update_field_metadata({"v": {"k": "v"}})


@pytest.mark.parametrize(
    ("on_dev", "operation", "mode"),
    [
        (adding(30), "Append", None),
        (deleting("id = 1"), "Delete", None),
        (deleting("id < 3"), "Delete", None),
        (both(adding(30), deleting("id = 1")), "Update", "rewrite_rows"),
        (updating("v + 1", "id < 5"), "Update", "rewrite_columns"),
        (both(updating("v + 1", "id < 5"), adding(30)), "Update", "rewrite_rows"),
        (both(updating("v + 1", "id < 5"), deleting("id = 8")), "Update", "rewrite_rows"),
        (both(updating("v + 1", "id < 5"), deleting("id > 5")), "Update", "rewrite_rows"),
        (renaming, "Project", None),
        (doubling, "Merge", None),
        (both(renaming, deleting("id = 1")), "Merge", None),
        (configuring, "UpdateConfig", None),
        (annotating, "UpdateConfig", None),
        (both(annotating, configuring), "UpdateConfig", None),
        (annotating_a_field, "Project", None),
        (both(configuring, renaming), "Merge", None),
        (both(configuring, adding(30)), "Merge", None),
        (both(updating("v + 1", "id < 5"), configuring), "Overwrite", None),
        (both(updating("v + 1", "id < 5"), renaming), "Overwrite", None),
        (indexing, "CreateIndex", None),
        (both(indexing, configuring), "Overwrite", None),
        (both(indexing, renaming), "Overwrite", None),
        (both(indexing, deleting("id = 1")), "Overwrite", None),
    ],
)
def test_the_operation_that_is_recorded_says_no_less_than_what_is_done(
    on_dev: Act, operation: str, mode: str | None
) -> None:
    main, dev = pair(False)
    adding(20)(main)
    on_dev(dev)

    plan = main.branches.merge("dev")

    assert plan.operation == operation
    main = lance_nb.dataset(main.uri)
    recorded = main.read_transaction(main.version)
    assert recorded is not None
    assert type(recorded.operation).__name__ == operation
    assert getattr(recorded.operation, "update_mode", mode) == mode
    main.validate()
    assert main.count_rows() == lance_nb.dataset(main.uri, version=("dev", None)).count_rows() + 1


def test_a_column_that_no_file_holds_is_known_again_by_its_name() -> None:
    """Added as null, it has another id after the first merge."""
    main, dev = pair(False)
    doubling(main)
    dev.add_columns(pa.schema([("n", pa.int64())]))
    main.branches.merge("dev")
    main.checkout_latest()
    assert main.schema.names == ["id", "v", "w", "n"]
    dev.drop_columns(["n"])

    main.branches.merge("dev")

    assert lance_nb.dataset(main.uri).schema.names == ["id", "v", "w"]


def reverted(stable: bool, *, on_main: bool) -> tuple[LanceDataset, LanceDataset]:
    """Return two branches that share an update of rows 0 and 1; one side has undone it."""
    main, _ = pair(stable)
    main.update({"v": "v + 100"}, "id < 2", mode="rows")
    main = lance_nb.dataset(main.uri)
    dev = main.create_branch("later")
    (main if on_main else dev).revert(("main", main.version), key="id")
    return lance_nb.dataset(main.uri), dev.checkout_version(("later", None))


@pytest.mark.parametrize(
    ("stable", "keyed"), [(False, False), (False, True), (True, False), (True, True)]
)
@pytest.mark.parametrize("choice", ["ours", "theirs"])
@pytest.mark.parametrize("on_main", [False, True])
@pytest.mark.parametrize(
    ("act", "value"), [(deleting("id = 1"), None), (updating("7", "id = 1", "rows"), 7)]
)
def test_an_undone_update_and_another_change_of_the_row_are_a_conflict(
    stable: bool, *, keyed: bool, choice: str, on_main: bool, act: Act, value: int | None
) -> None:
    main, dev = reverted(stable, on_main=on_main)
    act(dev if on_main else main)
    main = lance_nb.dataset(main.uri)
    key = "id" if keyed else None

    with pytest.raises(CommitConflictError, match="1 row changed on both sides"):
        main.branches.merge("later", key=key)
    if not stable and not keyed:
        return
    main.branches.merge("later", key=key, on_conflict=choice)
    is_undone = on_main == (choice == "ours")
    expected = START if is_undone else START | {1: (value,)}
    assert content(main) == {n: row for n, row in expected.items() if row != (None,)}
    lance_nb.dataset(main.uri).validate()


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("on_main", [False, True])
def test_rows_that_live_again_stay_when_the_rest_of_their_fragment_goes(
    stable: bool, on_main: bool
) -> None:
    main, dev = reverted(stable, on_main=on_main)
    (dev if on_main else main).delete("id = 2")

    lance_nb.dataset(main.uri).branches.merge("later", key="id")

    assert content(main) == {n: (n,) for n in range(9) if n != 2}
    lance_nb.dataset(main.uri).validate()


@pytest.mark.parametrize("stable", [False, True])
def test_rows_that_live_again_here_meet_a_compaction_there(stable: bool) -> None:
    main, dev = reverted(stable, on_main=True)
    compacting(dev)
    before = content(main)

    main.branches.merge("later", key="id")

    assert content(main) == before


@pytest.mark.parametrize("stable", [False, True])
def test_an_update_undone_on_both_sides_is_no_conflict(stable: bool) -> None:
    main, dev = reverted(stable, on_main=True)
    dev.revert(("main", 2), key="id")

    main.branches.merge("later", key="id")

    assert content(main) == START


@pytest.mark.parametrize("stable", [False, True])
def test_fragments_of_which_no_row_is_left_take_no_id(stable: bool) -> None:
    main, dev = pair(stable)
    updating("10", "id = 1", "rows")(main)
    both(updating("20", "id = 1", "rows"), adding(30))(dev)

    main.branches.merge("dev", key="id", on_conflict="ours")

    main = lance_nb.dataset(main.uri)
    assert content(main) == START | {1: (10,), 30: (30,)}
    assert [one.fragment_id for one in main.get_fragments()] == [0, 1, 2, 3, 4]


def test_rows_that_a_merge_writes_are_updated_at_its_version() -> None:
    rows = pa.table({"id": range(4), "v": [0] * 4, "w": [0] * 4})
    main = lance_nb.write_dataset(rows, "memory://merged-rows", enable_stable_row_ids=True)
    dev = main.create_branch("dev")
    dev.update({"v": "1"}, where="id = 1")
    main.update({"w": "2"}, where="id < 2")

    main.branches.merge("dev", resolve=["theirs"])

    merged = lance_nb.dataset(main.uri)
    columns = ["id", "v", "w", "_row_last_updated_at_version"]
    assert sorted(map(tuple, (row.values() for row in merged.to_table(columns).to_pylist()))) == [
        (0, 0, 2, 2), (1, 1, 2, merged.version), (2, 0, 0, 1), (3, 0, 0, 1)
    ]  # fmt: skip
