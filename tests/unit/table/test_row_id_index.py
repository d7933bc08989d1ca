"""Rows by id and by address, on golden data."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from lance_nb.errors import CorruptFileError, InvalidInputError
from lance_nb.format.fragment import DeletionFile, DeletionFileType
from lance_nb.table.projection import ROW_ADDRESS, ROW_ID
from lance_nb.table.row_ids import (
    as_u64,
    choose_positions,
    live_offsets,
    positions_of_ids,
)
from tests.golden.copies import (
    copy_to_memory,
    edited_fragment,
    edited_manifest,
    expected,
    expected_versions,
)
from tests.golden.opening import snapshot_of

VERSIONS = [version for _, version in expected_versions("stable_ids")]


@pytest.mark.parametrize("version", VERSIONS)
def test_ids_and_addresses_of_all_rows_are_their_positions(stores, version):
    snapshot = snapshot_of(stores["stable_ids"], version)
    said = expected("stable_ids", version)
    everything = list(range(said.num_rows))
    assert positions_of_ids(snapshot, said[ROW_ID]).tolist() == everything
    assert choose_positions(snapshot, None, said[ROW_ADDRESS], None).tolist() == everything


def test_ids_that_are_gone_are_left_out_and_order_is_kept(stores):
    snapshot = snapshot_of(stores["stable_ids"], VERSIONS[-1])
    ids = expected("stable_ids", VERSIONS[-1])[ROW_ID].to_pylist()
    gone = next(number for number in range(10**6) if number not in set(ids))
    assert positions_of_ids(snapshot, [ids[2], gone, ids[0], ids[2]]).tolist() == [2, 0, 2]
    assert positions_of_ids(snapshot, []).tolist() == []


def test_without_stable_ids_an_id_is_an_address(at):
    snapshot = at(2)
    first = snapshot.manifest.fragments[0].id << 32
    assert positions_of_ids(snapshot, [first + 1, first]).tolist() == [1, 0]


def test_an_address_in_no_fragment_is_refused(at):
    with pytest.raises(InvalidInputError, match="does not have"):
        choose_positions(at(2), None, [1 << 60], None)


@pytest.mark.parametrize("bad", [[-1], [2**64], [1.5, "x"], [[1]], ["a"]])
def test_what_is_no_row_id_is_refused(bad):
    with pytest.raises(InvalidInputError):
        as_u64(bad, "row ids")


@pytest.mark.parametrize(("column", "place"), [(ROW_ID, 0), (ROW_ADDRESS, 1)])
def test_rows_that_do_not_exist_are_named(stores, column, place):
    snapshot = snapshot_of(stores["stable_ids"], VERSIONS[-1])
    known = expected("stable_ids", VERSIONS[-1])[column].to_pylist()
    last = max(known)
    given: list[object] = [None, None, None]
    given[place] = [known[0], last + 1000, known[1], last + 1001]
    with pytest.raises(InvalidInputError, match=rf" {last + 1000}, {last + 1001} \(2 of 4 req"):
        choose_positions(snapshot, *given)
    given[place] = [known[2], known[0], known[2]]
    assert choose_positions(snapshot, *given).tolist() == [2, 0, 2]


def test_rows_are_named_in_exactly_one_way(at):
    snapshot = at(2)
    assert choose_positions(snapshot, None, None, [3]) == [3]
    for names in [(None, None, None), ([1], [1], None), ([1], None, pa.array([1]))]:
        with pytest.raises(InvalidInputError, match="exactly one"):
            choose_positions(snapshot, *names)


def test_a_fragment_without_live_rows_has_no_offsets(at):
    snapshot = at(4)
    second = snapshot.manifest.fragments[1]
    empty = replace(second, deletion_file=DeletionFile(1, 7, DeletionFileType.ARROW, 30))
    assert live_offsets(snapshot, empty).tolist() == []
    assert live_offsets(snapshot, second).tolist() == list(range(30))


def test_rows_that_only_a_damaged_manifest_claims_take_no_memory():
    store = copy_to_memory("history")
    path = f"_versions/{2**64 - 1 - 1:020d}.manifest"

    def change(manifest):
        manifest.fragments[0] = edited_fragment(
            manifest.fragments[0], lambda one: setattr(one, "physical_rows", 1 << 40)
        )

    store.write(path, edited_manifest(bytes(store.read(path)), change))
    snapshot = snapshot_of(store, 1)

    assert choose_positions(snapshot, None, [3], None).tolist() == [3]
    with pytest.raises(CorruptFileError, match="1099511627776 rows, as the manifest says"):
        live_offsets(snapshot, snapshot.manifest.fragments[0])


def test_an_address_behind_the_last_row_of_a_fragment_is_of_no_row():
    snapshot = snapshot_of(copy_to_memory("history"), 1)
    fragment = snapshot.manifest.fragments[0]
    assert fragment.deletion_file is None
    last = fragment.id << 32 | fragment.physical_rows - 1

    assert choose_positions(snapshot, None, [last], None).size == 1
    with pytest.raises(InvalidInputError, match=rf" {last + 1} \(1 of 1 req"):
        choose_positions(snapshot, None, [last + 1], None)
