"""What a plan tells while it is made."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.errors import CancelledError


@pytest.fixture
def main(tmp_path: Path) -> LanceDataset:
    """A dataset and its branch ``dev``, each with a version of its own."""
    dataset = lance_nb.write_dataset(pa.table({"id": range(10)}), tmp_path / "d.lance")
    dev = dataset.create_branch("dev")
    dev.insert(pa.table({"id": [20, 21]}))
    dataset.insert(pa.table({"id": [30]}))
    return dataset


def test_planning_tells_how_far_it_is(main: LanceDataset) -> None:
    told: list[tuple[int, int]] = []
    plan = main.branches.plan_merge("dev", progress=lambda *step: told.append(step))
    assert told[-1][0] == told[-1][1] == len(told)
    assert plan.commit().version == 3
    assert told[-1][0] == len(told)  # a plan that was made tells nothing more


def test_planning_ends_when_it_is_told_to(main: LanceDataset) -> None:
    def stop(_done: int, _total: int) -> None:
        raise CancelledError("enough")

    with pytest.raises(CancelledError):
        main.revert(2, dry_run=True, progress=stop)
    with pytest.raises(CancelledError):
        main.cherry_pick(("dev", 2), dry_run=True, progress=stop)
    assert main.checkout_latest().version == 2


def test_an_argument_that_does_not_exist_is_told(main: LanceDataset) -> None:
    with pytest.raises(TypeError, match="argument 'squish'"):
        main.branches.plan_merge("dev", squish=True)  # type: ignore[call-arg]
