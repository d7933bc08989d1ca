"""Datasets written into memory, each test its own."""

from tests.unit.dataset.verbs.conftest import files, make, rows, uri

__all__ = ["files", "make", "rows", "uri"]
