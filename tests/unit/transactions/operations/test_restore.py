"""Restore."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lance_nb.format.feature_flags import (
    DELETION_FILES,
    FIELD_IDS_NOT_REUSED,
    MANAGED_BLOBS,
    MIXED_FILE_VERSIONS,
    TABLE_CONFIG,
)
from lance_nb.format.merge_record import MARK_PREFIX
from lance_nb.transactions.operations.append import Append
from lance_nb.transactions.operations.create_index import CreateIndex
from lance_nb.transactions.operations.delete import Delete
from lance_nb.transactions.operations.restore import Restore
from lance_nb.transactions.operations.update_config import UpdateConfig, UpdateMap
from tests.support.versions import Versions, deleted, index, new_fragment


def test_rows_settings_and_indices_are_those_of_the_old_version() -> None:
    versions = Versions(2)
    versions.apply(CreateIndex((index("i", 0),)))
    versions.apply(CreateIndex((), (index("i", 0),)))
    versions.apply(UpdateConfig(UpdateMap({"k": "v"})))
    versions.apply(Delete((deleted(versions.fragment(0), 1),), (1,)))
    versions.apply(Restore(2))
    assert versions.manifest.version == 6
    assert versions.fragment_ids == [0, 1]
    assert versions.manifest.config == {}
    assert [one.name for one in versions.newest.indices] == ["i"]
    assert not versions.manifest.reader_feature_flags & DELETION_FILES
    assert not versions.manifest.writer_feature_flags & TABLE_CONFIG


@pytest.mark.parametrize("stable_row_ids", [False, True])
def test_no_id_is_given_out_twice(stable_row_ids: bool) -> None:
    versions = Versions(1, stable_row_ids=stable_row_ids)
    versions.apply(Append((new_fragment("x"), new_fragment("y"))))
    versions.apply(Restore(1))
    assert versions.manifest.max_fragment_id == 2
    assert versions.manifest.next_row_id == (30 if stable_row_ids else 0)
    versions.apply(Append((new_fragment("z"),)))
    assert versions.fragment_ids == [0, 3]


def test_flags_that_stay_once_they_are_set_are_those_of_both_versions() -> None:
    versions = Versions(1)

    def mark(version: int, reader: int, writer: int) -> None:
        built = versions.built[version]
        words = {"reader_feature_flags": reader, "writer_feature_flags": writer}
        versions.built[version] = replace(built, manifest=replace(built.manifest, **words))

    mark(1, MANAGED_BLOBS, MANAGED_BLOBS)
    versions.apply(Append((new_fragment("x"),)))
    mark(2, MIXED_FILE_VERSIONS, MIXED_FILE_VERSIONS | FIELD_IDS_NOT_REUSED)
    versions.apply(Restore(1))
    both = MANAGED_BLOBS | MIXED_FILE_VERSIONS
    assert versions.manifest.reader_feature_flags == both
    assert versions.manifest.writer_feature_flags == both | FIELD_IDS_NOT_REUSED


def test_merges_that_the_configuration_names_stay() -> None:
    versions = Versions(1)
    key = f"{MARK_PREFIX}main"
    versions.apply(UpdateConfig(UpdateMap({"k": "v", key: "old"})))
    versions.apply(UpdateConfig(UpdateMap({"k": "w", key: "new"})))
    versions.apply(Restore(2))
    assert versions.manifest.config == {"k": "v", key: "new"}
    versions.apply(Restore(1))
    assert versions.manifest.config == {key: "new"}
