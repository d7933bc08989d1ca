"""Manifests that contradict themselves, and the states that old releases left."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pyroaring import BitMap

import lance_nb
from lance_nb.errors import CorruptFileError
from lance_nb.format.feature_flags import DELETION_FILES, STABLE_ROW_IDS
from lance_nb.format.fragment_list import FragmentList
from lance_nb.format.index_metadata import IndexMetadata, build_index_section
from lance_nb.format.manifest import Manifest, WriterVersion, parse_manifest
from lance_nb.storage.memory import MemoryStore
from lance_nb.table.locations import Locations
from lance_nb.table.snapshot import Snapshot
from lance_nb.table.verification.manifests import manifest_findings, newest_findings, refused_states
from tests.support.manifest_files import SCHEMA, UUID, fragment
from tests.support.old_releases import PATHS

COVERS = BitMap([0]).serialize()
WHOLE = Manifest(
    1,
    SCHEMA,
    FragmentList.of([fragment(0), fragment(1, deleted=True)]),
    max_fragment_id=1,
    writer_feature_flags=DELETION_FILES,
    reader_feature_flags=DELETION_FILES,
    writer_version=WriterVersion("lance", "14.0.2"),
)


def problems(manifest: Manifest, *indices: IndexMetadata, branch: str | None = None) -> list[str]:
    store = MemoryStore("manifest-checks")
    data = manifest.to_bytes(index_section=build_index_section(indices))
    parsed = parse_manifest(data, "m")
    snapshot = Snapshot(parsed, Locations(store, store), branch)
    return [one.message for one in (*manifest_findings(snapshot), *newest_findings(snapshot))]


def test_a_whole_manifest_has_no_problem():
    assert problems(WHOLE, IndexMetadata(UUID, "i", (0,), 1, COVERS)) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"max_fragment_id": 0}, "fragment 1"),
        ({"writer_feature_flags": 0}, "deletion files"),
        ({"reader_feature_flags": STABLE_ROW_IDS}, "fragment 0 has none"),
        ({"branch": "dev"}, "says it is of dev"),
    ],
)
def test_what_disagrees_is_reported(change: dict[str, Any], said: str):
    found = problems(replace(WHOLE, **change))
    assert len(found) == 1
    assert said in found[0]


def test_indices_that_cannot_be_are_reported():
    twice = [IndexMetadata(UUID, name, (0,), 1, COVERS) for name in "ab"]
    assert problems(WHOLE, *twice) == ["two indices have the same uuid"]
    assert "'i'" in problems(WHOLE, IndexMetadata(UUID, "i", (7,), 1))[0]


FOUND = {
    "pylance_0_8_0/wrong_counts": "counts 90 rows and 10 deleted ones in fragment 0, which has 100",
    "pylance_0_10_5/ids_of_dropped_columns": "field 2 twice, as releases up to 0.10.5",
    "pylance_0_10_5/dropped_columns": "holds no column of the schema",
    "pylance_0_16_0/fragment_id_twice": "two fragments have the id 1",
    "pylance_0_16_0/mixed_files": "data files of version 0.1 and of later ones",
    "pylance_0_8_0/compacted": "stands behind fragment",
    "pylance_0_21_0/overlapping_segments": "two segments of index 'v_idx' cover fragment 0",
    "pylance_0_7_5/vector_index": "index 'v_idx' does not say which fragments it covers",
}
CODES = {
    "pylance_0_8_0/wrong_counts": {"fragment-counts"},
    "pylance_0_10_5/id_of_a_dropped_column": {"fields-repeated"},
    "pylance_0_10_5/id_of_a_dropped_column_appended": {"fields-repeated"},
    "pylance_0_10_5/ids_of_dropped_columns": {"fields-repeated"},
    "pylance_0_10_5/dropped_columns": {"fields-unknown"},
    "pylance_0_16_0/fragment_id_twice": {"fragment-id-repeated", "file-versions-mixed"},
    "pylance_0_16_0/fragment_id_twice_in_one_version": {"fragment-id-repeated"},
    "pylance_0_16_0/mixed_files": {"file-versions-mixed"},
    "pylance_0_8_0/compacted": {"fragment-order"},
    "pylance_0_21_0/overlapping_segments": {"index-coverage-overlaps"},
    "pylance_0_26_1/stable_ids_2_0": {"row-ids-damaged"},  # its compaction lost some
    "pylance_0_7_5/vector_index": {"index-coverage-unknown"},
}
VALID = (  # for pylance, too
    "pylance_0_7_5/vector_index",
    "pylance_0_16_0/mixed_files",
)


@pytest.mark.parametrize("name", FOUND)
def test_the_state_is_named(name: str) -> None:
    dataset = lance_nb.dataset(PATHS[name])
    problems = [one.message for one in dataset.verify().findings]
    assert any(FOUND[name] in one for one in problems), problems
    if name in VALID:
        dataset.validate()
    else:
        with pytest.raises(CorruptFileError):
            dataset.validate()


@pytest.mark.parametrize("name", PATHS)
def test_datasets_of_old_releases_have_their_findings_and_no_others(name: str) -> None:
    dataset = lance_nb.dataset(PATHS[name])
    found = dataset.verify()
    assert {one.code for one in found.findings} == CODES.get(name, set()), found
    if name not in CODES:
        dataset.validate()


def test_the_first_fragment_that_is_out_of_order_is_named() -> None:
    snapshot = lance_nb.dataset(PATHS["pylance_0_8_0/compacted"]).opened[1]
    first = snapshot.manifest.fragments[0]
    raw = [replace(first, id=number).to_bytes() for number in (0, 5, 3, 2)]
    manifest = replace(snapshot.manifest, fragments=FragmentList(raw, "m"))
    found = next(refused_states(replace(snapshot, manifest=manifest)))
    assert (found.code, found.fragment) == ("fragment-order", 3)
    assert found.text.startswith("fragment 3 stands behind fragment 5,")
