"""Manifests that pylance writes, read by us, and the other way round."""

from __future__ import annotations

import struct
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.errors import LanceError, NotSupportedError
from lance_nb.format.deletion_vector import DeletionVector
from lance_nb.format.feature_flags import check_readable, check_writable
from lance_nb.format.fragment import InlineSequence
from lance_nb.format.index_metadata import build_index_section, parse_index_section
from lance_nb.format.layout import NamingScheme, list_versions
from lance_nb.format.manifest import Manifest, parse_manifest
from lance_nb.format.manifest_history import TotalsMemo, parse_summary_tail
from lance_nb.format.row_sequences import RowIdSegments, RowVersionSequence
from lance_nb.format.schema import Schema
from lance_nb.format.transaction_summary import summarize_transaction
from lance_nb.storage.registry import open_store
from tests.support.datasets import history_dataset
from tests.support.manifests import flipped
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("interop") / "history"
    history_dataset(path)
    return path


@pytest.fixture(scope="module")
def eventful(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Write a dataset with stable row ids and one version of most operations."""
    lance = require_pylance()
    path = tmp_path_factory.mktemp("interop") / "eventful"
    table = pa.table({"id": range(100), "x": [n / 3 for n in range(100)]})
    dataset = lance.write_dataset(table, path, enable_stable_row_ids=True, max_rows_per_file=40)
    dataset.update({"id": "id + 1000"}, where="id % 7 = 3")
    dataset.delete("id = 5")
    dataset.optimize.compact_files()
    dataset.create_scalar_index("id", "BTREE")
    lance.dataset(path).add_columns({"c": "id + 1"})
    lance.dataset(path).drop_columns(["x"])
    lance.dataset(path).update_config({"owner": "tests"})
    return lance.dataset(path)


def manifests(root: Path) -> list[tuple[bytes, Manifest]]:
    store = open_store(root)
    found = []
    for name in list_versions(store.list_names("_versions")):
        data = bytes(store.read(name.path))
        found.append((data, parse_manifest(data, name.path)))
        assert found[-1][1].version == name.version
    return found


def section_data(section: Any) -> bytes | None:
    return None if section is None else section.data


def test_every_manifest_serializes_to_the_same_bytes(history: Path, eventful: Any):
    roots = [history, history / "tree" / "side", Path(eventful.uri)]
    read = [pair for root in roots for pair in manifests(root)]
    assert len(read) >= 12
    for data, parsed in read:
        assert not parsed.has_unknown_fields
        assert not any(one.has_unknown_fields for one in parsed.fragments)
        rebuilt = replace(parsed, fragments=type(parsed.fragments).of(list(parsed.fragments)))
        index, transaction = parsed.index_section, parsed.transaction_section
        built = rebuilt.to_bytes(
            index_section=section_data(index), transaction=section_data(transaction)
        )
        again = parse_manifest(built, parsed.path)
        assert again == parsed
        assert len(built) == len(data)


def test_counts_and_times_equal_those_of_pylance(history: Path):
    lance = require_pylance()
    memo = TotalsMemo()
    expected = lance.dataset(history).versions()
    for (data, parsed), version in zip(manifests(history), expected, strict=True):
        summary = parse_summary_tail(data, len(data), "", memo)
        assert summary.version == version["version"]
        assert summary.totals.to_metadata() == version["metadata"]
        assert summary == parse_summary_tail(data, len(data), "")
        local = parsed.timestamp.astimezone().replace(tzinfo=None)
        # pylance computes the microseconds with floats, which may lose one.
        assert abs(local - version["timestamp"]) <= timedelta(microseconds=1)
        counts = parsed.fragments.counts()
        fragments = lance.dataset(history, version=parsed.version).get_fragments()
        assert counts.ids.tolist() == [one.fragment_id for one in fragments]
        assert counts.num_rows.tolist() == [one.count_rows() for one in fragments]
        assert counts.num_deleted_rows.tolist() == [one.num_deletions for one in fragments]


def test_fragments_and_schema_equal_those_of_pylance(history: Path, eventful: Any):
    lance = require_pylance()
    for root in (history, Path(eventful.uri)):
        for _, parsed in manifests(root):
            dataset = lance.dataset(root, version=parsed.version)
            assert parsed.schema.to_arrow().equals(dataset.schema, check_metadata=True)
            ids = {one.name(): one.id() for one in dataset.lance_schema.fields()}
            assert {one.name: one.id for one in parsed.schema} == ids
            for ours, theirs in zip(parsed.fragments, dataset.get_fragments(), strict=True):
                assert [one.path for one in ours.files] == [one.path for one in theirs.data_files()]
                assert [list(one.fields) for one in ours.files] == [
                    one.fields for one in theirs.data_files()
                ]
                deletion = theirs.deletion_file()
                expected = None if deletion is None else deletion
                found = None if ours.deletion_file is None else ours.deletion_file.location(ours.id)
                assert found == expected


def test_a_branch_says_where_its_files_are(history: Path):
    first = manifests(history / "tree" / "side")[0][1]
    assert first.branch == "side"
    assert first.version == 3
    base_id = first.fragments[0].files[0].base_id
    base = next(base for base in first.base_paths if base.id == base_id)
    assert (base.id, base.path, base.is_dataset_root) == (0, str(history), True)
    transaction = summarize_transaction(first.transaction_section.data)
    assert transaction.operation == "Clone"
    assert transaction.description == "create branch side from version 3"


def test_transactions_equal_those_of_pylance(eventful: Any):
    theirs = {one.uuid: one for one in eventful.get_transactions(50)}
    operations = []
    for _, parsed in manifests(Path(eventful.uri)):
        ours = summarize_transaction(parsed.transaction_section.data)
        operations.append(ours.operation)
        other = theirs[ours.uuid]
        assert ours.read_version == other.read_version
        assert dict(ours.properties) == other.transaction_properties
        name = type(other.operation).__name__
        assert name in (ours.operation, "BaseOperation")
        file = Path(eventful.uri) / "_transactions" / parsed.transaction_file
        assert file.read_bytes() == parsed.transaction_section.data
    assert operations == [
        "Overwrite",
        "Update",
        "Delete",
        "ReserveFragments",
        "Rewrite",
        "CreateIndex",
        "Merge",
        "Project",
        "UpdateConfig",
    ]


def test_row_ids_and_versions_equal_those_of_pylance(eventful: Any):
    lance = require_pylance()
    columns = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    for _, parsed in manifests(Path(eventful.uri)):
        dataset = lance.dataset(eventful.uri, version=parsed.version)
        expected = dataset.scanner(columns=columns).to_table()
        found: list[list[np.ndarray]] = [[], [], []]
        for one in parsed.fragments:
            sequences = (one.row_ids, one.created_at_versions, one.last_updated_at_versions)
            kinds = (RowIdSegments, RowVersionSequence, RowVersionSequence)
            live = _live(Path(eventful.uri), one)
            for target, kind, stored in zip(found, kinds, sequences, strict=True):
                assert isinstance(stored, InlineSequence)
                values = kind.from_bytes(stored.data, physical_rows=one.physical_rows)
                assert kind.from_bytes(values.to_bytes()).to_numpy().tolist() == (
                    values.to_numpy().tolist()
                )
                target.append(values.to_numpy()[live])
        for name, target in zip(columns, found, strict=True):
            assert np.concatenate(target).tolist() == expected[name].to_pylist()


def _live(root: Path, one: Any) -> np.ndarray:
    if one.deletion_file is None:
        return np.arange(one.physical_rows)
    data = (root / one.deletion_file.location(one.id)).read_bytes()
    file = one.deletion_file
    vector = DeletionVector.from_bytes(data, file.file_type, physical_rows=one.physical_rows)
    return np.flatnonzero(~vector.to_mask(one.physical_rows))


def test_indices_equal_those_of_pylance(eventful: Any):
    parsed = manifests(Path(eventful.uri))[-1][1]
    indices = parse_index_section(parsed.index_section.data)
    assert build_index_section(indices) == parsed.index_section.data
    with pytest.warns(DeprecationWarning, match="list_indices"):
        (theirs,) = eventful.list_indices()
    (ours,) = indices
    assert (ours.name, ours.uuid, ours.kind) == (theirs["name"], theirs["uuid"], theirs["type"])
    assert list(ours.fragment_ids()) == sorted(theirs["fragment_ids"])
    assert [parsed.schema.path_of(one) for one in ours.fields] == theirs["fields"]
    assert ours.dataset_version == theirs["version"]
    assert ours.size_bytes > 0


def test_old_names_are_recognised(tmp_path: Path):
    lance = require_pylance()
    table = pa.table({"a": [1]})
    lance.write_dataset(table, tmp_path / "d", enable_v2_manifest_paths=False)
    lance.write_dataset(table, tmp_path / "d", mode="append")
    names = list_versions(open_store(tmp_path / "d").list_names("_versions"))
    assert [(one.version, one.scheme) for one in names] == [
        (1, NamingScheme.V1),
        (2, NamingScheme.V1),
    ]


def test_pylance_opens_a_manifest_that_we_wrote(history: Path, tmp_path: Path):
    lance = require_pylance()
    expected = lance.dataset(history, version=3).to_table()
    _, parsed = manifests(history)[2]
    latest = manifests(history)[-1][1].version
    commit = replace(parsed, version=latest + 1, tag="", config={"by": "us"})
    commit = replace(commit, writer_feature_flags=commit.writer_feature_flags | 8)
    data = commit.to_bytes(transaction=parsed.transaction_section.data)
    store = open_store(history)
    path = f"_versions/{2**64 - 1 - commit.version:020d}.manifest"
    store.write_if_absent(path, data)
    try:
        dataset = lance.dataset(history)
        assert dataset.version == latest + 1
        assert dataset.config() == {"by": "us"}
        assert dataset.to_table().equals(expected)
        dataset.validate()
    finally:
        store.delete(path)


@pytest.mark.parametrize("bit", [*range(18), 40])
def test_feature_flags_are_judged_as_pylance_does(bit: int, tmp_path: Path):
    lance = require_pylance()
    root = tmp_path / "d"
    lance.write_dataset(pa.table({"a": [1, 2]}), root)
    _, parsed = manifests(root)[0]
    path = root / parsed.path
    for reader, writer in ((1 << bit, 1 << bit), (0, 1 << bit)):
        forged = replace(parsed, reader_feature_flags=reader, writer_feature_flags=writer)
        if bit == 15:
            forged = replace(forged, max_allocated_field_id=5)
        path.write_bytes(forged.to_bytes(transaction=parsed.transaction_section.data))
        if bit != 1:  # stable row ids are refused later, for lack of row ids in the fragments
            assert _opens(lambda: lance.dataset(root).to_table()) == _opens(
                partial(check_readable, forged)
            ), f"reading {reader:#x}/{writer:#x}"
        if bit in (0, 1, 2, 3, 4, 5, 6, 7, 9, 11, 12, 13, 15, 17, 40) and reader == 0:
            appended = _opens(lambda: lance.dataset(root).delete("a = 1"))
            assert appended == _opens(partial(check_writable, forged)), f"writing {writer:#x}"
            for name in list((root / "_versions").glob("*.manifest")):
                if name != path:
                    name.unlink()


def _opens(act: Any) -> bool:
    try:
        act()
    except (LanceError, NotSupportedError, ValueError, OSError, RuntimeError):
        return False
    return True


TYPES = [
    *(pa.type_for_alias(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)),
    pa.float16(),
    pa.float32(),
    pa.float64(),
    pa.bool_(),
    pa.string(),
    pa.large_string(),
    pa.binary(),
    pa.large_binary(),
    pa.string_view(),
    pa.binary_view(),
    pa.date32(),
    pa.date64(),
    *(pa.time32(unit) for unit in ("s", "ms")),
    *(pa.time64(unit) for unit in ("us", "ns")),
    *(pa.duration(unit) for unit in ("s", "ms", "us", "ns")),
    *(pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")),
    pa.timestamp("us", "UTC"),
    pa.timestamp("ns", "+05:30"),
    pa.timestamp("ms", "Europe/Paris"),
    pa.decimal128(20, 2),
    pa.decimal256(40, -2),
    pa.decimal32(5, 1),
    pa.null(),
    pa.binary(16),
    pa.binary(0),
    pa.list_(pa.int32()),
    pa.list_(pa.field("element", pa.int32(), False)),
    pa.list_(pa.field("item", pa.int32(), True, {"x": "y"})),
    pa.large_list(pa.string()),
    pa.list_(pa.struct([("a", pa.int32())])),
    pa.large_list(pa.struct([("a", pa.int32())])),
    pa.list_(pa.list_(pa.struct([("a", pa.int8())]))),
    pa.list_(pa.map_(pa.string(), pa.int32())),
    pa.list_(pa.float32(), 4),
    pa.list_(pa.field("e", pa.float32(), False), 4),
    pa.list_(pa.bool_(), 8),
    pa.list_(pa.string(), 2),
    pa.list_(pa.timestamp("us", "+05:30"), 2),
    pa.list_(pa.decimal128(10, 2), 2),
    pa.list_(pa.list_(pa.float32(), 4), 3),
    pa.list_(pa.struct([("a", pa.int32()), ("b", pa.string())]), 2),
    pa.list_(pa.list_(pa.int32()), 2),
    pa.list_(pa.map_(pa.string(), pa.int32()), 2),
    pa.list_(pa.dictionary(pa.int8(), pa.string()), 2),
    pa.list_(pa.int8(), 0),
    pa.list_(
        pa.field(
            "item",
            pa.binary(2),
            metadata={"ARROW:extension:name": "lance.bfloat16", "ARROW:extension:metadata": ""},
        ),
        4,
    ),
    pa.struct([]),
    pa.struct([pa.field("a", pa.int32(), False), ("b", pa.list_(pa.struct([("c", pa.null())])))]),
    pa.map_(pa.string(), pa.int32()),
    pa.map_(pa.field("kk", pa.string(), False), pa.field("vv", pa.struct([("x", pa.int8())]))),
    pa.map_(pa.string(), pa.field("v", pa.list_(pa.int8()), False)),
    pa.map_(pa.string(), pa.int32(), keys_sorted=True),
    pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.uint32(), pa.int64()),
    pa.dictionary(pa.int32(), pa.large_string(), ordered=True),
    pa.dictionary(pa.int16(), pa.timestamp("us", "UTC")),
    pa.json_(),
    pa.uuid(),
    pa.bool8(),
    pa.opaque(pa.int32(), "t", "v"),
    pa.fixed_shape_tensor(pa.int32(), [2, 2]),
    pa.struct([("u", pa.uuid()), ("j", pa.json_())]),
    pa.month_day_nano_interval(),
    pa.run_end_encoded(pa.int32(), pa.string()),
    pa.list_view(pa.int32()),
]
METADATA: list[dict[str, str] | None] = [
    None,
    {"k": "v", "lance-encoding:compression": "zstd"},
    {"lance-schema:unenforced-primary-key": "true"},
    {"lance-schema:unenforced-primary-key:position": "2"},
    {"lance-schema:unenforced-primary-key": "false"},
    {"lance-schema:unenforced-clustering-key": "true"},
    {"ARROW:extension:name": "my.extension", "ARROW:extension:metadata": "zz"},
    {"ARROW:extension:name": "arrow.uuid", "ARROW:extension:metadata": ""},
]
FIELDS = [pa.field("c", one) for one in TYPES]
FIELDS += [pa.field("c", pa.binary(16), False, one) for one in METADATA]


@pytest.mark.parametrize("field", FIELDS, ids=lambda one: str(one)[:60])
def test_a_schema_means_the_same_to_both(field: pa.Field, tmp_path: Path):
    lance = require_pylance()
    arrow = pa.schema([field], metadata={"owner": "tests"})
    try:
        lance.write_dataset(iter(()), tmp_path / "d", schema=arrow)
    except (OSError, ValueError, pa.ArrowException, NotImplementedError):
        with pytest.raises(NotSupportedError):
            Schema.from_arrow(arrow)
        return
    parsed = manifests(tmp_path / "d")[0][1]
    expected = lance.dataset(tmp_path / "d").schema
    assert parsed.schema.to_arrow().equals(expected, check_metadata=True)
    assert Schema.from_arrow(arrow) == parsed.schema


def test_a_blob_column_shows_as_pylance_shows_it(tmp_path: Path):
    lance = require_pylance()
    field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    lance.write_dataset(pa.table({"b": [b"x"]}, schema=pa.schema([field])), tmp_path / "d")
    parsed = manifests(tmp_path / "d")[0][1]
    expected = lance.dataset(tmp_path / "d").schema
    assert parsed.schema.to_arrow().equals(expected, check_metadata=True)
    storage = parsed.schema.to_arrow(storage=True).field("b")
    assert storage.metadata[b"ARROW:extension:name"] == b"lance.blob.v2"


def test_damage_of_real_manifests_never_escapes(history: Path, eventful: Any):
    """Flip bits all over real files: a LanceError, or the same or another value."""
    for root, seed in ((history, 1), (Path(eventful.uri), 2)):
        data, intact = manifests(root)[-1]
        for what, broken in flipped(data, 300, seed):
            try:
                parsed = parse_manifest(broken, "x")
                check_readable(parsed)
                parsed.fragments.counts()
                parsed.schema.to_arrow()
                list(parsed.fragments)
                parse_summary_tail(broken, len(broken), "x")
                if parsed.transaction_section is not None:
                    summarize_transaction(parsed.transaction_section.data)
                if parsed.index_section is not None:
                    parse_index_section(parsed.index_section.data)
            except LanceError:
                continue
            except Exception as error:
                raise AssertionError(f"{what} escaped as {type(error).__name__}") from error
        assert intact.version > 0


def test_the_worked_example_of_the_tail_is_what_pylance_writes(tmp_path: Path):
    lance = require_pylance()
    lance.write_dataset(pa.table({"a": [1, 2]}), tmp_path / "d")
    data, parsed = manifests(tmp_path / "d")[0]
    position, major, minor, magic = struct.unpack("<QHH4s", data[-16:])
    assert (major, minor, magic) == (0, 2, b"LANC")
    assert parsed.transaction_section.offset_bytes == 0
    assert position == 4 + len(parsed.transaction_section.data)
