"""The versions between two others, listed at once and described in windows."""

from __future__ import annotations

import lance_nb
from lance_nb.table.diff.transactions_between import transactions_table, versions_between
from tests.unit.table.diff.conftest import rows


def test_versions_are_listed_and_described_in_parts(past) -> None:
    diff = past().diff(2, 6)
    found = versions_between(diff.ends)

    assert [one.version for one in found] == [3, 4, 5, 6]
    part = transactions_table(diff.ends, found[1:3])
    assert part.column("operation").to_pylist() == ["Delete", "Merge"]
    assert part.to_pylist() == diff.transactions.to_pylist()[1:3]


def test_both_sides_of_a_fork_are_listed(past) -> None:
    ds = past(steps=3)
    branch = ds.create_branch("dev", 2)
    lance_nb.write_dataset(rows(20, 22), branch, mode="append")

    found = versions_between(lance_nb.dataset(ds.uri, ("dev", None)).diff(("main", 3)).ends)

    assert [(one.side, one.branch, one.version) for one in found] == [
        ("a", None, 3), ("b", "dev", 3),
    ]  # fmt: skip
