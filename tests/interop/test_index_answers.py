"""Indices that pylance built stay right through every verb of ours.

One dataset has an index of every kind. After each verb pylance answers every question twice, with
its indices and without, and both answers must be equal; no index may have got lost, and none may
cover fewer fragments than after the same verb of pylance.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from tests.support.requirements import require_pylance

pytestmark = [
    pytest.mark.interop,
    # pylance says so of calls that are compared here
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

ROWS, DIMENSION = 600, 8
WORDS = ("red", "green", "blue", "black", "white")
SCALAR = {
    "number": "BTREE",
    "word": "BITMAP",
    "labels": "LABEL_LIST",
    "text": "INVERTED",
    "zone": "ZONEMAP",
    "part": "NGRAM",
    "bloom": "BLOOMFILTER",
}
FILTERS = {
    "number": ("number = 77", "number >= 570 OR number < 5", "number IS NULL", "number = 10077"),
    "word": ("word = 'red'", "word IN ('blue', 'none')", "word IS NULL", "word = 'new'"),
    "labels": ("array_has_any(labels, [1, 4])", "array_has_all(labels, [2, 3])"),
    "zone": ("zone > 590", "zone BETWEEN 30 AND 33", "zone < 0"),
    "part": ("contains(part, 'art 59')", "contains(part, 'new')"),
    "bloom": ("bloom = 33", "bloom = 10033"),
}  # fmt: skip
KNOWN_BY = ["zone", "_rowid"]
INDICES = {*(f"{column}_index" for column in SCALAR), "vector_index"}
# With stable row ids this kind knows rows by address all the same. pylance writes it again when it
# compacts; after ours it covers less, and rows that it does not cover are scanned.
REWRITTEN_BY_PYLANCE = {"number_index"}
Verb = Callable[[Any, Any, str], Any]


def table(first: int, count: int, seed: int = 5) -> pa.Table:
    """Rows with ids from ``first`` on; every column has an index but the id."""
    ids = range(first, first + count)
    vectors = np.random.default_rng(seed + first).random(count * DIMENSION, np.float32)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "number": [None if at % 50 == 3 else at for at in ids],
            "word": [None if at % 31 == 4 else WORDS[at % 5] for at in ids],
            "labels": [[at % 5, at % 7] if at % 11 else None for at in ids],
            "text": [f"{WORDS[at % 5]} {WORDS[at % 3]} only{at % 20}" for at in ids],
            "zone": pa.array(ids, pa.int64()),
            "part": [f"part {at}" for at in ids],
            "bloom": pa.array(ids, pa.int64()),
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors), DIMENSION),
        }
    )


@pytest.fixture(scope="module", params=[False, True], ids=["addresses", "stable"])
def indexed(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the dataset with its indices, some rows that none covers, some deleted ones."""
    lance = require_pylance()
    path = tmp_path_factory.mktemp("indexed") / "t.lance"
    made = lance.write_dataset(
        table(0, ROWS), str(path), max_rows_per_file=100, enable_stable_row_ids=request.param
    )
    for column, kind in SCALAR.items():
        made.create_scalar_index(column, kind, name=f"{column}_index")
    made.create_index("vector", "IVF_PQ", name="vector_index", num_partitions=2, num_sub_vectors=4)
    made.insert(table(ROWS, 60))
    made.delete("id % 97 = 5")
    made.delete("id >= 200 AND id < 260")
    return path


# --- verbs ---------------------------------------------------------------------------------------


def insert(engine: Any, dataset: Any, uri: str) -> None:
    dataset.insert(table(2000, 40), max_rows_per_file=25)


def delete(engine: Any, dataset: Any, uri: str) -> None:
    dataset.delete("number % 7 = 0 OR word = 'white'")
    dataset.delete("id >= 100 AND id < 200")


def update(engine: Any, dataset: Any, uri: str) -> None:
    dataset.update(
        {"number": "number + 10000", "word": "'new'", "part": "'new part'", "zone": "-1",
         "labels": "[4]", "bloom": "bloom + 10000", "text": "'new words'"},
        where="id % 6 = 5",
    )  # fmt: skip


def update_other(engine: Any, dataset: Any, uri: str) -> None:
    dataset.update({"id": "id + 100000"}, where="id % 5 = 1")


def update_columns(engine: Any, dataset: Any, uri: str) -> None:
    right = pa.table({"id": [7, 150, 303, 640], "word": ["new"] * 4, "number": [10077] * 4})
    made = [one.update_columns(right, left_on="id") for one in dataset.get_fragments()]
    operation = engine.LanceOperation.Update(
        updated_fragments=[one for one, _ in made],
        fields_modified=made[0][1],
        update_mode="rewrite_columns",
    )
    engine.LanceDataset.commit(uri, operation, read_version=dataset.version)


