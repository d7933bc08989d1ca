"""Files under construction: alignment, tables, footer."""

from __future__ import annotations

import numpy as np
import pytest

from lance_nb._pb import encodings21
from lance_nb.file.footer import FOOTER_BYTES, parse_footer, parse_table
from lance_nb.file.metadata import PAGE_LAYOUT_URL, PageMetadata, parse_column
from lance_nb.file.sidecars import Sidecars
from lance_nb.file.sink import ALIGNMENT, FileSink
from lance_nb.storage.memory import MemoryStore, clear


@pytest.fixture
def store() -> MemoryStore:
    clear("sink")
    return MemoryStore("sink")


def test_buffers_are_aligned_and_found_again(store: MemoryStore):
    sink = FileSink(store.create("x"), Sidecars(store, "x"))
    column = sink.add_column()
    layout = encodings21.PageLayout().SerializeToString()
    buffers = (b"abc", memoryview(b""), np.arange(5, dtype="<u2").view(np.uint8))
    sink.add_page(column, buffers, PageMetadata((), (), 7, PAGE_LAYOUT_URL, layout), 3)
    number = sink.add_global_buffer(b"mine")
    sink.finish(b"descriptor", (2, 2))
    raw = store.read("x")
    assert len(raw) == sink.size_bytes
    footer = parse_footer(raw, len(raw), "x")
    assert footer.file_version == (2, 2)
    (place,) = parse_table(raw[footer.column_table_start :], footer.num_columns)
    metadata = parse_column(raw[place[0] : sum(place)], (2, 2), len(raw))
    page = metadata.pages[0]
    assert all(offset % ALIGNMENT == 0 for offset in page.buffer_offsets)
    spans = zip(page.buffer_offsets, page.buffer_sizes, strict=True)
    assert [bytes(raw[start : start + size]) for start, size in spans] == [
        b"abc",
        b"",
        bytes(buffers[2]),
    ]
    table = parse_table(raw[footer.global_table_start :], footer.num_global_buffers)
    assert [bytes(raw[start : start + size]) for start, size in table] == [b"descriptor", b"mine"]
    assert number == 1
    assert all(start % ALIGNMENT == 0 for start, _ in table)


def test_files_of_2_0_say_0_3(store: MemoryStore):
    sink = FileSink(store.create("x"), Sidecars(store, "x"))
    sink.finish(b"", (2, 0))
    raw = store.read("x")
    assert bytes(raw[-8:]) == b"\0\0\3\0LANC"
    assert parse_footer(raw, len(raw), "x").file_version == (2, 0)
    assert len(raw) == FOOTER_BYTES + 16


def test_an_aborted_file_is_not_there(store: MemoryStore):
    sink = FileSink(store.create("x"), Sidecars(store, "x"))
    sink.add_buffers([b"1"])
    sink.abort()
    assert not store.exists("x")
