"""Delete."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lance_nb.errors import InvalidInputError
from lance_nb.format.feature_flags import DELETION_FILES
from lance_nb.format.fragment_list import FragmentList
from lance_nb.transactions.operations.create_index import CreateIndex
from lance_nb.transactions.operations.delete import Delete
from tests.support.versions import Versions, deleted, index


def test_fragments_are_changed_in_their_places_and_removed() -> None:
    versions = Versions(3)
    versions.apply(Delete((deleted(versions.fragment(0), 4),), (1,)))
    assert versions.fragment_ids == [0, 2]
    assert versions.fragment(0).num_deleted_rows == 4
    assert versions.manifest.max_fragment_id == 2


def test_the_deletion_flag_comes_and_goes_with_deletion_files() -> None:
    versions = Versions(2)
    versions.apply(Delete((deleted(versions.fragment(0), 4),)))
    assert versions.manifest.reader_feature_flags & DELETION_FILES
    assert versions.manifest.writer_feature_flags & DELETION_FILES
    versions.apply(Delete(deleted_fragment_ids=(0,)))
    assert not versions.manifest.reader_feature_flags & DELETION_FILES


def test_a_fragment_that_is_not_there_is_refused() -> None:
    versions = Versions(2)
    with pytest.raises(InvalidInputError, match="fragment 9"):
        versions.apply(Delete(deleted_fragment_ids=(9,)))
    with pytest.raises(InvalidInputError, match="fragment 9"):
        versions.apply(Delete((deleted(replace(versions.fragment(0), id=9), 1),)))


def test_indices_keep_the_ids_of_fragments_that_are_gone() -> None:
    versions = Versions(3)
    versions.apply(CreateIndex((index("i", 0),)))
    versions.apply(Delete(deleted_fragment_ids=(1,)))
    assert versions.covered("i") == [0, 1, 2]


def test_a_vector_index_that_covers_nothing_any_more_is_dropped_a_scalar_one_stays() -> None:
    versions = Versions(3)
    versions.apply(
        CreateIndex((index("scalar", 0, covers=(1,)), index("v", 0, covers=(1,), kind="Vector")))
    )
    versions.apply(Delete(deleted_fragment_ids=(1,)))
    assert [one.name for one in versions.newest.indices] == ["scalar"]


def test_the_number_of_rows_that_an_old_fragment_lacks_comes_with_the_delete() -> None:
    versions = Versions(1)
    counted = versions.fragment(0)
    unknown = FragmentList.of([replace(counted, physical_rows=0)])
    newest = versions.newest
    manifest = replace(newest.manifest, fragments=unknown)
    versions.built[manifest.version] = replace(newest, manifest=manifest)
    versions.apply(Delete((deleted(counted, 4),)))
    assert versions.fragment(0).physical_rows == counted.physical_rows
