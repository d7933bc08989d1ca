"""Scans with indices: which rows they answer, what they scan, and what damage does."""

from __future__ import annotations

import warnings
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb.indices import key_sets, scalar_search
from lance_nb.indices import search as searching
from lance_nb.storage.registry import open_store
from lance_nb.table.predicate import compile_filter

ROWS = 400


@pytest.fixture(params=[False, True], ids=["addresses", "stable"])
def indexed(request):
    """Four fragments with a B-tree on ``n`` (with nulls), and one that it does not cover."""
    ids = np.arange(ROWS)
    table = pa.table(
        {
            "id": pa.array(ids),
            "n": pa.array(ids % 50, pa.int32(), mask=ids % 40 == 3),
            "word": [f"w{one % 7}" for one in ids],
        }
    )
    uri = f"memory://indexed-{uuid4().hex}/d.lance"
    made = lance_nb.write_dataset(
        table, uri, max_rows_per_file=100, enable_stable_row_ids=request.param
    )
    made.create_scalar_index("n", "BTREE")
    made.insert(table.slice(0, 60))
    return made


def answer(dataset, text):
    return scalar_search(dataset._snapshot).answer(compile_filter(text, dataset.schema))


def both(dataset, text):
    """Return the rows with and without indices."""
    options = {"filter": text, "with_row_id": True, "with_row_address": True}
    return dataset.to_table(**options), dataset.to_table(**options, use_scalar_index=False)


FILTERS = [
    "n = 7", "n IN (1, 2, 900)", "n BETWEEN 3 AND 5", "n >= 3 AND n < 5", "n IS NULL", "n < 0",
    "NOT (n < 48)", "n IS NOT NULL", "n = 7 OR n > 48", "n = 7 AND word = 'w0'", "n <> 7",
    "n NOT IN (1, NULL)", "n = 7 OR word = 'w0'", "n < 10 AND NOT (n = 3)",
]  # fmt: skip


@pytest.mark.parametrize("text", FILTERS)
def test_the_rows_are_those_of_a_scan(indexed, text):
    indexed.delete("id % 11 = 4")
    indexed.update({"n": "n + 1"}, where="id % 13 = 5")
    quick, plain = both(indexed, text)

    assert quick.equals(plain)
    assert plain.num_rows or text in ("n < 0", "n NOT IN (1, NULL)")
    assert indexed.count_rows(text) == plain.num_rows
    batches = indexed.scanner(filter=text, batch_size=7).to_batches()
    assert sum(one.num_rows for one in batches) == plain.num_rows


def test_rows_outside_of_the_fragments_of_a_segment_do_not_count(indexed):
    before = answer(indexed, "n = 7")
    indexed.update({"n": "n + 1"}, where="n = 7")
    after = answer(indexed, "n = 7")

    assert before.rows.size == 8
    assert after.rows.size == 0
    assert indexed.count_rows("n = 7") == 0


def test_what_indices_say_is_exact_or_checked(indexed):
    assert answer(indexed, "n = 7").is_exact
    assert not answer(indexed, "n = 7 AND word = 'w0'").is_exact
    assert answer(indexed, "n = 7 OR word = 'w0'") is None
    assert answer(indexed, "word = 'w0'") is None
    assert answer(indexed, "n + 1 = 8") is None
    assert answer(indexed, "n = 7").covered.tolist() == [0, 1, 2, 3]


def test_a_scan_of_some_fragments_finds_their_rows_only(indexed):
    fragments = indexed.get_fragments()
    chosen = [fragments[4], fragments[1]]
    options = {"filter": "n = 7", "fragments": chosen}
    quick = indexed.scanner(**options)

    assert quick.to_table().equals(indexed.scanner(**options, use_scalar_index=False).to_table())
    assert quick.count_rows() == 4
    assert fragments[1].to_table(filter="n = 7")["id"].to_pylist() == [107, 157]


def test_order_limit_and_deleted_rows_with_an_index(indexed):
    for options in (
        {"order_by": ["word"], "limit": 5}, {"limit": 3, "offset": 6}, {"columns": ["_rowoffset"]},
        {"columns": {"twice": "n * 2"}},
    ):  # fmt: skip
        quick = indexed.scanner(filter="n = 7", **options).to_table()
        plain = indexed.scanner(filter="n = 7", **options, use_scalar_index=False).to_table()
        assert quick.equals(plain), options
    indexed.delete("id = 107")
    every = {"filter": "n = 7", "include_deleted_rows": True, "with_row_id": True}
    assert indexed.scanner(**every).to_table().num_rows == 10


def test_a_filter_that_most_rows_pass_is_scanned(indexed, monkeypatch):
    monkeypatch.setattr(searching, "ROWS_ALWAYS", 10)

    assert answer(indexed, "n >= 0") is None
    assert "a scan is cheaper" in indexed.scanner(filter="n >= 0").explain_plan()


