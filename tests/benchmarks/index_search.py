"""Time building and searching indices against pylance, in one process.

The table is that of ``timing``, worst ratio first: ratios of processor time above 1 mean that we
are faster. ``cold`` rows open the dataset anew at each call, so no cache of the engine holds
anything (files are in the page cache of the system); the others search a dataset object again and
again. A row "against exact" compares with our own exact search. Vectors lie in clusters, as
embeddings do; each search has another query every time, and recall is the share of the ten nearest
rows that are found. ``requests`` rows search a server that holds back each request for 50 ms, and
name the requests of lance_nb and of pylance: at once after opening, and when the files are open.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import lance_nb
from tests.benchmarks.object_store import Bench, DelayingProxy, delaying_proxy
from tests.benchmarks.timing import Comparison, Timing, compare, cpu_seconds, table, timed
from tests.support.requirements import require_pylance
from tests.support.servers import moto_server

OPTIONS = {
    "--rows": {"type": int, "default": 2_000_000, "help": "rows with numbers and texts"},
    "--vectors": {"type": int, "default": 1_000_000, "help": "rows with vectors"},
    "--dimension": {"type": int, "default": 128},
    "--runs": {"type": int, "default": 7},
    "--only": {"default": "", "help": "scalars, texts, builds, requests or vectors"},
    "--data": {"type": Path, "help": "folder that keeps the datasets for the next run"},
}
CLUSTERS = 2000
NOISE = 0.6
QUERIES = 40
K = 10
REFINED = {"nprobes": 10, "refine_factor": 50}
BATCH = 100_000
KINDS = 50  # different values of the column with a BITMAP index
FAR_ROWS = 200_000
DELAY_S = 0.05
WARMED = 10  # searches, so that each data file was opened
WORDS = 20_000  # different words of the texts
TEXTS = {
    "a common word": ["w3"],
    "a rare word": ["w900", "w901", "w902"],
    "three words": ["w2 w40 w700"],
    "two words, all of them": ["w5 w12"],
}


def run(options: Namespace) -> None:
    """Measure the groups that were asked for and print the table, the worst ratio first."""
    groups = {
        "scalars": scalar_rows,
        "texts": text_rows,
        "builds": build_rows,
        "requests": request_rows,
        "vectors": vector_rows,
    }
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.data or Path(temporary)
        rows = [
            row
            for name, group in groups.items()
            if options.only in name
            for row in group(folder, options)
        ]
    print(table(sorted(rows, key=lambda row: row.ratio.cpu)))


# --- numbers, values and texts --------------------------------------------------------------------


def scalar_table(rows: int) -> pa.Table:
    """Return numbers in no order, texts as keys, few different values, and texts of ten words."""
    rng = np.random.default_rng(4)
    keys = rng.permutation(rows)
    ranks = np.minimum(rng.zipf(1.3, 10 * rows), WORDS) - 1
    words = pa.array([f"w{number}" for number in range(WORDS)]).take(pa.array(ranks))
    offsets = pa.array(np.arange(0, 10 * rows + 1, 10, dtype=np.int32))
    import pyarrow.compute as pc

    kinds = pa.array([f"kind {number}" for number in range(KINDS)])
    return pa.table(
        {
            "id": np.arange(rows),
            "number": keys,
            "name": pc.binary_join_element_wise(
                "u", pc.utf8_lpad(pa.array(keys).cast(pa.string()), 8, "0"), ""
            ),
            "kind": kinds.take(pa.array(rng.integers(0, KINDS, rows))),
            "text": pc.binary_join(pa.ListArray.from_arrays(offsets, words), " "),
        }
    )


def scalar_dataset(folder: Path, options: Namespace) -> Path:
    """Write a dataset with the indices of pylance, unless it is there."""
    path = folder / f"scalars_{options.rows}"
    if not path.exists():
        lance = require_pylance()
        part = -(-options.rows // 8)
        lance.write_dataset(scalar_table(options.rows), str(path), max_rows_per_file=part)
        for column, kind in (
            ("number", "BTREE"), ("name", "BTREE"), ("kind", "BITMAP"), ("text", "INVERTED"),
        ):  # fmt: skip
            lance.dataset(str(path)).create_scalar_index(column, kind)
    return path


def warm_and_cold(
    name: str,
    path: Path,
    search: Callable[[Any], object],
    options: Namespace,
    *,
    goal: float | None,
    times: int = 10,
) -> Iterator[Comparison]:
    """Compare a search of open datasets, then of datasets that each call opens."""
    lance = require_pylance()
    ours, theirs = lance_nb.dataset(str(path)), lance.dataset(str(path))
    yield compare(
        name,
        lambda: search(ours),
        lambda: search(theirs),
        goal=goal,
        runs=options.runs,
        times=times,
    )
    yield compare(
        f"{name}, cold",
        lambda: search(lance_nb.dataset(str(path))),
        lambda: search(lance.dataset(str(path))),
        runs=options.runs,
    )


def scalar_rows(folder: Path, options: Namespace) -> Iterator[Comparison]:
    path = scalar_dataset(folder, options)
    turns = itertools.cycle(np.random.default_rng(5).integers(0, options.rows, 1000).tolist())
    searches: dict[str, tuple[Callable[[Any], object], float | None]] = {
        "BTREE, one number": (
            lambda ds: ds.to_table(["id"], filter=f"number = {next(turns)}"), 1 / 2.5,
        ),
        "BTREE, one text": (
            lambda ds: ds.to_table(["id"], filter=f"name = 'u{next(turns):08}'"), 1 / 2.5,
        ),
        "BTREE, 100 numbers in a row": (
            lambda ds: ds.to_table(
                ["id"], filter=f"number BETWEEN {(start := next(turns))} AND {start + 99}"
            ),
            None,
        ),
        "BITMAP, count": (
            lambda ds: ds.count_rows(f"kind = 'kind {next(turns) % KINDS}'"), 1 / 3,
        ),
        "BITMAP, count of all but one": (
            lambda ds: ds.count_rows(f"kind <> 'kind {next(turns) % KINDS}'"), 1 / 3,
        ),
        "BITMAP, count of five": (lambda ds: ds.count_rows(five(next(turns))), 1 / 3),
        "BITMAP, 50 rows of five": (
            lambda ds: ds.to_table(["id"], filter=five(next(turns)), limit=50), None,
        ),
    }  # fmt: skip
    for name, (search, goal) in searches.items():
        yield from warm_and_cold(name, path, search, options, goal=goal)


def five(number: int) -> str:
    """Return a condition for five values of the column with a BITMAP index."""
    kinds = ", ".join(f"'kind {(number + step) % KINDS}'" for step in range(5))
    return f"kind IN ({kinds})"


def text_rows(folder: Path, options: Namespace) -> Iterator[Comparison]:
    path = scalar_dataset(folder, options)
    for name, texts in TEXTS.items():
        turns = itertools.cycle(texts)
        search = text_search(turns, "AND" if "all" in name else "OR")
        title = f"INVERTED, {name}, top {K}"
        yield from warm_and_cold(title, path, search, options, goal=1 / 4, times=3)


def text_search(turns: Iterator[str], operator: str) -> Callable[[Any], object]:
    from lance.query import FullTextOperator, MatchQuery

    def search(dataset: Any) -> object:
        query, way = MatchQuery, FullTextOperator[operator]
        if isinstance(dataset, lance_nb.LanceDataset):
            query, way = lance_nb.MatchQuery, lance_nb.FullTextOperator[operator]
        wanted = query(next(turns), "text", operator=way)
        return dataset.to_table(["id", "_score"], full_text_query=wanted, limit=K)

    return search


def build_rows(folder: Path, options: Namespace) -> Iterator[Comparison]:
    lance = require_pylance()
    path = scalar_dataset(folder, options)
    for engine in (lance_nb, lance):  # what building imports is not counted
        engine.write_dataset(pa.table({"x": ["a"]}), str(folder / "first"), mode="overwrite")
        engine.dataset(str(folder / "first")).create_scalar_index("x", "BTREE")
    for column, kind, goal in (
        ("number", "BTREE", 1),
        ("name", "BTREE", None),
        ("kind", "BITMAP", None),
        ("text", "INVERTED", None),
    ):
        spent = []
        for engine in (lance_nb, lance):
            place = folder / "built"
            shutil.copytree(path, place)
            started = cpu_seconds()
            engine.dataset(str(place)).create_scalar_index(column, kind)
            seconds = cpu_seconds() - started
            spent.append(Timing(seconds, seconds))
            shutil.rmtree(place)
        name = f"build {kind} of {column!r} (processor time)"
        yield Comparison(name, spent[0], spent[1], goal)


def request_rows(folder: Path, options: Namespace) -> Iterator[Comparison]:
    """Search datasets on a far server: at once after opening, and when other searches were made."""
    lance = require_pylance()
    path = folder / f"far_{FAR_ROWS}"
    if not path.exists():
        data = scalar_table(FAR_ROWS)
        vectors = np.random.default_rng(6).random(FAR_ROWS * 16, np.float32)
        data = data.append_column("v", pa.FixedSizeListArray.from_arrays(pa.array(vectors), 16))
        made = lance.write_dataset(data, str(path), max_rows_per_file=-(-FAR_ROWS // 4))
        for column, kind in (("number", "BTREE"), ("kind", "BITMAP"), ("text", "INVERTED")):
            made.create_scalar_index(column, kind)
        made.create_index("v", "IVF_PQ", num_partitions=16, num_sub_vectors=4)
    numbers = itertools.cycle(np.random.default_rng(5).permutation(FAR_ROWS).tolist())
    words = itertools.cycle(f"w{number}" for number in range(300, 400))
    rng = np.random.default_rng(7)
    match = text_search(words, "OR")
    searches: dict[str, Callable[[Any], object]] = {
        "BTREE, one number": lambda ds: ds.to_table(["id"], filter=f"number = {next(numbers)}"),
        "BITMAP, count": lambda ds: ds.count_rows(f"kind = 'kind {next(numbers) % KINDS}'"),
        f"INVERTED, a word, top {K}": match,
        "IVF_PQ, 4 probes": lambda ds: ds.to_table(
            ["id"], nearest={"column": "v", "q": rng.random(16, np.float32), "k": K, "nprobes": 4}
        ),
    }
    storage = {
        "aws_access_key_id": "test", "aws_secret_access_key": "testtest",
        "aws_region": "us-east-1", "allow_http": "true",
    }  # fmt: skip
    with (
        moto_server() as endpoint,
        delaying_proxy(endpoint, DELAY_S) as proxy,
    ):
        uri = Bench(endpoint, proxy, path).shared
        storage["aws_endpoint"] = f"http://127.0.0.1:{proxy.port}"
        for name, search in searches.items():
            spent: dict[str, list[tuple[int, Timing]]] = {"cold": [], "warm": []}
            for engine in (lance_nb, lance):
                dataset = engine.dataset(uri, storage_options=storage)
                act = partial(search, dataset)
                spent["cold"].append(_requests(proxy, act))
                for _ in range(WARMED):
                    act()
                found = [_requests(proxy, act) for _ in range(options.runs)]
                spent["warm"].append(sorted(found, key=lambda one: one[0])[len(found) // 2])
            for state, ((mine, our_time), (other, their_time)) in spent.items():
                title = f"requests: {name}, {state}, {mine} against {other}"
                goal = 4 if name.startswith("BTREE") and state == "warm" else None
                if goal and mine > goal:
                    title += f" (goal: {goal})"
                yield Comparison(title, our_time, their_time, None)


def _requests(proxy: DelayingProxy, search: Callable[[], object]) -> tuple[int, Timing]:
    proxy.requests.clear()
    taken = timed(search)
    return proxy.requests.total(), taken


# --- vectors --------------------------------------------------------------------------------------


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


def vector_rows(folder: Path, options: Namespace) -> Iterator[Comparison]:
    lance = require_pylance()
    parts = list(batches(options.vectors, options.dimension))
    path = folder / "theirs"
    lance.write_dataset(pa.Table.from_batches(parts), str(path), mode="overwrite")
    sample = parts[0].column(1).flatten().to_numpy().reshape(-1, options.dimension)[:QUERIES]
    rng = np.random.default_rng(2)
    queries = sample + 0.2 * rng.normal(size=sample.shape).astype(np.float32)
    del parts
    shutil.copytree(path, folder / "ours", dirs_exist_ok=True)

    def build(engine: Any, place: Path) -> Timing:
        started = cpu_seconds()
        pieces = options.dimension // 8
        engine.dataset(str(place)).create_index("v", "IVF_PQ", num_sub_vectors=pieces)
        spent = cpu_seconds() - started
        return Timing(spent, spent)

    mine, other = build(lance_nb, folder / "ours"), build(lance, path)
    yield Comparison("build IVF_PQ (processor time)", mine, other, 1 / 3)
    shutil.rmtree(folder / "ours")

    ours = lance_nb.dataset(str(path))
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
        turns = itertools.cycle(queries)
        yield from warm_and_cold(
            f"{name}, recall {recall:.2f}",
            path,
            lambda dataset, turns=turns, settings=settings: found(dataset, next(turns), **settings),
            options,
            goal=goal,
        )
    turns = itertools.cycle(queries)
    yield compare(
        "IVF_PQ refined, against our exact search",
        lambda: found(ours, next(turns), **REFINED),
        lambda: found(ours, next(turns), use_index=False),
        goal=10,
        runs=options.runs,
    )


def found(dataset: Any, query: np.ndarray, **settings: Any) -> set[int]:
    search = {"column": "v", "q": query, "k": K, **settings}
    return set(dataset.to_table(["id", "_distance"], nearest=search)["id"].to_pylist())
