from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lance_nb.explorer.models import deletion_bitmap as bitmaps
from lance_nb.explorer.models.deletion_bitmap import deletion_bitmap
from lance_nb.format.deletion_vector import DeletionVector
from tests.unit.explorer.stored_datasets import worn_dataset


def test_with_room_every_row_is_a_pixel(tmp_path: Path) -> None:
    found = deletion_bitmap(worn_dataset(tmp_path / "d.lance"), 1, 0, 1000, 1000)
    assert (found.num_rows, found.num_deleted, found.rows_per_pixel) == (100, 30, 1)
    assert found.pixels == bytes([255] * 30 + [0] * 70)


def test_with_little_room_a_pixel_is_the_share_of_its_rows(tmp_path: Path) -> None:
    dataset = worn_dataset(tmp_path / "d.lance")
    found = deletion_bitmap(dataset, 1, 0, 100, 8)
    assert found.rows_per_pixel == 13
    assert list(found.pixels) == [255, 255, 4 * 255 // 13, 0, 0, 0, 0, 0]
    part = deletion_bitmap(dataset, 1, 20, 20, 4)
    assert (part.first, part.stop, list(part.pixels)) == (20, 40, [255, 255, 0, 0])


def test_a_fragment_without_deletions_is_all_live(tmp_path: Path) -> None:
    found = deletion_bitmap(worn_dataset(tmp_path / "d.lance"), 0, 0, 100, 10)
    assert (found.num_deleted, found.pixels) == (0, bytes(10))
    assert deletion_bitmap(worn_dataset(tmp_path / "e.lance"), 0, 500, 100, 10).pixels == b""


def pictured(monkeypatch: pytest.MonkeyPatch, total: int, vector: DeletionVector) -> Any:
    """The picture of a fragment that is nothing but this deletion vector."""
    snapshot = SimpleNamespace(locations=None, deletions=None)
    dataset: Any = SimpleNamespace(opened=(None, snapshot))
    monkeypatch.setattr(bitmaps, "num_physical_rows", lambda *_: total)
    monkeypatch.setattr(bitmaps, "fragment_at", lambda *_: None)
    monkeypatch.setattr(bitmaps, "read_deletions", lambda *_: vector)
    return deletion_bitmap(dataset, 0, 0, total, 60_000)


def test_both_ways_of_counting_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    vector = DeletionVector.from_mask(rng.random(300_000) < 0.2)
    few = pictured(monkeypatch, 300_000, vector)
    monkeypatch.setattr(bitmaps, "_FEW", 0)
    assert pictured(monkeypatch, 300_000, vector) == few


@pytest.mark.slow
def test_a_hundred_million_rows_become_a_picture_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    total = 100_000_000
    vector = DeletionVector.from_mask(np.arange(total, dtype=np.int32) % 7 == 0)
    deleted = len(vector)
    started = time.process_time()
    found = pictured(monkeypatch, total, vector)
    assert time.process_time() - started < 10
    shades = np.frombuffer(found.pixels, np.uint8)
    assert len(shades) <= 60_000
    assert found.num_deleted == deleted
    assert (shades > 0).all()
