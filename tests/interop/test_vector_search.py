"""Nearest rows by an index: as pylance finds them, and after any history the right ones.

Two oracles. On a fresh index, pylance with the same number of partitions: rows and distances. After
events, our exact search: with all partitions and a refinement of all rows, the index must find the
same rows. ``LANCE_NB_TEST_SCALE`` multiplies the number of histories.
"""

from __future__ import annotations

import random
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.indices.vectors.search import vector_search
from tests.interop.matrix import SCALE
from tests.support.requirements import require_pylance

pytestmark = [
    pytest.mark.interop,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # pylance's own
]

HISTORIES = int(5 * SCALE)
DIMENSION = 16
PARTITIONS = 6
KINDS: dict[str, dict[str, Any]] = {
    "IVF_FLAT": {},
    "IVF_PQ": {"num_sub_vectors": 4},
    "IVF_PQ of 4 bits": {"num_sub_vectors": 8, "num_bits": 4},
    "IVF_SQ": {},
    "IVF_HNSW_SQ": {},
    "IVF_HNSW_PQ": {"num_sub_vectors": 4},
    "IVF_HNSW_FLAT": {},
    "IVF_RQ": {},
}
METRICS = ("l2", "cosine", "dot")
FINITE = {"distance_range": (-1e30, 1e30)}  # rows with infinite vectors are in no partition


def vectors(count: int, rng: np.random.Generator, dtype: Any = np.float32) -> np.ndarray:
    """Vectors in clusters, as real embeddings are."""
    centers = np.random.default_rng(1).normal(size=(12, DIMENSION))
    near = 0.3 * rng.normal(size=(count, DIMENSION))
    return (centers[rng.integers(0, len(centers), count)] + near).astype(dtype)


def column(values: np.ndarray, missing: np.ndarray | None = None) -> pa.Array:
    flat = pa.array(values.reshape(-1))
    mask = None if missing is None else pa.array(missing)
    return pa.FixedSizeListArray.from_arrays(flat, values.shape[1], mask=mask)


def table(first: int, count: int, seed: int) -> pa.Table:
    """Rows with ids from ``first`` on; some vectors are null, NaN, infinite, zero or the same."""
    rng = np.random.default_rng(seed)
    values = vectors(count, rng)
    values[::17] = values[0]
    values[5::41, 3] = np.nan
    values[7::53, 0] = np.inf
    values[9::61] = 0
    return pa.table(
        {
            "id": pa.array(np.arange(first, first + count)),
            "n": pa.array(rng.integers(0, 20, count), pa.int32()),
            "v": column(values, np.arange(count) % 29 == 3),
        }
    )


def indexed(path: Path, rows: pa.Table, kind: str, metric: str, **options: Any) -> Any:
    lance = require_pylance()
    made = lance.write_dataset(rows, str(path), **options)
    made.create_index(
        "v",
        kind.split(maxsplit=1)[0],
        metric=metric,
        num_partitions=PARTITIONS,
        **KINDS.get(kind, {}),
    )
    return made


def nearest(dataset: Any, query: Any, /, k: int = 10, **options: Any) -> pa.Table:
    scan = {name: options.pop(name) for name in ("filter", "prefilter") if name in options}
    search = {"column": "v", "q": query, "k": k, **options}
    return dataset.to_table(["id", "_distance"], nearest=search, **scan)


def assert_same(found: pa.Table, wanted: pa.Table, where: object) -> None:
    """Compare distances, and the rows that are nearer than the last ones."""
    assert found.num_rows == wanted.num_rows, where
    ours, theirs = (one["_distance"].to_numpy() for one in (found, wanted))
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=3e-5, err_msg=str(where))
    finite = ours[np.isfinite(ours)]
    last = float(finite[-1]) if finite.size else 0.0
    sure = ours < last - 1e-4 * max(abs(last), 1)
    mine = set(found["id"].to_numpy()[sure].tolist())
    assert mine <= set(wanted["id"].to_pylist()), where


