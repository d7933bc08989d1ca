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
from lance_nb.explorer import source
from lance_nb.explorer.rows import column_profile as exact
from lance_nb.explorer.rows.column_profile import (
    BARS,
    ColumnProfile,
    column_profiles,
    exact_profile,
)
from lance_nb.explorer.rows.row_query import RowQuery
from lance_nb.explorer.rows.row_sample import SAMPLE_FRAGMENTS, SAMPLE_ROWS, STEPS, RowSample
from lance_nb.table import take
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
    assert (found.sampled, found.sample, found.exact) == (SAMPLE_ROWS, "random", False)
    assert int(found.low) < 2000
    assert int(found.high) > 998_000
    mean = SAMPLE_ROWS / BARS
    assert all(abs(count - mean) < 0.1 * mean for count in found.counts)
    assert found.distinct == SAMPLE_ROWS


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
    real = take.fragment_deletions

    def watched(snapshot: Any, fragment: Any) -> Any:
        read.add(fragment.id)
        return real(snapshot, fragment)

    monkeypatch.setattr(take, "fragment_deletions", watched)
    dataset = lance_nb.dataset(uri)
    (found,) = column_profiles(dataset, 0, 1, RowQuery(), 2700)
    assert 0 < len(read) <= SAMPLE_FRAGMENTS
    assert found.sampled > 500
    assert int(found.low) < 100
    assert int(found.high) > 2900


def test_a_profile_that_nobody_waits_for_ends_early() -> None:
    dataset = one_table(pa.table({"c": range(2 * SAMPLE_ROWS)}))
    told: list[tuple[int, int]] = []

    def progress(done: int, total: int) -> None:
        told.append((done, total))
        if done == 2:
            raise CancelledError("enough")

    with pytest.raises(CancelledError):
        column_profiles(dataset, 0, 1, RowQuery(), dataset.count_rows(), progress=progress)
    assert told == [(0, STEPS), (1, STEPS), (2, STEPS)]


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


def test_exact_counting_can_be_cancelled_after_the_last_row_is_read(dataset: Any) -> None:
    calls = 0

    def count(_done: int, _total: int) -> None:
        nonlocal calls
        calls += 1
        if calls > last:
            raise CancelledError("enough")

    last = 1 << 30
    place = RowQuery().names(dataset).index("x")
    exact_profile(dataset, place, RowQuery(), count)
    batches = len(list(dataset.to_batches(columns=["x"])))
    assert calls == batches + 3
    last, calls = calls - 1, 0
    with pytest.raises(CancelledError):
        exact_profile(dataset, place, RowQuery(), count)


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


def test_too_many_values_are_estimated(dataset: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "MAX_DISTINCT", 2)
    found = profile_exact_profile(dataset, "name")
    assert (found.distinct, found.bars, found.sampled) == (3, (), 400)
    assert found.estimated
    found = profile_exact_profile(dataset, "x")
    assert found.estimated
    assert found.distinct == pytest.approx(300, abs=6)


def test_other_columns_are_refused(dataset: Any) -> None:
    with pytest.raises(NotSupportedError):
        profile_exact_profile(dataset, "who")
    with pytest.raises(ColumnNotFoundError):
        exact_profile(dataset, 99, RowQuery(), quiet)


