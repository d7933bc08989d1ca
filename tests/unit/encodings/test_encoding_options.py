"""What field metadata asks for."""

from __future__ import annotations

import dataclasses

import pytest

from lance_nb.encodings.encoding_options import EncodingOptions
from lance_nb.errors import InvalidInputError


def read(version: tuple[int, int] = (2, 2), **keys: str) -> EncodingOptions:
    metadata = {
        f"lance-encoding:{key.replace('_', '-')}": value.encode() for key, value in keys.items()
    }
    return EncodingOptions.from_metadata(metadata, version)


def test_without_keys_nothing_is_asked_for() -> None:
    assert read() == EncodingOptions(file_version=(2, 2))


def test_every_key_is_read() -> None:
    options = read(
        compression="zstd",
        compression_level="7",
        structural_encoding="fullzip",
        rle_threshold="0.25",
        bss="on",
        dict_divisor="4",
        dict_size_ratio="0.5",
        dict_max_size="1000",
        dict_values_compression="none",
        dict_values_compression_level="2",
        minichunk_size="4096",
        packed="true",
        blob="True",
    )
    assert options == EncodingOptions(
        file_version=(2, 2),
        compression="zstd",
        compression_level=7,
        structural="fullzip",
        rle_threshold=0.25,
        bss="on",
        dict_divisor=4,
        dict_size_ratio=0.5,
        dict_max_size_bytes=1000,
        dict_values_compression="none",
        dict_values_compression_level=2,
        minichunk_size_bytes=4096,
        is_packed=True,
        is_blob=True,
    )


def test_the_old_key_of_packed_structs_is_read_too() -> None:
    assert EncodingOptions.from_metadata({"packed": b"true"}, (2, 1)).is_packed


@pytest.mark.parametrize(
    ("key", "least", "most"),
    [
        ("compression_level", -(2**31 - 1), 2**31 - 1),
        ("dict_values_compression_level", -(2**31 - 1), 2**31 - 1),
        ("dict_divisor", 1, 2**62),
        ("dict_max_size", 1, 2**62),
        ("minichunk_size", 1, 2**30),
    ],
)
def test_integers_have_bounds(key: str, least: int, most: int) -> None:
    for number in (least, most):
        assert number in vars_of(read(**{key: str(number)}))
    for number in (least - 1, most + 1):
        with pytest.raises(InvalidInputError, match=f"from {least} to {most}"):
            read(**{key: str(number)})


def vars_of(options: EncodingOptions) -> list[object]:
    return [getattr(options, one.name) for one in dataclasses.fields(options)]


@pytest.mark.parametrize(("key", "least"), [("rle_threshold", "0.0"), ("dict_size_ratio", "1e-9")])
def test_shares_go_up_to_one(key: str, least: str) -> None:
    for text in (least, "1.0", "1"):
        assert float(text) in vars_of(read(**{key: text}))
    for text in ("-0.001", "1.001"):
        with pytest.raises(InvalidInputError, match=r"from 0\.0 to 1\.0"):
            read(**{key: text})


@pytest.mark.parametrize(
    ("key", "value", "allowed"),
    [
        ("compression", "gzip", "none, lz4, zstd, fsst"),
        ("compression_level", "high", "an integer"),
        ("structural_encoding", "zip", "miniblock, fullzip"),
        ("rle_threshold", "1.5", "0.0 to 1.0"),
        ("rle_threshold", "nan", "0.0 to 1.0"),
        ("bss", "yes", "off, on, auto"),
        ("dict_divisor", "0", "from 1"),
        ("dict_size_ratio", "0", "0.0 to 1.0"),
        ("minichunk_size", "-1", "from 1"),
        ("packed", "1", "true, false"),
    ],
)
def test_a_value_without_meaning_is_refused_with_what_is_allowed(
    key: str, value: str, allowed: str
) -> None:
    with pytest.raises(InvalidInputError) as caught:
        read(**{key: value})
    assert f"lance-encoding:{key.replace('_', '-')}" in str(caught.value)
    assert repr(value) in str(caught.value)
    assert allowed in str(caught.value)


def test_chunks_of_2_1_files_are_smaller_than_32_kib() -> None:
    assert read(minichunk_size="40000").chunk_bytes == 40_000
    assert read((2, 1), minichunk_size="32767").chunk_bytes == 32_767
    for size in ("32768", "40000"):
        with pytest.raises(InvalidInputError, match=r"below 32768 in a 2\.1 file"):
            read((2, 1), minichunk_size=size)
    assert read().chunk_bytes == 8184


def test_items_of_dictionaries_are_compressed_from_2_2_on() -> None:
    assert read().for_dictionary.compression == "lz4"
    assert read((2, 1)).for_dictionary.compression is None
    assert read(dict_values_compression="zstd").for_dictionary.compression == "zstd"


def test_levels_do_not_follow_the_options_of_values() -> None:
    assert read(compression="zstd").for_levels == EncodingOptions(file_version=(2, 2))
