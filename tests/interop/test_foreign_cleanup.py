"""pylance cleans up both branches between any two steps of a merge, a cherry-pick or a stage.

The clean-up keeps the newest versions and what tags name, and is as fierce as it can be. The act
then succeeds with the rows that it has without it, or fails with an error of ours and leaves the
newest version as it was; then it is done again, unless it is about old versions that are gone.
``LANCE_NB_TEST_SCALE=10``: at 40 steps of each.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import LanceError, NotFoundError
from lance_nb.storage.local import LocalStore
from tests.support.examples import SCALE

pytestmark = pytest.mark.interop

SEED = 4242
NUM_STEPS = round(4 * SCALE)
STEPS = (
    "size", "exists", "read", "read_range", "read_ranges", "read_tail", "map", "list",
    "list_names", "list_recursive", "write", "write_new", "write_unsynced", "write_if_absent",
    "create", "replace", "delete",
)  # fmt: skip
Rows = list[dict[str, Any]]


def _rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "v": pa.array([0] * len(ids), pa.int64())})


def _prepare(uri: str) -> None:
    """Make two branches that were merged once and have changed since, and old versions of both."""
    main = lance_nb.write_dataset(
        _rows(*range(12)), uri, max_rows_per_file=4, enable_stable_row_ids=True
    )
    dev = main.create_branch("dev")
    dev.update({"v": "1"}, where="id = 1")
    dev.insert(_rows(20))
    main.update({"v": "2"}, where="id = 2")
    main.branches.merge("dev")
    main = lance_nb.dataset(uri)
    main.delete("id = 3")
    main.optimize.compact_files()
    dev.update({"v": "4"}, where="id = 4")
    dev.insert(_rows(30))
    dev.delete("id = 5")


def _stage(ds: lance_nb.LanceDataset) -> None:
    stage = ds.stage()
    stage.append(_rows(40))
    stage.delete("id = 6")
    stage.upsert(_rows(7, 41), on="id")
    stage.commit("staged")


ACTS: dict[str, Callable[[lance_nb.LanceDataset], object]] = {
    "merge": lambda ds: ds.branches.merge("dev"),
    "merge by key, copied": lambda ds: ds.branches.merge("dev", key="id", copy=True),
    "merge one by one": lambda ds: ds.branches.merge("dev", squash=False),
    "pick": lambda ds: ds.cherry_pick(("dev", ds.checkout_version(("dev", None)).version)),
    "stage": _stage,
}
NEEDS_OLD_VERSIONS = ("merge one by one", "pick")


@dataclass
class Steps:
    """Counts the calls of local stores; before the call ``number`` pylance cleans up."""

    uri: str
    number: int = 0
    count: int = 0

    @contextmanager
    def watched(self) -> Iterator[None]:
        originals = {name: getattr(LocalStore, name) for name in STEPS}
        with pytest.MonkeyPatch.context() as patch:
            for name, original in originals.items():
                patch.setattr(LocalStore, name, self._watching(original))
            yield

    def _watching(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(store: LocalStore, *args: Any, **options: Any) -> Any:
            self.count += 1
            if self.count == self.number:
                clean_up(self.uri)
            return original(store, *args, **options)

        return call


def clean_up(uri: str) -> None:
    """Delete by pylance what is not the newest version of a branch, or tagged."""
    main = lance.dataset(uri)
    for ds in (main, main.checkout_version(("dev", None))):
        ds.cleanup_old_versions(older_than=timedelta(0), error_if_tagged_old_versions=False)


def _content(uri: str) -> Rows:
    rows: Rows = lance_nb.dataset(uri).to_table().sort_by("id").to_pylist()
    assert lance.dataset(uri).to_table().sort_by("id").to_pylist() == rows
    return rows


def _error_of(act: Callable[[lance_nb.LanceDataset], object], steps: Steps) -> LanceError | None:
    try:
        with steps.watched():
            act(lance_nb.dataset(steps.uri))
    except LanceError as error:
        return error
    return None


@pytest.mark.parametrize("name", ACTS)
def test_a_clean_up_between_two_steps_loses_nothing(name: str, tmp_path: Path) -> None:
    uris = (str(tmp_path / str(number)) for number in itertools.count())
    steps = Steps(next(uris))
    _prepare(steps.uri)
    before = _content(steps.uri)
    with steps.watched():
        ACTS[name](lance_nb.dataset(steps.uri))
    expected = _content(steps.uri)
    assert expected != before
    rng = random.Random(SEED)
    numbers = sorted(rng.sample(range(1, steps.count + 1), min(NUM_STEPS, steps.count)))
    errors = []
    for number in numbers:
        interrupted = Steps(next(uris), number)
        _prepare(interrupted.uri)
        error = _error_of(ACTS[name], interrupted)
        if error is not None:
            errors.append(f"{number}: {type(error).__name__}")
            is_partial = "stay merged" in str(error)
            assert is_partial or _content(interrupted.uri) == before, f"step {number}: {error}"
            if name in NEEDS_OLD_VERSIONS:  # they are gone for good
                assert is_partial or isinstance(error, NotFoundError)
                continue
            ACTS[name](lance_nb.dataset(interrupted.uri))
        assert _content(interrupted.uri) == expected, f"step {number} of {steps.count}"
        verified = lance_nb.dataset(interrupted.uri).verify()
        assert not [one for one in verified.findings if one.severity == "error"], f"step {number}"
    print(f"{name}: seed {SEED}, steps {numbers} of {steps.count}, refused: {errors}")
