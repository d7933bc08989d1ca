from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lance_nb.errors import ColumnNotFoundError, InvalidInputError, NotSupportedError
from lance_nb.format.schema import Schema
from lance_nb.table import nearest
from lance_nb.table.filtered_scan import RowChoice
from lance_nb.table.nearest import find_nearest, nearest_query
from lance_nb.table.ordering import fetch_rows
from lance_nb.table.projection import project
from tests.golden.copies import expected
from tests.golden.opening import snapshot_of

SCHEMA = Schema.from_arrow(
    pa.schema([
        ("v", pa.list_(pa.float32(), 2)), ("u", pa.list_(pa.uint8(), 2)), ("n", pa.int64()),
        ("w", pa.list_(pa.int32(), 2)),
    ])
)  # fmt: skip


def test_defaults_are_ten_rows_by_squared_distance():
    query = nearest_query(SCHEMA, {"column": "v", "q": [1, 2]})

    assert (query.k, query.metric, query.is_batch) == (10, "l2", False)
    assert query.queries.tolist() == [[1.0, 2.0]]
    assert nearest_query(SCHEMA, {"column": "u", "q": [1, 2]}).metric == "hamming"


@pytest.mark.parametrize(
    "wanted",
    [
        {"q": [1, 2]}, {"column": "v"}, {"column": "v", "q": [1, 2], "top": 3},
        {"column": "v", "q": [1]}, {"column": "v", "q": []}, {"column": "v", "q": "text"},
        {"column": "v", "q": [[1, 2], [3]]}, {"column": "v", "q": [1, 2], "k": 0},
        {"column": "v", "q": [1, 2], "metric": "hamming"}, {"column": "n", "q": [1, 2]},
        {"column": "u", "q": [1, 2], "metric": "l2"}, {"column": "w", "q": [1, 2]},
        {"column": "v", "q": [[1, 2]] * 1025},
    ],
    ids=str,
)  # fmt: skip
def test_a_search_that_has_no_meaning_is_refused(wanted):
    with pytest.raises(InvalidInputError):
        nearest_query(SCHEMA, wanted)


def test_a_missing_column_and_another_kind_of_search_are_refused():
    with pytest.raises(ColumnNotFoundError):
        nearest_query(SCHEMA, {"column": "x", "q": [1, 2]})
    with pytest.raises(NotSupportedError):
        nearest_query(SCHEMA, "text")


@pytest.mark.parametrize(
    ("metric", "wanted"),
    [("l2", [25.0, 0.0, 1.0]), ("dot", [1.0, -24.0, -23.0]), ("cosine", [np.nan, 0.0, 0.04])],
)
def test_distances_are_what_their_names_say(metric, wanted):
    rows = np.array([[0, 0], [3, 4], [4, 3]], np.float32)
    rows[2] = [4, 3] if metric == "cosine" else [4, 4] if metric == "l2" else [4, 3]

    found = nearest.distances(rows, np.array([3, 4], np.float32), metric)

    assert found.dtype == np.float32
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)


def test_hamming_counts_bits_that_differ():
    rows = np.array([[0, 0], [255, 1]], np.uint8)

    assert nearest.distances(rows, np.array([0, 3], np.uint8), "hamming").tolist() == [2.0, 9.0]


@pytest.mark.parametrize("k", [1, 3, 7, 100])
def test_merging_windows_finds_what_one_sort_finds(k):
    rng = np.random.default_rng(k)
    distances = rng.integers(0, 9, 60).astype(np.float32)
    best = (nearest.addresses_of([]), np.zeros(0, np.float32))
    for start in range(0, 60, 13):
        part = distances[start : start + 13]
        places = np.arange(start, start + len(part))
        window = nearest.Selected(None, places, places, {})
        rows = nearest.addresses_of([window])
        best = nearest._merge(best, (rows, part), np.arange(len(part)), k)

    wanted = np.argsort(distances, kind="stable")[:k]
    assert best[0].position.tolist() == wanted.tolist()
    assert best[1].tolist() == distances[wanted].tolist()


def test_null_vectors_and_vectors_with_nulls_are_passed_over(stores):
    snapshot = snapshot_of(stores["types_2_2"])
    table = expected("types_2_2", 1)
    query = nearest_query(snapshot.manifest.schema, {"column": "vector", "q": [1, 2, 3], "k": 100})

    found = find_nearest(snapshot, RowChoice(), query)

    whole = sum(row is not None and None not in row for row in table["vector"].to_pylist())
    assert found.rows.num_rows == whole


def test_batches_answer_query_by_query(stores):
    snapshot = snapshot_of(stores["types_2_2"])
    rows = pa.FixedSizeListArray.from_arrays(pa.array([0, 0, 5, 5], pa.float32()), 2)
    matrix, valid = nearest.matrix_of(pa.chunked_array([rows, rows.slice(1)]))

    assert matrix.tolist() == [[0, 0], [5, 5], [5, 5]]
    assert valid.all()
    query = nearest_query(
        snapshot.manifest.schema, {"column": "vector", "q": [[0, 0, 0], [9, 9, 9]], "k": 2}
    )
    found = find_nearest(snapshot, RowChoice(), query)
    assert found.query_index.tolist() == sorted(found.query_index.tolist())
    ids = fetch_rows(snapshot, project(snapshot.manifest.schema, ["id"]), found.rows)
    assert ids.num_rows == found.rows.num_rows


@pytest.mark.parametrize(
    "query", [pa.array([1.0, 2.0]), pa.chunked_array([[1.0], [2.0]]), np.array([1, 2]),
              pa.scalar([1.0, 2.0])],
    ids=["array", "chunks", "numpy", "scalar"],
)  # fmt: skip
def test_a_query_may_be_an_arrow_value(query):
    found = nearest_query(SCHEMA, {"column": "v", "q": query})
    assert (found.queries.tolist(), found.is_batch) == ([[1.0, 2.0]], False)
