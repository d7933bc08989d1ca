"""Manifests of many versions: totals, and the files that appeared and vanished."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lance_nb.errors import CorruptFileError, NotSupportedError
from lance_nb.format import manifest_history as summaries
from lance_nb.format.fragment import DataFile, DeletionFile, DeletionFileType, Fragment
from lance_nb.format.fragment_list import FragmentList
from lance_nb.format.index_metadata import IndexFile, IndexMetadata
from lance_nb.format.manifest import Manifest, WriterVersion, build_manifest_file
from lance_nb.format.manifest_history import (
    ManifestFiles,
    NamedFile,
    TotalsMemo,
    files_of,
    identity_of,
)
from lance_nb.format.schema import Schema
from tests.support.manifest_files import SCHEMA, UUID, fragment, manifest, parse_summary


def named_fragment(number: int, rows: int = 10, name: str = "a") -> Fragment:
    file = DataFile(f"{name}{number}.lance", (0,), (0,), 2, 2, file_size_bytes=100 + number)
    return Fragment(number, (file,), rows)


WRITER = WriterVersion("lance", "0.9.0")


def manifest_file(
    version: int, fragments: list[Fragment], writer: WriterVersion | None = WRITER
) -> bytes:
    made = Manifest(
        version,
        Schema(()),
        FragmentList.of(fragments),
        timestamp_ns=version,
        writer_version=writer,
    )
    return made.to_bytes(transaction=b"\x08\x01")


BASE = [named_fragment(n) for n in range(40)]
LONG = [named_fragment(n, name="n" * 200) for n in range(40)]
HISTORY = [
    BASE[:5], BASE[:6], BASE, BASE[:3], [*BASE[:7], named_fragment(7, 99), *BASE[8:]], BASE, [],
    BASE[7:], BASE, LONG, [*LONG, *BASE], BASE[::-1], BASE[:1], BASE,
]  # fmt: skip


def test_a_memo_changes_nothing_but_the_time():
    memo = TotalsMemo()
    for version, fragments in enumerate(HISTORY, 1):
        data = manifest_file(version, fragments)
        assert parse_summary(data, "x", memo) == parse_summary(data, "x")


@given(st.integers(0, 2**32), st.integers(1, 12))
def test_any_order_of_any_lists_of_fragments_is_counted_right(seed: int, count: int):
    choose = random.Random(seed)
    memo = TotalsMemo()
    for version in range(count):
        picked = [choose.choice(BASE + LONG[:9]) for _ in range(choose.randrange(30))]
        fragments = choose.choice([BASE[: choose.randrange(40)], LONG[:17]]) + picked
        data = manifest_file(version, fragments)
        assert parse_summary(data, "x", memo) == parse_summary(data, "x")


def test_only_what_is_new_is_parsed_and_counted(monkeypatch: pytest.MonkeyPatch):
    counted = []
    count_fragments, count_fragment = summaries.count_fragments, summaries.count_fragment

    def watched_all(raw, path):
        counted.extend(raw)
        return count_fragments(raw, path)

    def watched_one(raw, path):
        counted.append(raw)
        return count_fragment(raw, path)

    monkeypatch.setattr(summaries, "count_fragments", watched_all)
    monkeypatch.setattr(summaries, "count_fragment", watched_one)
    memo = TotalsMemo()
    numbers = []
    for version, end in enumerate((30, 31, 33, 20), 1):
        parse_summary(manifest_file(version, BASE[:end]), "x", memo)
        numbers.append(len(counted))
    assert numbers == [30, 31, 33, 33]


def test_a_message_in_another_order_is_counted_and_not_shared():
    whole = Manifest(3, Schema(()), FragmentList.of(BASE)).to_pb().SerializeToString()
    late = Manifest(0, Schema(()), FragmentList.of(BASE[:4])).to_pb().SerializeToString()
    memo = TotalsMemo()
    for message in (whole, whole + late, late + whole, whole):
        data = build_manifest_file([], [message])
        assert parse_summary(data, "x", memo) == parse_summary(data, "x")
    assert parse_summary(build_manifest_file([], [whole + late]), "x").totals.num_fragments == 44


def test_counts_of_a_manifest_without_a_writer_are_shown_and_not_checked():
    """Release 0.8.0 counted more deleted rows than rows; the list of versions is shown anyway."""
    deletions = DeletionFile(1, 1, DeletionFileType.BITMAP, 12)
    bad = Fragment(50, (), 4, deletions)
    for before in (BASE, BASE[:3]):
        data = manifest_file(2, [*before, bad], writer=None)
        totals = parse_summary(data, "x", TotalsMemo()).totals
        assert totals.physical_rows == sum(one.physical_rows for one in before) + 4
        assert totals.num_deleted_rows == 12
    assert parse_summary(manifest_file(2, [bad], writer=None), "x").totals.num_rows == 0


def test_impossible_counts_are_damage_with_and_without_a_memo():
    deletions = DeletionFile(1, 1, DeletionFileType.BITMAP, num_deleted_rows=11)
    bad = Fragment(50, (), 10, deletions)
    memo = TotalsMemo()
    parse_summary(manifest_file(1, BASE), "x", memo)
    for known in (memo, None):
        with pytest.raises(CorruptFileError):
            parse_summary(manifest_file(2, [*BASE, bad]), "x", known)
        with pytest.raises(CorruptFileError):
            parse_summary(manifest_file(2, [*BASE[:3], bad]), "x", known)
    half = [named_fragment(n, 2**61) for n in (60, 61)]
    parse_summary(manifest_file(3, half[:1]), "x", memo)
    with pytest.raises(CorruptFileError, match="2\\*\\*62"):
        parse_summary(manifest_file(4, half), "x", memo)


def test_fragments_behind_a_field_of_a_long_name_are_parsed_once(monkeypatch: pytest.MonkeyPatch):
    """The length of such a field takes two bytes."""
    counted = []
    count_fragments = summaries.count_fragments
    monkeypatch.setattr(
        summaries,
        "count_fragments",
        lambda raw, path: counted.append(len(raw)) or count_fragments(raw, path),
    )
    schema = Schema.from_arrow(pa.schema([("n" * 200, pa.int8()), ("m", pa.int8())]))
    memo = TotalsMemo()
    for version, end in enumerate((20, 40), 1):
        made = Manifest(version, schema, FragmentList.of(BASE[:end]), writer_version=WRITER)
        parse_summary(made.to_bytes(transaction=b"\x08\x01"), "x", memo)
    assert counted == [20, 20]


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
