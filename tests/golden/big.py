"""Datasets of many rows in few bytes, made from golden ones: their pages are listed many times."""

from __future__ import annotations

from pathlib import Path

from lance_nb._pb import table as pb
from tests.golden.copies import edited_fragment, edited_manifest
from tests.hostile.mutate import column_messages, with_column_messages

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
        data_file.write_bytes(with_column_messages(data, messages))

        def grow(fragment: pb.DataFragment) -> None:
            fragment.physical_rows = PAGE_ROWS * times
            fragment.files[0].file_size_bytes = data_file.stat().st_size

        manifest.ClearField("fragments")
        manifest.fragments.append(edited_fragment(raw, grow))

    path.write_bytes(edited_manifest(path.read_bytes(), change))
    return PAGE_ROWS * times
