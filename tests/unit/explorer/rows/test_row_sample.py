"""Every row is as likely in a sample as any other."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.explorer.rows import row_sample
from lance_nb.explorer.rows.row_sample import RUN_ROWS, SAMPLE_FRAGMENTS, sample_rows
from tests.support.fake_dataset import one_table


@pytest.mark.parametrize(
    "counts",
    [[1000], [7, 993], [100] * 10, [1] * 50 + [950], [10] * 500, [1, 19] * 250],
    ids=["one", "two", "ten", "many small", "too many", "too many of two sizes"],
)
def test_every_row_has_the_same_chance(counts: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    num_rows, rounds, wanted = sum(counts), 3000, 64
    seen = np.zeros(num_rows)
    random = np.random.default_rng(11)
    monkeypatch.setattr(np.random, "default_rng", lambda _seed: random)
    for _ in range(rounds):
        places = row_sample._places(np.array(counts), wanted)
        assert np.array_equal(places, np.unique(places))
        seen[places] += 1
    share = seen / rounds
    expected = share.mean()
    # Rows of a run come together: the error is that of the runs.
    sigma = np.sqrt(expected * (1 - expected) / rounds)
    assert np.abs(share - expected).max() < 5.5 * sigma
    assert expected == pytest.approx(min(1.0, wanted / num_rows), rel=0.05)


def test_a_sample_is_in_order_and_of_the_wanted_size() -> None:
    dataset = one_table(pa.table({"id": range(50_000)}))
    steps: list[int] = []
    found = sample_rows(dataset, ["id"], lambda done, _total: steps.append(done))["id"].to_pylist()
    assert found == sorted(set(found))
    assert len(found) == 8192
    assert steps == list(range(8))
    assert sample_rows(dataset, ["id"])["id"].to_pylist() == found


def test_few_rows_are_read_all() -> None:
    dataset = one_table(pa.table({"id": range(20)}))
    assert sample_rows(dataset, ["id"])["id"].to_pylist() == list(range(20))
    assert row_sample._places(np.zeros(0, np.int64), 10).size == 0
    assert row_sample._places(np.zeros(3, np.int64), 10).size == 0


def test_of_many_fragments_some_are_read() -> None:
    places = row_sample._places(np.full(10_000, 100), 8192)
    assert len(np.unique(places // 100)) == SAMPLE_FRAGMENTS
    assert len(places) == pytest.approx(6400, abs=RUN_ROWS)
