"""Indices: descriptions, coverage, details in a file of their own, addresses that were remapped."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb._pb import index as pb
from lance_nb.dataset import LanceDataset
from lance_nb.errors import (
    CorruptFileError,
    IndexNotFoundError,
    InvalidInputError,
    ObjectNotFoundError,
)
from lance_nb.format.feature_flags import STABLE_ROW_IDS
from lance_nb.format.fragment import Fragment
from lance_nb.format.fragment_reuse import REUSE_INDEX, MovedGroup, inline_details, with_entry
from lance_nb.format.index_metadata import IndexMetadata
from lance_nb.storage.memory import MemoryStore
from lance_nb.table.indices import COVERAGE, read_indices, remap_row_addrs, with_content
from lance_nb.table.verification.indexes import Segment
from lance_nb.transactions.operations.create_index import CreateIndex
from tests.golden.opening import WatchedStore, snapshot_of
from tests.support.versions import FIRST, details, index


def test_a_version_before_the_index_has_none(at):
    assert read_indices(at(11)) == ()


@pytest.mark.parametrize("version", [12, 13, 14])
def test_an_index_is_carried_from_version_to_version(at, version):
    (index,) = read_indices(at(version))
    assert (index.name, index.kind, index.fields) == ("id_idx", "BTree", (0,))
    assert index.dataset_version == 11
    assert list(index.fragment_ids()) == [4]


def test_an_index_section_before_the_tail_is_read_by_itself(at, history, monkeypatch):
    whole = read_indices(at(14))
    monkeypatch.setattr("lance_nb.table.versions.TAIL_BYTES", 64)
    store = WatchedStore(history)
    assert read_indices(snapshot_of(store, 14)) == whole
    assert sum(store.reads.values()) <= 4


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
            "not_read": [],
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


CONTENT = details(FIRST)[2:]  # without tag and length: the content alone


def pointing(
    path: str = "details.binpb", offset: int = 0, size: int = len(CONTENT)
) -> IndexMetadata:
    message = pb.FragmentReuseIndexDetails()
    message.external.path, message.external.offset, message.external.size = path, offset, size
    return replace(index(REUSE_INDEX), details=message.SerializeToString())


def test_the_file_is_read_into_the_index() -> None:
    store = MemoryStore("reuse-content")
    store.write(f"_indices/{pointing().uuid}/details.binpb", b"??" + CONTENT)
    other = index("i", 0)
    found, same = with_content([pointing(offset=2), other], lambda path, _base: (store, path))
    assert inline_details(found) == details(FIRST)
    assert same is other


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        ({"path": "../x"}, CorruptFileError),
        ({"path": "/etc/passwd"}, CorruptFileError),
        ({"size": 0}, CorruptFileError),
        ({"size": 2**40}, CorruptFileError),
        ({"size": 500}, CorruptFileError),
        ({"path": "other.binpb"}, ObjectNotFoundError),
    ],
)
def test_a_manifest_that_lies_is_damage(asked: dict[str, object], error: type[Exception]) -> None:
    store = MemoryStore("reuse-content-2")
    store.write(f"_indices/{pointing().uuid}/details.binpb", CONTENT)
    with pytest.raises(error):
        with_content([pointing(**asked)], lambda path, _base: (store, path))


def compacted(place: str) -> lance_nb.LanceDataset:
    made = lance_nb.write_dataset(pa.table({"id": range(10)}), place, max_rows_per_file=2)
    tree = index("tree", 0, covers=(0, 1, 2, 3, 4))
    made._change(CreateIndex((tree,)))
    made.delete("id = 3")
    made.optimize.compact_files(target_rows_per_fragment=4)
    made.optimize.compact_files()
    return made


@pytest.mark.filterwarnings("ignore:index .* cannot be used")  # the index has no files
def test_addresses_lead_to_the_same_rows() -> None:
    made = compacted("memory://moves/1")
    asked = pa.array([at // 2 << 32 | at % 2 for at in range(10)] + [None, 77 << 32], pa.uint64())
    found = made.remap_row_addrs(asked).to_pylist()
    now = made.to_table(with_row_address=True)
    places = dict(zip(now["id"].to_pylist(), now["_rowaddr"].to_pylist(), strict=True))
    assert found == [places.get(at) for at in range(10)] + [None, 77 << 32]
    with pytest.raises(InvalidInputError, match="uint64"):
        made.remap_row_addrs(pa.array(["a"]))


def test_without_the_index_there_is_nothing_to_follow() -> None:
    made = lance_nb.write_dataset(pa.table({"id": [1]}), "memory://moves/2")
    assert made.remap_row_addrs(pa.array([0], pa.uint64())) is None


@pytest.mark.parametrize("rows", [b"", b"\\x01", (0).to_bytes(8, "little")])
def test_a_damaged_map_is_said_to_be_damaged(rows: bytes) -> None:
    made = lance_nb.write_dataset(pa.table({"id": [1]}), f"memory://moves/{rows.hex() or 3}")
    group = MovedGroup(rows, (Fragment(0, (), 2),), (Fragment(9, (), 2),))
    reuse = replace(index(REUSE_INDEX, kind="FragmentReuse"), details=with_entry(b"", 1, [group]))
    made._change(CreateIndex((reuse,)))
    with pytest.raises(CorruptFileError):
        remap_row_addrs(made.opened[1], pa.array([0], pa.uint64()))


def test_no_column_of_the_coverage_is_ever_null(two_fragments) -> None:
    assert [one.name for one in two_fragments.index_coverage().schema if one.nullable] == []
