from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.errors import ColumnNotFoundError, InvalidInputError, NotSupportedError
from lance_nb.table import ordering
from lance_nb.table.addresses import addresses_of
from lance_nb.table.filtered_scan import RowChoice, Selected
from lance_nb.table.ordering import (
    ColumnOrdering,
    fetch_rows,
    key_projection,
    orderings_of,
    slices,
    sort_keys,
    sort_places,
    sorted_rows,
)
from lance_nb.table.projection import project

VERSION = 9


def places(values, *, ascending=True, nulls_first=False, most=None):
    table = pa.table({"v": values})
    order = [ColumnOrdering("v", ascending, nulls_first)]
    return sort_places(sort_keys(table, order), most).tolist()


def test_nulls_come_last_and_nan_is_the_greatest_number():
    values = pa.array([2.0, None, math.nan, -math.inf, 1.0, math.inf, None])

    assert places(values) == [3, 4, 0, 5, 2, 1, 6]
    assert places(values, ascending=False) == [2, 5, 0, 4, 3, 1, 6]
    assert places(values, nulls_first=True) == [1, 6, 3, 4, 0, 5, 2]
    assert places(values, ascending=False, nulls_first=True) == [1, 6, 2, 5, 0, 4, 3]


@pytest.mark.parametrize("ascending", [True, False])
def test_equal_rows_keep_their_order(ascending):
    values = pa.array([0.0, -0.0, 0.0, math.nan, -math.nan] * 3)
    remainders = [[4], [1], [0, 2], [3]]  # -NaN, -0.0, 0.0, NaN
    order = [[place for place in range(15) if place % 5 in some] for some in remainders]

    found = places(values, ascending=ascending)
    kinds = order if ascending else order[::-1]
    assert found == [place for kind in kinds for place in kind]


def test_nulls_alone_keep_their_order():
    assert places(pa.nulls(3)) == [0, 1, 2]


@pytest.mark.parametrize("most", [0, 1, 5, 24, 25, 26, 99, 100, 200])
def test_the_first_rows_are_the_first_of_all(most):
    values = pa.array(np.random.default_rng(1).integers(0, 9, 100))

    assert places(values, most=most) == places(values)[:most]


@pytest.mark.parametrize("held", [0, 10_000], ids=["cut often", "never"])
@pytest.mark.parametrize(("limit", "offset"), [(None, 0), (5, 0), (7, 20), (1000, 3), (0, 0)])
def test_a_scan_is_ordered_with_limit_and_offset(at, monkeypatch, held, limit, offset):
    monkeypatch.setattr(ordering, "_HELD_ROWS_MIN", held)
    snapshot, order = at(VERSION), [ColumnOrdering("amount", ascending=False), ColumnOrdering("id")]
    wanted = project(snapshot.manifest.schema, ["id", "amount"])
    everything = fetch_rows(
        snapshot, wanted, sorted_rows(snapshot, RowChoice(), order, None, 0)
    ).to_pylist()

    rows = sorted_rows(snapshot, RowChoice(), order, limit, offset)

    stop = None if limit is None else offset + limit
    assert fetch_rows(snapshot, wanted, rows).to_pylist() == everything[offset:stop]
    keys = [(row["amount"] is None, -(row["amount"] or 0), row["id"]) for row in everything]
    assert keys == sorted(keys)


def test_rows_are_fetched_in_any_order_and_slices_are_their_parts(at):
    snapshot = at(VERSION)
    wanted = project(snapshot.manifest.schema, ["id"])
    rows = sorted_rows(snapshot, RowChoice(), [ColumnOrdering("id")], None, 0)
    shuffled = np.random.default_rng(5).permutation(rows.num_rows).astype(np.int64)
    ids = fetch_rows(snapshot, wanted, rows)["id"].to_pylist()

    found = fetch_rows(snapshot, wanted, rows.take(shuffled))["id"].to_pylist()

    assert found == [ids[place] for place in shuffled.tolist()]
    parts = [fetch_rows(snapshot, wanted, part)["id"].to_pylist() for part in slices(rows, 17)]
    assert [one for part in parts for one in part] == ids


def test_lists_of_rows_are_joined(at):
    fragment = at(VERSION).manifest.fragments[0]
    window = Selected(fragment, np.array([3, 4]), np.array([13, 14]), {})

    rows = addresses_of([window, addresses_of([window]).take(np.array([1]))])

    assert rows.physical.tolist() == [3, 4, 4]
    assert rows.position.tolist() == [13, 14, 14]
    assert rows.fragment.tolist() == [0, 0, 1]
    assert addresses_of([]).num_rows == 0


@pytest.mark.parametrize(
    "given",
    [
        "a",
        ["a"],
        [ColumnOrdering("a")],
        [{"column_name": "a"}],
        [SimpleNamespace(column_name="a", ascending=True, nulls_first=False)],
    ],
)
def test_orderings_are_read_from_every_form(given):
    assert orderings_of(given) == (ColumnOrdering("a"),)


@pytest.mark.parametrize("given", [[("a",)], [1], [{"name": "a"}], [{"column_name": "a", "x": 1}]])
def test_other_forms_are_refused(given):
    with pytest.raises(InvalidInputError):
        orderings_of(given)


def test_no_ordering_is_none():
    assert orderings_of(None) == ()


def test_nested_columns_cannot_be_ordered_by_but_their_fields_can(at):
    schema = at(VERSION).manifest.schema

    with pytest.raises(NotSupportedError, match="point"):
        key_projection(schema, [ColumnOrdering("point")])
    with pytest.raises(ColumnNotFoundError):
        key_projection(schema, [ColumnOrdering("nope")])
    assert key_projection(schema, [ColumnOrdering("point.x")]).schema.names == ["point.x"]


def test_what_an_object_leaves_out_has_its_default():
    (found,) = orderings_of([SimpleNamespace(column_name="id")])

    assert found == ColumnOrdering("id", ascending=True, nulls_first=False)