def test_many_small_fragments_are_scanned_together():
    table = pa.table({"n": pa.array(range(200))})
    uri = f"memory://small-{uuid4().hex}/d.lance"
    made = lance_nb.write_dataset(table, uri, max_rows_per_file=5)
    made.create_scalar_index("n", "BTREE")
    quick, plain = both(made, "n % 1 = 0 AND n >= 0 AND n < 190")

    assert answer(made, "n >= 0 AND n < 190").rows.size == 190
    assert quick.equals(plain)


def test_the_plan_names_the_index(indexed):
    assert indexed.scanner(["id"], filter="n = 7").explain_plan().splitlines()[1:4] == [
        "  filter: n = 7",
        "  index: 'n_idx' (BTree) of column 'n', 4 of 5 fragments covered, the others are scanned",
        "  decoded first, for rows that no index decides: n",
    ]
    lines = indexed.scanner(["id"], filter="n = 7").analyze_plan().splitlines()
    assert lines[-2:] == ["  index candidates: 8, each passes", "  rows: 10"]
    lines = indexed.scanner(["id"], filter="n = 7 AND word = 'w0'").analyze_plan().splitlines()
    assert lines[-2].endswith("8, the filter is computed for each")
    without = indexed.scanner(["id"], filter="n = 7", use_scalar_index=False).explain_plan()
    assert "index" not in without


@pytest.mark.parametrize("name", ["page_lookup.lance", "page_data.lance"])
@pytest.mark.parametrize("damage", ["gone", "short", "zeros", "swapped"])
def test_a_damaged_index_gives_a_warning_and_a_scan(indexed, name, damage):
    expected = indexed.to_table(filter="n = 7", use_scalar_index=False)
    store = open_store(indexed.uri)
    segment = indexed.list_indices()[0]["uuid"]
    path = f"_indices/{segment}/{name}"
    data = bytes(store.read(path))
    store.delete(path)
    if damage == "short":
        store.write(path, data[: len(data) // 2])
    elif damage == "zeros":
        store.write(path, bytes(len(data)))
    elif damage == "swapped":
        other = {"page_lookup.lance": "page_data.lance"}.get(name, "page_lookup.lance")
        store.write(path, bytes(store.read(f"_indices/{segment}/{other}")))
    opened = lance_nb.dataset(indexed.uri)
    with pytest.warns(UserWarning, match="rows are scanned instead"):
        found = opened.to_table(filter="n = 7")

    assert found.equals(expected)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert opened.to_table(filter="n = 7", use_scalar_index=False).equals(expected)


def test_the_cheapest_of_several_indices_is_used(indexed):
    indexed.create_scalar_index("n", "ZONEMAP", name="zones")
    plan = indexed.scanner(filter="n = 7").explain_plan()
    assert "'n_idx' (BTree) of column 'n', 4 of 5 fragments covered" in plan
    assert "cheaper than 'zones' (ZoneMap): about" in plan
    indexed.create_scalar_index("n", "BITMAP", name="sets")
    answered = answer(indexed, "n = 7")
    assert answered.words == ("'sets' (Bitmap) of column 'n'",)
    assert answered.covered.size == 5
    quick, plain = both(indexed, "n = 7 OR n IS NULL")
    assert quick.equals(plain)


def test_counts_need_no_rows(indexed, monkeypatch):
    indexed.create_scalar_index("word", "BITMAP")
    indexed.create_scalar_index("n", "BITMAP", name="sets")  # with nulls
    indexed.insert(indexed.to_table().slice(0, 30))  # no index covers these
    indexed.delete("id % 3 = 1")
    expected = {
        text: indexed.scanner(filter=text, use_scalar_index=False).count_rows()
        for text in ("word = 'w1'", "word <> 'w1'", "NOT (word = 'w1')", "word IN ('w1', 'w5')",
                     "word IS NULL", "word = 'none'", "n <> 5", "NOT (n IN (1, 2, 3))", "n <> 99",
                     "n IS NOT NULL", "n IS NULL", "NOT (n IS NULL)", "n < 40")
    }  # fmt: skip
    monkeypatch.setattr(searching.ScalarSearch, "answer", lambda *_: pytest.fail("rows were named"))
    assert {text: indexed.count_rows(text) for text in expected} == expected
    monkeypatch.setattr(key_sets.KeySets, "_read", lambda *_: pytest.fail("sets were read again"))
    assert {text: indexed.count_rows(text) for text in expected} == expected
    monkeypatch.undo()
    assert indexed.value_counts("word")["count"].to_pylist() == sorted(
        (indexed.count_rows(f"word = 'w{number}'") for number in range(7)), reverse=True
    )
