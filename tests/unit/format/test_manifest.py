"""Manifest files: fields, sections, frame, damage."""

from __future__ import annotations

import dataclasses
import pickle
import struct
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

import lance_nb
from lance_nb._pb import table as pb
from lance_nb.errors import CorruptFileError, LanceError
from lance_nb.format.field import Field
from lance_nb.format.fragment_list import FragmentList
from lance_nb.format.manifest import (
    BasePath,
    DataStorageFormat,
    Manifest,
    Section,
    build_manifest_file,
    message_bytes,
    message_position,
    parse_manifest,
    parse_manifest_tail,
    read_section,
    section_size,
)
from lance_nb.format.manifest_history import parse_summary_tail
from lance_nb.format.schema import Schema
from tests.support.manifest_files import parse_summary
from tests.support.manifests import flipped, fragment, manifest

INDEX, TRANSACTION = b"", b"\x08\x06\x12\x01u"


@pytest.fixture
def data() -> bytes:
    return manifest().to_bytes(index_section=INDEX, transaction=TRANSACTION)


def test_every_field_round_trips(data: bytes):
    parsed = parse_manifest(data, "x")
    assert parsed == manifest()
    assert parsed.to_bytes(index_section=INDEX, transaction=TRANSACTION) == data
    assert [one.id for one in parsed.fragments] == [0, 1, 2, 3]
    assert parsed.timestamp == datetime(2026, 11, 21, 3, 2, 9, 147127, UTC)
    assert str(parsed.writer_version) == "lance 14.0.2-beta.1"
    assert parsed.has_unknown_fields
    assert parsed.size_bytes == len(data)
    assert parsed.path == "x"


def test_the_size_of_a_manifest_without_a_file_is_not_known():
    assert Manifest.from_pb(manifest().to_pb()).size_bytes == 0


def test_fields_left_out_stay_out():
    smallest = Manifest(1, Schema(()))
    parsed = parse_manifest(smallest.to_bytes(), "x")
    assert parsed == smallest
    assert parsed.max_fragment_id is parsed.branch is parsed.data_format is None
    assert parsed.timestamp is parsed.index_section is parsed.transaction_section is None
    assert not parsed.has_unknown_fields


def test_sections_at_offset_zero_are_found_by_presence(data: bytes):
    parsed = parse_manifest(data, "x")
    assert parsed.index_section == Section(0, INDEX)
    assert parsed.transaction_section == Section(4, TRANSACTION)
    only = manifest().to_bytes(transaction=TRANSACTION)
    assert parse_manifest(only, "x").transaction_section == Section(0, TRANSACTION)
    assert parse_manifest(only, "x").index_section is None


def test_field_23_wins_over_field_21_which_is_still_read():
    message = pb.Manifest(version=1, transaction_section_deprecated=0)
    data = build_manifest_file([b"old", b"new"], [message.SerializeToString()])
    assert parse_manifest(data, "x").transaction_section == Section(0, b"old")
    message.transaction_section = 7
    data = build_manifest_file([b"old", b"new"], [message.SerializeToString()])
    assert parse_manifest(data, "x").transaction_section == Section(7, b"new")


def test_the_worked_example_of_the_frame():
    message = pb.Manifest(version=1, tag="x" * 226, transaction_section=0).SerializeToString()
    data = build_manifest_file([b"t" * 178], [message])
    assert len(message) == 234
    position, major, minor, magic = struct.unpack("<QHH4s", data[-16:])
    assert (position, major, minor, magic) == (182, 0, 2, b"LANC")
    assert struct.unpack_from("<I", data, 182) == (len(data) - 16 - 182 - 4,)


def test_a_tail_is_enough_and_says_how_much_it_needs(data: bytes):
    position = struct.unpack("<Q", data[-16:-8])[0]
    needed = parse_manifest_tail(data[-20:], len(data), "x")
    assert needed == len(data) - position
    parsed = parse_manifest_tail(data[-needed:], len(data), "x")
    assert isinstance(parsed, Manifest)
    assert parsed == manifest()
    assert parsed.transaction_section == Section(4, None)
    assert parse_manifest_tail(data, len(data), "x").transaction_section == Section(4, TRANSACTION)
    assert parse_summary_tail(data[-20:], len(data), "x") == needed


def test_a_summary_tells_the_same_without_the_schema(data: bytes):
    summary, parsed = parse_summary(data, "x"), parse_manifest(data, "x")
    assert (summary.version, summary.branch) == (7, "dev")
    assert summary.timestamp == parsed.timestamp
    assert summary.transaction == parsed.transaction_section
    assert summary.transaction_file == "6-u.txn"
    assert summary.totals.num_rows == int(parsed.fragments.counts().num_rows.sum())


