"""Datasets written by us into memory, each test its own."""

from __future__ import annotations

from tests.support.written_tables import ROWS, as_another_process, files, make, rows, uri

__all__ = ["ROWS", "as_another_process", "files", "make", "rows", "uri"]
