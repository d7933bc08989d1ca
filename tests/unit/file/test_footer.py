"""The last 40 bytes of a data file: versions, table places, and what is refused."""

from __future__ import annotations

import struct

import pytest

from lance_nb.errors import CorruptFileError, NotSupportedError
from lance_nb.file.footer import parse_footer, parse_table

SIZE = 1000


def footer(
    columns: int = 1, files: int = 1, version: tuple[int, int] = (2, 2), magic: bytes = b"LANC",
    places: tuple[int, int, int] = (500, 600, 700),
) -> memoryview:  # fmt: skip
    return memoryview(struct.pack("<QQQIIHH4s", *places, files, columns, *version, magic))


@pytest.mark.parametrize(
    ("stored", "meant"),
    [((0, 3), (2, 0)), ((2, 0), (2, 0)), ((2, 1), (2, 1)), ((2, 2), (2, 2)), ((0, 2), (0, 1))],
)
def test_versions_by_their_footer_numbers(stored: tuple[int, int], meant: tuple[int, int]) -> None:
    found = parse_footer(footer(version=stored), SIZE, "a.lance")
    assert found.file_version == meant


def test_places_and_counts() -> None:
    found = parse_footer(memoryview(b"before" + bytes(footer(columns=3, files=2))), SIZE, "a.lance")
    assert (found.num_columns, found.num_global_buffers) == (3, 2)
    assert (found.column_metadata_start, found.column_table_start) == (500, 600)
    assert found.global_table_start == 700


@pytest.mark.parametrize(
    ("tail", "size"),
    [
        (footer(magic=b"CNAL"), SIZE),
        (footer(columns=2**32 - 1), SIZE),
        (footer(files=2**32 - 1), SIZE),
        (footer(columns=23), SIZE),
        (footer(places=(0, 2**63, 0)), SIZE),
        (footer(places=(0, 0, 2**64 - 1)), SIZE),
        (footer(places=(0, SIZE - 40, 0)), SIZE),
        (memoryview(bytes(footer())[1:]), 39),
        (memoryview(b""), 0),
    ],
)
def test_a_damaged_footer_is_refused(tail: memoryview, size: int) -> None:
    with pytest.raises(CorruptFileError) as caught:
        parse_footer(tail, size, "a.lance")
    assert caught.value.path == "a.lance"


@pytest.mark.parametrize("version", [(9, 9), (0, 0), (2, 4), (3, 0)])
def test_an_unknown_version_is_named(version: tuple[int, int]) -> None:
    with pytest.raises(NotSupportedError, match=f"{version[0]}.{version[1]}"):
        parse_footer(footer(version=version), SIZE, "a.lance")


def test_tables_are_pairs() -> None:
    raw = struct.pack("<4Q", 1, 2, 2**64 - 1, 4)
    assert parse_table(memoryview(raw + b"more"), 2) == [(1, 2), (2**64 - 1, 4)]
    assert parse_table(memoryview(b""), 0) == []
