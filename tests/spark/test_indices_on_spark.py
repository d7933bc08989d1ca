"""Segments of indices are built by tasks on Spark and committed once; pylance searches them."""

from __future__ import annotations

import importlib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.spark.run import RunOptions, run
from lance_nb.spark.tasks.maintenance import plan_index
from tests.spark.data import MARKS
from tests.support.requirements import require_pylance

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = MARKS
ROWS, FRAGMENTS = 600, 3
KINDS = {"n": "BTREE", "kind": "BITMAP", "tags": "LABEL_LIST", "part": "NGRAM", "zone": "ZONEMAP",
         "bloom": "BLOOMFILTER", "text": "INVERTED"}  # fmt: skip
FILTERS = {
    "n": "n BETWEEN 20 AND 40",
    "kind": "kind = 'k3'",
    "tags": "array_has_any(tags, ['t2'])",
    "part": "contains(part, 'iver')",
    "zone": "zone < 1.5",
    "bloom": "bloom = 'b7'",
}


def test_segments_of_every_kind(session: SparkSession, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    words = np.array(["river", "stone", "cloud", "fox"])
    texts = [" ".join(rng.choice(words, 4)) for _ in range(ROWS)]
    data = pa.table(
        {
            "id": range(ROWS),
            "n": rng.permutation(ROWS),
            "kind": [f"k{one}" for one in rng.integers(0, 9, ROWS)],
            "tags": [[f"t{one}"] for one in rng.integers(0, 9, ROWS)],
            "part": texts,
            "zone": np.arange(ROWS) / 10,
            "bloom": [f"b{one}" for one in rng.integers(0, 50, ROWS)],
            "text": texts,
        }
    )
    place = tmp_path / "d.lance"
    ds = lance_nb.write_dataset(data, place, max_rows_per_file=ROWS // FRAGMENTS)
    on: dict[str, Any] = {"engine": "spark", "spark": session}
    for number, (column, kind) in enumerate(KINDS.items()):
        plan = partial(plan_index, column=column, index_type=kind, task_bytes=1)
        ds = run(ds, plan, RunOptions.of(None, on))
        assert ds.version == number + 2  # one commit for all segments
        segments = [one for one in ds.list_indices() if one["name"] == f"{column}_idx"]
        assert sorted(tuple(one["fragment_ids"]) for one in segments) == [(0,), (1,), (2,)]
    theirs = require_pylance().dataset(str(place))
    for column, text in FILTERS.items():
        expected = ds.to_table(["id"], filter=text, use_scalar_index=False)["id"].to_pylist()
        assert 0 < len(expected) < ROWS, text
        assert f"'{column}_idx'" in ds.scanner(filter=text).explain_plan()
        assert ds.to_table(["id"], filter=text)["id"].to_pylist() == expected
        assert sorted(theirs.to_table(["id"], filter=text)["id"].to_pylist()) == expected
    query = importlib.import_module("lance.query").MatchQuery("fox stone", "text")
    found = ds.to_table(["id"], full_text_query=lance_nb.MatchQuery("fox stone", "text"))
    other = theirs.to_table(["id", "_score"], full_text_query=query)
    assert scores(found) == pytest.approx(scores(other), rel=1e-4)


VECTORS: dict[str, dict[str, Any]] = {
    "IVF_FLAT": {"metric": "l2"},
    "IVF_PQ": {"metric": "cosine", "num_sub_vectors": 4, "parameters": {"num_bits": 4}},
    "IVF_SQ": {"metric": "l2"},
}


def test_vector_segments_share_what_was_learned(session: SparkSession, tmp_path: Path) -> None:
    """Centroids, codewords and bounds are those of all rows; pylance searches all segments."""
    rng = np.random.default_rng(6)
    # The fragments differ, so that each would find centroids and bounds of its own.
    values = (rng.normal(size=(ROWS, 8)) + np.arange(ROWS)[:, None] // 200).astype(np.float32)
    vectors = pa.FixedSizeListArray.from_arrays(values.reshape(-1), 8)
    place = tmp_path / "d.lance"
    data = pa.table({"id": range(ROWS), **dict.fromkeys(VECTORS, vectors)})
    ds = lance_nb.write_dataset(data, place, max_rows_per_file=ROWS // FRAGMENTS)
    ds.delete("id % 50 = 3")
    on: dict[str, Any] = {"engine": "spark", "spark": session}
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(plan_index.__kwdefaults__, "task_bytes", 1)
        for number, (kind, options) in enumerate(VECTORS.items()):
            ds = lance_nb.spark.create_index(ds, kind, kind, num_partitions=4, **options, **on)
            assert ds.version == number + 3  # one commit for all segments
    theirs = require_pylance().dataset(str(place))
    for kind, options in VECTORS.items():
        segments = theirs.stats.index_stats(f"{kind}_idx")["segments"]
        assert len(segments) == FRAGMENTS
        assert all(one["centroids"] == segments[0]["centroids"] for one in segments)
        assert all(one["sub_index"] == segments[0]["sub_index"] for one in segments)
        for query in rng.normal(size=(3, 8)).astype(np.float32) + 1:
            for probes in (1, 2, 4):
                found, other = (near(one, kind, query, nprobes=probes) for one in (ds, theirs))
                assert found == pytest.approx(other, rel=1e-4), (kind, probes)
            settings = {"nprobes": 4, "refine_factor": ROWS}
            exact = near(ds, kind, query, use_index=False, metric=options["metric"])
            assert near(theirs, kind, query, **settings) == pytest.approx(exact, rel=1e-4)
            assert not {one for one in exact if one % 50 == 3}
    again = lance_nb.dataset(place)
    again.optimize.optimize_indices(num_indices_to_merge=FRAGMENTS)
    assert [one.num_segments for one in again.describe_indices()] == [1, 1, 1]
    query = values[77]
    assert near(again, "IVF_FLAT", query, nprobes=2) == pytest.approx(
        near(ds, "IVF_FLAT", query, nprobes=2), rel=1e-4
    )


def near(dataset: Any, column: str, query: np.ndarray, **options: Any) -> dict[int, float]:
    search = {"column": column, "q": query, "k": 10, **options}
    found = dataset.to_table(columns=["id", "_distance"], nearest=search)
    return dict(zip(found["id"].to_pylist(), found["_distance"].to_pylist(), strict=True))


def scores(table: pa.Table) -> dict[int, float]:
    return dict(zip(table["id"].to_pylist(), table["_score"].to_pylist(), strict=True))