def add(engine: Any, dataset: Any, uri: str) -> None:
    dataset.add_columns({"twice": "number * 2"})


def rename(engine: Any, dataset: Any, uri: str) -> None:
    dataset.alter_columns({"path": "id", "name": "key"})


def rename_indexed(engine: Any, dataset: Any, uri: str) -> None:
    dataset.alter_columns({"path": "bloom", "name": "blossom"})


def drop(engine: Any, dataset: Any, uri: str) -> None:
    dataset.drop_columns(["word", "id"])


def join(engine: Any, dataset: Any, uri: str) -> None:
    dataset.merge(pa.table({"id": [1, 2, 3], "joined": ["a", "b", "c"]}), "id")


def compact(engine: Any, dataset: Any, uri: str) -> None:
    dataset.optimize.compact_files(target_rows_per_fragment=300)


def compact_deletions(engine: Any, dataset: Any, uri: str) -> None:
    dataset.delete("id % 3 = 0")
    dataset.optimize.compact_files(target_rows_per_fragment=50, materialize_deletions_threshold=0)


def restore(engine: Any, dataset: Any, uri: str) -> None:
    dataset.insert(table(3000, 10))
    engine.dataset(uri, version=dataset.version - 2).restore()


def restore_first(engine: Any, dataset: Any, uri: str) -> None:
    engine.dataset(uri, version=1).restore()


def overwrite(engine: Any, dataset: Any, uri: str) -> None:
    dataset.insert(table(50, 80), mode="overwrite")


def branch(engine: Any, dataset: Any, uri: str) -> Any:
    made = dataset.create_branch("side")
    made.insert(table(4000, 20))
    made.delete("id % 5 = 0")
    return ("side", None)


def merge_insert(engine: Any, dataset: Any, uri: str) -> None:
    rows = changed(table(590, 40))
    builder = dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    builder.execute(rows)


def merge_some_columns(engine: Any, dataset: Any, uri: str) -> None:
    rows = changed(table(30, 25)).select(["id", "number", "word", "vector"])
    dataset.merge_insert("id").when_matched_update_all().execute(rows)


def changed(rows: pa.Table) -> pa.Table:
    """Give every column with an index another value."""
    new = {"word": pa.array(["new"] * len(rows)), "number": pa.array([10077] * len(rows)),
           "part": pa.array(["new part"] * len(rows)), "text": pa.array(["new words"] * len(rows)),
           "labels": pa.array([[4]] * len(rows), rows["labels"].type)}  # fmt: skip
    for name, values in new.items():
        rows = rows.set_column(rows.schema.get_field_index(name), name, values)
    return rows


def clean_up(engine: Any, dataset: Any, uri: str) -> None:
    dataset.delete("id % 4 = 1")
    dataset.optimize.compact_files(target_rows_per_fragment=300)
    dataset.cleanup_old_versions(retain_versions=1, delete_unverified=True)


# Verbs that pylance lacks.


def update_in_place(engine: Any, dataset: Any, uri: str) -> None:
    dataset.update({"number": "10077", "word": "'new'"}, where="id % 6 = 5", mode="columns")


def compact_and_defer(engine: Any, dataset: Any, uri: str) -> None:
    defer = not dataset.has_stable_row_ids  # stable ids need no remapping: both refuse it
    dataset.optimize.compact_files(target_rows_per_fragment=300, defer_index_remap=defer)
    dataset.delete("id % 4 = 1")
    dataset.optimize.compact_files(target_rows_per_fragment=1000, defer_index_remap=defer)


def branch_merge(engine: Any, dataset: Any, uri: str) -> None:
    made = dataset.create_branch("side")
    made.insert(table(4000, 20))
    made.delete("id % 5 = 0")
    made.update({"number": "10077", "word": "'new'"}, where="id % 9 = 2")
    dataset.insert(table(5000, 30))
    dataset.delete("id % 5 = 0")
    dataset.branches.merge("side", "main", key="id", on_conflict="theirs")


def pick(engine: Any, dataset: Any, uri: str) -> None:
    made = dataset.create_branch("side")
    made.insert(table(4000, 20))
    made.update({"number": "10077", "word": "'new'"}, where="id % 9 = 2 AND id < 3000")
    dataset.insert(table(5000, 30))
    dataset.cherry_pick(("side", made.version), key="id")


def revert(engine: Any, dataset: Any, uri: str) -> None:
    dataset.update({"number": "10077", "word": "'new'"}, where="id % 9 = 2")
    version = dataset.version
    dataset.insert(table(5000, 30))
    dataset.revert(version, key="id")


def several(engine: Any, dataset: Any, uri: str) -> None:
    dataset.delete("id % 4 = 1")
    dataset.insert(table(5000, 120))
    dataset.optimize.compact_files(target_rows_per_fragment=1000)
    dataset.update({"number": "10077"}, where="id % 10 = 2")
    dataset.insert(table(6000, 30))
    dataset.optimize.compact_files(target_rows_per_fragment=1000)


