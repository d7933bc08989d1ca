"""Deletes, updates and upserts that an index answers change the rows that a scan would find."""

from __future__ import annotations

import os
import random
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset.dataset import LanceDataset
from lance_nb.indices import search as index_search
from lance_nb.writing import upsert_join

NUM_ROWS = 240
SCALE = float(os.environ.get("LANCE_NB_TEST_SCALE", "1"))
INDICES = (("id", "BTREE"), ("word", "BITMAP"), ("number", "ZONEMAP"), ("tags", "LABEL_LIST"))


def rows(first: int, count: int) -> pa.Table:
    ids = range(first, first + count)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "word": pa.array([None if at % 11 == 0 else f"w{at % 30}" for at in ids], pa.string()),
            "number": pa.array([None if at % 13 == 0 else at % 50 for at in ids], pa.float64()),
            "tags": pa.array(
                [None if at % 7 == 0 else [at % 5, at % 9] for at in ids], pa.list_(pa.int64())
            ),
        }
    )


def condition(rng: random.Random) -> str:
    parts = [
        f"id = {rng.randrange(300)}",
        f"id IN ({', '.join(str(rng.randrange(300)) for _ in range(4))})",
        f"id BETWEEN {(low := rng.randrange(250))} AND {low + 12}",
        f"word = 'w{rng.randrange(30)}'",
        "word IS NULL",
        f"number < {rng.randrange(4)}",
        f"array_has(tags, {rng.randrange(9)})",
        f"NOT (word = 'w{rng.randrange(30)}') AND id < {rng.randrange(60)}",
    ]
    chosen = rng.choice(parts)
    return (
        chosen
        if rng.random() < 0.6
        else f"{chosen} {rng.choice(['AND', 'OR'])} {rng.choice(parts)}"
    )


def change(rng: random.Random) -> tuple[str, Any]:
    """Return a kind of change and a function that does it, the same for both datasets."""
    where = condition(rng)
    first, count = rng.randrange(300), rng.randrange(1, 30)
    on = rng.choice([["id"], ["id", "word"], ["word"]])
    kind = rng.choice(["delete", "update", "upsert", "insert new", "append", "compact", "optimize"])
    source = rows(first, count)
    source = source.set_column(2, "number", pa.array([float(one) for one in range(count)]))

    def apply(ds: LanceDataset) -> object:
        if kind == "delete":
            return ds.delete(where)["num_deleted_rows"]
        if kind == "update":
            return ds.update({"number": "number + 100", "word": "'x'"}, where)
        if kind in ("upsert", "insert new"):
            merge = ds.merge_insert(["id"] if kind == "upsert" else on)
            if kind == "upsert":
                merge = merge.when_matched_update_all()
            return merge.when_not_matched_insert_all().execute(source)
        if kind == "append":
            ds.insert(source)
        elif kind == "compact":
            ds.optimize.compact_files(target_rows_per_fragment=200)
        elif ds.has_index:
            ds.optimize.optimize_indices(num_indices_to_merge=first % 3)
        return None

    return kind, apply


@pytest.mark.parametrize("seed", range(int(8 * SCALE)))
def test_an_index_changes_no_result(seed: int, tmp_path: Any, monkeypatch: Any) -> None:
    rng = random.Random(2200 + seed)
    used = []
    answered = index_search.ScalarSearch.answer

    def counted(self: Any, asked: Any) -> Any:
        answer = answered(self, asked)
        used.append(answer is not None)
        return answer

    monkeypatch.setattr(index_search.ScalarSearch, "answer", counted)
    pair = []
    for name in ("with", "without"):
        made = lance_nb.write_dataset(
            rows(0, NUM_ROWS), f"memory://changes/{seed}/{name}", max_rows_per_file=70,
            enable_stable_row_ids=seed % 2 == 1,
        )  # fmt: skip
        for column, kind in INDICES if name == "with" else ():
            made.create_scalar_index(column, kind)
        pair.append(made)
    for ds in pair:
        assert ds.delete("id = 7")["num_deleted_rows"] == 1
    assert any(used), 2200 + seed
    is_ordered = True
    for step in range(7):
        kind, apply = change(rng)
        with_index, without = (apply(ds) for ds in pair)
        assert with_index == without, (2200 + seed, step)
        is_ordered &= kind != "compact"  # fragments with and without an index stay apart
        found, wanted = (ds.scanner(use_scalar_index=False).to_table().to_pylist() for ds in pair)
        if not is_ordered:
            found, wanted = sorted(map(str, found)), sorted(map(str, wanted))
        assert found == wanted, (2200 + seed, step)


def test_an_upsert_reads_the_keys_that_an_index_names(monkeypatch: Any) -> None:
    ds = lance_nb.write_dataset(rows(0, NUM_ROWS), "memory://changes/keys", max_rows_per_file=70)
    ds.create_scalar_index("id", "BTREE")
    ds.insert(rows(500, 20))
    read = []
    select = upsert_join.select_rows

    def counted(*arguments: Any) -> Any:
        for part in select(*arguments):
            read.append(part.num_rows)
            yield part

    monkeypatch.setattr(upsert_join, "select_rows", counted)
    done = []
    merge = ds.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    found = merge.execute(
        pa.concat_tables([rows(5, 3), rows(510, 2), rows(900, 2)]),
        progress=lambda *one: done.append(one),
    )
    assert found["num_updated_rows"] == 5
    assert found["num_inserted_rows"] == 2
    assert sum(read) == 5
