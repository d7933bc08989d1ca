"""Datasets written into memory, each test its own."""

from tests.unit.writing.conftest import files, make, rows, uri

__all__ = ["files", "make", "rows", "uri"]