VERBS: dict[str, Verb] = {
    one.__name__: one
    for one in (
        insert, delete, update, update_other, update_columns, add, rename, rename_indexed,
        drop, join, compact, compact_deletions, restore, restore_first, overwrite,
        branch, merge_insert, merge_some_columns, clean_up, update_in_place, compact_and_defer,
        branch_merge, pick, revert, several,
    )
}  # fmt: skip


OURS_ALONE = {"update_in_place", "branch_merge", "pick", "revert"}


@pytest.mark.parametrize("verb", VERBS)
def test_answers_with_and_without_indices_are_equal(
    indexed: Path, tmp_path: Path, verb: str
) -> None:
    lance = require_pylance()
    found = played(lance_nb, verb, indexed, tmp_path / "ours.lance")
    check(found, verb)
    ours = covered(found)
    if verb in OURS_ALONE:
        assert set(ours) == INDICES
        return
    theirs = covered(played(lance, verb, indexed, tmp_path / "theirs.lance"))
    assert set(ours) == set(theirs)
    less = {name for name, count in theirs.items() if ours[name] < count}
    assert less <= (REWRITTEN_BY_PYLANCE if found.has_stable_row_ids else set())
    if verb in ("update", "compact", "several"):
        found.optimize.optimize_indices()
        check(found, verb)


@pytest.mark.parametrize("engine", [lance_nb, "pylance"], ids=["ours", "pylance"])
def test_a_column_with_an_index_is_not_cast(indexed: Path, tmp_path: Path, engine: Any) -> None:
    lance = require_pylance()
    place = tmp_path / "t.lance"
    shutil.copytree(indexed, place)
    dataset = (lance if engine == "pylance" else engine).dataset(str(place))
    with pytest.raises(OSError, match=r"(?s)bloom.*drop_index\(\)"):
        dataset.alter_columns({"path": "bloom", "data_type": pa.int32()})
    dataset.drop_index("bloom_index")
    dataset.alter_columns({"path": "bloom", "data_type": pa.int32()})
    assert lance.dataset(str(place)).schema.field("bloom").type == pa.int32()


def played(engine: Any, verb: str, source: Path, place: Path) -> Any:
    """Do a verb on a copy of the dataset; return the copy as pylance opens it."""
    shutil.copytree(source, place)
    reference = VERBS[verb](engine, engine.dataset(str(place)), str(place))
    opened = require_pylance().dataset(str(place))
    return opened if reference is None else opened.checkout_version(reference)


def covered(dataset: Any) -> dict[str, int]:
    """Count the rows that the indices cover."""
    return {
        one.name: dataset.stats.index_stats(one.name)["num_indexed_rows"]
        for one in dataset.describe_indices()
        if one.name in INDICES
    }


# --- questions -----------------------------------------------------------------------------------


def check(dataset: Any, verb: str) -> None:
    """Ask everything twice."""
    dataset.validate()
    names = set(dataset.schema.names)
    for text in filters(names):
        plain = ids(dataset.to_table(KNOWN_BY, filter=text, use_scalar_index=False))
        quick = ids(dataset.to_table(KNOWN_BY, filter=text, use_scalar_index=True))
        assert quick == plain, (verb, text)
    for word in ("red", "only7", "new", "white only4"):
        assert searched(dataset, word) == containing(dataset, word), (verb, word)
    for query in (np.full(DIMENSION, 0.5, np.float32), np.zeros(DIMENSION, np.float32)):
        exact = nearest(dataset, query, use_index=False)
        assert nearest(dataset, query, nprobes=10, refine_factor=100) == exact, verb


def filters(names: set[str]) -> Iterator[str]:
    for column, texts in FILTERS.items():
        yield from texts if column in names else ()


def ids(found: pa.Table) -> list[tuple[int, int]]:
    return sorted(zip(found["zone"].to_pylist(), found["_rowid"].to_pylist(), strict=True))


def searched(dataset: Any, words: str) -> list[tuple[int, int]]:
    found = dataset.to_table(
        columns=KNOWN_BY, full_text_query={"query": words, "columns": ["text"]}
    )
    return ids(found)


def containing(dataset: Any, words: str) -> list[tuple[int, int]]:
    """Find the rows with any of some words by looking at all of them."""
    every = dataset.to_table(columns=["zone", "_rowid", "text"])
    wanted = {*words.split()}
    has = [not wanted.isdisjoint((one or "").split()) for one in every["text"].to_pylist()]
    return ids(every.filter(pa.array(has, pa.bool_())))


def nearest(dataset: Any, query: np.ndarray, **options: Any) -> list[tuple[int, int]]:
    found = dataset.to_table(
        columns=KNOWN_BY, nearest={"column": "vector", "q": query, "k": 20, **options}
    )
    return ids(found)