def test_a_changed_manifest_is_a_new_one(data: bytes):
    changed = dataclasses.replace(
        parse_manifest(data, "x"), version=8, fragments=FragmentList.of([fragment(9)])
    )
    again = parse_manifest(changed.to_bytes(), "y")
    assert again.version == 8
    assert again.fragments[0] == fragment(9)


def test_pieces_of_a_manifest_pickle(data: bytes):
    parsed = parse_manifest(data, "x")
    assert pickle.loads(pickle.dumps(parsed.fragments)) == parsed.fragments  # noqa: S301
    assert pickle.loads(pickle.dumps(parsed.schema)) == parsed.schema  # noqa: S301


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda _: b"", "truncated"),
        (lambda data: data[:10], "truncated"),
        (lambda data: data[: len(data) // 2], "magic"),
        (lambda data: data[:-1], "magic"),
        (lambda data: data[:-4] + b"LANX", "magic"),
        (lambda data: data[:-8] + struct.pack("<HH", 99, 2) + b"LANC", r"99\.2"),
        (lambda data: data[:-16] + struct.pack("<Q", 2**64 - 1) + data[-8:], "position"),
        (lambda data: data[:-16] + struct.pack("<Q", len(data) - 16) + data[-8:], "position"),
        (lambda data: data[:-16] + struct.pack("<Q", len(data) - 20) + data[-8:], "0 bytes"),
        (lambda data: data + data[-16:], "bytes"),
    ],
)
def test_a_broken_frame_is_damage_with_the_path(data: bytes, change, reason: str):
    with pytest.raises(CorruptFileError, match=reason) as caught:
        parse_manifest(change(data), "_versions/1.manifest")
    assert caught.value.path == "_versions/1.manifest"
    with pytest.raises(CorruptFileError):
        parse_summary(change(data), "_versions/1.manifest")


def test_a_huge_length_prefix_is_damage(data: bytes):
    position = struct.unpack("<Q", data[-16:-8])[0]
    broken = data[:position] + b"\xff\xff\xff\xff" + data[position + 4 :]
    with pytest.raises(CorruptFileError, match="4294967295 bytes"):
        parse_manifest(broken, "x")


@pytest.mark.parametrize(
    "message",
    [
        pb.Manifest(index_section=10**6),
        pb.Manifest(transaction_section=2**64 - 1),
        pb.Manifest(transaction_section=1),
        pb.Manifest(timestamp=pb.Timestamp(seconds=2**62)),
        pb.Manifest(timestamp=pb.Timestamp(nanos=-1)),
    ],
    ids=["index", "transaction", "odd", "time", "nanos"],
)
def test_offsets_and_times_that_cannot_be_are_damage(message: pb.Manifest):
    with pytest.raises(CorruptFileError):
        parse_manifest(build_manifest_file([b"abc"], [message.SerializeToString()]), "x")


def test_any_damage_is_a_lance_error_or_a_value(data: bytes):
    outcomes = {"same": 0, "different": 0, "refused": 0}
    for what, broken in flipped(data, 600, seed=20261121):
        try:
            parsed = parse_manifest(broken, "x")
            parsed.fragments.counts()
            parsed.schema.to_arrow()
            list(parsed.fragments)
            parse_summary(broken, "x")
            outcomes["same" if parsed == manifest() else "different"] += 1
        except LanceError:
            outcomes["refused"] += 1
        except Exception as error:
            raise AssertionError(f"{what} escaped as {type(error).__name__}") from error
    assert min(outcomes.values()) > 0


DICTIONARY = Field(0, -1, "d", "dict:string:int8:false", dictionary=(4, 2))


@pytest.mark.parametrize(("name", "kept"), [("0.1", True), (None, True), ("2.2", False)])
def test_values_of_dictionaries_stand_before_everything_else(name: str | None, kept: bool) -> None:
    """In 0.1 datasets every version carries them at the same place."""
    data_format = None if name is None else DataStorageFormat("lance", name)
    manifest = Manifest(
        3, Schema((DICTIONARY,)), data_format=data_format, preamble=b"redblue", max_fragment_id=1
    )
    for sections in ({}, {"index_section": b"i"}, {"index_section": b"i", "transaction": b"tx"}):
        data = manifest.to_bytes(**sections)
        assert data.startswith(b"redblue")
        read = parse_manifest(data, "m")
        assert read.preamble == (b"redblue" if kept else b"")
        found = [one and one.data for one in (read.index_section, read.transaction_section)]
        assert found == [sections.get("index_section"), sections.get("transaction")]
        tail = parse_manifest_tail(data[-(len(data) - 7) :], len(data), "m")
        if kept:
            assert tail == len(data)  # the whole file is needed
            assert read.to_bytes(**sections) == data
        else:
            assert tail == read


