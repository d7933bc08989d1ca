"""UpdateMemWalState."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lance_nb.errors import InvalidInputError
from lance_nb.format.merged_logs import merged_logs
from lance_nb.transactions.conflict_grid import check
from lance_nb.transactions.conflict_rules import Verdict
from lance_nb.transactions.operations.update_mem_wal_state import UpdateMemWalState
from tests.support.sample_operations import LOG, log_index
from tests.support.versions import Versions


def state(generation: int) -> UpdateMemWalState:
    return UpdateMemWalState((replace(LOG, generation=generation),))


def test_the_generation_never_goes_back() -> None:
    versions = Versions(1)
    versions.apply(log_index())
    for generation in (7, 5, 9):
        versions.apply(state(generation))
    (index,) = versions.newest.indices
    assert merged_logs(index.details) == (replace(LOG, generation=9),)


def test_a_dataset_without_that_index_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="__lance_mem_wal"):
        Versions(1).apply(state(1))


def test_who_is_farther_wins() -> None:
    assert check(state(5), state(7)).verdict is Verdict.INCOMPATIBLE
    assert check(state(7), state(7)).verdict is Verdict.INCOMPATIBLE
    assert check(state(9), state(7)).verdict is Verdict.RETRYABLE
    other = UpdateMemWalState((replace(LOG, shard_id="1" * 8 + "-1111-1111-1111-" + "1" * 12),))
    assert check(state(5), other).verdict is Verdict.COMPATIBLE
