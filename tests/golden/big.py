"""Datasets of many rows in few bytes, made from golden ones: their pages are listed many times."""

from __future__ import annotations

import struct
from pathlib import Path

from lance_nb._pb import file as file_pb
from lance_nb._pb import table as pb
from lance_nb.file.footer import FOOTER_BYTES, TABLE_ENTRY_BYTES, parse_footer
from tests.faults.damage.mutate import column_messages, with_column_messages
from tests.golden.copies import edited_fragment, edited_manifest

VERSION = 4  # of the golden history: its third fragment has 5,060 rows of one page per column
PAGE_ROWS = 5060


def repeat_pages(root: Path, times: int) -> int:
    """Let version 4 of the history in ``root`` be one fragment of ``times`` pages.

    Column ``id`` counts from 0 to 5,059 again and again; the other columns are null. Returns the
    number of rows.
    """
    path = root / "_versions" / f"{2**64 - 1 - VERSION:020d}.manifest"

    def change(manifest: pb.Manifest) -> None:
        raw = manifest.fragments[2]
        data_file = root / "data" / pb.DataFragment.FromString(raw).files[0].path
        data = data_file.read_bytes()
        messages = column_messages(data)
        for message in messages:
            del message.pages[1:]
            message.pages.extend([message.pages[0]] * (times - 1))
        data = with_column_messages(data, messages)
        data_file.write_bytes(with_row_count(data, PAGE_ROWS * times))

        def grow(fragment: pb.DataFragment) -> None:
            fragment.physical_rows = PAGE_ROWS * times
            fragment.files[0].file_size_bytes = data_file.stat().st_size

        manifest.ClearField("fragments")
        manifest.fragments.append(edited_fragment(raw, grow))

    path.write_bytes(edited_manifest(path.read_bytes(), change))
    return PAGE_ROWS * times


def with_row_count(data: bytes, num_rows: int) -> bytes:
    """Return a data file whose descriptor (global buffer 0) says ``num_rows``."""
    body, tail = data[:-FOOTER_BYTES], data[-FOOTER_BYTES:]
    footer = parse_footer(memoryview(data), len(data), "")
    start = footer.global_table_start
    table = data[start : start + footer.num_global_buffers * TABLE_ENTRY_BYTES]
    position, size = struct.unpack_from("<QQ", table)
    descriptor = file_pb.FileDescriptor.FromString(data[position : position + size])
    descriptor.length = num_rows
    raw = descriptor.SerializeToString()
    table = struct.pack("<QQ", len(body), len(raw)) + table[TABLE_ENTRY_BYTES:]
    moved = struct.pack("<Q", len(body) + len(raw))
    return body + raw + table + tail[:16] + moved + tail[24:]
