"""Building an index on vectors: what is asked for, progress, cancel, files; and searching it."""

from __future__ import annotations

import warnings
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.errors import InvalidInputError, NotSupportedError
from lance_nb.indices.vectors import writer
from lance_nb.indices.vectors.search import vector_search

ROWS, DIMENSION = 400, 8
KINDS = {
    "IVF_FLAT": {},
    "IVF_PQ": {"num_sub_vectors": 4},
    "4 bits": {"num_sub_vectors": 4, "num_bits": 4},
    "IVF_SQ": {},
}


def table(first=0, count=ROWS, dtype=np.float32):
    rng = np.random.default_rng(first + 1)
    values = rng.normal(size=(count, DIMENSION)).astype(dtype)
    values[5, 0] = np.nan
    values[6, 1] = np.inf
    flat = pa.FixedSizeListArray.from_arrays(
        pa.array(values.reshape(-1)), DIMENSION, mask=pa.array(np.arange(count) % 50 == 3)
    )
    return pa.table({"id": np.arange(first, first + count), "v": flat})


@pytest.fixture(params=[False, True], ids=["addresses", "stable"])
def dataset(request):
    uri = f"memory://vectors-{uuid4().hex}/d.lance"
    return lance_nb.write_dataset(
        table(), uri, max_rows_per_file=150, enable_stable_row_ids=request.param
    )


def build(dataset, kind, **options):
    name = "IVF_PQ" if kind == "4 bits" else kind
    return dataset.create_index("v", name, num_partitions=4, max_iters=3, **KINDS[kind], **options)


def nearest(dataset, query, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return dataset.to_table(["id"], nearest={"column": "v", "q": query, "k": 10, **options})


EVERYTHING = {"nprobes": 4, "refine_factor": 100, "distance_range": (-1e30, 1e30)}


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_full_search_is_exact(dataset, kind, metric):
    build(dataset, kind, metric=metric)
    dataset.delete("id % 7 = 2")
    dataset.insert(table(1000, 90))
    for query in np.random.default_rng(2).normal(size=(3, DIMENSION)):
        found = nearest(dataset, query, **EVERYTHING)
        exact = nearest(
            dataset, query, use_index=False, metric=metric, distance_range=(-1e30, 1e30)
        )
        assert found["id"].to_pylist() == exact["id"].to_pylist()
        assert np.allclose(found["_distance"], exact["_distance"], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_codes_wait_in_a_file(dataset, kind, monkeypatch):
    build(dataset, kind)
    query = np.ones(DIMENSION)
    held = nearest(dataset, query, nprobes=2)
    monkeypatch.setattr(writer, "_HELD_BYTES_MAX", 0)
    monkeypatch.setattr(writer, "_WRITTEN_BYTES", 1)
    build(dataset, kind, replace=True)
    assert nearest(dataset, query, nprobes=2).equals(held)


def test_the_same_seed_makes_the_same_index(dataset):
    query = np.ones(DIMENSION)
    answers = []
    for seed in (1, 1, 2):
        build(dataset, "IVF_PQ", seed=seed, replace=True)
        answers.append(nearest(dataset, query, nprobes=1).to_pydict())
    assert answers[0] == answers[1] != answers[2]


def test_progress_and_cancel(dataset):
    events = []
    build(dataset, "IVF_PQ", progress_callback=events.append)
    stages = list(dict.fromkeys(one.stage for one in events))
    assert stages == ["train_ivf", "train_quantizer", "shuffle", "merge_partitions"]
    assert all(
        one.completed <= one.total for one in events if one.total is not None and one.event != "x"
    )
    version, store = dataset.version, dataset._snapshot.locations.home
    before = sorted(one.path for one in store.list("_indices"))

    def cancel(event):
        if event.stage == "merge_partitions" and event.event == "progress":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(dataset, "IVF_PQ", replace=True, progress_callback=cancel)
    assert dataset.checkout_latest() is None or dataset.version == version
    assert sorted(one.path for one in store.list("_indices")) == before


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        ("IVF_PQ", {}, "num_sub_vectors is required"),
        ("IVF_PQ", {"num_sub_vectors": 3}, "divisible"),
        ("IVF_PQ", {"num_sub_vectors": 4, "num_bits": 5}, "num_bits"),
        ("IVF_PQ", {"num_sub_vectors": 4, "pq_codebook": np.zeros((4, 256, 2))}, "ivf_centroids"),
        ("IVF_FLAT", {"num_partitions": 0}, "num_partitions"),
        ("IVF_FLAT", {"metric": "hamming"}, "metric"),
        ("IVF_FLAT", {"metric": "nonsense"}, "metric"),
        ("IVF_FLAT", {"ivf_centroids": np.zeros((2, 3))}, "ivf_centroids"),
        ("IVF_FLAT", {"ivf_centroids": np.full((2, 8), np.nan)}, "finite"),
        ("IVF_FLAT", {"ivf_centroids": np.zeros((2, 8)), "num_partitions": 3}, "num_partitions=3"),
        ("IVF_FLAT", {"num_sub_vectors": 4}, "num_sub_vectors"),
        ("IVF_SQ", {"max_iters": 1.5}, "max_iters"),
    ],
)
def test_what_cannot_be_built_is_refused_before_work(dataset, kind, options, words):
    version = dataset.version
    with pytest.raises(InvalidInputError, match=words):
        dataset.create_index("v", kind, **options)
    assert dataset.version == version


