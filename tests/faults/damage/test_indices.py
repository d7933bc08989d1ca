"""Damaged index files of every kind: a sound answer, a warning and a scan, or a clear error."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.faults.damage.indices import IndexedRows

SEED = 1
DAMAGES = 1  # of each file


def test_damage_breaks_no_bounds(tmp_path: Path) -> None:
    print("seed", SEED)
    rows = IndexedRows(tmp_path)
    assert all(answer for answer in rows.sound.values())
    count = DAMAGES * len(rows.files)
    outcomes = [rows.damaged(seed) for seed in range(SEED, SEED + count)]
    assert {name for name, _, _ in outcomes} == {rows.name_of(file) for file in rows.files}
    found = Counter(outcome for _, outcome, _ in outcomes)
    assert found["warning"] > count // 4
    assert found["changed value"] <= count // 10
    assert rows.answers() == rows.sound
