"""Merges of generated histories in which pylance cleans up, compacts, deletes and updates, too.

``LANCE_NB_TEST_SCALE=150``: 1,200.
"""

from __future__ import annotations

import random
from collections import Counter
from datetime import timedelta
from pathlib import Path

import lance
import pytest

import lance_nb
from lance_nb.errors import LanceError
from tests.property.merging.test_merged_histories import Side, clean_up, run_history
from tests.support.examples import SCALE

pytestmark = pytest.mark.interop

SEED = 7070
NUM_HISTORIES = round(8 * SCALE)


def opened(ds: lance_nb.LanceDataset) -> lance.LanceDataset:
    """Open the newest version of the branch by pylance."""
    main = lance.dataset(ds.uri)
    return main if ds.branch is None else main.checkout_version((ds.branch, None))


class SharedSide(Side):
    """A branch that both libraries change."""

    def _is_theirs(self) -> bool:
        return self.rng.random() < 0.5

    def _clean(self) -> None:
        if self._is_theirs():
            opened(self.ds).cleanup_old_versions(
                older_than=timedelta(0), error_if_tagged_old_versions=False
            )
        else:
            super()._clean()

    def _compact(self) -> None:
        if self._is_theirs():
            opened(self.ds).optimize.compact_files(target_rows_per_fragment=100)
        else:
            super()._compact()

    def _write(self, values: dict[str, str] | None, where: str) -> None:
        if not self._is_theirs():
            super()._write(values, where)
        elif values is None:
            opened(self.ds).delete(where)
        else:
            opened(self.ds).update(values, where=where)


def test_merges_of_histories_of_both_libraries_are_those_of_the_model(tmp_path: Path) -> None:
    outcomes: Counter[str] = Counter()
    for seed in range(SEED, SEED + NUM_HISTORIES):
        try:
            uri = str(tmp_path / str(seed))
            outcomes[run_history(random.Random(seed), uri, clean_up, SharedSide)] += 1
        except (AssertionError, LanceError) as error:
            raise AssertionError(f"seed {seed}: {error}") from error
    print(f"seeds {SEED} to {SEED + NUM_HISTORIES - 1}: {dict(outcomes)}")
    assert outcomes["merged"] > NUM_HISTORIES / 2
