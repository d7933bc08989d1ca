"""Records of checksums: their bytes, their names, and what is no record."""

from __future__ import annotations

import pytest

from lance_nb.errors import CorruptFileError, InvalidInputError, NotSupportedError
from lance_nb.format.checksums import (
    CONFIG_KEY,
    RECORD_BYTES_MAX,
    FileSum,
    digest_of,
    is_record_name,
    parse_record,
    record_bytes,
    record_path,
    wants_checksums,
)

ONE = FileSum("data/b.lance", "0123456789abcdef" * 2, 7)
OTHER = FileSum("data/a b.lance", "f" * 32, 0)
CONTENT = (
    b"lance_nb checksums 1 xxh128\n"
    b"ffffffffffffffffffffffffffffffff 0 data/a b.lance\n"
    b"0123456789abcdef0123456789abcdef 7 data/b.lance\n"
)


def name_of(content: bytes) -> str:
    return record_path(content).removeprefix("_checksums/")


def test_a_record_is_lines_ordered_by_path() -> None:
    assert record_bytes([ONE, OTHER]) == CONTENT
    assert parse_record(CONTENT, "x", name_of(CONTENT)) == [OTHER, ONE]
    head = record_bytes([])
    assert parse_record(memoryview(head), "x", name_of(head)) == []


def test_a_record_is_named_by_its_xxh128() -> None:
    assert digest_of(b"") == "99aa06d3014798d86001c324468d497f"
    assert record_path(b"") == "_checksums/99aa06d3014798d86001c324468d497f.sums"
    assert is_record_name("99aa06d3014798d86001c324468d497f.sums")
    for name in ("99aa06d3014798d86001c324468d497f", "0.sums", "G" * 32 + ".sums", ""):
        assert not is_record_name(name)


def test_a_path_with_a_line_break_has_no_line() -> None:
    with pytest.raises(InvalidInputError, match="line break"):
        record_bytes([FileSum("a\nb", "0" * 32, 1)])


def test_a_record_under_another_name_is_damage() -> None:
    with pytest.raises(CorruptFileError, match="whose xxh128 is its name"):
        parse_record(CONTENT, "x", name_of(CONTENT + b"\n"))


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (CONTENT.replace(b" 1 xxh", b" 2 xxh"), NotSupportedError),
        (CONTENT[:-1].replace(b"\n", b"", 1), NotSupportedError),
        (CONTENT + b"\xff\n", CorruptFileError),
        (CONTENT + b"nothing\n", CorruptFileError),
        (CONTENT.replace(b" 7 ", b" 07 "), CorruptFileError),
        (CONTENT.replace(b" 7 ", b" -7 "), CorruptFileError),
        (CONTENT.replace(b"abcdef ", b"abcdeF "), CorruptFileError),
        (CONTENT.replace(b"data/b", b"../b"), CorruptFileError),
    ],
)
def test_what_is_no_record_is_refused(content: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        parse_record(content, "x", name_of(content))


def test_a_record_may_name_four_hundred_thousand_files() -> None:
    line = len(record_bytes([FileSum("data/" + "a" * 50 + ".lance", "0" * 32, 10**10)]))
    assert 400_000 * line <= RECORD_BYTES_MAX <= 1_000_000 * line


def test_a_configuration_names_the_kind_of_checksum() -> None:
    assert not wants_checksums({})
    assert not wants_checksums({CONFIG_KEY: ""})
    assert wants_checksums({CONFIG_KEY: "xxh128"})
    with pytest.raises(NotSupportedError, match="'sha256'"):
        wants_checksums({CONFIG_KEY: "sha256"})