def test_values_that_no_field_names_any_more_are_left_out() -> None:
    plain = Manifest(3, Schema.from_arrow(pa.schema([("a", pa.int8())])), preamble=b"redblue")
    assert plain.live_preamble == b""
    assert not plain.to_bytes().startswith(b"redblue")
    empty = Manifest(3, Schema((replace(DICTIONARY, dictionary=(4, 0)),)), preamble=b"x")
    assert parse_manifest(empty.to_bytes(), "m").preamble == b""


def with_field(data: bytes, field: bytes) -> bytes:
    start = int.from_bytes(data[-16:-8], "little")
    message = data[start + 4 : -16] + field
    return data[:start] + len(message).to_bytes(4, "little") + message + data[-16:]


RETIRED = b"\x88\x01\x03"  # field 17: the version of a second dataset for blobs
NEWER = b"\xf0\x01\x03"  # field 30


def test_a_field_that_the_format_has_retired_is_dropped() -> None:
    known = Manifest(3, Schema((DICTIONARY,))).to_bytes()
    parsed = parse_manifest(with_field(known, RETIRED), "m")
    assert not parsed.has_unknown_fields
    assert replace(parsed, preamble=b"").to_bytes() == known
    for field in (NEWER, RETIRED + NEWER, NEWER + RETIRED):
        parsed = parse_manifest(with_field(known, field), "m")
        assert parsed.has_unknown_fields
        assert NEWER in parsed.unknown


def test_a_dataset_with_a_retired_field_can_be_changed(tmp_path: Path) -> None:
    dataset = lance_nb.write_dataset(pa.table({"a": [1, 2]}), tmp_path / "t.lance")
    (path,) = (tmp_path / "t.lance" / "_versions").glob("*.manifest")
    path.write_bytes(with_field(path.read_bytes(), RETIRED))
    dataset = lance_nb.dataset(dataset.uri)
    dataset.insert(pa.table({"a": [3]}))
    dataset.delete("a = 1")
    dataset.checkout_version(1).restore()
    dataset.create_branch("dev")
    fields = b"".join(name.read_bytes() for name in (tmp_path / "t.lance").rglob("*.manifest"))
    assert fields.count(RETIRED) == 1


def test_what_a_manifest_says_of_newer_writers() -> None:
    known = Manifest(3, Schema((DICTIONARY,)))
    assert not known.has_unknown_fields
    assert replace(known, unknown=b"\xfa\x3f\x01x").has_unknown_fields
    inner = replace(DICTIONARY, unknown=b"\xfa\x3f\x01x")
    assert replace(known, schema=Schema((inner,))).has_unknown_fields


@pytest.mark.parametrize(
    ("seconds", "nanos", "fits"),
    [(253_402_300_799, 999_999_999, True), (253_402_300_800, 0, False), (0, 1_000_000_000, False),
     (0, -1, False), (-62_135_596_800, 0, True), (-62_135_596_801, 0, False)],
)  # fmt: skip
def test_commit_times_are_those_of_a_calendar(seconds: int, nanos: int, fits: bool) -> None:
    message = Manifest(3, Schema((DICTIONARY,))).to_pb()
    message.timestamp.seconds, message.timestamp.nanos = seconds, nanos
    if not fits:
        with pytest.raises(CorruptFileError, match="a commit time"):
            Manifest.from_pb(message, "m")
        return
    read = Manifest.from_pb(message, "m")
    assert read.timestamp_ns == seconds * 10**9 + nanos
    assert read.timestamp is not None
    assert read.timestamp.year in (1, 9999)
    assert Manifest.from_pb(read.to_pb(), "m").timestamp_ns == read.timestamp_ns


def test_a_base_path_is_no_dataset_root_unless_it_says_so():
    base = BasePath(1, "/x")
    assert not base.is_dataset_root
    assert BasePath.from_pb(base.to_pb()) == base


FILE = build_manifest_file([b"indices", b"tx"], [b"mani", b"fest"], b"pre")
AT = 3 + 4 + 7 + 4 + 2  # of the manifest's length prefix


def footer(position: int, major: int = 0, minor: int = 2, magic: bytes = b"LANC") -> bytes:
    return struct.pack("<QHH4s", position, major, minor, magic)


