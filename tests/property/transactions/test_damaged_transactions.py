"""Damaged bytes of a transaction end in an error of ours, or in a value."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lance_nb.errors import LanceError
from lance_nb.transactions.conflict_grid import check
from lance_nb.transactions.registry import OPERATIONS
from lance_nb.transactions.transaction import Transaction
from tests.support.sample_operations import samples
from tests.support.versions import Versions

SAMPLES = samples(Versions())
WHOLE = {arm: Transaction(3, one, "u").to_bytes() for arm, one in SAMPLES.items()}


@given(st.sampled_from(sorted(OPERATIONS)), st.data())
def test_flipped_and_cut_transactions(arm: str, draw: st.DataObject) -> None:
    data = bytearray(WHOLE[arm])
    for _ in range(draw.draw(st.integers(1, 4))):
        data[draw.draw(st.integers(0, len(data) - 1))] ^= draw.draw(st.integers(1, 255))
    cut = draw.draw(st.integers(0, len(data)))
    for damaged in (bytes(data), bytes(data[:cut])):
        try:
            read = Transaction.from_bytes(damaged, "3-u.txn")
            read.operation.describe()
            for other in SAMPLES.values():
                check(other, read.operation)
                check(read.operation, other)
            read.to_bytes()
        except LanceError:
            continue
