from __future__ import annotations

import datetime as dt
import math
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import CancelledError, ColumnNotFoundError, NotSupportedError
from lance_nb.explorer.models import column_profile as exact
from lance_nb.explorer.models import source
from lance_nb.explorer.models.column_profile import (
    BARS,
    PLACES,
    SAMPLE_FRAGMENTS,
    SAMPLE_ROWS,
    ColumnProfile,
    column_profiles,
    exact_profile,
)
from lance_nb.explorer.models.row_query import RowQuery
from lance_nb.table import deletions
from tests.support.datasets import everything_table
from tests.support.fake_dataset import one_table


def profile(values: Any, kind: pa.DataType | None = None, query: RowQuery | None = None) -> Any:
    dataset = one_table(pa.table({"c": pa.array(values, kind)}))
    found = column_profiles(dataset, 0, 1, query or RowQuery(), dataset.count_rows())
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
    (found,) = column_profiles(dataset, 0, 5, RowQuery("id < 10"), 10)
    assert (found.sampled, found.high) == (10, "9")
    assert column_profiles(dataset, 0, 5, RowQuery("id < 0"), 0) == []


def test_no_type_of_column_breaks_it() -> None:
    table = everything_table(12)
    dataset = one_table(table)
    for at in range(table.num_columns):
        for found in column_profiles(dataset, at, 1, RowQuery(), 12):
            assert found.sampled == 12


def test_of_many_small_fragments_some_are_looked_at() -> None:
    uri = f"memory://small-{uuid4().hex}/d.lance"
    dataset = lance_nb.write_dataset(pa.table({"id": range(5)}), uri)
    one = dataset.get_fragments()[0].metadata
    append = lance_nb.LanceOperation.Append([one] * (4 * SAMPLE_FRAGMENTS - 1))
    dataset = lance_nb.LanceDataset.commit(uri, append, read_version=1)
    (found,) = column_profiles(dataset, 0, 1, RowQuery(), dataset.count_rows())
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
    (found,) = column_profiles(dataset, 0, 1, RowQuery(), 2700)
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
        column_profiles(dataset, 0, 1, RowQuery(), dataset.count_rows(), progress=progress)
    assert told == [(0, PLACES), (1, PLACES), (2, PLACES)]


def quiet(done: int, total: int) -> None:
    assert 0 <= done <= total


@pytest.fixture
def dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(source, "GROUP_ROWS", 1)
    table = pa.table({
        "x": pa.array([None if at % 4 == 0 else float(at) for at in range(400)]),
        "name": [f"n{at % 3}" for at in range(400)],
        "flag": [at % 5 == 0 for at in range(400)],
        "when": pa.array(range(400), pa.timestamp("s")),
        "half": pa.array(np.arange(400) % 7, pa.float16()),
        "empty": pa.array([None] * 400, pa.int32()),
        "who": [{"a": 1}] * 400,
    })  # fmt: skip
    return lance_nb.write_dataset(table, tmp_path / "a.lance", max_rows_per_file=150)


def profile_exact_profile(dataset: Any, name: str, where: str | None = None) -> Any:
    query = RowQuery(where)
    return exact_profile(dataset, query.names(dataset).index(name), query, quiet)


def test_numbers_are_counted_in_bars_between_their_ends(dataset: Any) -> None:
    found = profile_exact_profile(dataset, "x")
    values = [at for at in range(400) if at % 4]
    assert found.counts == tuple(np.histogram(values, BARS)[0].tolist())
    assert (found.edges, found.low, found.high) == ((1.0, 399.0), "1.0", "399.0")
    assert (found.sampled, found.nulls, found.distinct, found.exact) == (400, 0.25, 300, True)


def test_a_filter_counts_too(dataset: Any) -> None:
    found = profile_exact_profile(dataset, "x", "name = 'n1' AND x < 100")
    assert (found.sampled, found.edges, found.nulls) == (25, (1.0, 97.0), 0.0)


def test_texts_and_booleans_are_counted_by_value(dataset: Any) -> None:
    found = profile_exact_profile(dataset, "name")
    assert (found.labels, found.counts) == (("n0", "n1", "n2"), (134, 133, 133))
    assert found.wheres[0] == "name = 'n0'"
    found = profile_exact_profile(dataset, "flag")
    assert dict(zip(found.labels, found.counts, strict=True)) == {"false": 320, "true": 80}
    assert set(found.wheres) == {"flag", "NOT flag"}


def test_times_narrow_floats_and_nulls_alone_have_profiles(dataset: Any) -> None:
    assert profile_exact_profile(dataset, "when").edges == (0.0, 399.0)
    assert profile_exact_profile(dataset, "half").distinct == 7
    found = profile_exact_profile(dataset, "empty")
    assert (found.nulls, found.bars, found.low) == (1.0, (), "")


def test_too_many_values_are_not_counted(dataset: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "MAX_DISTINCT", 2)
    found = profile_exact_profile(dataset, "name")
    assert (found.distinct, found.bars, found.sampled) == (-1, (), 400)
    assert profile_exact_profile(dataset, "x").distinct == -1


def test_other_columns_are_refused(dataset: Any) -> None:
    with pytest.raises(NotSupportedError):
        profile_exact_profile(dataset, "who")
    with pytest.raises(ColumnNotFoundError):
        exact_profile(dataset, 99, RowQuery(), quiet)