@pytest.mark.parametrize("tail_bytes", [len(FILE), len(FILE) - AT, len(FILE) - 3])
def test_every_part_is_found_from_the_end(tail_bytes: int) -> None:
    tail = memoryview(FILE)[len(FILE) - tail_bytes :]
    assert message_position(tail, len(FILE), "m") == AT
    assert bytes(message_bytes(tail, len(FILE), AT, "m")) == b"manifest"
    indices = read_section(tail, len(FILE), 3, AT, "m")
    assert indices == Section(3, b"indices" if tail_bytes >= len(FILE) - 3 else None)
    transaction = read_section(tail, len(FILE), 14, AT, "m")
    assert transaction == Section(14, b"tx" if tail_bytes >= len(FILE) - 3 else None)
    assert read_section(tail, len(FILE), None, AT, "m") is None


def test_sizes_count_the_length_prefix() -> None:
    assert (section_size(None), section_size(b""), section_size(b"ab")) == (0, 4, 6)
    assert len(FILE) == AT + section_size(b"manifest") + 16


def test_the_smallest_file_is_a_length_and_a_footer() -> None:
    smallest = build_manifest_file([], [])
    assert len(smallest) == 20
    assert message_position(memoryview(smallest), 20, "m") == 0
    assert bytes(message_bytes(memoryview(smallest), 20, 0, "m")) == b""


@pytest.mark.parametrize("size", [0, 15, 16, 19])
def test_shorter_files_are_refused(size: int) -> None:
    data = build_manifest_file([], [])[20 - size :]
    with pytest.raises(CorruptFileError, match="at least 20 bytes"):
        message_position(memoryview(data), size, "m")


def test_a_tail_without_the_footer_is_refused() -> None:
    with pytest.raises(CorruptFileError, match="truncated"):
        message_position(memoryview(FILE)[-15:], len(FILE), "m")
    assert message_position(memoryview(FILE)[-16:], len(FILE), "m") == AT


@pytest.mark.parametrize(
    ("end", "said"),
    [
        (footer(AT, magic=b"LANX"), "magic bytes"),
        (footer(AT, major=10), "10.2"),
        (footer(AT, minor=10), "0.10"),
        (footer(len(FILE) - 19), "position of the manifest"),
        (footer(2**64 - 1), "position of the manifest"),
    ],
)
def test_footers_that_cannot_be_are_refused(end: bytes, said: str) -> None:
    data = FILE[:-16] + end
    with pytest.raises(CorruptFileError, match=said):
        message_position(memoryview(data), len(data), "m")


@pytest.mark.parametrize("end", [footer(AT, 9, 9), footer(len(FILE) - 20)])
def test_footers_at_their_limits_are_read(end: bytes) -> None:
    data = FILE[:-16] + end
    message_position(memoryview(data), len(data), "m")


def test_very_large_files_are_refused_before_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lance_nb.format.manifest.FILE_BYTES_MAX", len(FILE))
    assert message_position(memoryview(FILE), len(FILE), "m") == AT
    with pytest.raises(CorruptFileError, match=f"at most {len(FILE)} bytes"):
        message_position(memoryview(FILE), len(FILE) + 1, "m")


def test_a_manifest_fills_the_room_to_the_footer() -> None:
    for position in (AT - 1, AT + 1):
        with pytest.raises(CorruptFileError, match="a manifest of"):
            message_bytes(memoryview(FILE), len(FILE), position, "m")


@pytest.mark.parametrize("offset", [AT - 3, AT, AT + 1, 2**63])
def test_sections_begin_before_the_manifest(offset: int) -> None:
    with pytest.raises(CorruptFileError, match=f"a section before byte {AT}"):
        read_section(memoryview(FILE), len(FILE), offset, AT, "m")


@pytest.mark.parametrize(("length", "fits"), [(0, True), (6, True), (7, False), (2**32 - 1, False)])
def test_sections_end_before_the_manifest(length: int, fits: bool) -> None:
    data = struct.pack("<I", length) + b"sixsix" + FILE[AT:]
    if fits:
        assert read_section(memoryview(data), len(data), 0, 10, "m") == Section(
            0, b"sixsix"[:length]
        )
        return
    with pytest.raises(CorruptFileError, match="ends before byte 10"):
        read_section(memoryview(data), len(data), 0, 10, "m")


def test_an_empty_section_may_touch_the_manifest() -> None:
    data = build_manifest_file([b""], [b"m"])
    assert read_section(memoryview(data), len(data), 0, 4, "m") == Section(0, b"")


def test_sections_that_no_length_can_name_are_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lance_nb.format.manifest.U32_MAX", 5)
    assert build_manifest_file([b"12345"], [b"123", b"45"])
    for sections, message in (([b"123456"], [b""]), ([], [b"123", b"456"])):
        with pytest.raises(CorruptFileError, match="at most 4 GiB"):
            build_manifest_file(sections, message)
