"""Profiles of columns, and how they drift."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.table.diff.drift import Tally, kind_of


@pytest.mark.parametrize(
    ("type_", "kind"),
    [
        (pa.int8(), "number"), (pa.float16(), "number"), (pa.bool_(), "number"),
        (pa.decimal128(5, 2), "number"), (pa.date32(), "time"), (pa.timestamp("ns"), "time"),
        (pa.duration("s"), "time"), (pa.string(), "text"), (pa.large_string(), "text"),
        (pa.dictionary(pa.int8(), pa.string()), "text"), (pa.list_(pa.float32(), 4), "vector"),
        (pa.list_(pa.string(), 4), "other"), (pa.struct([]), "other"), (pa.binary(), "other"),
        (pa.uuid(), "other"),
    ],
    ids=str,
)  # fmt: skip
def test_a_type_is_counted_in_its_way(type_, kind) -> None:
    assert kind_of(type_) == kind


def _profile(array: pa.Array, edges=None, labels=()):
    tally = Tally(array.type, 100)
    tally.count([array])
    if edges is not None:
        tally.look_again([array], np.array(edges))
    return tally.profile(labels)


def test_numbers_are_counted_without_what_is_not_finite() -> None:
    values = pa.array([1.0, 2.0, 2.0, None, float("nan"), float("inf")])

    found = _profile(values, [0.0, 1.5, 3.0])

    assert (found.num_rows, found.num_sampled, found.null_count) == (100, 6, 1)
    assert (found.minimum, found.maximum, found.histogram) == (1.0, 2.0, (1, 2))
    assert found.mean == pytest.approx(5 / 3)
    assert found.distinct == 4
    assert found.null_share == pytest.approx(1 / 6)


def test_vectors_are_counted_by_their_norm() -> None:
    found = _profile(pa.array([[3.0, 4.0], None, [0.0, 1.0]], pa.list_(pa.float32(), 2)))

    assert (found.minimum, found.maximum, found.distinct) == (1.0, 5.0, None)


def test_texts_are_counted_by_value() -> None:
    values = pa.array(["a", "b", "a", None, "c"]).dictionary_encode()

    assert _profile(values, labels=("a", "c")).histogram == (2, 1, 1)


def test_booleans_times_and_decimals_are_numbers() -> None:
    day = dt.date(1970, 1, 3)

    assert _profile(pa.array([True, False, True])).mean == pytest.approx(2 / 3)
    assert _profile(pa.array([day])).maximum == 2.0
    assert _profile(pa.array([1, None]).cast(pa.decimal128(21, 2))).mean == 1.0


def test_drift_of_a_sample_uses_the_same_bins_on_both_sides(make) -> None:
    numbers = np.arange(2000)
    table = pa.table({"id": numbers, "v": np.sin(numbers), "t": [f"t{n % 3}" for n in numbers]})
    ds = make(table, max_rows_per_file=500)
    ds.update({"v": "v + 1"}, where="id < 1000")
    told: list[tuple[int, int]] = []

    drifts = ds.diff(1).drift(sample=256, progress=lambda *done: told.append(done))

    found = {one.name: one for one in drifts}
    assert told == [(1, 3), (2, 3), (3, 3)]
    assert found["v"].before.num_sampled <= 256 < found["v"].before.num_rows
    assert len(found["v"].edges) == len(found["v"].after.histogram) + 1 == 21
    assert sum(found["v"].after.histogram) == found["v"].after.num_sampled
    assert found["v"].psi > 0.1 > abs(found["t"].psi)
    assert found["t"].labels == ("t0", "t1", "t2") or set(found["t"].labels) == {"t0", "t1", "t2"}


def test_drift_of_nothing_has_no_bins(make) -> None:
    table = pa.table({"id": [1, 2], "n": pa.nulls(2, pa.float32()), "s": [{"x": 1}, None]})
    drifts = {one.name: one for one in make(table).diff(1).drift()}

    assert (drifts["n"].edges, drifts["n"].psi) == ((), None)
    assert drifts["s"].before.null_count == 1
    assert drifts["s"].kind == "other"


def test_drift_from_no_rows_has_bins_and_no_index(make) -> None:
    table = pa.table({"n": [1.0, 2.0], "t": ["a", "b"]})
    ds = make(table.slice(0, 0))
    ds.insert(table)
    for diff in (ds.diff(1, 2), ds.diff(2, 1)):
        for one in diff.drift():
            assert one.psi is None
            assert sorted([one.before.num_sampled, one.after.num_sampled]) == [0, 2]
            assert len(one.before.histogram) == len(one.after.histogram) > 0


def test_drift_of_one_value_has_one_bin(make) -> None:
    ds = make(pa.table({"n": [2.0, 2.0]}))
    ds.insert(pa.table({"n": [2.0]}))
    (found,) = ds.diff(1, 2).drift()
    assert found.edges == (2.0, np.nextafter(2.0, np.inf))
    assert (found.before.histogram, found.after.histogram) == ((2,), (3,))
    assert found.psi == pytest.approx(0.0)
