from __future__ import annotations

import decimal
from collections.abc import Callable
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import (
    CancelledError,
    ColumnNotFoundError,
    InvalidInputError,
    NotSupportedError,
)
from lance_nb.explorer import cells
from lance_nb.explorer.map import embedding_map, point_styles
from lance_nb.explorer.map.embedding_map import (
    PointSet,
    divisor_of,
    fit_projection,
    place_rows,
)
from lance_nb.explorer.map.placed_map import (
    ARRIVED,
    MOVED,
    RELABELLED,
    compare_points,
    point_keys,
)
from lance_nb.explorer.map.point_styles import (
    MISSING,
    NUMBER_MAX,
    OTHER,
    SIZE_MAX,
    colour_columns,
    colour_points,
    size_columns,
    size_factor,
    size_points,
)

DIMENSION = 12


def quiet(_done: int, _total: int) -> None:
    """Ignore progress."""


def vectors_of(values: Any) -> pa.Array:
    flat = pa.array(np.asarray(values, np.float32).reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, DIMENSION)


def written(path: Any, values: Any, **columns: Any) -> Any:
    table = pa.table({"id": np.arange(len(values)), **columns, "vector": vectors_of(values)})
    return lance_nb.write_dataset(table, str(path), max_rows_per_file=100)


def placed(source: Any, divisor: int = 1) -> PointSet:
    return place_rows(source, fit_projection(source, "vector", quiet), divisor, quiet)


@pytest.fixture
def values() -> Any:
    random = np.random.default_rng(3)
    scales = np.array([9, 4, *[0.2] * (DIMENSION - 2)])
    return (random.normal(size=(300, DIMENSION)) * scales + 5).astype(np.float32)


def test_the_plane_is_that_of_the_principal_components(tmp_path: Any, values: Any) -> None:
    points = placed(written(tmp_path / "d", values))
    centred = values.astype(np.float64) - values.mean(0, dtype=np.float64)
    _, sizes, rows = np.linalg.svd(centred, full_matrices=False)
    expected = centred @ rows[:2].T
    for axis in (0, 1):
        found = np.corrcoef(points.xy[:, axis].astype(float), expected[:, axis])[0, 1]
        assert abs(found) > 0.9999
    share = float((sizes[:2] ** 2).sum() / (sizes**2).sum())
    assert points.plane.explained == pytest.approx(share, abs=1e-3)
    assert points.num_points == points.num_rows == 300


def test_rows_without_a_usable_vector_are_counted_and_left_out(tmp_path: Any, values: Any) -> None:
    values[3, 0], values[200, 5] = np.nan, np.inf
    values[201], values[202] = 3e38, 1e30  # sums of their squares are no float32
    column = vectors_of(values).to_pylist()
    column[7] = None
    table = pa.table({"id": range(300), "vector": pa.array(column, pa.list_(pa.float32(), 12))})
    points = placed(lance_nb.write_dataset(table, str(tmp_path / "d")))
    assert (points.num_points, points.without) == (295, 5)
    assert points.ids.tolist() == [at for at in range(300) if at not in (3, 7, 200, 201, 202)]
    assert len(np.unique(points.xy, axis=0)) > 250


def test_vectors_of_doubles_that_are_no_floats_are_left_out(tmp_path: Any, values: Any) -> None:
    doubles = values.astype(np.float64)
    doubles[5] = 1e200
    column = pa.FixedSizeListArray.from_arrays(pa.array(doubles.ravel()), DIMENSION)
    points = placed(lance_nb.write_dataset(pa.table({"vector": column}), str(tmp_path / "d")))
    assert (points.num_points, points.without) == (299, 1)


def test_long_vectors_are_placed(tmp_path: Any, values: Any) -> None:
    points = placed(written(tmp_path / "d", values * 1e12))
    assert points.without == 0
    assert len(np.unique(points.xy, axis=0)) > 250


@pytest.mark.parametrize("kind", [pa.float16(), pa.float64()])
def test_other_floats_are_placed_alike(tmp_path: Any, values: Any, kind: pa.DataType) -> None:
    first = placed(written(tmp_path / "a", values))
    flat = pa.array(values.reshape(-1).astype(kind.to_pandas_dtype()))
    table = pa.table({"vector": pa.FixedSizeListArray.from_arrays(flat, DIMENSION)})
    other = placed(lance_nb.write_dataset(table, str(tmp_path / "b")))
    assert np.abs(first.xy.astype(int) - other.xy.astype(int)).max() < 200


def test_an_empty_or_constant_column_is_placed(tmp_path: Any) -> None:
    alike = placed(written(tmp_path / "a", np.ones((5, DIMENSION))))
    assert len({tuple(one) for one in alike.xy.tolist()}) == 1
    source = written(tmp_path / "b", np.ones((5, DIMENSION)))
    source.delete("true")
    empty = placed(lance_nb.dataset(str(tmp_path / "b")))
    assert empty.num_points == 0
    assert empty.inside(np.array([[0, 0], [9e4, 0], [0, 9e4]])).size == 0