@pytest.mark.parametrize(
    ("kind", "metric"),
    [(one, metric) for one in KINDS for metric in METRICS if metric == "l2" or "HNSW" not in one],
)
def test_as_pylance_finds_them(tmp_path: Path, kind: str, metric: str) -> None:
    rows = table(0, 1500, 3)
    theirs = indexed(tmp_path / "d.lance", rows, kind, metric, max_rows_per_file=600)
    ours = lance_nb.dataset(theirs.uri)
    rng = np.random.default_rng(5)
    for query in vectors(2, rng):
        for probes in (1, 3, PARTITIONS):
            where = (kind, metric, probes)
            refined = {"nprobes": probes, "refine_factor": 6}
            is_graph = "HNSW" in kind  # a walk through a graph misses rows
            if kind != "IVF_RQ" and not is_graph:
                found = nearest(ours, query, nprobes=probes)
                assert_same(found, nearest(theirs, query, nprobes=probes), where)
            if is_graph:
                found, wanted = (
                    nearest(one, query, nprobes=probes)["_distance"][-1].as_py()
                    for one in (ours, theirs)
                )
                assert found <= wanted + 1e-4
            elif kind != "IVF_RQ" or probes == PARTITIONS:
                assert_same(
                    nearest(ours, query, **refined), nearest(theirs, query, **refined), where
                )
        exact = nearest(ours, query, use_index=False, metric=metric, **FINITE)
        everything = {"nprobes": PARTITIONS, "refine_factor": 200}
        assert_same(nearest(ours, query, **everything), exact, (kind, metric))


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_PQ", "IVF_SQ"])
def test_other_numbers(tmp_path: Path, kind: str, dtype: Any) -> None:
    rng = np.random.default_rng(2)
    rows = pa.table({"id": np.arange(900), "v": column(vectors(900, rng, dtype))})
    theirs = indexed(tmp_path / "d.lance", rows, kind, "l2")
    ours = lance_nb.dataset(theirs.uri)
    for query in vectors(3, rng, dtype):
        found, wanted = nearest(ours, query, nprobes=3), nearest(theirs, query, nprobes=3)
        near, other = found["_distance"].to_numpy(), wanted["_distance"].to_numpy()
        np.testing.assert_allclose(near, other, rtol=4e-3 if dtype == np.float16 else 1e-4)


@pytest.mark.parametrize("kind", ["IVF_FLAT", "IVF_HNSW_FLAT"])
def test_bits(tmp_path: Path, kind: str) -> None:
    rng = np.random.default_rng(2)
    values = rng.integers(0, 256, (900, DIMENSION)).astype(np.uint8)
    theirs = indexed(
        tmp_path / "d.lance", pa.table({"id": np.arange(900), "v": column(values)}), kind, "hamming"
    )
    ours = lance_nb.dataset(theirs.uri)
    for query in values[:3]:
        found = nearest(ours, query, nprobes=3)["_distance"].to_pylist()
        wanted = nearest(theirs, query, nprobes=3)["_distance"].to_pylist()
        # A walk through a graph misses rows.
        assert found == wanted if kind == "IVF_FLAT" else np.less_equal(found, wanted).all()
        everything = nearest(ours, query, nprobes=PARTITIONS)["_distance"].to_pylist()
        assert everything == nearest(ours, query, use_index=False)["_distance"].to_pylist()


