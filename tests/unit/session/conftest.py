"""The golden datasets of the façade's tests."""

from __future__ import annotations

from tests.unit.dataset.conftest import as_another_process, at, folder, stores

__all__ = ["as_another_process", "at", "folder", "stores"]
