"""Constant columns are read from the metadata alone; whatever is odd is left to the file reader."""

from __future__ import annotations

import struct

import pytest

from lance_nb._pb import encodings, encodings21, file2
from lance_nb.file.constant_columns import constant_columns
from lance_nb.file.metadata import PAGE_LAYOUT_URL

NULLABLE, LIST = encodings21.REPDEF_NULLABLE_ITEM, encodings21.REPDEF_ALL_VALID_LIST


def column(value=b"\x05\0\0\0", rows=1, layers=(NULLABLE,), pages=1, url=PAGE_LAYOUT_URL, **more):
    layout = encodings21.PageLayout()
    layout.constant_layout.layers.extend(layers)
    if value is not None:
        layout.constant_layout.inline_value = value
    wrapped = encodings.Any(type_url=url, value=layout.SerializeToString())
    message = file2.ColumnMetadata()
    message.encoding.direct.encoding = b""
    for _ in range(pages):
        page = message.pages.add(length=rows, **more)
        page.encoding.direct.encoding = wrapped.SerializeToString()
    return message.SerializeToString()


def file_of(*columns, version=(2, 2), magic=b"LANC", shift=0):
    table = b""
    at = 0
    for one in columns:
        table += struct.pack("<QQ", at + shift, len(one))
        at += len(one)
    footer = struct.pack("<QQQIIHH4s", 0, at, at, 0, len(columns), *version, magic)
    return memoryview(b"".join(columns) + table + footer)


def test_values_come_in_the_order_asked_for():
    data = file_of(column(), column(b"\x07\0", rows=1))
    assert constant_columns(data, [1, 0], 1) == [b"\x07\0", b"\x05\0\0\0"]
    assert constant_columns(data, [], 1) == []


@pytest.mark.parametrize(
    "data",
    [
        file_of(column(rows=2)),
        file_of(column(pages=2)),
        file_of(column(pages=0)),
        file_of(column(None)),
        file_of(column(layers=(NULLABLE, LIST))),
        file_of(column(layers=())),
        file_of(column(url="/lance.encodings.ArrayEncoding")),
        file_of(column(buffer_offsets=[0], buffer_sizes=[1])),
        file_of(column(), version=(2, 1)),
        file_of(column(), magic=b"LANX"),
        file_of(column(), shift=10**6),
        file_of(column()[:-3]),
        file_of(),
        memoryview(b""),
    ],
)
def test_what_is_odd_in_any_way_is_left_alone(data):
    assert constant_columns(data, [0], 1) is None


def test_a_column_that_the_file_does_not_have_is_left_alone():
    assert constant_columns(file_of(column()), [-1], 1) is None
    assert constant_columns(file_of(column()), [1], 1) is None
