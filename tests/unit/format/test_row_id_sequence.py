"""The row ids that users give to a fragment."""

from __future__ import annotations

import copy

import pyarrow as pa
import pytest

from lance_nb.errors import ArgumentError, CorruptFileError, InvalidInputError
from lance_nb.format.fragment import InlineSequence, RowIdMeta
from lance_nb.format.row_id_sequence import RowIdSequence
from lance_nb.format.row_sequences import Range, RowIdSegments


@pytest.mark.parametrize(
    "given",
    [[7, 3, 2**64 - 1], range(3, 9), range(9, 3, -2), [], pa.array([5, 1], pa.int16()),
     pa.chunked_array([[5], [1, 0]])],
)  # fmt: skip
def test_ids_keep_their_order(given: object) -> None:
    ids = RowIdSequence(given)
    expected = given.to_pylist() if isinstance(given, pa.Array | pa.ChunkedArray) else list(given)
    assert list(ids) == ids.to_pyarrow().to_pylist() == expected
    assert len(ids) == len(expected)
    assert RowIdSequence.from_inline_metadata(ids.to_inline_metadata()) == ids
    assert copy.deepcopy(ids) == ids


@pytest.mark.parametrize("given", [[1, 1], [5, 2, 9, 2], [0, 3, 3, 4], [8, 7, 6, 8]])
def test_an_id_twice_is_refused(given: list[int]) -> None:
    twice = next(one for one in given if given.count(one) > 1)
    with pytest.raises(InvalidInputError, match=f"; {twice} stands more often"):
        RowIdSequence(given)


@pytest.mark.parametrize(
    "given", [[-1], [2**64], [1.5], ["1"], range(-2, 2), range(2**64 - 1, 2**64 + 1),
              pa.array([-1]), pa.array([1.0])]
)  # fmt: skip
def test_what_is_no_id_is_refused(given: object) -> None:
    with pytest.raises(ArgumentError):
        RowIdSequence(given)


def test_null_ids_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="1 are"):
        RowIdSequence(pa.array([1, None]))


def test_equality_looks_at_the_ids_and_their_order() -> None:
    assert RowIdSequence(range(3)) == RowIdSequence([0, 1, 2])
    assert RowIdSequence([0, 2, 1]) != RowIdSequence([0, 1, 2])
    assert RowIdSequence([0, 1]) != RowIdSequence([0, 1, 2])
    assert RowIdSequence([]) != []


def test_a_fragment_has_less_than_two_to_the_32_ids():
    most = (1 << 32) - 1
    for count in (most, most + 1):
        stored = RowIdSegments((Range(0, count),)).to_bytes()
        if count == most:
            assert len(RowIdSequence.from_inline_metadata(RowIdMeta.inline(stored))) == most
        else:
            with pytest.raises(CorruptFileError):
                RowIdSequence.from_inline_metadata(RowIdMeta.inline(stored))


@pytest.mark.parametrize(("count", "fits"), [(2**32 - 1, True), (2**32, False)])
def test_there_are_no_more_ids_than_a_fragment_has_rows(count: int, fits: bool) -> None:
    run = RowIdSegments((Range(5, 5 + count),))
    metadata = RowIdMeta(InlineSequence(run.to_bytes()))
    if fits:
        assert len(RowIdSequence.from_inline_metadata(metadata)) == count
    else:
        with pytest.raises(CorruptFileError, match="at most 4294967295 row ids"):
            RowIdSequence.from_inline_metadata(metadata)


def test_a_few_ids_are_shown() -> None:
    assert repr(RowIdSequence([7, 3])) == "RowIdSequence([7, 3])"
    assert repr(RowIdSequence(range(10))) == f"RowIdSequence({list(range(10))})"
    assert repr(RowIdSequence(range(11))) == "RowIdSequence(<11 row ids>)"
