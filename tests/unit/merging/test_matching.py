"""What of one version is what of another."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lance_nb.format.fragment import Fragment, RowDatasetVersionMeta, RowIdMeta
from lance_nb.format.row_sequences import RowIdSegments, RowVersionSequence
from lance_nb.merging.matching import RowHistory, RowIds, merged_stamps, new_ids
from lance_nb.merging.merge_base import Shared
from lance_nb.transactions.row_lineage import all_row_ids, versions_of
from tests.support.versions import new_fragment

HERE = 9  # the version that the outcome is built on


def u64(*values: int) -> Any:
    return np.array(values, np.uint64)


def of(versions: list[int] | None, rows: int = 4, ids: list[int] | None = None) -> Fragment:
    """Return a fragment whose rows were updated, and created, in these versions."""
    made = new_fragment("x", rows)
    if ids is not None:
        sequence = RowIdSegments.from_numpy(u64(*ids))
        made = replace(made, row_id_meta=RowIdMeta.inline(sequence.to_bytes()))
    if versions is None:
        return made
    stamps = RowDatasetVersionMeta.inline(RowVersionSequence.from_numpy(u64(*versions)).to_bytes())
    return replace(made, last_updated_at_version_meta=stamps, created_at_version_meta=stamps)


def ends(next_row_id: int = 0, shared: int | None = None) -> Any:
    manifest = SimpleNamespace(next_row_id=next_row_id)
    target = SimpleNamespace(version=HERE, manifest=manifest)
    return SimpleNamespace(target=target, source_target=Shared(row_id=shared))


def updated(one: Fragment) -> list[int]:
    found: Any = one.last_updated_at_versions
    return versions_of(found, one.physical_rows).tolist()


@pytest.mark.parametrize(
    ("base", "source", "target", "revived", "expected"),
    [
        ([1, 1, 1, 1], [1, 1, 1, 1], [1, 5, 1, 1], [], [1, 5, 1, 1]),
        ([1, 1, 1, 1], [1, 4, 1, 1], [1, 1, 1, 1], [], [1, 10, 1, 1]),
        ([1, 2, 1, 1], [4, 2, 1, 4], [1, 2, 7, 7], [], [10, 2, 7, 10]),
        ([1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 6], [2], [1, 1, 10, 6]),
        ([1, 1, 1, 1], [1, 4, 1, 1], [1, 1, 1, 1], [3], [1, 10, 1, 10]),
        (None, [1, 1, 3, 1], [1, 1, 1, 1], [], [1, 1, 10, 1]),
        (None, [1, 1, 1, 1], [1, 1, 1, 8], [], [1, 1, 1, 8]),
    ],
    ids=["only here", "only there", "both", "alive again", "both kinds", "the base is silent",
         "as the base would say"],
)  # fmt: skip
def test_rows_that_the_source_updated_are_updated_in_the_outcome(
    base: list[int] | None, source: list[int], target: list[int], revived: list[int], expected: Any
) -> None:
    made = merged_stamps(ends(), of(base), of(source), of(target), np.array(revived, np.int64))
    assert updated(made) == expected
    assert replace(made, last_updated_at_version_meta=None) == replace(
        of(target), last_updated_at_version_meta=None
    )


def test_a_fragment_that_records_no_versions_stays_so() -> None:
    silent = of(None)
    assert merged_stamps(ends(), of([1] * 4), of([2] * 4), silent, np.array([1])) is silent


def test_fragments_of_different_lengths_are_left_alone() -> None:
    target = of([1] * 5, 5)
    nothing = np.zeros(0, np.int64)
    assert merged_stamps(ends(), of([1] * 4), of([2] * 4), target, nothing) is target
    grown = merged_stamps(ends(), of([1] * 3, 3), of([1, 1, 1, 1]), of([1] * 4), nothing)
    assert updated(grown) == [10] * 4  # nobody can say which rows are the base's


# --- ids of new rows ------------------------------------------------------------------------------

NOTHING = RowIds(u64(), u64())


@pytest.mark.parametrize(
    ("shared", "first", "ids", "expected", "free"),
    [
        (None, 10, [[10, 11]], {10: 10, 11: 11}, 12),
        (None, 20, [[10, 11]], {10: 10, 11: 11}, 20),
        (10, 10, [[10, 11]], {10: 10, 11: 11}, 12),
        (10, 12, [[10, 11], [14]], {10: 12, 11: 13, 14: 14}, 15),
        (10, 12, [[3, 10]], {3: 3, 10: 12}, 13),
        (10, 12, [[3, 4]], {3: 3, 4: 4}, 12),
        (10, 12, [], {}, 12),
        (10, 12, [[13, 12]], {12: 12, 13: 13}, 14),
    ],
    ids=["one line", "one line, more here", "none here yet", "some here", "moved and new",
         "moved only", "nothing", "beyond all here"],
)  # fmt: skip
def test_new_rows_get_ids_that_nobody_has_here(
    shared: int | None, first: int, ids: list[list[int]], expected: dict[int, int], free: int
) -> None:
    added = [of(None, len(one), one) for one in ids]
    made = new_ids(ends(first, shared), NOTHING, added)
    assert made.of(u64(*expected)).tolist() == list(expected.values())
    assert made.next_row_id == free
    assert made.keeps_ids is (list(expected) == list(expected.values()))


def test_rows_that_are_here_under_another_id_keep_that() -> None:
    known = RowIds(u64(11, 12), u64(21, 12))
    made = new_ids(ends(30, 10), known, [of(None, 3, [10, 11, 12])])
    assert made.of(u64(10, 11, 12)).tolist() == [30, 21, 12]
    assert made.next_row_id == 31
    assert not made.keeps_ids


def test_fragments_without_ids_need_none() -> None:
    assert new_ids(ends(5, 3), NOTHING, [of(None)]).next_row_id == 5


# --- when rows were created and updated -----------------------------------------------------------


def test_rows_keep_what_is_known_of_them() -> None:
    history = RowHistory([of([2, 3, 2, 5], ids=[7, 3, 9, 1]), of(None), of(None, 1, [20])])
    source = of([4, 4, 8, 8, 8], 5, [3, 1, 9, 20, 50])

    made = history.stamped(source, u64(3, 1, 9, 20, 99), base_version=4, version=10)

    assert all_row_ids(made).tolist() == [3, 1, 9, 20, 99]
    created: Any = made.created_at_versions
    assert versions_of(created, 5).tolist() == [3, 5, 2, 1, 10]
    assert updated(made) == [3, 5, 10, 10, 10]


def test_the_newest_place_of_a_row_counts() -> None:
    history = RowHistory([of([2, 2], 2, [7, 8]), of([6], 1, [7])])
    made = history.stamped(of([1, 1], 2, [7, 8]), u64(7, 8), base_version=4, version=10)
    assert updated(made) == [6, 2]


def test_without_history_every_row_is_new() -> None:
    made = RowHistory([]).stamped(of([1, 1], 2, [7, 8]), u64(0, 1), base_version=4, version=10)
    assert updated(made) == [10, 10]
