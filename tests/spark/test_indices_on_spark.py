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


def scores(table: pa.Table) -> dict[int, float]:
    return dict(zip(table["id"].to_pylist(), table["_score"].to_pylist(), strict=True))
