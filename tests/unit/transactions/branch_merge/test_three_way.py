"""Whole merges of two branches of small datasets in memory."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import LanceDataset

_NUMBERS = count()
Act = Callable[[LanceDataset], object]


def pair(stable: bool) -> tuple[LanceDataset, LanceDataset]:
    """Return main and a branch of it: three fragments of three rows."""
    table = pa.table({"id": pa.array(range(9), pa.int64()), "v": pa.array(range(9), pa.int64())})
    main = lance_nb.write_dataset(
        table,
        f"memory://three-way/{next(_NUMBERS)}",
        max_rows_per_file=3,
        enable_stable_row_ids=stable,
    )
    return main, main.create_branch("dev")


def deleting(predicate: str) -> Act:
    return lambda made: made.delete(predicate)


def adding(*ids: int) -> Act:
    rows = pa.table({"id": pa.array(ids, pa.int64()), "v": pa.array(ids, pa.int64())})
    return lambda made: made.insert(rows)


def both(*acts: Act) -> Act:
    return lambda made: [one(made) for one in acts]


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
