"""The tables of a diff: transactions between two versions, and indices that differ."""

from __future__ import annotations

from dataclasses import replace

import pytest

import lance_nb
from lance_nb.table.diff.change_tables import transactions_table, versions_between
from lance_nb.transactions.operations.create_index import CreateIndex
from tests.support.versions import index
from tests.unit.table.diff.conftest import rows


def test_versions_are_listed_and_described_in_parts(past) -> None:
    diff = past().diff(2, 6)
    found = versions_between(diff.ends)

    assert [one.version for one in found] == [3, 4, 5, 6]
    part = transactions_table(diff.ends, found[1:3])
    assert part.column("operation").to_pylist() == ["Delete", "Merge"]
    assert part.to_pylist() == diff.transactions.to_pylist()[1:3]
    log = diff.ends.source.log(None)
    known = [log.transaction(number) for number in (4, 5)]
    assert part.column("uuid").to_pylist() == [one.uuid for one in known if one is not None]
    assert part.column("read_version").to_pylist() == [3, 4]
    assert part.column("description").to_pylist() == [one.description for one in known if one]


def test_versions_without_a_transaction_are_described_without_it(past) -> None:
    diff = past(steps=3).diff(1, 3)
    log = type(diff.ends.source.log(None))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log, "transaction", lambda _self, _version: None)
        found = transactions_table(diff.ends, versions_between(diff.ends)).to_pylist()
    told = [(one["version"], one["uuid"], one["read_version"], one["description"]) for one in found]
    assert told == [(2, None, None, None), (3, None, None, None)]


def test_both_sides_of_a_fork_are_listed(past) -> None:
    ds = past(steps=3)
    branch = ds.create_branch("dev", 2)
    lance_nb.write_dataset(rows(20, 22), branch, mode="append")

    found = versions_between(lance_nb.dataset(ds.uri, ("dev", None)).diff(("main", 3)).ends)

    assert [(one.side, one.branch, one.version) for one in found] == [
        ("a", None, 3), ("b", "dev", 3),
    ]  # fmt: skip


def test_indices_come_stay_and_go(two_fragments) -> None:
    field = two_fragments.lance_schema.field("id").id()
    first, second = (index(name, field, covers=(0, 1)) for name in ("one", "two"))
    two_fragments._change(CreateIndex((first, second)))
    two_fragments.drop_index("two")
    less = replace(first, fragment_bitmap=index("one", covers=(1,)).fragment_bitmap)
    two_fragments._change(CreateIndex((less,), (first,)))

    def told(a: int, b: int) -> list[tuple]:
        names = ("change", "name", "fragments_before", "fragments_after")
        return [
            tuple(row[one] for one in names) for row in two_fragments.diff(a, b).indices.to_pylist()
        ]

    assert told(1, 2) == [("added", "one", None, 2), ("added", "two", None, 2)]
    assert told(2, 3) == [("removed", "two", 2, None)]
    assert told(3, 2) == [("added", "two", None, 2)]
    assert told(3, 4) == [("changed", "one", 2, 1)]
    assert told(2, 2) == []
