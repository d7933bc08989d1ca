"""What every SQL manifest store asks, and the rows that it gets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from lance_nb.errors import CorruptFileError, ObjectExistsError, ObjectNotFoundError
from lance_nb.transactions.external.base import ManifestEntry, SqlManifestStore, entry_of

ENTRY = ManifestEntry(3, "t/_versions/3.manifest", 7, None)


class Recorded(SqlManifestStore):
    """A database that changes as many rows as it is told, in a dialect with another placeholder."""

    placeholder = "%s"

    def __init__(self, rows_changed: int) -> None:
        self.rows_changed = rows_changed
        self.asked: list[tuple[str, tuple[Any, ...]]] = []

    @property
    def place(self) -> str:
        return "here"

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        def execute(statement: str, parameters: tuple[Any, ...]) -> Any:
            self.asked.append((statement, parameters))
            return SimpleNamespace(rowcount=self.rows_changed, fetchone=lambda: None)

        yield SimpleNamespace(execute=execute)


def test_entries_are_written_as_rows_in_the_dialect_of_the_database() -> None:
    store = Recorded(rows_changed=1)
    store.put_if_not_exists("t", ENTRY)
    store.put_if_exists("t", ENTRY)
    (inserted, row), (updated, change) = store.asked
    assert "?" not in inserted + updated
    assert inserted.count("%s") == len(row)
    assert row == ("t", 3, ENTRY.path, "lancedb", 7, None)
    assert change == (ENTRY.path, "lancedb", 7, None, "t", 3)


def test_a_row_that_was_not_changed_is_an_error() -> None:
    store = Recorded(rows_changed=0)
    with pytest.raises(ObjectExistsError, match=r"3\.manifest"):
        store.put_if_not_exists("t", ENTRY)
    with pytest.raises(ObjectNotFoundError, match=r"3\.manifest"):
        store.put_if_exists("t", ENTRY)


def test_a_version_without_a_row_has_no_entry() -> None:
    assert Recorded(rows_changed=0).get("t", 3) is None


def test_rows_become_entries() -> None:
    assert entry_of((3, ENTRY.path, 7, None), "here") == ENTRY


@pytest.mark.parametrize(
    "row", [("3", "p", 7, None), (3, None, 7, None), (3, "p", "7", None), (3, "p", 7, 7)]
)
def test_odd_rows_are_damage(row: tuple[Any, ...]) -> None:
    with pytest.raises(CorruptFileError, match="here"):
        entry_of(row, "here")