ODD = [*map(float, range(100)), math.nan, math.nan, math.inf, -math.inf, None]


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.float16()])
@pytest.mark.parametrize("rows", ["sample", "exact", "in two passes"])
def test_odd_values_have_bars_of_their_own(
    kind: pa.DataType, rows: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    column = pa.array([one if one is None else np.float16(one) for one in ODD], pa.float16())
    if rows == "in two passes":
        monkeypatch.setattr(exact, "KEPT_VALUES", 50)
    written = lance_nb.write_dataset(pa.table({"c": column.cast(kind)}), tmp_path / "a.lance")
    found = (
        column_profiles(written, 0, 1, RowQuery(), len(ODD))[0]
        if rows == "sample"
        else exact_profile(written, 0, RowQuery(), quiet)
    )
    assert {one["kind"]: one["count"] for one in found.odd} == {
        "null": 1, "nan": 2, "inf": 1, "-inf": 1,
    }  # fmt: skip
    assert sum(found.counts) == 100
    assert (found.low, found.high) == ("0.0", "99.0")
    assert all(1 <= one["height"] <= 255 for one in found.odd)
    if rows != "in two passes":
        assert dict(found.statistics)["median"] == "49.5"


def test_statistics_are_those_of_pandas(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(5)
    columns: dict[str, Any] = {
        "normal": rng.normal(100, 15, 5000),
        "whole": rng.integers(-50, 50, 5000).astype(np.int32),
        "skewed": rng.exponential(3, 5000),
        "large": rng.integers(0, 2**62, 5000).astype(np.uint64),
    }
    with_nulls = {
        name: pa.array(one, mask=np.arange(5000) % 7 == 0) for name, one in columns.items()
    }
    written = lance_nb.write_dataset(pa.table(with_nulls), tmp_path / "a.lance")
    frame = written.to_table().to_pandas()
    for at, name in enumerate(columns):
        for found in (
            exact_profile(written, at, RowQuery(), quiet),
            column_profiles(written, at, 1, RowQuery(), 5000)[0],
        ):
            values = frame[name].dropna()
            said = dict(found.statistics)
            wanted = {
                "mean": values.mean(), "deviation": values.std(), "median": values.median(),
                **{f"{part:.0%}".replace("%", " %"): values.quantile(part)
                   for part in (0.05, 0.25, 0.75, 0.95)},
            }  # fmt: skip
            assert said.keys() == wanted.keys()
            for key, value in wanted.items():
                assert float(said[key]) == pytest.approx(float(value), rel=1e-5)
            assert found.distinct == values.nunique()
            assert found.nulls == pytest.approx(frame[name].isna().mean())
            assert found.exact
    assert pd.__version__


def test_outliers_do_not_press_the_others_into_one_bar() -> None:
    values = np.concatenate([np.random.default_rng(0).normal(0, 1, 4000), [1e9, -1e6, 5e8]])
    found = profile(values)
    assert {one["kind"]: one["count"] for one in found.odd} == {"below": 1, "above": 2}
    assert sum(bar > 0 for bar in found.bars) > BARS // 2
    assert sum(found.counts) == 4000
    assert (float(found.low), float(found.high)) == (-1e6, 1e9)
    even = profile(np.arange(4000.0))
    assert even.odd == ()
    assert even.edges == (0.0, 3999.0)


def test_times_have_quantiles_in_their_own_form() -> None:
    days = [dt.date(2020, 1, 1) + dt.timedelta(days=at) for at in range(101)]
    found = profile(days, pa.date32())
    assert dict(found.statistics)["median"] == "2020-02-20"
    assert "mean" not in dict(found.statistics)
    moments = profile(pa.array([0, 10**6, 2 * 10**6], pa.timestamp("us", "UTC")))
    assert dict(moments.statistics)["median"].startswith("1970-01-01T00:00:01")


def test_of_a_filter_the_first_rows_are_read_and_this_is_said() -> None:
    dataset = one_table(pa.table({"id": range(20_000)}))
    (found,) = column_profiles(dataset, 0, 1, RowQuery("id < 20000"), 20_000)
    assert (found.sample, found.sampled, found.exact) == ("first", SAMPLE_ROWS, False)


def test_the_range_of_a_sampled_column_comes_from_a_zone_map(tmp_path: Path) -> None:
    rows = 40_000
    values = np.full(rows, 5.5)
    is_null = np.arange(rows) % 8 == 3
    table = pa.table({"x": pa.array(values, mask=is_null)})
    ds = lance_nb.write_dataset(table, tmp_path / "d.lance", max_rows_per_file=rows // 2)
    is_null[RowSample(ds)._places] = True
    first, *_, last = np.flatnonzero(~is_null)  # rows that no sample has
    values[[first, last]] = -1000.25, 2000.75
    table = pa.table({"x": pa.array(values, mask=np.arange(rows) % 8 == 3)})
    ds = lance_nb.write_dataset(table, tmp_path / "e.lance", max_rows_per_file=rows // 2)
    (sampled,) = column_profiles(ds, 0, 1, RowQuery(), rows)
    assert (sampled.indexed_range, sampled.low, sampled.high) == (False, "5.5", "5.5")

    ds.create_scalar_index("x", "ZONEMAP")
    (found,) = column_profiles(ds, 0, 1, RowQuery(), rows)

    assert (found.indexed_range, found.low, found.high) == (True, "-1000.25", "2000.75")
    assert (found.nulls, found.sample, found.bars) == (1 / 8, "random", sampled.bars)
    ds.delete("x > 2000")
    (after,) = column_profiles(ds, 0, 1, RowQuery(), rows - 1)
    assert (after.indexed_range, after.high) == (False, "5.5")


def test_values_are_counted_by_a_bitmap_index(tmp_path: Path) -> None:
    values = ["b"] * 300 + ["a"] * 500 + [None] * 200
    table = pa.table({"c": values, "n": range(1000)})
    ds = lance_nb.write_dataset(table, tmp_path / "d.lance", max_rows_per_file=400)
    ds.create_scalar_index("c", "BITMAP")
    ds.delete("n < 100")
    counted, sampled = column_profiles(ds, 0, 2, RowQuery(), ds.count_rows())
    assert (counted.column, counted.sample, counted.exact) == (0, "index", True)
    assert (counted.labels, counted.counts, counted.distinct) == (("a", "b"), (500, 200), 2)
    assert (counted.sampled, counted.nulls) == (900, pytest.approx(200 / 900))
    assert [one["count"] for one in counted.odd if one["kind"] == "null"] == [200]
    assert (sampled.column, sampled.sample) == (1, "all")
    scanned = exact_profile(ds, 0, RowQuery(filter="n >= 0"), lambda _done, _total: None)
    assert (scanned.sample, scanned.counts) == ("all", counted.counts)
    ds.insert(table.slice(0, 1))
    assert column_profiles(ds, 0, 1, RowQuery(), ds.count_rows())[0].sample == "all"
