"""Which indices a merge leaves, and what they cover."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.format.fragment_reuse import REUSE_INDEX
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.merging.conflicts import Findings
from lance_nb.merging.outcome import IndexFacts, merge_indices
from lance_nb.table.indices import read_indices
from tests.support.merged_branches import adding, pair
from tests.support.versions import index

ALL = {number: number for number in range(4)}
FACTS = IndexFacts(ALL, {0: 0, 1: 1, 2: 2}, {}, frozenset(), keeps_row_ids=True)
BY_A, BY_B = index("i", 0), index("j", 1)
AGAIN = replace(index("again", 0), name="i")


class Places:
    """Says where a folder is: 7 for the source's own, else the base that it has."""

    def folder(self, path: str, base_id: int | None) -> int:
        assert path.startswith("_indices/")
        return 7 if base_id is None else base_id


def merged(
    base: list[IndexMetadata],
    source: list[IndexMetadata],
    target: list[IndexMetadata],
    facts: IndexFacts = FACTS,
) -> tuple[list[tuple[str, list[int]]], list[str]]:
    """Return uuid and coverage of the outcome's indices, and what was noted."""
    sides = [SimpleNamespace(indices=tuple(one)) for one in (base, source, target)]
    sides[1].fragments = dict.fromkeys(range(4))
    ends: Any = SimpleNamespace(base=sides[0], source=sides[1], target=sides[2])
    findings = Findings("fail")
    places: Any = Places()
    found = merge_indices(ends, facts, places, findings)
    for one in found:
        assert one.base_id == (7 if one not in target and one.uuid not in uuids(target) else None)
    return [(one.uuid, sorted(one.fragment_ids() or ())) for one in found], list(findings.notes)


def uuids(indices: list[IndexMetadata]) -> set[str]:
    return {one.uuid for one in indices}


def whole(*indices: IndexMetadata) -> list[tuple[str, list[int]]]:
    return [(one.uuid, [0, 1, 2]) for one in indices]


@pytest.mark.parametrize(
    ("base", "source", "target", "left"),
    [
        ([BY_A], [BY_A], [BY_A], [BY_A]),
        ([], [BY_A], [], [BY_A]),
        ([], [], [BY_A], [BY_A]),
        ([], [BY_A], [BY_B], [BY_B, BY_A]),
        ([], [BY_A], [BY_A], [BY_A]),
        ([BY_A], [], [BY_A], []),
        ([BY_A], [BY_A], [], []),
        ([BY_A], [AGAIN], [BY_A], [AGAIN]),
        ([BY_A], [BY_A], [AGAIN], [AGAIN]),
        ([BY_A], [], [AGAIN], [AGAIN]),
        ([BY_A, BY_B], [BY_B], [BY_A, BY_B], [BY_B]),
        ([BY_A, BY_B], [AGAIN, BY_B], [BY_A, BY_B], [BY_B, AGAIN]),
    ],
    ids=["untouched", "built there", "built here", "one on each side", "the same on both sides",
         "dropped there", "dropped here", "built again there", "built again here",
         "dropped there and built again here", "one of two dropped", "one of two built again"],
)  # fmt: skip
def test_what_either_side_did_to_an_index_is_done(
    base: list[IndexMetadata], source: list[IndexMetadata], target: list[IndexMetadata], left: Any
) -> None:
    assert merged(base, source, target) == (whole(*left), [])


def test_one_built_on_both_sides_stays_as_it_is_here() -> None:
    found, notes = merged([], [AGAIN], [BY_A])
    assert found == whole(BY_A)
    assert notes == ["index 'i' was built on both sides: the one here stays"]


@pytest.mark.parametrize(
    "facts",
    [
        replace(FACTS, fragments={0: 0, 1: 1}),
        replace(FACTS, fragments={0: 0, 1: 2, 2: 1}),
        replace(FACTS, fields={1: 1}),
        replace(FACTS, fields={0: 5}),
        replace(FACTS, keeps_row_ids=False),
    ],
    ids=["a fragment has other data", "fragments have other numbers", "the column is gone",
         "the column has another id", "rows have other ids"],
)  # fmt: skip
def test_one_that_would_point_at_other_rows_is_left_out(facts: IndexFacts) -> None:
    found, notes = merged([], [BY_A], [], facts)
    assert found == []
    assert len(notes) == 1
    assert "'i' of the source is left out" in notes[0]


def test_columns_that_an_index_holds_as_well_must_be_there_too() -> None:
    covering = replace(BY_A, covering_fields=(3,))
    assert merged([], [covering], [])[0] == []
    facts = replace(FACTS, fields={0: 0, 3: 3})
    assert merged([], [covering], [], facts)[0] == whole(covering)


