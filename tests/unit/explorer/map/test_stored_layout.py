from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import ColumnNotFoundError, InvalidInputError, NotSupportedError
from lance_nb.explorer.map.embedding_map import PointSet, fit_projection, place_rows
from lance_nb.explorer.map.stored_layout import (
    MARK,
    coordinate_batches,
    coordinate_columns,
    coordinate_field,
    read_stored_layout,
)

ROWS = 400


def quiet(_done: int, _total: int) -> None:
    """Ignore progress."""


def table(ids: Any, vectors: Any, **columns: Any) -> pa.Table:
    flat = pa.array(np.asarray(vectors, np.float32).ravel())
    vector = pa.FixedSizeListArray.from_arrays(flat, 8)
    return pa.table({"id": ids, "vector": vector, **columns})


@pytest.fixture
def vectors() -> Any:
    values = np.random.default_rng(6).normal(size=(ROWS, 8)).astype(np.float32)
    values[:, :2] *= 5
    values[7, 3] = np.nan
    return values


def kept(path: Any, vectors: Any) -> tuple[Any, PointSet]:
    """Write rows, and keep their coordinates in the column xy."""
    ds = lance_nb.write_dataset(table(np.arange(ROWS), vectors), str(path), max_rows_per_file=150)
    ds.delete("id = 5")
    ds = lance_nb.dataset(str(path))
    plane = fit_projection(ds, "vector", quiet)
    field = coordinate_field("xy", "vector")
    rows = coordinate_batches(ds, plane, field, quiet)
    ds.add_columns(pa.RecordBatchReader.from_batches(pa.schema([field]), rows))
    return lance_nb.dataset(str(path)), place_rows(ds, plane, 1, quiet)


def test_points_stay_where_they_were_and_new_ones_go_to_their_neighbours(
    tmp_path: Any, vectors: Any
) -> None:
    ds, before = kept(tmp_path / "d", vectors)
    assert coordinate_columns(ds.schema) == {"xy": "vector"}
    assert ds.to_table(["id", "xy"]).slice(6, 1)["xy"].to_pylist() == [None]  # without a vector
    layout = read_stored_layout(ds, "vector", "xy", quiet)
    after = place_rows(ds, layout, 1, quiet)
    assert after.ids.tolist() == before.ids.tolist()
    assert np.abs(after.xy.astype(int) - before.xy.astype(int)).max() <= 1
    assert (after.num_points, after.without) == (ROWS - 2, 1)
    # A later version has rows without coordinates, close to others; an earlier one has no column.
    near = vectors[100:104] + np.float32(1e-4)
    ds.insert(table(np.arange(900, 904), near))
    later = place_rows(lance_nb.dataset(str(tmp_path / "d")), layout, 1, quiet)
    assert later.num_points == ROWS + 2
    apart = later.xy[-4:].astype(int) - after.xy[98:102].astype(int)  # rows 5 and 7 have no place
    assert np.abs(apart).max() < 60
    first = place_rows(lance_nb.dataset(str(tmp_path / "d"), version=1), layout, 1, quiet)
    assert first.num_points == ROWS - 1
    rows_of_both = np.isin(first.ids, after.ids)
    moved = first.xy[rows_of_both].astype(int) - after.xy.astype(int)
    assert np.abs(moved).max() < 60
    assert "kept in the column xy" in layout.words


def test_coordinates_of_others_are_scaled_to_their_box(tmp_path: Any, vectors: Any) -> None:
    places = np.random.default_rng(1).normal(size=(ROWS, 2)) * 300 - 5000
    flat = pa.array(places.ravel())
    columns = {"umap": pa.FixedSizeListArray.from_arrays(flat, 2)}
    rows = table(np.arange(ROWS), vectors, **columns)
    ds = lance_nb.write_dataset(rows, str(tmp_path / "d"))
    assert coordinate_columns(ds.schema) == {"umap": None}
    points = place_rows(ds, read_stored_layout(ds, "vector", "umap", quiet), 1, quiet)
    assert points.num_points == ROWS
    for axis in (0, 1):
        assert np.corrcoef(points.xy[:, axis], places[:, axis])[0, 1] > 0.9999
        assert 2000 < points.xy[:, axis].min() < points.xy[:, axis].max() < 63500


def test_coordinates_that_are_too_large_are_none(tmp_path: Any, vectors: Any) -> None:
    xy = np.stack([np.arange(len(vectors)), np.arange(len(vectors))], 1).astype(np.float32)
    xy[:2], xy[2:4] = 3.3e38, -3.3e38
    column = pa.FixedSizeListArray.from_arrays(pa.array(xy.ravel()), 2)
    written = lance_nb.write_dataset(
        table(np.arange(len(vectors)), vectors, xy=column), str(tmp_path / "d")
    )
    plane = read_stored_layout(written, "vector", "xy", quiet)
    points = place_rows(written, plane, 1, quiet)
    assert points.num_points == len(vectors)  # those four beside their nearest ones
    assert (np.diff(points.xy[4:, 0].astype(int)) > 0).all()


def test_a_column_without_any_coordinates_places_no_row(tmp_path: Any, vectors: Any) -> None:
    nothing = pa.array([None] * ROWS, pa.list_(pa.float32(), 2))
    ds = lance_nb.write_dataset(table(np.arange(ROWS), vectors, xy=nothing), str(tmp_path / "d"))
    points = place_rows(ds, read_stored_layout(ds, "vector", "xy", quiet), 1, quiet)
    assert (points.num_points, points.without) == (0, ROWS)


@pytest.mark.parametrize(
    "mark", [b"", b"{", b"[1]", b'{"vector": 3}', b"[" * 5000, b'{"other": "vector"}']
)
def test_a_mark_that_is_damaged_names_no_column(mark: bytes) -> None:
    field = pa.field("xy", pa.list_(pa.float64(), 2), metadata={MARK: mark})
    assert coordinate_columns(pa.schema([field])) == {"xy": None}


def test_what_cannot_be_kept_or_read_is_refused(tmp_path: Any, vectors: Any) -> None:
    field = coordinate_field("xy", "vector")
    assert json.loads(field.metadata[MARK]) == {"vector": "vector"}
    for name in ("", "  ", "x" * 201):
        with pytest.raises(InvalidInputError, match="1 to 200 characters"):
            coordinate_field(name, "vector")
    ds, _ = kept(tmp_path / "d", vectors)
    with pytest.raises(ColumnNotFoundError, match="nowhere"):
        read_stored_layout(ds, "vector", "nowhere", quiet)
    with pytest.raises(NotSupportedError, match="'id' has no coordinates"):
        read_stored_layout(ds, "vector", "id", quiet)
    with pytest.raises(NotSupportedError, match="'id' has no vectors"):
        read_stored_layout(ds, "id", "xy", quiet)