def test_only_columns_that_fit_are_offered(tmp_path: Any, values: Any) -> None:
    schema = pa.schema(
        {
            "vector": pa.list_(pa.float32(), 4), "one": pa.list_(pa.float32(), 1),
            "codes": pa.list_(pa.uint8(), 4), "list": pa.list_(pa.float32()),
            "kind": pa.dictionary(pa.int8(), pa.string()), "on": pa.date32(), "n": pa.int8(),
            "raw": pa.binary(),
        }
    )  # fmt: skip
    assert cells.vector_columns(schema) == ["vector"]
    assert colour_columns(schema) == ["kind", "on", "n"]
    source = written(tmp_path / "d", values)
    with pytest.raises(NotSupportedError, match="'id' has no vectors"):
        fit_projection(source, "id", quiet)
    with pytest.raises(ColumnNotFoundError, match="nowhere"):
        fit_projection(source, "nowhere", quiet)


def test_the_same_rows_of_many_are_placed_at_every_version(
    tmp_path: Any, values: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding_map, "MAX_POINTS", 100)
    assert [divisor_of(n) for n in (100, 101, 200, 201, 401)] == [1, 2, 2, 4, 8]
    source = written(tmp_path / "d", values)
    half, quarter = placed(source, 2), placed(source, 4)
    assert 110 < half.num_points < 190
    assert set(quarter.ids.tolist()) < set(half.ids.tolist())
    source.delete("id % 3 = 0")
    later = placed(lance_nb.dataset(str(tmp_path / "d")), 2)
    assert later.ids.tolist() == [one for one in half.ids.tolist() if one % 3]


def test_points_in_an_outline_are_those_inside_of_it(tmp_path: Any, values: Any) -> None:
    points = placed(written(tmp_path / "d", values))
    x, y = points.xy[:, 0].astype(float), points.xy[:, 1].astype(float)
    box = points.inside(np.array([[20e3, 20e3], [45e3, 20e3], [45e3, 45e3], [20e3, 45e3]]))
    expected = np.flatnonzero((x > 20e3) & (x < 45e3) & (y > 20e3) & (y < 45e3))
    assert box.tolist() == expected.tolist()
    triangle = points.inside(np.array([[-10.0, -10], [65535, -10], [-10, 65535]]))
    assert triangle.tolist() == np.flatnonzero(x + y < 65525).tolist()


@pytest.mark.parametrize("seed", range(12))
def test_points_in_any_outline_are_those_of_each_point_by_itself(seed: int) -> None:
    random = np.random.default_rng(seed)
    xy = random.integers(0, 65536, (4000, 2)).astype(np.uint16)
    xy[:4] = [[0, 0], [65535, 65535], [0, 65535], [65535, 0]]
    corners = int(random.integers(3, 12))
    polygon = random.uniform(-30000, 95000, (corners, 2))  # it may cross itself
    if seed % 3 == 0:
        polygon = np.round(polygon / 256) * 256  # along the squares, and horizontal
        polygon[1, 1] = polygon[0, 1]
    if seed % 3 == 1:
        polygon = random.uniform(30000, 31000, (corners, 2))
        xy[4:] = random.integers(29500, 31500, (3996, 2))
    x, y = xy[:, 0].astype(float), xy[:, 1].astype(float)
    expected = np.zeros(4000, np.bool_)
    for (x1, y1), (x2, y2) in zip(polygon, np.roll(polygon, -1, axis=0), strict=True):
        if y1 != y2:
            beside = (min(y1, y2) <= y) & (y < max(y1, y2))
            expected ^= beside & (x < x1 + (y - y1) * (x2 - x1) / (y2 - y1))
    points = PointSet(None, xy[:, 0], xy, 4000, 1, 0, expected)  # type: ignore[arg-type]
    assert points.inside(polygon).tolist() == np.flatnonzero(expected).tolist()


def test_categories_get_colours_and_the_rest_shares_one(tmp_path: Any, values: Any) -> None:
    names = [None if at < 5 else f"k{at % 15:02}" if at < 250 else "most" for at in range(300)]
    source = written(tmp_path / "d", values, name=pa.array(names))
    points = placed(source)
    found = colour_points(source, points, "name", quiet)
    assert found.kind == "category"
    assert (found.legend[0].label, found.legend[0].code, found.legend[0].count) == ("most", 0, 50)
    assert sum(one.count for one in found.legend) == 300
    assert [one.label for one in found.legend[-2:]] == ["other values", "null"]
    assert np.count_nonzero(found.codes == MISSING) == 5
    assert np.count_nonzero(found.codes == OTHER) == found.legend[-2].count
    again = colour_points(source, points, "name", quiet, ["k03", "most"])
    assert {one.label: one.code for one in again.legend}["most"] == 1