def test_arguments_as_pylance_takes_them(tmp_path: Path) -> None:
    theirs = indexed(tmp_path / "d.lance", table(0, 1500, 3), "IVF_SQ", "l2")
    theirs.insert(table(5000, 200, 9))
    ours = lance_nb.dataset(theirs.uri)
    query = vectors(1, np.random.default_rng(5))[0]
    for options in (
        {"distance_range": (1.0, 3.0)}, {"distance_range": (None, 2.0), "nprobes": 2},
        {"refine_factor": 3, "distance_range": (1.0, None)}, {"nprobes": 100},
        {"filter": "n < 3", "prefilter": True}, {"metric": "l2"}, {"ef": 50}, {"k": 1}, {"k": 400},
        {"filter": "n < 3", "prefilter": True, "nprobes": 2}, {"filter": "n < 10"},
        {"search_effort": 0.0}, {"search_effort": 1.0}, {"minimum_nprobes": 2}, {"k": 2000},
        {"maximum_nprobes": 1}, {"metric": "cosine"}, {"use_index": False},
    ):  # fmt: skip
        assert_same(nearest(ours, query, **options), nearest(theirs, query, **options), options)
    several = vectors(3, np.random.default_rng(6))
    search = {"column": "v", "q": several, "k": 5, "nprobes": 3}
    found, wanted = (one.to_table(["id"], nearest=search) for one in (ours, theirs))
    assert found.schema == wanted.schema
    assert found["query_index"].to_pylist() == wanted["query_index"].to_pylist()
    np.testing.assert_allclose(found["_distance"], wanted["_distance"], rtol=1e-4)
    search = {"column": "v", "q": query, "k": 30, "nprobes": PARTITIONS}
    found, wanted = (
        one.to_table(["id"], nearest=search, fast_search=True)["id"].to_pylist()
        for one in (ours, theirs)
    )
    assert set(found) == set(wanted)
    assert max(found) < 5000
    ours.drop_index("v_idx")
    theirs = require_pylance().dataset(theirs.uri)
    for one in (ours, theirs):
        assert one.to_table(["id"], nearest=search, fast_search=True).num_rows == 0


def test_never_more_than_k_rows(tmp_path: Path) -> None:
    """A prefilter that leaves fewer than k x refine_factor rows compares all of them exactly."""
    theirs = indexed(tmp_path / "d.lance", table(0, 1500, 3), "IVF_PQ", "l2", max_rows_per_file=500)
    ours = lance_nb.dataset(theirs.uri)
    queries = vectors(4, np.random.default_rng(5))
    one_fragment = [ours.get_fragments()[1]]
    for search in ({"q": queries[0]}, {"q": queries}):
        refined = {"column": "v", "k": 3, "refine_factor": 50, **search}
        for scan in (
            {"filter": "id < 133"}, {"filter": "id < 133", "limit": 2}, {"filter": "id < 2"},
            {"filter": "id < 133", "limit": 5, "offset": 1}, {"filter": "id < 150"},
        ):  # fmt: skip
            options = {"nearest": refined, "prefilter": True, **scan}
            counts = [dataset.scanner(**options).to_table().num_rows for dataset in (theirs, ours)]
            assert counts[0] == counts[1], (scan, counts)
        count = ours.scanner(filter="id < 133", prefilter=True, nearest=refined).count_rows()
        assert count == 3 * (queries.shape[0] if search["q"] is queries else 1)
        refined["refine_factor"] = 500
        assert ours.to_table(nearest=refined, fragments=one_fragment).num_rows == count


def test_the_limit_is_k_where_k_is_not_given(tmp_path: Path) -> None:
    theirs = indexed(tmp_path / "d.lance", table(0, 400, 3), "IVF_FLAT", "l2")
    ours = lance_nb.dataset(theirs.uri)
    queries = vectors(4, np.random.default_rng(5))
    for query in (queries[0], queries):
        for k in ({}, {"k": None}, {"k": 6}):
            for scan in ({}, {"limit": 17}, {"limit": 4}, {"limit": 17, "offset": 3}):
                for use_index in (True, False):
                    search = {"column": "v", "q": query, "use_index": use_index, **k}
                    found, expected = (
                        dataset.to_table(["id"], nearest=search, **scan)
                        for dataset in (ours, theirs)
                    )
                    assert found.num_rows == expected.num_rows, (search, scan)
    assert ours.to_table(nearest={"column": "v", "q": queries[0]}, limit=0).num_rows == 0


