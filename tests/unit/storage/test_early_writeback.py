"""Beginning to write out early changes nothing but the time."""

from __future__ import annotations

from pathlib import Path

import pytest

from lance_nb.storage import early_writeback
from lance_nb.storage.early_writeback import RUN_BYTES, EarlyWriteback


def test_runs_are_handed_over_once(monkeypatch: pytest.MonkeyPatch):
    calls: list[tuple[int, ...]] = []
    monkeypatch.setattr(early_writeback, "_sync_file_range", lambda *args: calls.append(args))
    writeback = EarlyWriteback()
    for size in (10, RUN_BYTES - 1, RUN_BYTES + 5, RUN_BYTES + 6, 3 * RUN_BYTES):
        writeback.reached(7, size)
    assert [call[:3] for call in calls] == [
        (7, 0, RUN_BYTES + 5),
        (7, RUN_BYTES + 5, 2 * RUN_BYTES - 5),
    ]


def test_the_system_takes_it_or_leaves_it(tmp_path: Path):
    with (tmp_path / "x").open("wb") as file:
        file.write(bytes(RUN_BYTES))
        file.flush()
        EarlyWriteback().reached(file.fileno(), RUN_BYTES)
    EarlyWriteback().reached(-1, RUN_BYTES)
    assert (tmp_path / "x").stat().st_size == RUN_BYTES


def test_other_systems_do_without(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(early_writeback, "_sync_file_range", None)
    EarlyWriteback().reached(7, RUN_BYTES)