def test_numbers_and_times_lie_on_a_ramp(tmp_path: Any, values: Any) -> None:
    prices = np.arange(300, dtype=np.float64)
    prices[10] = np.nan
    prices[299] = 1e9  # one outlier does not take the ramp from the others
    days = [date(2024, 1, 1 + at % 28) for at in range(300)]
    few = np.arange(300) % 3
    source = written(tmp_path / "d", values, price=prices, day=pa.array(days), few=few)
    points = placed(source)
    found = colour_points(source, points, "price", quiet)
    assert (found.kind, int(found.codes[10])) == ("number", MISSING)
    assert int(found.codes[290]) > 240
    assert int(found.codes[299]) == NUMBER_MAX
    assert "2024-01" in colour_points(source, points, "day", quiet).low
    counted = colour_points(source, points, "few", quiet)
    assert [one.label for one in counted.legend] == ["0", "1", "2"]
    with pytest.raises(NotSupportedError, match="cannot be coloured by 'vector'"):
        colour_points(source, points, "vector", quiet)


def test_sizes_grow_with_numbers_and_nulls_are_the_smallest(tmp_path: Any, values: Any) -> None:
    prices: list[float | None] = [float(at) for at in range(300)]
    prices[10], prices[20], prices[298], prices[299] = None, float("nan"), float("inf"), 1e9
    exact = [decimal.Decimal(at) for at in range(300)]
    source = written(tmp_path / "d", values, price=pa.array(prices),
                     exact=pa.array(exact, pa.decimal128(12, 2)), name=["x"] * 300)  # fmt: skip
    assert size_columns(source.schema) == ["id", "price", "exact"]
    points = placed(source)
    found = size_points(source, points, "price", quiet)
    codes = found.codes.astype(int)
    assert np.flatnonzero(codes == 0).tolist() == [10, 20]
    assert codes[298] == codes[299] == SIZE_MAX  # one outlier does not squash the others
    assert (np.diff(codes[30:290]) >= 0).all()
    assert codes[150] == pytest.approx(128, abs=3)
    assert found.to_json()["words"].endswith("; 2 points without a value are the smallest")
    assert size_points(source, points, "exact", quiet).codes[150] == 128
    areas = np.square([size_factor(code) for code in (0, 51, 102, 153, 204, 255)])
    assert np.diff(areas) == pytest.approx(np.diff(areas)[0])
    with pytest.raises(NotSupportedError, match="cannot be sized by 'name'"):
        size_points(source, points, "name", quiet)
    nothing = written(tmp_path / "n", values, price=pa.array([None] * 300, pa.float64()))
    empty = size_points(nothing, placed(nothing), "price", quiet)
    assert (set(empty.codes.tolist()), empty.low, empty.without) == ({0}, "no values", 300)


def test_a_text_that_is_different_in_every_row_is_refused(
    tmp_path: Any, values: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(point_styles, "MAX_DISTINCT", 50)
    source = written(tmp_path / "d", values, name=[f"n{at}" for at in range(300)])
    with pytest.raises(NotSupportedError, match="more than 50 different values"):
        colour_points(source, placed(source), "name", quiet)


def test_versions_differ_by_arrived_removed_moved_and_relabelled_points(
    tmp_path: Any, values: Any
) -> None:
    label = np.array(["x"] * 300)
    a = written(tmp_path / "a", values, label=label)
    later, changed = values.copy(), label.copy()
    later[40:60] += 3
    changed[55:70] = "y"
    table = pa.table({"id": np.arange(30, 310), "label": np.append(changed[30:], ["x"] * 10),
                      "vector": vectors_of(np.vstack([later[30:], values[:10]]))})  # fmt: skip
    b = lance_nb.write_dataset(table, str(tmp_path / "b"))
    before = placed(a)
    after = place_rows(b, before.plane, 1, quiet)
    keys = point_keys(a, before, "id", quiet), point_keys(b, after, "id", quiet)
    colours = tuple(colour_points(one, points, "label", quiet)
                    for one, points in ((a, before), (b, after)))  # fmt: skip
    found = compare_points(before, after, keys, (colours[0], colours[1]))
    assert found.to_json() == {
        "arrived": 10, "removed": 30, "moved": 20, "relabelled": 15, "same": 240
    }  # fmt: skip
    assert found.removed.tolist() == list(range(30))
    states = dict(zip(keys[1].to_pylist(), found.states.tolist(), strict=True))
    assert (states[45], states[57], states[65], states[305]) == (
        MOVED, MOVED | RELABELLED, RELABELLED, ARRIVED,
    )  # fmt: skip
    twice = pa.array([1] * 280)
    with pytest.raises(InvalidInputError, match="not different in every row"):
        compare_points(before, after, (keys[0], twice))
    with pytest.raises(NotSupportedError, match="cannot be a key"):
        point_keys(a, before, "vector", quiet)


@pytest.mark.parametrize(
    "work",
    [
        lambda source, _points, progress: fit_projection(source, "vector", progress),
        lambda source, points, progress: place_rows(source, points.plane, 1, progress),
        lambda source, points, progress: colour_points(source, points, "id", progress),
    ],
)
def test_every_step_can_be_cancelled(tmp_path: Any, values: Any, work: Callable[..., Any]) -> None:
    source = written(tmp_path / "d", values)
    points = placed(source)

    def cancel(_done: int, _total: int) -> None:
        raise CancelledError("cancelled")

    with pytest.raises(CancelledError):
        work(source, points, cancel)
