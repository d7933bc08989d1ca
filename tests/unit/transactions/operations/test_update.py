"""Update, in both modes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyroaring import BitMap

from lance_nb.errors import CorruptFileError, InvalidInputError
from lance_nb.format.fragment import DataFile, InlineSequence, RowIdMeta
from lance_nb.format.key_filter import KeyFilter
from lance_nb.format.row_sequences import RowIdSegments, RowVersionSequence, Values
from lance_nb.transactions.conflict_grid import check
from lance_nb.transactions.conflict_rules import Circumstances, Verdict
from lance_nb.transactions.operations.append import Append
from lance_nb.transactions.operations.create_index import CreateIndex
from lance_nb.transactions.operations.update import Update, UpdateMode
from lance_nb.transactions.operations.update_mem_wal_state import UpdateMemWalState
from tests.support.sample_operations import LOG
from tests.support.versions import Versions, deleted, index, new_fragment

COLUMNS = UpdateMode.REWRITE_COLUMNS


def moved_rows(*row_ids: int, rows: int | None = None) -> object:
    import numpy as np

    sequence = RowIdSegments((Values(np.array(row_ids, np.uint64), True),))
    fragment = new_fragment("moved", rows or len(row_ids))
    return replace(fragment, row_id_meta=RowIdMeta(InlineSequence(sequence.to_bytes())))


def created(fragment: object) -> list[int]:
    return RowVersionSequence.from_bytes(fragment.created_at_versions.data).to_numpy().tolist()


def updated(fragment: object) -> list[int]:
    return RowVersionSequence.from_bytes(fragment.last_updated_at_versions.data).to_numpy().tolist()


def test_rows_move_to_new_fragments_at_the_end() -> None:
    versions = Versions(3)
    versions.apply(Update((1,), (deleted(versions.fragment(0), 2),), (new_fragment("moved", 12),)))
    assert versions.fragment_ids == [0, 2, 3]
    assert versions.fragment(0).num_deleted_rows == 2


def test_moved_rows_keep_their_ids_and_the_version_they_were_created_in() -> None:
    versions = Versions(1, stable_row_ids=True)
    versions.apply(Append((new_fragment("x"),)))
    changed = tuple(deleted(versions.fragment(one), 1) for one in (0, 1))
    versions.apply(Update((), changed, (moved_rows(3, 14),)))
    moved = versions.fragment(2)
    assert RowIdSegments.from_bytes(moved.row_ids.data).to_numpy().tolist() == [3, 14]
    assert created(moved) == [1, 2]
    assert updated(moved) == [3, 3]
    assert versions.manifest.next_row_id == 20


def test_inserted_rows_get_new_ids_behind_the_moved_ones() -> None:
    versions = Versions(1, stable_row_ids=True)
    versions.apply(Update((), (deleted(versions.fragment(0), 1),), (moved_rows(3, rows=3),)))
    moved = versions.fragment(1)
    assert RowIdSegments.from_bytes(moved.row_ids.data).to_numpy().tolist() == [3, 10, 11]
    assert created(moved) == [1, 2, 2]
    assert versions.manifest.next_row_id == 12


def test_more_row_ids_than_rows_are_refused() -> None:
    versions = Versions(1, stable_row_ids=True)
    with pytest.raises(InvalidInputError, match="2 row ids"):
        versions.apply(Update((), (), (moved_rows(3, 4, rows=1),)))


def test_indices_that_know_rows_by_id_cover_moved_rows_if_no_value_of_theirs_changed() -> None:
    versions = Versions(2, stable_row_ids=True)
    kinds = {"a": "Bitmap", "b": "Bitmap", "zones": "ZoneMap"}
    fields = {"a": 0, "b": 1, "zones": 0}
    versions.apply(
        CreateIndex(tuple(index(n, fields[n], covers=(0, 1), kind=k) for n, k in kinds.items()))
    )
    versions.apply(Update((), (deleted(versions.fragment(0), 1),), (moved_rows(3),), (), (1,)))
    assert versions.covered("a") == [0, 1, 2]
    assert versions.covered("b") == [0, 1]
    assert versions.covered("zones") == [0, 1]


def test_indices_do_not_cover_rows_that_are_inserted() -> None:
    versions = Versions(1, stable_row_ids=True)
    versions.apply(CreateIndex((index("a", 0, covers=(0,), kind="Bitmap"),)))
    inserted = moved_rows(3, rows=3)
    new = (new_fragment("inserted", 2), inserted, moved_rows(4))
    versions.apply(Update((), (deleted(versions.fragment(0), 2),), new, (), (1,)))
    assert versions.fragment_ids == [0, 1, 2, 3]
    assert versions.covered("a") == [0, 3]


def test_a_rewritten_column_leaves_the_coverage_of_its_index() -> None:
    versions = Versions(2)
    versions.apply(CreateIndex((index("a", 0, covers=(0, 1)), index("b", 1, covers=(0, 1)))))
    old = versions.fragment(0)
    files = (replace(old.files[0], fields=(0, -2, 2)), DataFile("b.lance", (1,), (0,), 2, 2))
    versions.apply(Update((), (replace(old, files=files),), (), (1,), (), COLUMNS))
    assert versions.covered("a") == [0, 1]
    assert versions.covered("b") == [1]


def test_only_matched_rows_of_a_rewritten_column_count_as_updated() -> None:
    versions = Versions(1, stable_row_ids=True)
    matched = {0: BitMap([1, 9]).serialize()}
    versions.apply(Update((), (versions.fragment(0),), (), (1,), (), COLUMNS, matched))
    assert updated(versions.fragment(0)) == [1, 2, 1, 1, 1, 1, 1, 1, 1, 2]


@pytest.mark.parametrize("offsets", [b"", b"no bitmap", BitMap([10]).serialize()])
def test_matched_rows_that_cannot_be_are_refused(offsets: bytes) -> None:
    versions = Versions(1, stable_row_ids=True)
    update = Update((), (versions.fragment(0),), (), (1,), (), COLUMNS, {0: offsets})
    with pytest.raises((InvalidInputError, CorruptFileError)):
        versions.apply(update)


def test_an_update_that_merges_a_log_conflicts_with_whoever_merges_the_same_log() -> None:
    def upsert(generation: int) -> Update:
        return Update((7,), compacted_sstables=(replace(LOG, generation=generation),))

    def state(generation: int) -> UpdateMemWalState:
        return UpdateMemWalState((replace(LOG, generation=generation),))

    assert check(state(5), upsert(7)).verdict is Verdict.INCOMPATIBLE
    assert check(state(7), upsert(7)).verdict is Verdict.INCOMPATIBLE
    assert check(state(9), upsert(7)).verdict is Verdict.RETRYABLE
    assert check(upsert(5), state(7)).verdict is Verdict.INCOMPATIBLE
    assert check(upsert(9), state(7)).verdict is Verdict.RETRYABLE
    other = Update((8,), compacted_sstables=(replace(LOG, shard_id="1" * 32),))
    assert other.footprint().compacted == (("1" * 32, LOG.generation),)
    assert check(state(5), other).verdict is Verdict.COMPATIBLE


def test_two_upserts_conflict_if_they_may_insert_the_same_key() -> None:
    def upsert(*hashes: int) -> Update:
        return Update(new_fragments=(new_fragment(),), inserted_rows=KeyFilter((0,), hashes))

    assert check(upsert(1, 2), upsert(3)).verdict is Verdict.COMPATIBLE
    assert check(upsert(1, 2), upsert(2)).verdict is Verdict.RETRYABLE
    assert check(upsert(1), Update()).verdict is Verdict.RETRYABLE
    assert check(upsert(1), Append(())).verdict is Verdict.RETRYABLE
    plain = Update(new_fragments=(new_fragment(),))
    assert check(plain, plain, Circumstances(both_insert=True)).verdict is Verdict.RETRYABLE
    assert check(plain, plain).verdict is Verdict.COMPATIBLE
