from __future__ import annotations

import struct

import pytest

from lance_nb._pb import file as pb
from lance_nb.errors import CorruptFileError
from lance_nb.file.legacy_metadata import read_legacy_metadata
from lance_nb.file.legacy_reader import LegacyReader
from lance_nb.file.legacy_statistics import read_statistics
from lance_nb.file.source import FileSource
from tests.support.legacy_files import LegacyFile, node
from tests.support.reading import BytesStore


def file_with_statistics(num_rows: int = 2) -> bytes:
    """Two batches of one column; bounds of the second one are not known."""
    made = LegacyFile([node(3, "t", "string")], [0, 2, 3])
    made.add_strings(3, 0, [b"b", b"a"])
    made.add_strings(3, 1, [b""])
    own = LegacyFile([], [0, 2], bytearray(made.body))
    own.fields = [
        node(0, "3", "struct", nullable=False),
        node(1, "null_count", "int64", 0, nullable=False),
        node(2, "min_value", "string", 0),
        node(3, "max_value", "string", 0),
        node(4, "more", "int8"),
    ]
    own.add(1, 0, struct.pack("<2q", 0, 1), num_rows)
    own.add_strings(2, 0, [b"a", b""])
    own.add_strings(3, 0, [b"b", b""])
    own.add(4, 0, b"xy", 2)
    made.body = own.body
    made.statistics = pb.Metadata.Statistics(
        schema=own.fields, fields=[0, 1, 2, 3, 4], page_table_position=len(own.body)
    )
    made.body += own.page_table(1, [0, 4])
    return made.finish()


def test_statistics_are_a_row_per_batch_and_a_column_per_field() -> None:
    source = FileSource(BytesStore(file_with_statistics()), "old.lance")
    found = read_statistics(source, read_legacy_metadata(source))

    assert found is not None
    assert found.to_pydict() == {
        "3": [
            {"null_count": 0, "min_value": "a", "max_value": "b"},
            {"null_count": 1, "min_value": None, "max_value": None},
        ]
    }


def test_statistics_shorter_than_the_batches_are_refused() -> None:
    source = FileSource(BytesStore(file_with_statistics(1)), "old.lance")

    with pytest.raises(CorruptFileError):
        read_statistics(source, read_legacy_metadata(source))


def test_statistics_of_no_batches_have_no_rows() -> None:
    made = LegacyFile([node(3, "t", "string")], [])
    own = LegacyFile([], [0, 0], bytearray(made.body))
    own.fields = [node(0, "3", "struct", nullable=False), node(1, "null_count", "int64", 0)]
    made.statistics = pb.Metadata.Statistics(
        schema=own.fields, fields=[0, 1], page_table_position=len(own.body)
    )
    made.body += own.page_table(1, [0, 1])
    opened = FileSource(BytesStore(made.finish()), "old.lance")
    found = read_statistics(opened, read_legacy_metadata(opened))
    assert found is not None
    assert (found.num_rows, found.column_names) == (0, ["3"])


def test_a_listing_of_pages_has_their_statistics() -> None:
    reader = LegacyReader(FileSource(BytesStore(file_with_statistics()), "old.lance"))
    found = [
        (one.column, one.page, one.null_count, one.min_value, one.max_value)
        for one in reader.list_pages()
    ]
    assert found == [(3, 0, 0, "a", "b"), (3, 1, 1, None, None)]
