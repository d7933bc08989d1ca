"""Profiles under conditions, against pandas-like counts of the same rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import CancelledError, NotSupportedError, PredicateError
from lance_nb.explorer.rows import row_sample
from lance_nb.explorer.rows.column_profile import ColumnProfile, column_profiles
from lance_nb.explorer.rows.cross_filter import (
    Condition,
    CrossFilter,
    crossed_profiles,
    exact_crossed_profile,
)
from lance_nb.explorer.rows.row_query import RowQuery
from lance_nb.explorer.rows.row_sample import RowSample

ROWS = 20_000
RNG = np.random.default_rng(5)
TABLE = pa.table({
    "id": np.arange(ROWS),
    "x": pa.array([None if at % 10 == 0 else float(at % 100) for at in range(ROWS)]),
    "label": RNG.choice(["cat", "dog", "sky"], ROWS, p=[0.6, 0.3, 0.1]),
    "name": [f"n{at}" for at in range(ROWS)],
    "flag": RNG.random(ROWS) < 0.2,
    "inner": pa.array([{"a": at % 7} for at in range(ROWS)]),
})  # fmt: skip
X, LABEL = TABLE["x"].to_numpy(), TABLE["label"].to_numpy(zero_copy_only=False)
WHERE = [
    Condition("x", "x < 30"),
    Condition("label", "label = 'dog'"),
    Condition(None, "id >= 500"),
]


def quiet(_done: int, _total: int) -> None:
    pass


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path: Path = tmp_path_factory.mktemp("crossed") / "d.lance"
    return lance_nb.write_dataset(TABLE, path, max_rows_per_file=6000)


def shown(dataset: Any) -> dict[int, ColumnProfile]:
    found = column_profiles(dataset, 0, 16, RowQuery(), ROWS)
    return {one.column: one for one in found}


def crossed(dataset: Any, where: list[Condition], columns: Any = range(6)) -> Any:
    cross = cross_filter(dataset, where)
    found = crossed_profiles(dataset, cross, list(columns), quiet)
    return found, {one.column: one for one in found.profiles}, cross


def cross_filter(dataset: Any, where: list[Condition]) -> CrossFilter:
    return CrossFilter(RowSample(dataset), RowQuery(), where, shown(dataset))


def test_a_column_keeps_its_bars_and_ignores_its_own_condition(
    dataset: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_sample, "SAMPLE_ROWS", ROWS)
    found, by, _cross = crossed(dataset, WHERE)
    ids = np.arange(ROWS)
    dogs, low = (LABEL == "dog") & (ids >= 500), (X < 30) & (ids >= 500)
    assert (found.sampled, found.passing, found.num_rows) == (ROWS, (dogs & low).sum(), ROWS)
    base = shown(dataset)
    assert by[1].edges == base[1].edges
    assert by[1].sampled == dogs.sum()
    expected = np.histogram(X[dogs & ~np.isnan(X)], 20, base[1].edges)[0]
    assert by[1].counts == tuple(expected)
    assert by[1].odd[0]["count"] == int((dogs & np.isnan(X)).sum())
    assert by[2].labels == base[2].labels
    assert by[2].counts == tuple(int((low & (one == LABEL)).sum()) for one in by[2].labels)
    assert by[0].sampled == (dogs & low).sum()
    assert (by[0].exact, by[0].sample) == (True, "all")
    assert 5 not in by  # a struct has no profile


def test_a_sample_estimates_and_every_row_is_counted_in_the_same_bars(
    dataset: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(row_sample, "SAMPLE_ROWS", 2000)
    found, by, cross = crossed(dataset, WHERE)
    share = ((LABEL == "dog") & (X < 30) & (np.arange(ROWS) >= 500)).mean()
    assert found.passing / found.sampled == pytest.approx(share, rel=0.25)
    assert (by[1].sample, by[1].exact) == ("passing", False)
    for at, profile in by.items():
        exact = exact_crossed_profile(dataset, cross, at, quiet)
        assert exact.exact
        assert exact.edges == profile.edges
        if at in (2, 4):
            assert exact.labels == profile.labels
    exact = exact_crossed_profile(dataset, cross, 1, quiet)
    assert exact.sampled == ((LABEL == "dog") & (np.arange(ROWS) >= 500)).sum()


def test_values_of_their_own_are_named_where_the_known_ones_are_few(dataset: Any) -> None:
    where = [Condition("id", "id IN (19998, 19999)")]
    exact = exact_crossed_profile(dataset, cross_filter(dataset, where), 3, quiet)
    assert sorted(exact.labels) == ["n19998", "n19999"]


def test_nothing_passes_and_the_bars_are_empty(dataset: Any) -> None:
    found, by, cross = crossed(dataset, [Condition(None, "id < 0")])
    assert found.passing == 0
    assert (by[1].sampled, sum(by[1].counts), len(by[1].bars)) == (0, 0, 20)
    exact = exact_crossed_profile(dataset, cross, 1, quiet)
    assert (exact.sampled, len(exact.bars), exact.edges) == (0, 20, by[1].edges)


def test_conditions_may_be_null_nested_or_wrong(dataset: Any) -> None:
    found, _by, _cross = crossed(dataset, [Condition(None, "x > 1 OR x < 90"),
                                            Condition(None, "inner.a = 3")])  # fmt: skip
    kept = ~np.isnan(X) & (np.arange(ROWS) % 7 == 3)
    assert found.passing / found.sampled == pytest.approx(kept.mean(), rel=0.2)
    with pytest.raises(PredicateError):
        crossed(dataset, [Condition(None, "nope = 1")])
    with pytest.raises(NotSupportedError):
        exact_crossed_profile(dataset, cross_filter(dataset, []), 5, quiet)


def test_it_reads_a_column_and_a_condition_once_and_can_be_cancelled(dataset: Any) -> None:
    class Counting:
        def __init__(self) -> None:
            self.taken = 0

        def __getattr__(self, name: str) -> Any:
            return getattr(dataset, name)

        def take(self, *args: Any, **more: Any) -> Any:
            self.taken += 1
            return dataset.take(*args, **more)

    source: Any = Counting()
    cross = CrossFilter(RowSample(source), RowQuery(), WHERE, {})
    for _ in range(2):
        crossed_profiles(source, cross, [0, 1], quiet)
        assert source.taken == 3 + row_sample.STEPS

    def cancel(_done: int, _total: int) -> None:
        raise CancelledError("enough")

    with pytest.raises(CancelledError):
        cross = CrossFilter(RowSample(source), RowQuery(), WHERE, {})
        crossed_profiles(source, cross, [0], cancel)
    assert source.taken == 3 + row_sample.STEPS
