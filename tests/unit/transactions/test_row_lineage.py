"""Row ids and row versions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lance_nb.errors import InvalidInputError, NotSupportedError
from lance_nb.format.fragment import ColumnSequence, Fragment, InlineSequence, RowIdMeta
from lance_nb.format.row_sequences import Range, RowIdSegments, RowVersionSequence
from lance_nb.format.wire import U64_MAX
from lance_nb.transactions.row_lineage import (
    CREATED_UNKNOWN,
    assign_row_ids,
    check_new_row_ids,
    row_ids_of,
    stamp_moved_rows,
    stamp_new_rows,
    stamp_some_updated,
)
from tests.support.versions import new_fragment


def with_ids(fragment: Fragment, start: int, end: int) -> Fragment:
    sequence = RowIdSegments((Range(start, end),))
    return replace(fragment, row_id_meta=RowIdMeta(InlineSequence(sequence.to_bytes())))


def ids(fragment: Fragment) -> list[int]:
    return row_ids_of(fragment).to_numpy().tolist()


def runs(sequence: InlineSequence) -> tuple:
    return RowVersionSequence.from_bytes(sequence.data).runs


def test_rows_without_an_id_get_the_next_ones() -> None:
    fragments = [new_fragment(rows=3), with_ids(new_fragment(rows=3), 7, 9), new_fragment(rows=2)]
    assigned, next_id = assign_row_ids(fragments, 20)
    assert [ids(one) for one in assigned] == [[20, 21, 22], [7, 8, 23], [24, 25]]
    assert next_id == 26


def test_new_ids_are_above_all_that_are_brought() -> None:
    fragments = [new_fragment(rows=2), with_ids(new_fragment(rows=2), 30, 32)]
    assigned, next_id = assign_row_ids(fragments, 20)
    assert [ids(one) for one in assigned] == [[32, 33], [30, 31]]
    assert next_id == 34


def test_new_rows_bring_ids_that_no_row_has_or_had() -> None:
    def bring(*ranges: tuple[int, int]) -> None:
        fragments = [with_ids(new_fragment(rows=3), *pair) for pair in ranges]
        check_new_row_ids([*fragments, new_fragment(rows=3)], 6)

    bring((6, 9), (20, 23), (9, 12))
    with pytest.raises(InvalidInputError, match="row id 5"):
        bring((6, 9), (5, 8))
    with pytest.raises(InvalidInputError, match="two new fragments"):
        bring((6, 9), (20, 23), (8, 11))


def test_a_fragment_with_all_ids_and_one_without_rows_are_left_alone() -> None:
    whole = with_ids(new_fragment(rows=2), 5, 7)
    assigned, next_id = assign_row_ids([whole, new_fragment(rows=0)], 9)
    assert assigned[0] is whole
    assert ids(assigned[1]) == []
    assert next_id == 9


def test_more_ids_than_rows_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="1 rows brings 3 row ids"):
        assign_row_ids([with_ids(new_fragment(rows=1), 0, 3)], 9)


def test_row_ids_beyond_64_bits_are_refused() -> None:
    last = U64_MAX - 1
    assert assign_row_ids([new_fragment(rows=1)], last)[1] == U64_MAX
    with pytest.raises(InvalidInputError, match=f"{last} on for 2 rows do not fit 64 bits"):
        assign_row_ids([new_fragment(rows=2)], last)


def test_ids_in_a_hidden_column_are_left_there() -> None:
    hidden = replace(new_fragment(), row_id_meta=RowIdMeta(ColumnSequence(-3)))
    assert assign_row_ids([hidden], 4) == ([hidden], 4)
    with pytest.raises(NotSupportedError, match="do not lie in the manifest"):
        row_ids_of(hidden)


def test_new_rows_are_of_one_version() -> None:
    (stamped,) = stamp_new_rows([new_fragment(rows=4)], 9)
    assert runs(stamped.created_at_versions) == runs(stamped.last_updated_at_versions) == ((4, 9),)


def test_moved_rows_are_found_by_id() -> None:
    sources = stamp_new_rows([with_ids(new_fragment(rows=3), 0, 3)], 2)
    sources += [with_ids(new_fragment(rows=2), 10, 12)]  # does not say when it was created
    (moved,) = stamp_moved_rows([with_ids(new_fragment(rows=4), 1, 5)], sources, 8)
    assert runs(moved.created_at_versions) == ((2, 2), (2, 8))
    assert runs(moved.last_updated_at_versions) == ((4, 8),)
    (moved,) = stamp_moved_rows([with_ids(new_fragment(rows=1), 11, 12)], sources, 8)
    assert runs(moved.created_at_versions) == ((1, CREATED_UNKNOWN),)
    (moved,) = stamp_moved_rows([with_ids(new_fragment(rows=1), 11, 12)], [], 8)
    assert runs(moved.created_at_versions) == ((1, 8),)


def test_some_rows_are_stamped_where_versions_are_known() -> None:
    (fragment,) = stamp_new_rows([new_fragment(rows=4)], 2)
    stamped = stamp_some_updated(fragment, [1, 2], 5)
    assert runs(stamped.last_updated_at_versions) == ((1, 2), (2, 5), (1, 2))
    bare = new_fragment(rows=4)
    assert stamp_some_updated(bare, [1], 5) is bare
    with pytest.raises(InvalidInputError, match="reach 4"):
        stamp_some_updated(fragment, [4], 5)
