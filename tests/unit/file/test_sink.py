"""Files under construction: alignment, tables, footer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from lance_nb._pb import encodings21
from lance_nb.file.footer import FOOTER_BYTES, parse_footer, parse_table
from lance_nb.file.metadata import PAGE_LAYOUT_URL, PageMetadata, parse_column
from lance_nb.file.sidecars import Sidecars
from lance_nb.file.sink import _WRITE_BYTES, ALIGNMENT, FileSink
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


class Counted:
    """Counts the bytes of each write."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def write(self, pieces: Sequence[bytes | memoryview]) -> None:
        self.sizes.append(sum(map(len, pieces)))


def test_small_buffers_go_out_together(store: MemoryStore):
    upload = Counted()
    sink = FileSink(upload, Sidecars(store, "x"))  # type: ignore[arg-type]
    sink.add_buffers([bytes(100), bytes(10)])
    assert upload.sizes == []
    sink.add_buffers([bytes(_WRITE_BYTES - 193)])  # and 28 and 54 to align them
    assert upload.sizes == []
    sink.add_buffers([b""])  # one byte to align it
    assert upload.sizes == [_WRITE_BYTES]
    assert sink.add_stream([memoryview(b"ab"), memoryview(b"c")]) == _WRITE_BYTES
    assert upload.sizes == [_WRITE_BYTES, 2, 1]


def test_shared_files_hold_a_gibibyte_unless_said_otherwise(store: MemoryStore):
    sidecars = Sidecars(store, "x")
    half = 1 << 29
    places = [
        sidecars.add_shared([b"x"], size, sidecars.pack_bytes) for size in (half, half - 1, 1, 1)
    ]
    assert places == [(1, 0), (1, half), (1, 2 * half - 1), (2, 0)]


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
