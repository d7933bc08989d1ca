"""Page statistics of 0.1 files spare pages, and never change what a filter returns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.file import v0_1_reader
from lance_nb.table import page_pruning
from tests.support.reading import same
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop
NUM_ROWS = 4000
PAGE_ROWS = 100


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    lance = require_pylance()
    path = str(tmp_path_factory.mktemp("pruning") / "d")
    rng = np.random.default_rng(3)
    ids = np.arange(NUM_ROWS)
    floats = ids / 7
    floats[::97] = np.nan
    table = pa.table(
        {
            "id": pa.array(ids),
            "small": pa.array((ids // 40).astype(np.int16)),
            "float": pa.array(floats),
            "nulls": pa.array([None if i % 300 == 5 else i for i in ids.tolist()], pa.int64()),
            "day": pa.array((ids // 10).astype(np.int32)).view(pa.date32()),
            "time": pa.array(ids * 1_000_000_000).view(pa.timestamp("us")),
            "text": pa.array([f"t{i:05}" * 30 for i in ids.tolist()]),
            "mixed": pa.array(rng.integers(-9, 9, NUM_ROWS)),
        }
    )
    lance.write_dataset(
        table, path, data_storage_version="legacy", max_rows_per_group=PAGE_ROWS,
        max_rows_per_file=1700,
    )  # fmt: skip
    lance.dataset(path).delete("id % 13 = 4")
    return lance_nb.dataset(path), lance.dataset(path)


FILTERS = [
    "id < 250", "id >= 3900", "id = 1234", "1234 = id", "id > 100 AND id <= 130",
    "id BETWEEN 5 AND 9",
    "id < 0", "id > 0", "small = 3", "small > 98 AND mixed > 0", "float < 3.5", "float > 570",
    "float = 2", "float >= 1", "float <= 1 AND id > 3", "nulls < 40", "nulls > 3990", "nulls = 0",
    "nulls = 305", "day < date '1970-01-09'", "time > timestamp '1970-02-15 00:00:00'",
    "text < 't00020'", "id < 50 OR id > 3950", "NOT id < 3950", "id IN (3, 4)", "id + 1 < 30",
    "id < 100 AND float < 3 AND text LIKE 't0%'", "id < 100 AND id > 200", "id < NULL",
    "float = cast('NaN' as double)", "float < cast('NaN' as double)",
]  # fmt: skip


@pytest.mark.parametrize("condition", FILTERS)
def test_results_are_those_of_the_whole_scan(
    pair: Any, condition: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = pair
    found = ours.to_table(filter=condition, with_row_id=True)
    count = ours.count_rows(condition)
    monkeypatch.setattr(page_pruning, "rows_that_may_pass", lambda *_: None)
    whole = ours.to_table(filter=condition, with_row_id=True)

    assert all(same(*pair) for pair in zip(found.columns, whole.columns, strict=True))
    assert found["id"].to_pylist() == whole["id"].to_pylist()
    assert found["_rowid"].to_pylist() == whole["_rowid"].to_pylist()
    assert count == len(found)
    other = theirs.to_table(filter=condition, columns=["id"], use_stats=False)
    assert found["id"].to_pylist() == other["id"].to_pylist()
    page = ours.to_table(filter=condition, limit=3, offset=1)["id"].to_pylist()
    assert page == found["id"].to_pylist()[1:4]


@pytest.mark.parametrize(
    ("condition", "pages"),
    [("id < 250", 3), ("id = 1234", 1), ("1234 = id", 1), ("id BETWEEN 5 AND 9", 1), ("id < 0", 0),
     ("id > 3950 AND mixed > 0", 2), ("day < date '1970-01-09'", 1), ("float < 3.5", 1),
     ("float > 570", 41), ("nulls > 3990", 14), ("text < 't00020'", 41)],
)  # fmt: skip
def test_pages_that_cannot_hold_a_row_are_not_read(
    pair: Any, condition: str, pages: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, _ = pair
    read: set[tuple[str, int]] = set()
    whole = v0_1_reader.LegacyPages._array

    def watched(self: Any, leaf: Any, batch: int, rows: Any) -> Any:
        if not leaf.name.isdigit() and "." not in leaf.name:
            read.add((self.source.path, batch))
        return whole(self, leaf, batch, rows)

    monkeypatch.setattr(v0_1_reader.LegacyPages, "_array", watched)
    ours.to_table(filter=condition, columns=["id"])

    assert len(read) <= pages


def test_files_without_statistics_are_read_whole(tmp_path: Path) -> None:
    golden = Path(__file__).parents[1] / "golden" / "pylance_0_5_10" / "history_legacy.lance"
    dataset = lance_nb.dataset(golden, version=2)
    table = dataset.to_table()

    assert dataset.to_table(filter="id < 9").equals(table.slice(0, 9))
