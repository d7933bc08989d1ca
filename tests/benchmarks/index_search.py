"""Time building and searching vector indices against pylance, in one process.

    python -m tests.benchmarks.index_search [--rows 1000000] [--dimension 128] [--runs 7]

The table is that of ``timing``: ratios of processor time above 1 mean that we are faster. A row
"against exact" compares with our own exact search. Vectors lie in clusters, as embeddings do. Each
search has another query every time; recall is the share of the ten nearest rows that are found.
"""

from __future__ import annotations

import argparse
import itertools
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import lance_nb
from tests.benchmarks.timing import Comparison, Timing, compare, cpu_seconds, table
from tests.support.requirements import require_pylance

CLUSTERS = 2000
NOISE = 0.6
QUERIES = 40
K = 10
REFINED = {"nprobes": 10, "refine_factor": 50}
BATCH = 100_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--dimension", type=int, default=128)
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(table(list(vector_rows(Path(folder), options))))


def batches(rows: int, dimension: int) -> Iterator[pa.RecordBatch]:
    rng = np.random.default_rng(1)
    centers = rng.normal(size=(CLUSTERS, dimension)).astype(np.float32)
    for first in range(0, rows, BATCH):
        count = min(BATCH, rows - first)
        near = NOISE * rng.normal(size=(count, dimension)).astype(np.float32)
        values = centers[rng.integers(0, CLUSTERS, count)] + near
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), dimension)
        yield pa.record_batch(
            [pa.array(np.arange(first, first + count)), vectors], names=["id", "v"]
        )


def vector_rows(folder: Path, options: argparse.Namespace) -> Iterator[Comparison]:
    lance = require_pylance()
    parts = list(batches(options.rows, options.dimension))
    path = folder / "theirs"
    lance.write_dataset(pa.Table.from_batches(parts), str(path))
    sample = parts[0].column(1).flatten().to_numpy().reshape(-1, options.dimension)[:QUERIES]
    rng = np.random.default_rng(2)
    queries = sample + 0.2 * rng.normal(size=sample.shape).astype(np.float32)
    del parts
    shutil.copytree(path, folder / "ours")

    def build(engine: Any, place: Path) -> Timing:
        started = cpu_seconds()
        pieces = options.dimension // 8
        engine.dataset(str(place)).create_index("v", "IVF_PQ", num_sub_vectors=pieces)
        spent = cpu_seconds() - started
        return Timing(spent, spent)

    mine, other = build(lance_nb, folder / "ours"), build(lance, path)
    yield Comparison("build IVF_PQ (processor time)", mine, other, 1 / 3)

    ours, theirs = lance_nb.dataset(str(path)), lance.dataset(str(path))
    truth = [found(ours, query, use_index=False) for query in queries]
    for name, settings, goal in (
        ("IVF_PQ, 10 probes", {"nprobes": 10}, 0.5),
        ("IVF_PQ, 10 probes, refined", REFINED, 0.5),
        ("IVF_PQ, defaults", {}, None),
    ):
        hits = [
            len(found(ours, one, **settings) & same)
            for one, same in zip(queries, truth, strict=True)
        ]
        recall = sum(hits) / (K * len(hits))
        yield compare(
            f"{name}, recall {recall:.2f}",
            searching(ours, queries, settings),
            searching(theirs, queries, settings),
            goal=goal,
            runs=options.runs,
            times=10,
        )
    yield compare(
        "IVF_PQ refined, against our exact search",
        searching(ours, queries, REFINED),
        searching(ours, queries, {"use_index": False}),
        goal=10,
        runs=options.runs,
    )


def found(dataset: Any, query: np.ndarray, **settings: Any) -> set[int]:
    search = {"column": "v", "q": query, "k": K, **settings}
    return set(dataset.to_table(["id", "_distance"], nearest=search)["id"].to_pylist())


def searching(dataset: Any, queries: np.ndarray, settings: dict[str, Any]) -> Callable[[], object]:
    turns = itertools.cycle(queries)
    return lambda: found(dataset, next(turns), **settings)


if __name__ == "__main__":
    main()