@pytest.mark.parametrize(
    "options",
    [
        {"nprobes": 0}, {"minimum_nprobes": 3, "maximum_nprobes": 2}, {"refine_factor": 0},
        {"ef": 0}, {"search_effort": 2.0}, {"approx_mode": "x"}, {"query_parallelism": -2},
        {"minimum_nprobes": 0}, {"k": 0}, {"metric": "hamming"},
    ],
)  # fmt: skip
def test_refused_as_pylance_does(tmp_path: Path, options: dict[str, Any]) -> None:
    theirs = require_pylance().write_dataset(table(0, 100, 3), str(tmp_path / "d.lance"))
    ours = lance_nb.dataset(theirs.uri)
    query = [0.0] * DIMENSION
    with pytest.raises(ValueError, match=r"\w"):
        nearest(theirs, query, **options)
    with pytest.raises(ValueError, match=r"nearest"):
        nearest(ours, query, **options)


# --- histories -----------------------------------------------------------------------------------


def append(ds: Any, chance: random.Random) -> None:
    ds.insert(table(10_000 + ds.version * 1000, chance.randrange(1, 120), chance.randrange(99)))


def delete(ds: Any, chance: random.Random) -> None:
    ds.delete(f"id % {chance.randrange(3, 19)} = 1")


def delete_fragment(ds: Any, chance: random.Random) -> None:
    ids = ds.get_fragments()[0].to_table(["id"]).column("id").to_pylist()
    ds.delete(f"id IN ({', '.join(map(str, ids)) or 'NULL'})")


def update(ds: Any, chance: random.Random) -> None:
    ds.update({"n": "n + 1"}, where=f"id % {chance.randrange(5, 17)} = 2")


def upsert(ds: Any, chance: random.Random) -> None:
    """Give rows new vectors: what the index has of them is out of date."""
    ids = ds.to_table(["id"]).column("id").to_pylist()
    chosen = [*chance.sample(ids, min(len(ids), 60)), 90_000]
    rows = table(0, len(chosen), chance.randrange(99))
    rows = rows.set_column(0, "id", pa.array(chosen, pa.int64()))
    ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows)


def update_in_place(ds: Any, chance: random.Random) -> None:
    engine = lance_nb if isinstance(ds, lance_nb.LanceDataset) else require_pylance()
    ids = ds.to_table(["id"]).column("id").to_pylist()
    chosen = chance.sample(ids, min(len(ids), 40))
    new = vectors(len(chosen), np.random.default_rng(chance.randrange(99)))
    right = pa.table({"id": chosen, "v": column(new)})
    made = [one.update_columns(right, left_on="id") for one in ds.get_fragments()]
    operation = engine.LanceOperation.Update(
        updated_fragments=[one for one, _ in made],
        fields_modified=made[0][1],
        update_mode="rewrite_columns",
    )
    engine.LanceDataset.commit(ds.uri, operation, read_version=ds.version)


def compact(ds: Any, chance: random.Random) -> None:
    ds.optimize.compact_files(target_rows_per_fragment=chance.choice([250, 10_000]))


def compact_deferred(ds: Any, chance: random.Random) -> None:
    ds.optimize.compact_files(target_rows_per_fragment=10_000, defer_index_remap=True)


def index_rest(ds: Any, chance: random.Random) -> None:
    ds.optimize.optimize_indices(num_indices_to_merge=chance.choice([0, 1]))


EVENTS: tuple[Callable[[Any, random.Random], None], ...] = (
    append, delete, delete_fragment, update, upsert, update_in_place, compact, compact_deferred,
    index_rest,
)  # fmt: skip


