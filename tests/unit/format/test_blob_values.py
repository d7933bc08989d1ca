"""Blobs to write, and binary columns read as files."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import ArgumentError, InvalidInputError


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"data": b"", "uri": "x"},
        {"uri": ""},
        {"uri": "x", "position": 1},
        {"uri": "x", "size": 1},
        {"data": b"x", "position": 1, "size": 1},
        {"uri": "x", "position": 0, "size": 0},
        {"uri": "x", "position": -1, "size": 2},
        {"uri": "x", "position": 2**64, "size": 2},
    ],
    ids=str,
)
def test_blobs_that_mean_nothing_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        lance_nb.Blob(**arguments)


def test_blobs_are_made_of_every_kind_of_value() -> None:
    part = lance_nb.Blob.from_uri("x", 1, 2)
    array = lance_nb.blob_array([b"a", bytearray(b"b"), memoryview(b"c"), "uri", part, None])
    assert array.null_count == 1
    assert array.storage.to_pylist()[3:5] == [
        {"data": None, "uri": "uri", "position": None, "size": None},
        {"data": None, "uri": "x", "position": 1, "size": 2},
    ]
    assert array.type == lance_nb.BlobType()
    assert pickle.loads(pickle.dumps(array.type)) == array.type  # noqa: S301
    with pytest.raises(ArgumentError, match="not int"):
        lance_nb.blob_array([3])


def test_a_field_of_blobs_names_its_sizes() -> None:
    field = lance_nb.blob_field(
        "b", nullable=False, inline_size_threshold=0, dedicated_size_threshold=10,
        pack_file_size_threshold=99,
    )  # fmt: skip
    assert (field.name, field.nullable) == ("b", False)
    assert sorted(field.metadata.values()) == [b"0", b"10", b"99"]
    assert lance_nb.blob_field("b").metadata is None
    for wrong, error in ((-1, InvalidInputError), (True, TypeError), ("1", TypeError),
                         (2**64, OverflowError)):  # fmt: skip
        with pytest.raises(error):
            lance_nb.blob_field("b", inline_size_threshold=wrong)
    with pytest.raises(InvalidInputError):
        lance_nb.blob_field("b", dedicated_size_threshold=0)


def test_a_column_is_read_as_files() -> None:
    for column in (pa.array([b"a", None]), pa.chunked_array([[b"a"], [None]], pa.large_binary())):
        files = list(lance_nb.BlobColumn(column))
        assert [file and file.read() for file in files] == [b"a", None]
    for wrong in (pa.array(["a"]), [b"a"]):
        with pytest.raises(InvalidInputError):
            lance_nb.BlobColumn(wrong)
