from __future__ import annotations

from pathlib import Path

import pyarrow as pa

import lance_nb
from tests.unit.magic.conftest import Lance


def test_pictures_are_drawn_in_a_notebook_and_named_in_a_terminal(
    lance: Lance, tmp_path: Path
) -> None:
    picture = b"GIF89a" + bytes([2, 0, 2, 0]) + bytes(20)
    table = pa.table({"id": [1, 2, 3], "photo": [picture, b"\x00\x01", None]})
    made = lance_nb.write_dataset(table, tmp_path / "photos.lance", enable_stable_row_ids=True)
    made.delete("id = 1")
    lance(f"open {tmp_path / 'photos.lance'}")
    for words in ("head 1", "diff 1..2 --rows"):
        found = lance(words)
        assert found.picture.html.count('<img src="data:image/gif;base64,R0lGODlh') == 1, words
        assert "GIF 2 × 2 · 30 B" in found.picture.text
        assert "47 49 46" not in found.picture.text
    assert lance("head 1").value["photo"].to_pylist()[0] == picture