@pytest.mark.parametrize("history", range(HISTORIES))
def test_histories(tmp_path: Path, history: int) -> None:
    lance = require_pylance()
    chance = random.Random(history)
    stable, metric = bool(history % 2), METRICS[history // 2 % 3]
    kind = ("IVF_FLAT", "IVF_PQ", "IVF_SQ", "IVF_HNSW_SQ", "IVF_RQ")[history % 5]
    extended = EVENTS if history % 5 < 3 else EVENTS[:-1]  # we extend what we build
    path = tmp_path / "d.lance"
    indexed(
        path, table(0, 700, history), kind, metric,
        max_rows_per_file=200, enable_stable_row_ids=stable,
    )  # fmt: skip
    story: list[str] = [f"{kind} {metric} stable={stable}"]
    for _ in range(4):
        event, engine = chance.choice(extended), chance.choice([lance, lance_nb])
        if stable and event is compact_deferred:  # both refuse it
            continue
        story.append(f"{event.__name__} by {engine.__name__}")
        event(engine.dataset(str(path)), chance)
        ours = lance_nb.dataset(str(path))
        assert_index_finds_all(ours, metric, chance, story)


def assert_index_finds_all(ours: Any, metric: str, chance: random.Random, story: list[str]) -> None:
    rng = np.random.default_rng(chance.randrange(1 << 32))
    for query in vectors(2, rng):
        for options in ({}, {"filter": "n < 9", "prefilter": True}, {"filter": "n < 9"}):
            plain = nearest(ours, query, use_index=False, metric=metric, **options, **FINITE)
            everything = {"nprobes": 1000, "refine_factor": 1000}
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                found = nearest(ours, query, **everything, **options, **FINITE, metric=metric)
            assert_same(found, plain, (story, options))
            quick = nearest(ours, query, metric=metric, **options, **FINITE)
            if "filter" not in options or "prefilter" in options:
                assert quick.num_rows == plain.num_rows, (story, options)
                assert set(quick["id"].to_pylist()) <= set(ours.to_table(["id"])["id"].to_pylist())


def test_damage_is_a_warning_and_an_exact_search(tmp_path: Path) -> None:
    """Whatever bytes change: live rows, or a warning and the exact answer; never another error."""
    rows = table(0, 400, 4)
    query = vectors(1, np.random.default_rng(5))[0]
    alive = set(rows["id"].to_pylist())
    warned = 0
    for number, kind in enumerate(("IVF_PQ", "IVF_SQ", "IVF_FLAT", "IVF_RQ")):
        made = indexed(tmp_path / f"{number}.lance", rows, kind, "l2")
        folder = next(Path(made.uri.removeprefix("file://"), "_indices").iterdir())
        exact = nearest(lance_nb.dataset(made.uri), query, use_index=False)
        chance = random.Random(number)
        print("seed", number)
        for name in ("index.idx", "auxiliary.idx"):
            sound = (folder / name).read_bytes()
            for _ in range(int(15 * SCALE)):
                damaged = bytearray(sound)
                if chance.random() < 0.3:
                    del damaged[chance.randrange(len(damaged)) :]
                else:
                    for _ in range(chance.randrange(1, 4)):
                        # Mostly the end: metadata and footer.
                        place = -1 - int(len(damaged) * chance.random() ** 4)
                        damaged[place] = chance.randrange(256)
                (folder / name).unlink()
                (folder / name).write_bytes(damaged)
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    found = nearest(lance_nb.dataset(made.uri), query, nprobes=3)
                assert set(found["id"].to_pylist()) <= alive
                if caught:
                    warned += 1
                    assert found.equals(exact)
            (folder / name).write_bytes(sound)
    assert warned > 5


def test_a_copy_without_its_files_is_searched_exactly(tmp_path: Path) -> None:
    made = indexed(tmp_path / "d.lance", table(0, 400, 4), "IVF_PQ", "l2")
    ours = lance_nb.dataset(made.uri)
    query = vectors(1, np.random.default_rng(5))[0]
    assert vector_search(ours._snapshot) is not None
    shutil.rmtree(tmp_path / "d.lance" / "_indices")
    exact = nearest(ours, query, use_index=False)
    with pytest.warns(UserWarning, match="index .* cannot be used"):
        assert nearest(ours, query).equals(exact)
