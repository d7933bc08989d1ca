"""Pruning by the page statistics of 0.1 files: what is ruled out, and that nothing else is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import CorruptFileError
from lance_nb.file.v0_1_reader import LegacyReader
from lance_nb.table import filtered_scan, page_pruning
from lance_nb.table.page_pruning import rows_that_may_pass
from lance_nb.table.predicate import Filter, compile_filter
from lance_nb.table.projection import project

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


LEGACY = Path(__file__).parents[2] / "golden" / "pylance_0_8_21" / "history_legacy.lance"
VERSIONS = lance_nb.dataset(LEGACY).version_numbers()


def _physical(ds: Any) -> list[tuple[int, int]]:
    """List the rows that are stored, deleted ones included, as (fragment, offset)."""
    fragments = ds.opened[1].manifest.fragments
    counts = {one.id: one.physical_rows for one in fragments}
    return [(key, at) for key, count in counts.items() for at in range(count)]


def _live(ds: Any) -> list[tuple[int, int]]:
    addresses = ds.to_table(["_rowaddr"])["_rowaddr"].to_pylist()
    return [(one >> 32, one & 0xFFFFFFFF) for one in addresses]


def _masks(ds: Any, seed: int) -> dict[int, Any]:
    """Choose what may pass: everything in one fragment, few or many rows of the others."""
    choose = np.random.default_rng(seed)
    masks: dict[int, Any] = {}
    for number, one in enumerate(ds.opened[1].manifest.fragments):
        share = [0.2, 0.8, None][number % 3]
        masks[one.id] = None if share is None else choose.random(one.physical_rows) < share
    return masks


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("include_deleted", [False, True])
def test_windows_hold_the_rows_that_may_pass(
    version: int, include_deleted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    ds = lance_nb.dataset(LEGACY, version)
    snapshot, live, masks = ds.opened[1], _live(ds), _masks(ds, version)
    asked: list[int] = []

    def may_pass(_snapshot: Any, fragment: Any, _condition: Filter) -> Any:
        asked.append(fragment.id)
        return masks[fragment.id]

    monkeypatch.setattr(page_pruning, "rows_that_may_pass", may_pass)
    monkeypatch.setattr(filtered_scan, "window_rows", lambda *_: 7)
    condition = compile_filter("id >= 0", snapshot.manifest.schema.to_arrow())
    wanted = project(snapshot.manifest.schema, ["id"])
    windows = filtered_scan.windows_of(snapshot, None, wanted, include_deleted=include_deleted)
    found = list(filtered_scan.promising(snapshot, windows, condition))
    rows = [(one.fragment.id, int(at)) for one in found for at in one.physical()]
    expected = [
        (key, at)
        for key, at in (_physical(ds) if include_deleted else live)
        if masks[key] is None or masks[key][at]
    ]

    assert rows == expected
    assert asked == [key for key in masks if include_deleted or any(one[0] == key for one in live)]
    assert all(one.num_rows == one.physical().size for one in found)
    if include_deleted:
        marked = [bool(v) for one in found for v in filtered_scan.deleted_rows(snapshot, one)]
        assert marked == [one not in live for one in expected]
    before = [sum(other < one for other in live) for one in expected]
    positions = [int(v) for one in found for v in filtered_scan.row_positions(snapshot, one)]
    assert positions == before


@pytest.mark.parametrize("version", VERSIONS)
def test_what_may_not_pass_does_not_change_the_result(
    version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ds = lance_nb.dataset(LEGACY, version)
    whole = ds.to_table(["id"], with_row_address=True)
    wanted = [row for row in whole.to_pylist() if row["id"] is not None and row["id"] % 5 == 3]
    passing = {row["_rowaddr"] for row in wanted}
    choose = np.random.default_rng(version)

    def may_pass(_snapshot: Any, fragment: Any, _condition: Filter) -> Any:
        mask = choose.random(fragment.physical_rows) < 0.3
        for address in passing:
            if address >> 32 == fragment.id:
                mask[address & 0xFFFFFFFF] = True
        return mask

    monkeypatch.setattr(page_pruning, "rows_that_may_pass", may_pass)
    monkeypatch.setattr(filtered_scan, "window_rows", lambda *_: 6)

    assert ds.to_table(["id"], "id % 5 = 3", with_row_address=True).to_pylist() == wanted
    assert ds.count_rows("id % 5 = 3") == len(wanted)
    part = ds.to_table(["id"], "id % 5 = 3", limit=3, offset=2, with_row_address=True)
    assert part.to_pylist() == wanted[2:5]


def test_a_mask_that_is_too_short_rules_nothing_out(monkeypatch: pytest.MonkeyPatch) -> None:
    ds = lance_nb.dataset(LEGACY, 1)
    whole = ds.to_table(["id"])
    last = {one.id: one.physical_rows - 1 for one in ds.opened[1].manifest.fragments}
    for size in (0, 1):
        monkeypatch.setattr(
            page_pruning, "rows_that_may_pass",
            lambda _snapshot, one, _condition, size=size: np.zeros(last[one.id] + size, np.bool_),
        )  # fmt: skip
        found = ds.to_table(["id"], "id >= 0")
        assert found.num_rows == (0 if size else whole.num_rows)
