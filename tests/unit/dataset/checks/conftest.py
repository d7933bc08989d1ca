"""Datasets in memory, and a cache folder of each test's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.written_tables import files, make, rows, uri

__all__ = ["files", "make", "rows", "uri"]


@pytest.fixture(autouse=True)
def cache_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The user's cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"
