from __future__ import annotations

from dataclasses import replace

import pytest

from lance_nb.errors import CorruptFileError, LanceError
from lance_nb.format.fragment import ColumnSequence, ExternalSequence, InlineSequence
from lance_nb.table.projection import ROW_ADDRESS, ROW_ID, project
from lance_nb.table.row_ids import fragment_row_ids
from lance_nb.table.scan import scan_table
from lance_nb.table.scan_plan import plan_scan
from tests.golden.copies import expected, expected_versions
from tests.golden.opening import snapshot_of


def test_a_dataset_without_stable_ids_has_none(at):
    snapshot = at(2)
    assert fragment_row_ids(snapshot, snapshot.manifest.fragments[0]) is None


@pytest.mark.parametrize("version", [version for _, version in expected_versions("stable_ids")])
def test_stable_ids_and_addresses_are_those_of_pylance(stores, version):
    snapshot = snapshot_of(stores["stable_ids"], version)
    wanted = project(snapshot.manifest.schema, ["id"], [ROW_ID, ROW_ADDRESS])
    found = scan_table(snapshot, wanted, plan_scan(snapshot))
    said = expected("stable_ids", version)
    assert found[ROW_ID].to_pylist() == said[ROW_ID].to_pylist()
    assert found[ROW_ADDRESS].to_pylist() == said[ROW_ADDRESS].to_pylist()


def test_a_row_keeps_its_id_when_it_is_updated_and_compacted():
    def of(version):
        said = expected("stable_ids", version)
        return dict(zip(said["id"].to_pylist(), said[ROW_ID].to_pylist(), strict=True))

    first, last = of(2), of(6)
    assert {row: first[row] for row in last} == last


def test_there_is_an_id_for_every_physical_row(stores):
    snapshot = snapshot_of(stores["stable_ids"], 3)
    for fragment in snapshot.manifest.fragments:
        assert fragment_row_ids(snapshot, fragment).size == fragment.physical_rows


def test_another_number_of_ids_is_refused(stores):
    snapshot = snapshot_of(stores["stable_ids"], 2)
    first, second = snapshot.manifest.fragments
    shorter = replace(first, physical_rows=29)
    with pytest.raises(CorruptFileError, match="29 row"):
        fragment_row_ids(snapshot, shorter)
    with pytest.raises(CorruptFileError):
        fragment_row_ids(snapshot, replace(second, row_ids=InlineSequence(b"\xff")))


@pytest.mark.parametrize(
    "kept",
    [ExternalSequence("x", 0, 1), ExternalSequence("../x", 0, 1), ColumnSequence(-3)],
    ids=["a missing file", "a file outside", "a missing column"],
)
def test_ids_that_are_not_where_they_should_be_are_refused(stores, kept):
    snapshot = snapshot_of(stores["stable_ids"], 2)
    fragment = replace(snapshot.manifest.fragments[0], row_ids=kept)
    with pytest.raises(LanceError):
        fragment_row_ids(snapshot, fragment)
