"""Datasets written by us into memory, each test its own."""

from __future__ import annotations

from tests.support.written_tables import ROWS, files, make, rows, uri

__all__ = ["ROWS", "files", "make", "rows", "uri"]
