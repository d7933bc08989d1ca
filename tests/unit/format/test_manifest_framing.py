"""Where the parts of a manifest file lie, whole or seen from its end only."""

from __future__ import annotations

import struct

import pytest

from lance_nb.errors import CorruptFileError
from lance_nb.format import manifest_framing
from lance_nb.format.manifest_framing import (
    Section,
    build_file,
    message_bytes,
    message_position,
    section,
    section_size,
)

FILE = build_file([b"indices", b"tx"], [b"mani", b"fest"], b"pre")
AT = 3 + 4 + 7 + 4 + 2  # of the manifest's length prefix


def footer(position: int, major: int = 0, minor: int = 2, magic: bytes = b"LANC") -> bytes:
    return struct.pack("<QHH4s", position, major, minor, magic)


@pytest.mark.parametrize("tail_bytes", [len(FILE), len(FILE) - AT, len(FILE) - 3])
def test_every_part_is_found_from_the_end(tail_bytes: int) -> None:
    tail = memoryview(FILE)[len(FILE) - tail_bytes :]
    assert message_position(tail, len(FILE), "m") == AT
    assert bytes(message_bytes(tail, len(FILE), AT, "m")) == b"manifest"
    indices = section(tail, len(FILE), 3, AT, "m")
    assert indices == Section(3, b"indices" if tail_bytes >= len(FILE) - 3 else None)
    transaction = section(tail, len(FILE), 14, AT, "m")
    assert transaction == Section(14, b"tx" if tail_bytes >= len(FILE) - 3 else None)
    assert section(tail, len(FILE), None, AT, "m") is None


def test_sizes_count_the_length_prefix() -> None:
    assert (section_size(None), section_size(b""), section_size(b"ab")) == (0, 4, 6)
    assert len(FILE) == AT + section_size(b"manifest") + 16


def test_the_smallest_file_is_a_length_and_a_footer() -> None:
    smallest = build_file([], [])
    assert len(smallest) == 20
    assert message_position(memoryview(smallest), 20, "m") == 0
    assert bytes(message_bytes(memoryview(smallest), 20, 0, "m")) == b""


@pytest.mark.parametrize("size", [0, 15, 16, 19])
def test_shorter_files_are_refused(size: int) -> None:
    data = build_file([], [])[20 - size :]
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
    monkeypatch.setattr(manifest_framing, "FILE_BYTES_MAX", len(FILE))
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
        section(memoryview(FILE), len(FILE), offset, AT, "m")


@pytest.mark.parametrize(("length", "fits"), [(0, True), (6, True), (7, False), (2**32 - 1, False)])
def test_sections_end_before_the_manifest(length: int, fits: bool) -> None:
    data = struct.pack("<I", length) + b"sixsix" + FILE[AT:]
    if fits:
        assert section(memoryview(data), len(data), 0, 10, "m") == Section(0, b"sixsix"[:length])
        return
    with pytest.raises(CorruptFileError, match="ends before byte 10"):
        section(memoryview(data), len(data), 0, 10, "m")


def test_an_empty_section_may_touch_the_manifest() -> None:
    data = build_file([b""], [b"m"])
    assert section(memoryview(data), len(data), 0, 4, "m") == Section(0, b"")


def test_sections_that_no_length_can_name_are_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest_framing, "U32_MAX", 5)
    assert build_file([b"12345"], [b"123", b"45"])
    for sections, message in (([b"123456"], [b""]), ([], [b"123", b"456"])):
        with pytest.raises(CorruptFileError, match="at most 4 GiB"):
            build_file(sections, message)
