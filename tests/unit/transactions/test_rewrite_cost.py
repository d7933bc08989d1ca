"""Whole rows or columns: what costs less."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.format.schema import Schema
from lance_nb.transactions.row_rewrite import columns_are_cheaper


def test_narrow_columns_of_many_rows_are_cheaper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lance_nb.transactions.row_rewrite.SAVED_BYTES_MIN", 0)
    table = pa.table({"id": range(1000), "text": [f"{n:0100}" for n in range(1000)]})
    _, snapshot = lance_nb.write_dataset(table, "memory://rewrite-cost.lance").opened
    schema = snapshot.manifest.schema
    (fragment,) = snapshot.manifest.fragments
    narrow, broad = (Schema((schema.field(name),), {}) for name in ("id", "text"))
    assert columns_are_cheaper(snapshot, [(fragment, 1000)], narrow)
    assert not columns_are_cheaper(snapshot, [(fragment, 10)], narrow)
    assert not columns_are_cheaper(snapshot, [(fragment, 500)], broad)
    assert not columns_are_cheaper(snapshot, [], narrow)
    monkeypatch.setattr("lance_nb.transactions.row_rewrite.SAVED_BYTES_MIN", 1 << 30)
    assert not columns_are_cheaper(snapshot, [(fragment, 1000)], narrow)
