"""Repeated row ids, compared with a search that writes every id out; limits of ids and columns."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import CorruptFileError
from lance_nb.format.deletion_vector import DeletionVector
from lance_nb.format.row_sequences import Range, RowIdSegments
from lance_nb.table.verification import fragments
from lance_nb.table.verification.fragments import Piece


def pieces_of(sequences: list[list[int]]) -> list[Piece]:
    pieces: list[Piece] = []
    for at, ids in enumerate(sequences):
        start = 0
        for segment in RowIdSegments.from_numpy(np.array(ids, np.uint64)).segments:
            pieces += fragments._pieces_of(segment, at, start)
            start += len(segment)
    return pieces


def repeated(sequences: list[list[int]], deleted: list[set[int]]) -> set[tuple[int, int, int]]:
    """Return (id, fragment, fragment) of all ids that two live rows have."""
    owners: dict[int, list[int]] = {}
    for at, ids in enumerate(sequences):
        for offset, one in enumerate(ids):
            if offset not in deleted[at]:
                owners.setdefault(one, []).append(at)
    return {
        (one, *sorted((a, b)))
        for one, all_owners in owners.items()
        for number, a in enumerate(all_owners)
        for b in all_owners[number + 1 :]
    }


def drawn(chance: random.Random) -> list[int]:
    start = chance.randrange(40)
    match chance.randrange(4):
        case 0:
            return list(range(start, start + chance.randrange(1, 12)))
        case 1:
            hole = chance.randrange(1, 150)
            return [one for one in range(start, start + 150) if one != start + hole]
        case 2:
            return sorted(chance.sample(range(60), chance.randrange(1, 9)))
    return [chance.randrange(60) for _ in range(chance.randrange(1, 9))]


@pytest.mark.parametrize("seed", range(400))
def test_a_repeated_id_is_found_exactly_where_there_is_one(seed: int) -> None:
    chance = random.Random(seed)
    sequences = [drawn(chance) for _ in range(chance.choice((1, 2, 2, 3)))]
    share = chance.choice((0.0, 0.5, 0.9))
    deleted = [{at for at in range(len(one)) if chance.random() < share} for one in sequences]
    vectors = {at: DeletionVector.of(one) if one else None for at, one in enumerate(deleted)}
    found = next(fragments._shared(pieces_of(sequences), vectors), None)
    expected = repeated(sequences, deleted)
    if found is None:
        assert not expected
    else:
        assert (found[0], *sorted(found[1:])) in expected


def test_a_range_with_few_holes_is_cut_at_them_and_one_with_many_is_listed() -> None:
    ids = [one for one in range(10, 300) if one not in (10, 100, 101)]
    cut = pieces_of([ids])
    assert [(one.low, one.high, one.start) for one in cut] == [(11, 100, 0), (102, 300, 89)]
    (listed,) = pieces_of([[5, 7, 1, 9, 2]])
    assert listed.ids is not None
    assert listed.offsets is not None
    assert (listed.low, listed.high) == (1, 10)
    assert listed.ids.tolist() == [1, 2, 5, 7, 9]
    assert listed.offsets.tolist() == [2, 4, 0, 1, 3]
    assert list(fragments._pieces_of(Range(4, 4), 0, 0)) == []


def test_ranges_that_overlap_more_than_deletions_explain_are_not_written_out() -> None:
    pieces = [Piece(0, 0, 1 << 62, 0), Piece(1, 5, 1 << 62, 0)]
    vectors = {0: DeletionVector.of([1, 2]), 1: None}
    assert list(fragments._shared(pieces, vectors)) == [(5, 0, 1)]
    beside = [Piece(0, 0, 5, 0), Piece(1, 5, 9, 0)]
    assert list(fragments._shared(beside, {})) == []


def test_row_ids_and_columns_are_below_their_limits() -> None:
    dataset = lance_nb.write_dataset(
        pa.table({"a": range(3)}), "memory://fragment-checks/limits.lance",
        enable_stable_row_ids=True,
    )  # fmt: skip
    snapshot = dataset.opened[1]
    (fragment,) = snapshot.manifest.fragments
    assert fragments.check_next_row_id(snapshot, fragment) == 0
    low = replace(snapshot, manifest=replace(snapshot.manifest, next_row_id=2))
    with pytest.raises(CorruptFileError, match=r"expected row ids below 2, .* found 2"):
        fragments.check_next_row_id(low, fragment)

    (file,) = fragment.files
    assert fragments.check_columns(snapshot, fragment, file) == 0
    beyond = replace(file, column_indices=(1,))
    with pytest.raises(CorruptFileError, match=r"expected a column number below 1 .* found 1"):
        fragments.check_columns(snapshot, replace(fragment, files=(beyond,)), beyond)
