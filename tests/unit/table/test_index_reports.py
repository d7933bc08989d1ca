"""What is told of indices is what counting fragments and rows tells."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.errors import IndexNotFoundError
from lance_nb.format.feature_flags import STABLE_ROW_IDS
from lance_nb.table.index_checks import Segment
from lance_nb.table.indices import COVERAGE
from tests.support.versions import index

_NUMBERS = count()


@pytest.fixture
def indexed() -> LanceDataset:
    """Two indices; of five fragments three are covered by ``id_idx``, one of these is gone."""
    uri = f"memory://indices/{next(_NUMBERS)}.lance"
    table = pa.table({"id": range(12), "w": [f"s{n}" for n in range(12)]})
    ds = lance_nb.write_dataset(table, uri, max_rows_per_file=4)
    ds.create_scalar_index("id", "BTREE")
    lance_nb.write_dataset(table.slice(0, 5), ds, mode="append", max_rows_per_file=4)
    ds = lance_nb.dataset(uri)
    ds.create_scalar_index("w", "BTREE", name="words")
    ds.delete("id IN (4, 5, 6, 7, 9)")  # all rows of fragment 1, one of fragment 2, two of 3
    return lance_nb.dataset(uri)


def _live(ds: LanceDataset) -> dict[int, int]:
    found: dict[int, int] = {}
    for address in ds.to_table(["_rowaddr"])["_rowaddr"].to_pylist():
        found[address >> 32] = found.get(address >> 32, 0) + 1
    return found


COVERED = {"id_idx": {0, 1, 2}, "words": {0, 1, 2, 3, 4}}
FIELDS = {"id_idx": "id", "words": "w"}


def test_descriptions_count_live_fragments_and_rows(indexed: LanceDataset) -> None:
    live = _live(indexed)
    assert 1 not in live
    found = indexed.describe_indices()

    assert [one.name for one in found] == ["id_idx", "words"]
    for one in found:
        covered = COVERED[one.name] & live.keys()
        (segment,) = one.segments
        assert (one.index_type, one.num_segments) == ("BTree", 1)
        assert one.type_url.endswith("BTreeIndexDetails")
        assert list(one.field_names) == [FIELDS[one.name]]
        schema = indexed.opened[1].manifest.schema
        assert [schema.path_of(key) for key in one.fields] == [FIELDS[one.name]]
        assert one.fragment_ids == covered
        assert one.num_rows_indexed == sum(live[key] for key in covered)
        assert one.num_unindexed_rows == sum(live[key] for key in live.keys() - covered)
        assert one.num_unindexed_fragments == len(live.keys() - covered)
        assert segment.fragment_ids >= covered
        assert segment.size_bytes == one.total_size_bytes
        files = [name for name in indexed.all_files().read_all()["path"].to_pylist()
                 if segment.uuid in name]  # fmt: skip
        assert files
        sizes = dict(zip(*(indexed.all_files().read_all()[name].to_pylist()
                           for name in ("path", "size_bytes")), strict=True))  # fmt: skip
        assert one.total_size_bytes == sum(sizes[name] for name in files)
    assert indexed.has_index


def test_the_list_and_the_statistics_tell_the_same(indexed: LanceDataset) -> None:
    live = _live(indexed)
    described = {one.name: one for one in indexed.describe_indices()}
    listed = {one["name"]: one for one in indexed.list_indices()}

    assert list(listed) == ["id_idx", "words"]
    for name, one in listed.items():
        (segment,) = described[name].segments
        assert one == {
            "name": name, "type": "BTree", "uuid": segment.uuid, "fields": [FIELDS[name]],
            "version": segment.dataset_version_at_last_update,
            "fragment_ids": set(segment.fragment_ids), "base_id": None,
        }  # fmt: skip
        told: dict[str, Any] = indexed.index_statistics(name)
        part = {
            "uuid": segment.uuid, "index_type": "BTree", "index_version": segment.index_version,
            "dataset_version": segment.dataset_version_at_last_update,
            "size_bytes": segment.size_bytes,
        }  # fmt: skip
        assert told["segments"] == told["indices"] == [told["segments"][0] | part]
        assert segment.created_at is not None
        covered = COVERED[name] & live.keys()
        rest = live.keys() - covered
        assert {key: told[key] for key in told if key not in ("segments", "indices")} == {
            "index_type": "BTree", "name": name, "num_indices": 1, "num_segments": 1,
            "num_indexed_fragments": len(covered),
            "num_indexed_rows": sum(live[key] for key in covered),
            "num_unindexed_fragments": len(rest),
            "num_unindexed_rows": sum(live[key] for key in rest),
            "num_indexed_rows_per_delta": [sum(live[key] for key in covered)],
            "updated_at_timestamp_ms": int(segment.created_at.timestamp() * 1000 + 0.5),
            "not_read": ["min", "max", "num_pages"],
        }  # fmt: skip


def test_coverage_has_a_row_for_every_index_and_fragment(indexed: LanceDataset) -> None:
    live = _live(indexed)
    uuids = {one.name: one.segments[0].uuid for one in indexed.describe_indices()}
    rows = [
        {"index": name, "fragment_id": key, "num_rows": live[key],
         "is_covered": key in COVERED[name],
         "segments": [uuids[name]] if key in COVERED[name] else []}
        for name in ("id_idx", "words") for key in sorted(live)
    ]  # fmt: skip

    assert indexed.index_coverage().to_pylist() == rows
    assert indexed.index_coverage().schema == COVERAGE
    assert indexed.index_coverage("words").to_pylist() == [r for r in rows if r["index"] == "words"]
    assert [(one.name, one.nullable) for one in COVERAGE] == [
        (name, False) for name in ("index", "fragment_id", "num_rows", "is_covered", "segments")
    ]
    for ask in (indexed.index_coverage, indexed.index_statistics):
        with pytest.raises(IndexNotFoundError, match="id_idx"):
            ask("none")


def test_a_dataset_without_indices_says_so() -> None:
    ds = lance_nb.write_dataset(pa.table({"a": [1]}), f"memory://indices/{next(_NUMBERS)}.lance")

    assert (ds.describe_indices(), ds.list_indices(), ds.has_index) == ([], [], False)
    assert ds.index_coverage() == COVERAGE.empty_table()


def test_the_index_of_moved_rows_counts_the_compactions_it_knows(indexed: LanceDataset) -> None:
    indexed.optimize.compact_files(defer_index_remap=True)
    ds = lance_nb.dataset(indexed.uri)
    assert ds.stats.index_stats("__lance_frag_reuse") == {"num_versions": 1}


@pytest.mark.parametrize(
    ("kind", "version", "stable", "by_address"),
    [
        ("BTree", 0, True, False), ("BTree", None, True, False), ("BTree", 1, True, True),
        ("Bitmap", 1, True, False), ("ZoneMap", 0, True, True), ("BloomFilter", 0, True, True),
        ("Bitmap", 0, False, True), ("BTree", 0, False, True),
    ],
)  # fmt: skip
def test_rows_are_addresses_unless_ids_are_stable_and_the_index_holds_them(
    indexed: LanceDataset, kind: str, version: int | None, *, stable: bool, by_address: bool
) -> None:
    snapshot = indexed.opened[1]
    flags = snapshot.manifest.reader_feature_flags | (STABLE_ROW_IDS if stable else 0)
    snapshot = replace(snapshot, manifest=replace(snapshot.manifest, reader_feature_flags=flags))
    segment = replace(index("i", 0, kind=kind), index_version=version)
    assert Segment(snapshot, segment, ()).by_address is by_address
