from __future__ import annotations

import base64

import pyarrow as pa
import pytest

from lance_nb.explorer import table_images as limits
from lance_nb.explorer.table_images import images_json, table_images
from tests.unit.explorer.test_media import png


def test_pictures_of_a_table_are_bounded_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    hostile = b"<img src=x onerror=alert(1)>"
    columns = [pa.array([1, 2, 3]), pa.array([png(4, 3), hostile, png(5, 5)])]
    assert list(table_images(columns)) == [(0, 1), (2, 1)]
    first, second = images_json(columns)
    assert first == {
        "row": 0, "column": 1, "at": 0, "mime": "image/png", "width": 4, "height": 3,
        "data": base64.b64encode(png(4, 3)).decode(),
    }  # fmt: skip
    assert second["row"] == 2
    monkeypatch.setattr(limits, "INLINE_BYTES", len(png(4, 3)) + 1)
    assert list(table_images(columns)) == [(0, 1)]