def test_parts_of_one_index_come_together_or_not_at_all() -> None:
    part = replace(index("part", 0, covers=(3,)), name="i")
    both = merged([], [index("i", 0, covers=(0, 1)), part], [])[0]
    assert [covered for _, covered in both] == [[0, 1], [3]]
    facts = replace(FACTS, fragments={0: 0, 1: 1, 2: 2})
    assert merged([], [BY_A, part], [], facts)[0] == []


def test_fragments_that_are_gone_on_the_source_do_not_matter() -> None:
    wide = index("i", 0, covers=(0, 9))
    assert merged([], [wide], [])[0] == [(wide.uuid, [0, 9])]


def test_what_says_not_what_it_covers_and_bookkeeping_stay_there() -> None:
    silent = replace(BY_A, fragment_bitmap=b"")
    assert merged([], [silent], [])[0] == []
    assert merged([], [index(REUSE_INDEX, kind="FragmentReuse")], [])[0] == []
    assert merged([silent], [silent], [silent]) == ([(silent.uuid, [])], [])


@pytest.mark.parametrize(("rewritten", "covers"), [({1: {0}}, [0, 2]), ({1: {1, 2}}, [0, 1, 2])])
def test_fragments_with_other_values_leave_the_coverage(
    rewritten: dict[int, set[int]], covers: list[int]
) -> None:
    facts = replace(FACTS, rewritten=rewritten)
    assert merged([BY_A], [BY_A], [BY_A], facts)[0] == [(BY_A.uuid, covers)]
    assert merged([], [BY_A], [], facts)[0] == [(BY_A.uuid, covers)]
    held = replace(BY_B, covering_fields=(0,))
    facts = replace(FACTS, rewritten={2: {0}})
    assert merged([held], [held], [held], facts)[0] == [(held.uuid, [0, 1])]


def test_fragments_with_rows_that_live_again_stay_where_these_were_indexed() -> None:
    facts = replace(FACTS, revived=frozenset({1, 2}))
    there = index("i", 0, covers=(1,))
    assert merged([BY_A], [there], [BY_A], facts)[0] == [(BY_A.uuid, [0, 1])]
    assert merged([], [], [BY_A], facts)[0] == [(BY_A.uuid, [0])]
    assert merged([], [replace(there, fragment_bitmap=b"")], [BY_A], facts)[0] == [(BY_A.uuid, [0])]


# --- whole merges ---------------------------------------------------------------------------------


def indexed(made: LanceDataset) -> dict[str, list[int]]:
    """Return what each index covers now."""
    found = read_indices(lance_nb.dataset(made.uri)._snapshot)
    return {one.name: sorted(one.fragment_ids() or ()) for one in found}


def building(made: LanceDataset) -> None:
    made.create_scalar_index("v", "BTREE")


Act = Callable[[LanceDataset], object]


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize(
    ("on_main", "on_dev", "expected"),
    [
        ([adding(20)], [building], {"v_idx": [0, 1, 2]}),
        ([building], [adding(20)], {"v_idx": [0, 1, 2]}),
        ([adding(20)], [adding(30), building], {}),
        (
            [building],
            [lambda made: made.update({"v": "v + 100"}, "id < 2", mode="columns")],
            {"v_idx": [1, 2]},
        ),
        ([building], [lambda made: made.update({"v": "v + 100"}, "id < 2")], {"v_idx": [0, 1, 2]}),
    ],
    ids=["built there", "built here", "over rows with other numbers", "columns written anew",
         "rows written anew"],
)  # fmt: skip
def test_an_index_answers_after_a_merge(
    on_main: list[Act], on_dev: list[Act], expected: dict[str, list[int]], stable: bool
) -> None:
    main, dev = pair(stable)
    for act in on_main:
        act(main)
    for act in on_dev:
        act(dev)

    main.branches.merge("dev")

    assert indexed(main) == expected
    main = lance_nb.dataset(main.uri)
    rows = main.to_table().to_pylist()
    for value in {row["v"] for row in rows} | {0, 1}:
        found = main.to_table(filter=f"v = {value}").to_pylist()
        assert found == [row for row in rows if row["v"] == value]
    main.validate()


@pytest.mark.parametrize(("built_first", "covers"), [(True, [0, 1, 2]), (False, [1, 2])])
def test_rows_that_live_again_are_found(built_first: bool, covers: list[int]) -> None:
    main, _ = pair(False)
    if built_first:
        building(main)
    main.delete("id = 0")
    deleted_at = main.version
    if not built_first:
        building(main)

    main.revert(deleted_at)

    assert indexed(main)["v_idx"] == covers
    assert lance_nb.dataset(main.uri).to_table(filter="v = 0")["id"].to_pylist() == [0]
