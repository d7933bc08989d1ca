"""Rows of the SQL manifest stores."""

from __future__ import annotations

import pytest

from lance_nb.errors import CorruptFileError
from lance_nb.transactions.external.base import ManifestEntry
from lance_nb.transactions.external.sql_statements import entry_of, inserted, updated


def test_rows_become_entries_and_back():
    entry = ManifestEntry(3, "t/_versions/3.manifest", 7, None)
    assert entry_of((3, entry.path, 7, None), "here") == entry
    assert inserted("t", entry) == ("t", 3, entry.path, "lancedb", 7, None)
    assert updated("t", entry) == (entry.path, "lancedb", 7, None, "t", 3)


@pytest.mark.parametrize(
    "row", [("3", "p", 7, None), (3, None, 7, None), (3, "p", "7", None), (3, "p", 7, 7)]
)
def test_odd_rows_are_damage(row):
    with pytest.raises(CorruptFileError, match="here"):
        entry_of(row, "here")
