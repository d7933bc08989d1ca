from __future__ import annotations

import datetime as dt
import math
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import CancelledError
from lance_nb.explorer.models.column_profile import (
    BARS,
    PLACES,
    SAMPLE_FRAGMENTS,
    SAMPLE_ROWS,
    ColumnProfile,
    column_profiles,
)
from lance_nb.explorer.models.lens import Lens
from lance_nb.table import deletions
from tests.support.datasets import everything_table
from tests.unit.explorer.fakes import one_table


def profile(values: Any, kind: pa.DataType | None = None, lens: Lens | None = None) -> Any:
    dataset = one_table(pa.table({"c": pa.array(values, kind)}))
    found = column_profiles(dataset, 0, 1, lens or Lens(), dataset.count_rows())
    return found[0] if found else None


def test_numbers_have_a_histogram_ends_and_a_share_of_nulls() -> None:
    found: ColumnProfile = profile([*range(100), None, None, None, None])
    assert (found.kind, found.low, found.high, found.distinct) == ("number", "0", "99", 100)
    assert found.bars == (255,) * BARS
    assert found.nulls == pytest.approx(4 / 104)


def test_texts_have_their_commonest_values() -> None:
    found = profile(["b"] * 3 + ["a"] * 6 + ["c"])
    assert found.labels == ("a", "b", "c")
    assert found.bars == (255, 127, 42)


@pytest.mark.parametrize(
    ("values", "kind", "bars"),
    [
        ([5, 5], pa.int8(), 1),
        ([math.nan, math.inf, None], pa.float32(), 0),
        ([-1.7e308, 1.7e308], pa.float64(), BARS),
        ([2**64 - 1, 0], pa.uint64(), BARS),
        ([None, None], pa.int32(), 0),
        ([True, False, True], pa.bool_(), 2),
        ([dt.date(2020, 1, 1), dt.date(2021, 1, 1)], pa.date32(), BARS),
        ([0, 10**12], pa.timestamp("us", "UTC"), BARS),
        (["a", "b"], pa.dictionary(pa.int32(), pa.string()), 2),
        (["1.50", "2.50"], pa.string(), 2),
    ],
)
def test_every_type_with_an_order_has_bars(values: Any, kind: pa.DataType, bars: int) -> None:
    if pa.types.is_dictionary(kind):
        values = pa.array(values).dictionary_encode()
        kind = None
    found = profile(values, kind)
    assert len(found.bars) == bars
    assert all(0 <= bar <= 255 for bar in found.bars)


@pytest.mark.parametrize("values", [[[1]], [b"x"], [{"a": 1}]])
def test_other_types_have_none(values: Any) -> None:
    assert profile(values) is None


def test_the_sample_is_spread_over_the_rows_and_bounded() -> None:
    found = profile(pa.array(np.arange(1_000_000)))
    assert found.sampled == SAMPLE_ROWS
    assert (found.low, found.high) == ("0", "999999")
    assert sum(bar > 0 for bar in found.bars) == PLACES


def test_a_filter_is_looked_through() -> None:
    dataset = one_table(pa.table({"id": range(100)}))
    (found,) = column_profiles(dataset, 0, 5, Lens("id < 10"), 10)
    assert (found.sampled, found.high) == (10, "9")
    assert column_profiles(dataset, 0, 5, Lens("id < 0"), 0) == []


def test_no_type_of_column_breaks_it() -> None:
    table = everything_table(12)
    dataset = one_table(table)
    for at in range(table.num_columns):
        for found in column_profiles(dataset, at, 1, Lens(), 12):
            assert found.sampled == 12


def test_of_many_small_fragments_some_are_looked_at() -> None:
    uri = f"memory://small-{uuid4().hex}/d.lance"
    dataset = lance_nb.write_dataset(pa.table({"id": range(5)}), uri)
    one = dataset.get_fragments()[0].metadata
    append = lance_nb.LanceOperation.Append([one] * (4 * SAMPLE_FRAGMENTS - 1))
    dataset = lance_nb.LanceDataset.commit(uri, append, read_version=1)
    (found,) = column_profiles(dataset, 0, 1, Lens(), dataset.count_rows())
    assert found.sampled == 5 * SAMPLE_FRAGMENTS
    assert (found.low, found.high, found.distinct) == ("0", "4", 5)


def test_a_sample_reads_the_deletions_of_its_own_fragments_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    uri = f"memory://deleted-{uuid4().hex}/d.lance"
    data = pa.table({"id": range(3000)})
    dataset = lance_nb.write_dataset(data, uri, enable_stable_row_ids=True, max_rows_per_file=10)
    dataset.delete("id % 10 = 3")
    read: set[int] = set()
    real = deletions.read_deletions

    def watched(locations: Any, cache: Any, fragment: Any, num_rows: int) -> Any:
        read.add(fragment.id)
        return real(locations, cache, fragment, num_rows)

    monkeypatch.setattr(deletions, "read_deletions", watched)
    dataset = lance_nb.dataset(uri)
    (found,) = column_profiles(dataset, 0, 1, Lens(), 2700)
    assert 0 < len(read) <= SAMPLE_FRAGMENTS + 2 * PLACES
    assert (found.low, found.high) == ("0", "2999")
    assert found.sampled > 500


def test_a_profile_that_nobody_waits_for_ends_early() -> None:
    dataset = one_table(pa.table({"c": range(2 * SAMPLE_ROWS)}))
    told: list[tuple[int, int]] = []

    def progress(done: int, total: int) -> None:
        told.append((done, total))
        if done == 2:
            raise CancelledError("enough")

    with pytest.raises(CancelledError):
        column_profiles(dataset, 0, 1, Lens(), dataset.count_rows(), progress=progress)
    assert told == [(0, PLACES), (1, PLACES), (2, PLACES)]
