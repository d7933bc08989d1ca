"""Common ancestors, and the versions since."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from lance_nb.errors import InvalidInputError, RefNotFoundError, VersionNotFoundError
from lance_nb.format.fragment import DataFile, Fragment
from lance_nb.format.merge_record import PICK, MergeRecord
from lance_nb.format.refs import Branch
from lance_nb.merging.merge_base import (
    Base,
    Merges,
    Side,
    Step,
    base_of,
    branch_merges,
    fork_of,
    load_line,
    own_steps,
    records_of,
    shared_since,
    steps_from,
    uuids_of,
)
from lance_nb.table.ancestry import Line, ancestry
from lance_nb.transactions.operations.append import Append
from lance_nb.transactions.transaction import Transaction
from tests.support.committing import SCHEMA

DEV = Branch(None, 3, ((3, "d"),))
EXP = Branch("dev", 5, ((3, "d"), (5, "e")))
NESTED = {"dev": DEV, "exp": EXP}
NO_PLACES: Any = None  # where files lie, which ids do not depend on


def _merge(source: str, version: int, kind: str = "merge") -> MergeRecord:
    return MergeRecord(kind, None, source, version, None, 1, 1, "replay")


def _base(source: tuple[str | None, int], target: tuple[str | None, int], *merges: Merges) -> Base:
    lines = ancestry(NESTED, *source), ancestry(NESTED, *target)
    found = (*merges, (), ())
    return base_of(*lines, (found[0], found[1]))


def test_a_branch_of_a_branch_comes_from_both() -> None:
    assert ancestry(NESTED, "exp", 9) == (
        Line("e", "exp", 9), Line("d", "dev", 5), Line("main", None, 3)
    )  # fmt: skip


def test_the_fork_is_the_latest_version_that_both_hold() -> None:
    exp, dev, main = (
        ancestry(NESTED, name, version) for name, version in (("exp", 9), ("dev", 4), (None, 7))
    )

    assert fork_of(exp, main) == Line("main", None, 3)
    assert fork_of(exp, dev) == Line("d", "dev", 4)
    assert fork_of(main, ancestry(NESTED, None, 2)) == Line("main", None, 2)


def test_a_parent_that_was_deleted_or_made_again_is_gone() -> None:
    for branches in ({"exp": EXP}, {"exp": EXP, "dev": Branch(None, 3, ((3, "other"),))}):
        lines = ancestry(branches, "exp", 9)
        assert [one.is_gone for one in lines] == [False, True, False]
        assert lines[1] == Line("d", None, 5, is_gone=True)


def test_old_branches_without_identifier_are_known_by_name_and_time() -> None:
    lines = ancestry({"old": Branch(None, 2, create_at=77)}, "old", 4)

    assert lines == (Line("old@77", "old", 4), Line("main", None, 2))


def test_unknown_branches_and_circles_are_refused() -> None:
    with pytest.raises(RefNotFoundError, match="nope"):
        ancestry(NESTED, "nope", 1)
    circle = {"a": Branch("b", 1), "b": Branch("a", 1)}
    with pytest.raises(InvalidInputError, match="its own ancestor"):
        ancestry(circle, "a", 1)


def test_the_base_is_the_last_merge() -> None:
    into_main = branch_merges([(5, _merge("d", 4)), (6, _merge("d", 6)), (7, None)])

    assert _base(("dev", 8), (None, 9)).line == Line("main", None, 3)
    assert _base(("dev", 8), (None, 9), (), into_main) == Base(Line("d", "dev", 6), in_target=False)


def test_a_branch_comes_along_with_its_child_as_far_as_the_child_holds_it() -> None:
    into_main = branch_merges([(6, _merge("d", 8))])

    assert _base(("exp", 9), (None, 9), (), into_main).line == Line("d", "dev", 5)


def test_merges_both_ways_start_from_the_later_one() -> None:
    into_main = branch_merges([(5, _merge("d", 6))])
    afterwards = branch_merges([(8, _merge("main", 5))])
    before = branch_merges([(5, _merge("main", 4))])

    assert _base(("dev", 9), (None, 9), afterwards, into_main) == Base(
        Line("main", None, 5), in_source=False
    )
    assert _base(("dev", 9), (None, 9), before, into_main).line == Line("d", "dev", 6)


def test_picked_changes_move_no_base() -> None:
    picked = branch_merges([(5, _merge("d", 6, "cherry-pick"))])

    assert _base(("dev", 9), (None, 9), (), picked).line == Line("main", None, 3)


BRANCHES = {"dev": Branch(None, 3, ((3, "d"),)), "exp": Branch("dev", 5, ((3, "d"), (5, "e")))}
MAIN = Line("main", None, 3)


def _transaction(name: str, record: MergeRecord | None = None) -> Transaction:
    properties = {} if record is None else record.properties()
    return Transaction(1, Append(()), name, properties)


class Branches:
    """A repository of which some versions are there, named by branch and number."""

    def __init__(self, *there: tuple[str | None, int], **records: MergeRecord) -> None:
        self.there, self.records = there, records

    def branches(self) -> Mapping[str, Branch]:
        return BRANCHES

    def load(self, branch: str | None, version: int | None) -> Any:
        if (branch, version) not in self.there:
            raise VersionNotFoundError(self.home_uri(branch), version or 0, "none")
        return branch, version

    def transactions(
        self, branch: str | None, versions: Sequence[int]
    ) -> Iterator[Transaction | None]:
        for one in versions:
            name = f"{branch or 'main'}{one}"
            yield _transaction(name, self.records.get(name))

    def home_uri(self, branch: str | None) -> str:
        return f"memory://{branch}"


def _steps(source: tuple[str | None, int], start: Line, **records: MergeRecord) -> tuple[Step, ...]:
    return steps_from(Branches(**records), ancestry(BRANCHES, *source), start)


def _names(steps: Sequence[Step]) -> list[str]:
    return [f"{one.branch or 'main'}{one.version}" for one in steps]


@pytest.mark.parametrize(
    ("branch", "version", "start", "expected"),
    [
        ("exp", 7, MAIN, ["dev4", "dev5", "exp6", "exp7"]),
        ("exp", 7, Line("d", "dev", 4), ["dev5", "exp6", "exp7"]),
        ("exp", 7, Line("e", "exp", 6), ["exp7"]),
        ("exp", 7, Line("main", None, 1), ["main2", "main3", "dev4", "dev5", "exp6", "exp7"]),
        ("dev", 3, MAIN, []),
        (None, 5, MAIN, ["main4", "main5"]),
    ],
)
def test_versions_lead_from_the_oldest_line_to_the_youngest(
    branch: str | None, version: int, start: Line, expected: list[str]
) -> None:
    steps = _steps((branch, version), start)

    assert _names(steps) == list(uuids_of(steps)) == expected


def test_nobody_knows_what_a_deleted_branch_did() -> None:
    lines = ancestry({"exp": BRANCHES["exp"]}, "exp", 6)

    steps = steps_from(Branches(), lines, MAIN)

    assert [(one.branch, one.version) for one in steps] == [(None, 4), (None, 5), ("exp", 6)]
    assert [one.transaction is None for one in steps] == [True, True, False]
    assert uuids_of(steps) == ("exp6",)
    assert list(records_of(steps)) == [(6, None)]


def _own(base: Base, *, of_source: bool, **records: MergeRecord) -> list[str]:
    """Merge version 7 of "dev" into version 7 of main."""
    ends: tuple[tuple[str | None, int], ...] = (("dev", 7), (None, 7))
    order = ends if of_source else ends[::-1]
    lines = tuple(ancestry(BRANCHES, *one) for one in order)
    steps = tuple(_steps(one, MAIN, **records) for one in order)
    holds_base = base.in_source if of_source else base.in_target
    return _names(own_steps(steps, lines, base, holds_base=holds_base))


def test_without_a_merge_all_versions_since_the_fork_are_own() -> None:
    fork = Base(MAIN)

    assert _own(fork, of_source=True) == ["dev4", "dev5", "dev6", "dev7"]
    assert _own(fork, of_source=False) == ["main4", "main5", "main6", "main7"]


def test_after_a_merge_the_source_has_what_came_later_and_the_target_what_was_not_merged() -> None:
    """Main merged version 5 of "dev" as its version 6."""
    base = Base(Line("d", "dev", 5), in_target=False)

    assert _own(base, of_source=True, main6=_merge("d", 5)) == ["dev6", "dev7"]
    assert _own(base, of_source=False, main6=_merge("d", 5)) == ["main4", "main5", "main7"]
    picked = _own(base, of_source=False, main6=_merge("d", 5, PICK))
    assert picked == ["main4", "main5", "main6", "main7"]
    later = _own(base, of_source=False, main6=_merge("d", 6))
    assert later == ["main4", "main5", "main6", "main7"]


@pytest.mark.parametrize(
    ("merged_as", "expected"), [("dev5", ["main6", "main7"]), ("dev6", ["main4", "main5", "main7"])]
)
def test_what_the_base_merged_before_is_not_own(merged_as: str, expected: list[str]) -> None:
    """Version 5 of main is merged into "dev", of which version 5 is the base afterwards."""
    base = Base(Line("d", "dev", 5), in_target=False)
    records = {merged_as: _merge("main", 5), "main6": _merge("d", 5)}
    if merged_as == "dev5":
        del records["main6"]

    assert _own(base, of_source=False, **records) == expected


def test_a_base_that_was_cleaned_up_is_read_from_the_branch_that_began_there() -> None:
    lines = ancestry(BRANCHES, "exp", 7), ancestry(BRANCHES, None, 9)
    fork = Line("d", "dev", 5)

    assert load_line(Branches(("dev", 5), ("exp", 5)), fork, lines) == ("dev", 5)
    assert load_line(Branches(("exp", 5)), fork, lines) == ("exp", 5)
    with pytest.raises(VersionNotFoundError, match="base of this merge"):
        load_line(Branches(("dev", 4), ("exp", 6)), fork, lines)


@pytest.mark.parametrize("version", [4, 6])
def test_a_branch_that_began_elsewhere_has_no_copy_of_the_base(version: int) -> None:
    lines = ancestry(BRANCHES, "exp", 7), ancestry(BRANCHES, None, 9)

    with pytest.raises(VersionNotFoundError):
        load_line(Branches(("exp", version)), Line("d", "dev", version), lines)


def test_a_deleted_branch_is_not_looked_for_by_name() -> None:
    lines = ancestry({"exp": BRANCHES["exp"]}, "exp", 7), ancestry(BRANCHES, None, 9)
    gone = Line("d", None, 5, is_gone=True)

    assert load_line(Branches((None, 5), ("exp", 5)), gone, lines) == ("exp", 5)


@pytest.mark.parametrize(
    ("highest", "allocated", "fields", "expected"),
    [
        (None, None, (0, 1), (4, 1)),
        (9, None, (0, 1), (9, 1)),
        (0, 6, (0, 1), (0, 6)),
        (None, 0, (0, 8), (4, 8)),
    ],
)
def test_branches_number_alike_up_to_the_highest_ids_of_their_fork(
    highest: int | None, allocated: int | None, fields: tuple[int, ...], expected: tuple[int, int]
) -> None:
    manifest: Any = SimpleNamespace(
        max_fragment_id=highest, schema=SCHEMA, max_allocated_field_id=allocated, next_row_id=11
    )
    one = Fragment(4, (DataFile("a.lance", fields, (0, 1), 2, 2),), 10)
    snapshot: Any = SimpleNamespace(manifest=manifest)
    side = Side(snapshot, (), {2: one, 4: one}, NO_PLACES)

    shared = shared_since(side)

    assert (shared.fragment_id, shared.field_id, shared.row_id) == (*expected, 11)


def test_a_fork_without_fragments_shares_none() -> None:
    manifest: Any = SimpleNamespace(
        max_fragment_id=None, schema=SCHEMA, max_allocated_field_id=None, next_row_id=0
    )
    snapshot: Any = SimpleNamespace(manifest=manifest)
    side = Side(snapshot, (), {}, NO_PLACES)

    assert side.max_fragment_id == -1
    assert not shared_since(side).has_fragment(0)
    assert shared_since(side).has_field(1)
    assert not shared_since(side).has_field(2)


def test_what_a_merge_brought_from_beyond_a_fork_is_not_on_the_line() -> None:
    """Branch "exp" merged version 5 of main; "dev" left main at 3 and is merged with "exp" at 6."""
    sides: tuple[tuple[str, int], ...] = (("dev", 7), ("exp", 7))
    lines = tuple(ancestry(BRANCHES, *one) for one in sides)
    steps = tuple(_steps(one, MAIN, exp6=_merge("main", 5)) for one in sides)
    base = Base(Line("e", "exp", 6), in_source=False)

    found = _names(own_steps((steps[0], steps[1]), (lines[0], lines[1]), base, holds_base=False))

    assert found == ["dev4", "dev5", "dev6", "dev7"]


def test_a_record_of_the_fork_itself_moves_no_base() -> None:
    merged = ((8, _merge("main", 3)),)

    base = _base((None, 9), ("dev", 9), (), merged)

    assert base == Base(Line("main", None, 3))
    assert (base.in_source, base.in_target) == (True, True)
