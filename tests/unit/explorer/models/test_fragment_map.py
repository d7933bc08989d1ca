from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from lance_nb.errors import NotFoundError, NotSupportedError
from lance_nb.explorer.models.fragment_map import COLUMNS, MAX_BINS, fragment_map
from lance_nb.explorer.models.source import fragment_at, stored_source
from lance_nb.format.fragment_list import FragmentCounts
from tests.unit.explorer.fakes import small_dataset
from tests.unit.explorer.stored_datasets import worn_dataset


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
