"""What statistics of golden 0.1 files rule out; interop/test_page_pruning compares whole scans."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import CorruptFileError
from lance_nb.file.legacy_reader import LegacyReader
from lance_nb.table.page_pruning import rows_that_may_pass
from lance_nb.table.predicate import compile_filter

GOLDEN = Path(__file__).parents[2] / "golden"


def judged(name: str, condition: str, version: int = 1) -> np.ndarray | None:
    snapshot = lance_nb.dataset(GOLDEN / name, version=version).opened[1]
    found = compile_filter(condition, snapshot.manifest.schema.to_arrow())
    return rows_that_may_pass(snapshot, snapshot.manifest.fragments[0], found)


@pytest.mark.parametrize(
    ("condition", "may_pass"),
    [
        ("id < 0", False),
        ("id <= 0", True),
        ("id > 39", False),
        ("id >= 39", True),
        ("id = 40", False),
        ("40 > id", True),
        ("40 < id", False),
        ("id > 3 AND id < 0", False),
        ("value < 0", False),
        ("id >= 0 AND word LIKE 'w%'", True),
    ],
)
def test_pages_are_judged_by_their_bounds(condition: str, may_pass: bool) -> None:
    mask = judged("pylance_0_8_21/history_legacy.lance", condition)

    assert mask is not None
    assert mask.tolist() == [may_pass] * 40


@pytest.mark.parametrize(
    "condition",
    ["value > 99", "word = 'zzz'", "id IS NULL", "id < 0 OR id > 99", "id + 1 < 0", "id < NULL"],
)
def test_other_conditions_rule_nothing_out(condition: str) -> None:
    assert judged("pylance_0_8_21/history_legacy.lance", condition) is None


def test_a_column_of_a_second_file_is_judged_by_that_file() -> None:
    name = "pylance_0_12_3/history_legacy.lance"
    assert judged(name, "double < -5", version=5).tolist() == [False] * 40
    assert judged(name, "double > 5", version=5).tolist() == [True] * 40


def test_a_row_column_rules_nothing_out() -> None:
    snapshot = lance_nb.dataset(GOLDEN / "pylance_0_8_21/history_legacy.lance", version=1).opened[1]
    found = compile_filter("_rowid < 0", pa.schema([("_rowid", pa.int64())]))
    assert rows_that_may_pass(snapshot, snapshot.manifest.fragments[0], found) is None


def test_files_without_statistics_rule_nothing_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert judged("pylance_0_5_10/history_legacy.lance", "id < 0") is None
    assert judged("pylance_14_0_2/history.lance", "id < 0") is None

    def damaged(self: LegacyReader) -> None:
        raise CorruptFileError("x", 0, "statistics", "others")

    monkeypatch.setattr(LegacyReader, "statistics", damaged)
    assert judged("pylance_0_8_21/history_legacy.lance", "id < 0") is None
