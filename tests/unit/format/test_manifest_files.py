"""What manifests name, read one after the other: what came, what went, whatever the order."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest

from lance_nb.errors import CorruptFileError, NotSupportedError
from lance_nb.format.fragment import DataFile, DeletionFile, DeletionFileType, Fragment
from lance_nb.format.fragment_list import FragmentList
from lance_nb.format.index_metadata import IndexFile, IndexMetadata, build_index_section
from lance_nb.format.manifest import Manifest
from lance_nb.format.manifest_files import ManifestFiles, NamedFile, files_of, identity_of
from lance_nb.format.schema import Schema

SCHEMA = Schema.from_arrow(pa.schema([("id", pa.int64())]))
UUID = "01234567-89ab-cdef-0123-456789abcdef"


def fragment(number: int, *, deleted: bool = False, base_id: int | None = None) -> Fragment:
    file = DataFile(f"f{number}.lance", (0,), (0,), 2, 2, 50, base_id)
    deletion = DeletionFile(3, 99 + number, DeletionFileType.BITMAP, 2) if deleted else None
    return Fragment(number, (file,), 10, deletion)


def manifest(version: int, fragments: list[Fragment], **more: object) -> bytes:
    index = more.pop("index", None)
    built = Manifest(version, SCHEMA, FragmentList.of(fragments), max_fragment_id=1000, **more)  # type: ignore[arg-type]
    section = None if index is None else build_index_section([index])  # type: ignore[list-item]
    return built.to_bytes(index_section=section)


def test_a_manifest_names_data_deletions_indices_and_its_transaction():
    index = IndexMetadata(UUID, "i", (0,), 1, files=(IndexFile("a.idx", 7),), base_id=3)
    fragments = [fragment(0), fragment(1, deleted=True, base_id=0)]
    data = manifest(5, fragments, transaction_file="4-x.txn", index=index)
    found = ManifestFiles().read(data, "m", 5)
    assert set(found.appeared) == {
        NamedFile("data", "data/f0.lance", None, 50),
        NamedFile("data", "data/f1.lance", 0, 50),
        NamedFile("deletion", "_deletions/1-3-100.bin"),
        NamedFile("index", f"_indices/{UUID}", 3, 7),
        NamedFile("transaction", "_transactions/4-x.txn"),
    }
    assert found.vanished == ()
    assert (found.version, found.num_fragments, found.size_bytes) == (5, 2, len(data))


def test_a_file_is_known_by_the_last_part_of_its_name():
    assert NamedFile("data", "data/sub/f.lance", 4).identity == identity_of("data", "f.lance")
    assert NamedFile("index", f"_indices/{UUID}").identity == identity_of("index", UUID)


def test_files_of_old_external_sequences_are_named():
    from lance_nb._pb import table as pb

    message = pb.DataFragment(id=1)
    message.external_row_ids.path = "ids.bin"
    found = files_of(message.SerializeToString(), "m")
    assert found == (NamedFile("data", "data/ids.bin"),)


@pytest.mark.parametrize("count", [4, 800])  # below and above _SMALL_BYTES
def test_changes_add_up_to_what_each_version_names_in_any_order(count: int):
    chance = random.Random(count)
    numbers = list(range(count))
    versions = []
    for _ in range(24):
        kind = chance.randrange(4)
        if kind == 0:
            numbers.append(max(numbers) + 1)
        elif kind == 1:
            numbers.remove(chance.choice(numbers[1:]))
        deleted = {chance.choice(numbers)} if kind == 2 else set()
        versions.append([fragment(one, deleted=one in deleted) for one in numbers])
    chance.shuffle(versions)
    reader, held = ManifestFiles(), Counter()
    for number, fragments in enumerate(versions, 1):
        found = reader.read(
            manifest(number, fragments, transaction_file=f"{number}.txn"), "m", number
        )
        held.update(found.appeared)
        held.subtract(found.vanished)
        fresh = ManifestFiles().read(
            manifest(number, fragments, transaction_file=f"{number}.txn"), "m", number
        )
        assert +held == Counter(fresh.appeared)


def test_a_manifest_of_another_version_or_with_unknown_features_is_refused_and_leaves_no_trace():
    reader = ManifestFiles()
    reader.read(manifest(1, [fragment(0)]), "m", 1)
    with pytest.raises(CorruptFileError, match="version 2"):
        reader.read(manifest(7, [fragment(1)]), "m", 2)
    with pytest.raises(NotSupportedError):
        reader.read(manifest(2, [fragment(1)], reader_feature_flags=1 << 40), "m", 2)
    found = reader.read(manifest(3, [fragment(0), fragment(2)]), "m", 3)
    assert [one.path for one in found.appeared] == ["data/f2.lance"]
    assert found.vanished == ()


def test_damaged_bytes_are_refused():
    data = manifest(1, [fragment(0)])
    for broken in (data[:-1], data[:10], b"", data[:-20] + data[-16:]):
        with pytest.raises(CorruptFileError):
            ManifestFiles().read(broken, "m", 1)


def test_fields_of_a_newer_writer_are_noticed():
    built = Manifest(1, SCHEMA, FragmentList.of([fragment(0)]))
    data = replace(built, unknown=b"\xfa\x3f\x01\x61").to_bytes()
    assert ManifestFiles().read(data, "m", 1).has_unknown
    assert not ManifestFiles().read(built.to_bytes(), "m", 1).has_unknown


@pytest.mark.parametrize("count", [2, 800])  # below and above _SMALL_BYTES
def test_fragments_that_are_there_twice_are_counted_as_often(count: int):
    first = list(range(count))
    versions = [first, [*first, 0, 0, 1], [*first, 0], [1, *first, 0], first[1:], [*first, 1]]
    reader, held = ManifestFiles(), Counter()
    for number, ids in enumerate(versions, 1):
        read = reader.read(manifest(number, [fragment(one) for one in ids]), "m", number)
        held.update(read.appeared)
        held.subtract(read.vanished)
        assert +held == Counter(file for one in ids for file in files_of_one(one))
        assert min(held.values()) >= 0


def files_of_one(number: int) -> tuple[NamedFile, ...]:
    return files_of(fragment(number).to_bytes(), "m")


def test_a_version_that_is_refused_leaves_no_trace():
    reader = ManifestFiles()
    whole = manifest(1, [fragment(0)])
    odd = manifest(2, [fragment(1)], timestamp_ns=3 * 10**20)
    assert len(reader.read(whole, "m", 1).appeared) == 1
    with pytest.raises(CorruptFileError):
        reader.read(odd, "m", 2)
    later = reader.read(manifest(3, [fragment(0), fragment(2)]), "m", 3)
    assert [one.path for one in later.appeared] == ["data/f2.lance"]
    assert later.vanished == ()
