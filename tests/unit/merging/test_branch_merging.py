"""Options of a merge, checked before anything is read.

Versions of every branch, and how far the reading of them is.

What a plan tells while it is made.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.errors import CancelledError, InvalidInputError, VersionNotFoundError
from lance_nb.merging.merge_base import Repository
from lance_nb.merging.merge_plan import MergeOptions, options_of
from lance_nb.writing.progress import StepCounter


def test_what_is_not_given_is_the_default() -> None:
    assert options_of() == MergeOptions()
    made = options_of(strategy="replay", on_conflict="ours", key="id", copy=True, pin=False)
    assert made == MergeOptions("replay", "ours", ("id",), True, False)
    assert options_of(key=["a", "b"]).keys == ("a", "b")


@pytest.mark.parametrize("options", [{"strategy": "hope"}, {"on_conflict": "maybe"}, {"key": [1]}])
def test_other_values_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        options_of(**options)


def test_versions_and_transactions_are_read_and_counted(make, rows) -> None:
    made = make()
    made.create_branch("dev").insert(rows)
    seen: list[tuple[int, int]] = []
    told = StepCounter(lambda done, total: seen.append((done, total)))
    repository = Repository(made.opened[0], told)
    assert list(repository.branches()) == ["dev"]
    assert repository.load("dev", None).version == 2
    assert [one.operation.arm for one in repository.transactions(None, [1])] == ["overwrite"]
    told.stop()
    assert repository.load(None, 1).branch is None
    assert seen == [(1, 1), (2, 2)]
    assert repository.home_uri("dev").endswith("/tree/dev")


def test_a_version_that_is_not_there_is_named(make) -> None:
    repository = Repository(make().opened[0])
    with pytest.raises(VersionNotFoundError):
        repository.load(None, 7)


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


def test_planning_ends_when_it_is_reported_to(main: LanceDataset) -> None:
    def stop(_done: int, _total: int) -> None:
        raise CancelledError("enough")

    with pytest.raises(CancelledError):
        main.revert(2, dry_run=True, progress=stop)
    with pytest.raises(CancelledError):
        main.cherry_pick(("dev", 2), dry_run=True, progress=stop)
    assert main.checkout_latest().version == 2


def test_an_argument_that_does_not_exist_is_reported(main: LanceDataset) -> None:
    with pytest.raises(TypeError, match="argument 'squish'"):
        main.branches.plan_merge("dev", squish=True)  # type: ignore[call-arg]
