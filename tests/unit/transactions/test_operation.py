"""Names and descriptions of operations."""

from __future__ import annotations

from lance_nb.transactions.operation import describe, operation_name
from lance_nb.transactions.operations.restore import Restore


def test_names_are_those_that_people_see() -> None:
    assert operation_name("update_mem_wal_state") == "UpdateMemWalState"


def test_the_description_is_that_of_the_history() -> None:
    assert describe(Restore(7)) == "restore version 7"
