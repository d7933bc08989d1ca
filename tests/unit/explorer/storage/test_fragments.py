from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import NotFoundError, NotSupportedError
from lance_nb.explorer.source import fragment_at, stored_source
from lance_nb.explorer.storage import fragments as bitmaps
from lance_nb.explorer.storage.fragments import (
    MAX_BINS,
    deletion_bitmap,
    file_pages,
    fragment_detail,
    fragment_map,
)
from lance_nb.format.deletion_vector import DeletionVector
from lance_nb.format.fragment_list import FragmentCounts
from tests.support.explorer_datasets import worn_dataset
from tests.support.fake_dataset import small_dataset

COLUMNS = ("id", "count", "rows", "deleted", "bytes", "files", "covered")


def columns(found: Any) -> dict[str, list[float]]:
    arrays = (np.frombuffer(buffer, "<f8").tolist() for buffer in found.buffers)
    return dict(zip(COLUMNS, arrays, strict=True))


def counted(count: int, indices: list[dict[str, Any]] | None = None) -> Any:
    """A dataset of which only the counts of its fragments are known."""
    ids = np.arange(count, dtype=np.int64) * 2
    ten = np.full(count, 10, np.int64)
    counts = FragmentCounts(ids, ten, ten // 5, ten // 10, ten // 10, ten * 7)
    fragments = SimpleNamespace(counts=lambda: counts)
    snapshot = SimpleNamespace(manifest=SimpleNamespace(fragments=fragments))
    return SimpleNamespace(opened=(None, snapshot), list_indices=lambda: indices or [])


def test_every_fragment_has_a_bar_with_its_numbers(tmp_path: Path) -> None:
    found = fragment_map(worn_dataset(tmp_path / "d.lance"))
    bars = columns(found)
    assert bars["id"] == [0, 1, 2]
    assert bars["rows"] == [100, 100, 100]
    assert bars["deleted"] == [0, 30, 0]
    assert bars["files"] == [2, 2, 2]
    assert found.to_json()["totals"]["deleted"] == 30
    assert all(size > 0 for size in bars["bytes"])


def test_of_a_hundred_thousand_fragments_neighbours_share_a_bar() -> None:
    found = fragment_map(counted(100_000))
    bars = columns(found)
    assert found.to_json()["num_bins"] == MAX_BINS
    assert sum(bars["count"]) == 100_000
    assert sum(bars["rows"]) == 1_000_000
    assert sum(map(len, found.buffers)) < 250_000


def test_a_narrow_span_shows_its_fragments_apart() -> None:
    bars = columns(fragment_map(counted(100_000), 50_000, 50_003))
    assert bars["id"] == [100_000, 100_002, 100_004]
    assert bars["count"] == [1, 1, 1]
    assert columns(fragment_map(counted(5), 7, 9))["id"] == []


def test_rows_count_as_covered_when_every_index_covers_them() -> None:
    indices = [
        {"name": "a", "fragment_ids": {0}},
        {"name": "a", "fragment_ids": {2}},  # a second segment of the same index
        {"name": "b", "fragment_ids": {0, 4}},
        {"name": "c", "fragment_ids": None},  # an old writer did not say
    ]
    found = fragment_map(counted(3, indices))
    assert columns(found)["covered"] == [10, 0, 0]
    assert found.totals["indices"] == 2


def test_what_has_no_files_says_so_and_an_unknown_fragment_too(tmp_path: Path) -> None:
    with pytest.raises(NotSupportedError):
        stored_source(small_dataset())
    with pytest.raises(NotFoundError, match="no fragment 77"):
        fragment_at(worn_dataset(tmp_path / "d.lance"), 77)


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


def test_a_fragment_tells_its_files_and_the_version_that_wrote_each(tmp_path: Path) -> None:
    dataset = worn_dataset(tmp_path / "d.lance")
    found = fragment_detail(dataset, 1)
    assert (found.id, found.rows, found.deleted) == (1, 100, 30)
    first, second = found.files
    assert (first.columns, first.written, first.dropped) == (("id", "vector"), "main:2", 1)
    assert (second.columns, second.written) == (("double",), "main:5")
    assert found.deletion_file is not None
    assert found.deletion_file["path"].startswith("_deletions/")
    assert found.indices == ()
    assert fragment_detail(dataset, 0).deletion_file is None


def test_columns_that_a_later_file_replaced_are_tombstoned(tmp_path: Path) -> None:
    dataset = worn_dataset(tmp_path / "d.lance")
    dataset.alter_columns({"path": "id", "data_type": pa.int32()})
    found = fragment_detail(lance_nb.dataset(dataset.uri), 0)
    lost = sum(file.tombstoned + file.dropped for file in found.files)
    assert lost == 2


def test_files_of_cleaned_up_versions_are_from_then_or_before(tmp_path: Path) -> None:
    dataset = worn_dataset(tmp_path / "d.lance")
    dataset.tags.delete("v1")
    dataset.cleanup_old_versions(retain_versions=2)
    first, _ = fragment_detail(lance_nb.dataset(dataset.uri), 0).files
    assert first.written == "main:5 or earlier"


def test_pages_tell_layout_codecs_and_what_they_save(tmp_path: Path) -> None:
    dataset = worn_dataset(tmp_path / "d.lance")
    pages = file_pages(dataset, fragment_detail(dataset, 1).files[0].path)
    assert [column.name for column in pages.columns] == ["id", "(not in the schema)", "vector"]
    number, dropped, vector = pages.columns
    assert (number.rows, number.plain, dropped.plain, vector.plain) == (100, 800, None, 1600)
    assert "mini_block" in number.encodings[0]["encoding"]
    assert pages.bytes == sum(column.bytes for column in pages.columns)
    with pytest.raises(NotFoundError):
        file_pages(dataset, "nothing.lance")