def test_other_kinds_are_pylances(dataset):
    for kind in ("IVF_HNSW_SQ", "IVF_RQ"):
        with pytest.raises(NotSupportedError, match="pylance"):
            dataset.create_index("v", kind)
    with pytest.raises(InvalidInputError, match="id"):
        dataset.create_index("id", "IVF_FLAT")
    build(dataset, "IVF_FLAT")
    with pytest.raises(InvalidInputError, match="already exists"):
        build(dataset, "IVF_FLAT")


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
@pytest.mark.parametrize("kind", KINDS)
def test_other_numbers(kind, dtype):
    uri = f"memory://vectors-{uuid4().hex}/d.lance"
    made = lance_nb.write_dataset(table(dtype=dtype), uri)
    build(made, kind)
    query = np.ones(DIMENSION)
    exact = nearest(made, query, use_index=False)
    found = nearest(made, query, nprobes=4, refine_factor=100)
    assert found["id"].to_pylist() == exact["id"].to_pylist()


def test_an_empty_dataset_and_one_without_vectors():
    uri = f"memory://vectors-{uuid4().hex}/d.lance"
    made = lance_nb.write_dataset(table().slice(0, 0), uri)
    build(made, "IVF_PQ")
    made.insert(table())
    assert nearest(made, np.ones(DIMENSION)).num_rows == 10
    nothing = pa.table({"id": [1], "v": pa.nulls(1, table().schema.field("v").type)})
    made = lance_nb.write_dataset(nothing, f"memory://vectors-{uuid4().hex}/d.lance")
    build(made, "IVF_SQ")
    assert nearest(made, np.ones(DIMENSION)).num_rows == 0


def test_plans_name_index_and_probes(dataset):
    build(dataset, "IVF_PQ")
    dataset.insert(table(1000, 90))
    search = {"column": "v", "q": np.ones(DIMENSION), "k": 5, "nprobes": 3, "refine_factor": 2}
    scan = dataset.scanner(["id"], nearest=search)
    plan = scan.explain_plan()
    assert "nearest: 5 of 'v', by index" in plan
    assert "index: 'v_idx' (IVF_PQ) of column 'v', 3 of 4 fragments covered" in plan
    assert "the others are compared exactly" in plan
    assert "probes: 3 of 4 partitions" in plan
    assert "of codes, then exact for the nearest 10" in plan
    assert "searched: 3 partitions, " in scan.analyze_plan()
    assert "compared exactly: 10 rows of the index" in scan.analyze_plan()
    exact = dataset.scanner(["id"], nearest={**search, "use_index": False}).explain_plan()
    assert "exact" in exact
    assert "index:" not in exact
    other = dataset.scanner(["id"], nearest={**search, "metric": "dot"}).explain_plan()
    assert "'v_idx' is not used, its metric is another" in other


def test_a_filter_that_leaves_few_rows_is_answered_exactly(dataset):
    build(dataset, "IVF_PQ")
    search = {"column": "v", "q": np.ones(DIMENSION), "k": 5}
    options = {"nearest": search, "filter": "id IN (1, 50, 300)", "prefilter": True}
    found = dataset.to_table(["id"], **options)
    exact = dataset.to_table(["id"], **{**options, "nearest": {**search, "use_index": False}})
    assert found.equals(exact)
    assert "searched: 0 partitions" in dataset.scanner(["id"], **options).analyze_plan()


def test_an_index_of_a_newer_version_is_not_used(dataset, monkeypatch):
    build(dataset, "IVF_FLAT")
    monkeypatch.setattr("lance_nb.indices.vectors.search.NEWEST", 0)
    opened = lance_nb.dataset(dataset.uri)
    query = np.ones(DIMENSION)
    assert nearest(opened, query).equals(nearest(opened, query, use_index=False))
    plan = opened.scanner(nearest={"column": "v", "q": query}).explain_plan()
    assert "not used" in plan
    assert vector_search(opened._snapshot) is not None
