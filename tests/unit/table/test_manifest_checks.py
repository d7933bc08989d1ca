"""Manifests that disagree with themselves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pyroaring import BitMap

from lance_nb.format.feature_flags import DELETION_FILES, STABLE_ROW_IDS
from lance_nb.format.fragment_list import FragmentList
from lance_nb.format.index_metadata import IndexMetadata, build_index_section
from lance_nb.format.manifest import Manifest, WriterVersion, parse_manifest
from lance_nb.storage.memory import MemoryStore
from lance_nb.table.locations import Locations
from lance_nb.table.manifest_checks import manifest_findings, newest_findings
from lance_nb.table.snapshot import Snapshot
from tests.unit.format.test_manifest_files import SCHEMA, UUID, fragment

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
def test_what_disagrees_is_told(change: dict[str, Any], said: str):
    found = problems(replace(WHOLE, **change))
    assert len(found) == 1
    assert said in found[0]


def test_indices_that_cannot_be_are_told():
    twice = [IndexMetadata(UUID, name, (0,), 1, COVERS) for name in "ab"]
    assert problems(WHOLE, *twice) == ["two indices have the same uuid"]
    assert "'i'" in problems(WHOLE, IndexMetadata(UUID, "i", (7,), 1))[0]
