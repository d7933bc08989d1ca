"""Advice on the health of a dataset: indices that cover too little, rows of a write-ahead log."""

from __future__ import annotations

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import advice
from lance_nb.dataset.advice import advice_on, pending_reason
from lance_nb.table.pending_logs import PendingRows

TABLE = "_mem_wal/s/x_gen_1"
NOT_MERGED = "of the write-ahead log are not merged, and no scan returns them"
ONE_NOT_MERGED = "of the write-ahead log is not merged, and no scan returns it"


@pytest.mark.parametrize(
    ("pending", "text"),
    [
        (PendingRows(1, 1, (), True), f"1 row {ONE_NOT_MERGED} (1 in the log only)"),
        (PendingRows(1, 1, (), False), f"at least 1 row {ONE_NOT_MERGED} (1 in the log only)"),
        (
            PendingRows(1500, 0, (TABLE, "y", "z"), True),
            f"1,500 rows {NOT_MERGED} (1,500 in {TABLE} and 2 more)",
        ),
        (
            PendingRows(0, 0, (TABLE,), False),
            f"rows {NOT_MERGED} (an unknown number in {TABLE})",
        ),
        (
            PendingRows(3, 3, (TABLE,), False),
            f"at least 3 rows {NOT_MERGED} (an unknown number in {TABLE}, 3 in the log only)",
        ),
    ],
    ids=["one", "at least one", "tables", "unknown", "both"],
)
def test_rows_of_a_log_are_counted_and_placed(pending: PendingRows, text: str) -> None:
    assert pending_reason(pending) == text


@pytest.mark.parametrize(("num_indexed", "is_stale"), [(9, True), (10, False)])
def test_an_index_is_stale_from_a_tenth_of_the_rows_on(
    monkeypatch: pytest.MonkeyPatch, num_indexed: int, is_stale: bool
) -> None:
    monkeypatch.setattr(advice, "STALE_ROWS", 1)
    uri = f"memory://advice/{num_indexed}.lance"
    dataset = lance_nb.write_dataset(pa.table({"id": range(num_indexed)}), uri)
    dataset.create_scalar_index("id", "BTREE")
    dataset = lance_nb.write_dataset(pa.table({"id": [99]}), uri, mode="append")
    verbs = [entry.verb for entry in advice_on(dataset.opened[1], dataset.stats())]
    assert ("index optimize" in verbs) == is_stale
