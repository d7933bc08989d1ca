"""Indices on vectors that we build: pylance opens, searches, extends and compacts them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from tests.interop.test_vector_search import (
    DIMENSION,
    FINITE,
    METRICS,
    PARTITIONS,
    assert_same,
    column,
    nearest,
    table,
    vectors,
)
from tests.support.requirements import require_pylance

pytestmark = [
    pytest.mark.interop,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # pylance's own
]

KINDS: dict[str, dict[str, Any]] = {
    "IVF_FLAT": {},
    "IVF_PQ": {"num_sub_vectors": 4},
    "IVF_PQ of 4 bits": {"num_sub_vectors": 8, "num_bits": 4},
    "IVF_SQ": {},
}


def build(dataset: Any, kind: str, **options: Any) -> None:
    dataset.create_index(
        "v", kind.split(maxsplit=1)[0], **{"num_partitions": PARTITIONS, **KINDS[kind], **options}
    )


def index_files(dataset: Any) -> dict[str, Any]:
    """Return the two files of the index, opened by pylance."""
    files = pytest.importorskip("lance.file")
    (index,) = lance_nb.dataset(dataset.uri).list_indices()
    folder = Path(dataset.uri.removeprefix("file://"), "_indices", index["uuid"])
    return {one.name: files.LanceFileReader(str(one)).metadata() for one in folder.iterdir()}


@pytest.mark.parametrize(
    ("kind", "metric"),
    [
        ("IVF_FLAT", "l2"), ("IVF_FLAT", "cosine"), ("IVF_PQ", "cosine"), ("IVF_PQ", "dot"),
        ("IVF_PQ of 4 bits", "l2"), ("IVF_SQ", "dot"), ("IVF_SQ", "l2"),
    ],
)  # fmt: skip
def test_pylance_finds_what_we_find(tmp_path: Path, kind: str, metric: str) -> None:
    lance = require_pylance()
    stable = kind == "IVF_SQ"
    made = lance.write_dataset(
        table(0, 1200, 3), str(tmp_path / "d.lance"), max_rows_per_file=500,
        enable_stable_row_ids=stable,
    )  # fmt: skip
    build(lance_nb.dataset(made.uri), kind, metric=metric)
    for step in ("built", "deleted", "appended", "merged", "compacted"):
        theirs, ours = lance.dataset(made.uri), lance_nb.dataset(made.uri)
        if step == "deleted":
            theirs.delete("id % 5 = 1")
        elif step == "appended":
            theirs.insert(table(5000, 150, 8))
        elif step == "merged":
            theirs.optimize.optimize_indices(num_indices_to_merge=1)
        elif step == "compacted":
            theirs.optimize.compact_files(target_rows_per_fragment=10_000)
        theirs, ours = lance.dataset(made.uri), lance_nb.dataset(made.uri)
        for query in vectors(2, np.random.default_rng(5)):
            for options in ({"nprobes": 2}, {"nprobes": PARTITIONS}, {"refine_factor": 4}):
                where = (kind, metric, step, options)
                found, wanted = nearest(ours, query, **options), nearest(theirs, query, **options)
                assert_same(found, wanted, where)
            everything = {"nprobes": 100, "refine_factor": 300, **FINITE}
            exact = nearest(ours, query, use_index=False, metric=metric, **FINITE)
            assert_same(nearest(theirs, query, **everything), exact, (kind, metric, step))


@pytest.mark.parametrize("kind", KINDS)
def test_files_as_pylance_writes_them(tmp_path: Path, kind: str) -> None:
    lance = require_pylance()
    layouts = []
    for engine in (lance, lance_nb):
        rows = pa.table({"id": np.arange(900), "v": column(vectors(900, np.random.default_rng(1)))})
        made = lance.write_dataset(rows, str(tmp_path / f"{engine.__name__}.lance"))
        build(engine.dataset(made.uri), kind)
        files = index_files(made)
        layouts.append(
            {
                name: (
                    (one.major_version, one.minor_version),
                    one.schema.remove_metadata(),
                    sorted(one.schema.metadata),
                    len(one.global_buffers),
                )
                for name, one in files.items()
            }
        )
        storage = json.loads(
            json.loads(files["auxiliary.idx"].schema.metadata[b"storage_metadata"])[0]
        )
        storage.pop("bounds", None)
        layouts[-1]["storage"] = storage
        described = lance.dataset(made.uri).describe_indices()[0]
        layouts[-1]["described"] = described.index_type, described.num_rows_indexed
    assert layouts[0] == layouts[1]


@pytest.mark.parametrize("metric", METRICS)
def test_given_centroids_make_equal_partitions(tmp_path: Path, metric: str) -> None:
    lance = require_pylance()
    rng = np.random.default_rng(4)
    centroids = vectors(PARTITIONS, rng)
    if metric != "l2":
        centroids /= np.linalg.norm(centroids, axis=1, keepdims=True)
    codebook = (0.4 * rng.normal(size=(4, 256, DIMENSION // 4))).astype(np.float32)
    for kind in ("IVF_FLAT", "IVF_PQ"):
        given = {"pq_codebook": codebook} if kind == "IVF_PQ" else {}
        both = []
        for engine in (lance, lance_nb):
            path = tmp_path / f"{kind}-{engine.__name__}.lance"
            made = lance.write_dataset(table(0, 1000, 3), str(path))
            build(engine.dataset(made.uri), kind, ivf_centroids=centroids, metric=metric, **given)
            both.append(lance.dataset(made.uri))
        for query in vectors(3, rng):
            for probes in (1, 2, PARTITIONS):
                found, wanted = (nearest(one, query, nprobes=probes) for one in reversed(both))
                assert_same(found, wanted, (kind, metric, probes))


@pytest.mark.parametrize("kind", KINDS)
def test_recall_is_that_of_pylances_index(tmp_path: Path, kind: str) -> None:
    lance = require_pylance()
    rng = np.random.default_rng(9)
    values = vectors(8_000, rng)
    queries = vectors(100, rng)
    truth = [
        set(np.argsort(((values - query) ** 2).sum(1), kind="stable")[:10].tolist())
        for query in queries
    ]
    rows = pa.table({"id": np.arange(len(values)), "v": column(values)})

    def recall(engine: Any, name: str) -> float:
        made = lance.write_dataset(rows, str(tmp_path / name))
        build(engine.dataset(made.uri), kind, num_partitions=16)
        theirs = lance.dataset(made.uri)
        # So many probes that where centroids happen to lie hardly counts.
        found = [set(nearest(theirs, one, nprobes=8)["id"].to_pylist()) for one in queries]
        hits = [len(one & other) for one, other in zip(found, truth, strict=True)]
        return sum(hits) / (10 * len(queries))

    # pylance trains from other rows each time: with IVF_PQ from 0.58 to 0.66.
    theirs = [recall(lance, f"theirs-{number}.lance") for number in range(5)]
    assert recall(lance_nb, "ours.lance") >= np.mean(theirs) - 0.02, theirs


def test_bits(tmp_path: Path) -> None:
    lance = require_pylance()
    values = np.random.default_rng(2).integers(0, 256, (900, DIMENSION)).astype(np.uint8)
    made = lance.write_dataset(
        pa.table({"id": np.arange(900), "v": column(values)}), str(tmp_path / "d.lance")
    )
    build(lance_nb.dataset(made.uri), "IVF_FLAT", metric="hamming")
    theirs, ours = lance.dataset(made.uri), lance_nb.dataset(made.uri)
    for query in values[:3]:
        for probes in (2, PARTITIONS):
            found, wanted = (nearest(one, query, nprobes=probes) for one in (ours, theirs))
            assert found["_distance"].to_pylist() == wanted["_distance"].to_pylist()


@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_PQ", "IVF_SQ"])
def test_an_index_is_extended_with_its_centroids(tmp_path: Path, kind: str) -> None:
    lance = require_pylance()
    builder = "lance_nb" if kind == "IVF_SQ" else "lance"
    made = lance.write_dataset(table(0, 900, 3), str(tmp_path / "d.lance"))
    build({"lance": lance, "lance_nb": lance_nb}[builder].dataset(made.uri), kind)
    before = lance_nb.dataset(made.uri).index_statistics("v_idx")["segments"][0]
    for number, options in enumerate(({"num_indices_to_merge": 0}, {"num_indices_to_merge": 1})):
        ours = lance_nb.dataset(made.uri)
        ours.insert(table(5000 + 1000 * number, 200, 9))
        ours.delete("id % 13 = 4")
        ours.optimize.optimize_indices(**options)
        theirs = lance.dataset(made.uri)
        found = theirs.stats.index_stats("v_idx")
        assert (found["num_segments"], found["num_unindexed_rows"]) == (2, 0)
        for one in found["segments"]:
            np.testing.assert_allclose(one["centroids"], before["centroids"], rtol=1e-5)
        for query in vectors(2, np.random.default_rng(5)):
            answers = (nearest(one, query, nprobes=2) for one in (ours, theirs))
            assert_same(*answers, (kind, options))
            everything = {"nprobes": 100, "refine_factor": 300, **FINITE}
            exact = nearest(ours, query, use_index=False, **FINITE)
            assert_same(nearest(theirs, query, **everything), exact, (kind, options))


@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_PQ", "IVF_SQ"])
def test_statistics_are_those_of_pylance(tmp_path: Path, kind: str) -> None:
    lance = require_pylance()
    for engine in (lance, lance_nb):
        made = lance.write_dataset(table(0, 600, 3), str(tmp_path / engine.__name__))
        build(engine.dataset(made.uri), kind)
        theirs = lance.dataset(made.uri).stats.index_stats("v_idx")
        ours = lance_nb.dataset(made.uri).index_statistics("v_idx")
        assert ours["not_read"] == []
        wanted = theirs["segments"][0]
        wanted["uri"] = wanted["uri"][wanted["uri"].index("_indices") :]
        assert {name: ours["segments"][0][name] for name in wanted} == wanted
