"""Overwrite: new rows in the place of the old ones, and their file version."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lance_nb.errors import InvalidInputError
from lance_nb.file.versions import recorded_version
from lance_nb.format.feature_flags import STABLE_ROW_IDS
from lance_nb.format.fragment import Fragment, RowIdMeta
from lance_nb.format.manifest import BasePath, DataStorageFormat
from lance_nb.format.row_sequences import Range, RowIdSegments
from lance_nb.transactions.operations.create_index import CreateIndex
from lance_nb.transactions.operations.overwrite import Overwrite, storage_format
from lance_nb.transactions.operations.update_config import UpdateConfig, UpdateMap
from tests.support.versions import SCHEMA, Versions, index, minimal_manifest, new_fragment


def test_the_first_version_is_number_one() -> None:
    versions = Versions(2)
    assert versions.manifest.version == 1
    assert versions.fragment_ids == [0, 1]
    assert versions.manifest.data_format == DataStorageFormat("lance", "2.2")


def test_a_dataset_without_rows_has_no_highest_fragment_id() -> None:
    assert Versions(0).manifest.max_fragment_id is None


def test_fragment_ids_go_on_and_indices_go() -> None:
    versions = Versions(3)
    versions.apply(CreateIndex((index("i", 0),)))
    versions.apply(Overwrite(SCHEMA, (new_fragment("x"),)))
    assert versions.fragment_ids == [3]
    assert versions.newest.indices == ()


def test_config_and_table_metadata_stay_and_entries_are_added() -> None:
    versions = Versions(1)
    versions.apply(UpdateConfig(UpdateMap({"k": "v"}), UpdateMap({"t": "1"})))
    versions.apply(Overwrite(SCHEMA, (), (), {"l": "w"}))
    assert versions.manifest.config == {"k": "v", "l": "w"}
    assert versions.manifest.table_metadata == {"t": "1"}


def test_row_ids_go_on() -> None:
    versions = Versions(2, stable_row_ids=True)
    versions.apply(Overwrite(SCHEMA, (new_fragment("x", 5),)))
    assert versions.manifest.next_row_id == 25


def test_the_files_say_which_version_the_dataset_has_from_now_on() -> None:
    versions = Versions(1)
    old = new_fragment("x")
    old = replace(old, files=(replace(old.files[0], file_minor_version=1),))
    versions.apply(Overwrite(SCHEMA, (old,)))
    assert versions.manifest.data_format == DataStorageFormat("lance", "2.1")


def test_files_of_another_version_than_asked_for_are_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"of version 2\.1"):
        Versions(1).apply(Overwrite(SCHEMA, (new_fragment("x"),)), file_version="2.1")


def test_bases_are_registered_at_creation_only() -> None:
    bases = (BasePath(1, "/one"), BasePath(2, "/two"))
    versions = Versions(1)
    with pytest.raises(InvalidInputError, match="UpdateBases"):
        versions.apply(Overwrite(SCHEMA, (), bases))
    versions.built.clear()
    versions.apply(Overwrite(SCHEMA, (), bases))
    assert versions.manifest.base_paths == bases
    versions.built.clear()
    with pytest.raises(InvalidInputError, match="differ"):
        versions.apply(Overwrite(SCHEMA, (), (bases[0], bases[0])))


def of(*file_version: int) -> Fragment:
    fragment = new_fragment()
    major, minor = file_version
    file = replace(fragment.files[0], file_major_version=major, file_minor_version=minor)
    return replace(fragment, files=[file])


def test_asked_for_found_kept_or_default() -> None:
    before = replace(minimal_manifest(), data_format=DataStorageFormat("lance", "2.0"))
    assert storage_format([], "2.1", before).version == "2.1"
    assert storage_format([of(2, 1)], None, before).version == "2.1"
    assert storage_format([], None, before).version == "2.0"
    assert storage_format([], None, replace(before, data_format=None)).version == "2.2"


@pytest.mark.parametrize(
    ("stored", "text"), [((0, 3), "2.0"), ((2, 0), "2.0"), ((0, 1), "0.1"), ((2, 2), "2.2")]
)
def test_names_of_versions(stored: tuple[int, int], text: str) -> None:
    assert recorded_version(stored) == text


def test_files_of_several_versions_are_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"of one version, and are 2\.1, 2\.2"):
        storage_format([of(2, 1), of(2, 2)], None, minimal_manifest())


def test_rows_that_all_bring_ids_begin_a_dataset_with_row_ids() -> None:
    versions = Versions(1)
    with_ids = RowIdMeta.inline(RowIdSegments((Range(4, 14),)).to_bytes())
    bringing = replace(new_fragment("x"), row_id_meta=with_ids)
    for fragments, begins in (
        ((), False),
        ((bringing,), True),
    ):
        manifest = versions.apply(Overwrite(SCHEMA, fragments)).manifest
        assert bool(manifest.reader_feature_flags & STABLE_ROW_IDS) is begins
        assert manifest.next_row_id == (14 if begins else 0)
