"""Indices on columns without an order, on lists of odd items, and on lists that hide items."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from lance_nb.dataset import LanceDataset
from lance_nb.indices.kinds.label_list import _items as label_list_items

_NUMBERS = count()
WORDS = pa.array(["b", "a", None, "c"] * 20)
OFFSETS = pa.array(range(0, 81, 2), pa.int32())


def write(column: pa.Array, version: str = "2.2") -> LanceDataset:
    rows = pa.table({"id": range(len(column)), "x": column})
    uri = f"memory://odd-types/{next(_NUMBERS)}.lance"
    return lance_nb.write_dataset(rows, uri, max_rows_per_file=15, data_storage_version=version)


def grown(dataset: LanceDataset) -> LanceDataset:
    """Append the rows again, extend the index, delete a third."""
    dataset.insert(dataset.to_table())
    dataset.optimize.optimize_indices()
    dataset.delete("id % 3 = 1")
    return dataset


def assert_answers(dataset: LanceDataset, *conditions: str) -> None:
    for condition in conditions:
        scanned = dataset.to_table(["id"], filter=condition, use_scalar_index=False)
        assert dataset.to_table(["id"], filter=condition) == scanned, condition
        assert dataset.count_rows(condition) == scanned.num_rows, condition
    assert dataset.verify().findings == ()


@pytest.mark.parametrize(
    ("column", "conditions"),
    [
        (WORDS.dictionary_encode(), ["x = 'b'", "x > 'a'"]),
        (pa.array([[1], None, [3, 2]] * 20), ["array_has(x, 3)"]),
        (pa.array([{"a": 1}, None, {"a": 3}] * 20), ["x.a > 1"]),
        (pa.nulls(60), []),
    ],
    ids=["dictionary", "list", "struct", "null"],
)
def test_a_zone_map_of_values_without_an_order_answers_nothing_wrong(
    column: pa.Array, conditions: list[str]
) -> None:
    dataset = write(column)
    dataset.create_scalar_index("x", "ZONEMAP")
    assert_answers(dataset, "x IS NULL", "x IS NOT NULL", *conditions)
    assert_answers(grown(dataset), "x IS NULL", "x IS NOT NULL", *conditions)


@pytest.mark.parametrize(
    ("items", "conditions"),
    [
        (WORDS.dictionary_encode(), ["array_has(x, 'a')", "array_has_any(x, ['b', 'c'])"]),
        (pa.nulls(80), ["x IS NOT NULL"]),
    ],
    ids=["dictionary", "null"],
)
def test_labels_of_dictionaries_and_of_nulls(items: pa.Array, conditions: list[str]) -> None:
    dataset = write(pa.ListArray.from_arrays(OFFSETS, items))
    dataset.create_scalar_index("x", "LABEL_LIST")
    assert_answers(dataset, *conditions)
    assert_answers(grown(dataset), *conditions)


def test_words_of_lists_of_texts() -> None:
    dataset = write(pa.ListArray.from_arrays(OFFSETS, WORDS))
    dataset.create_scalar_index("x", "INVERTED", stem=False, remove_stop_words=False)
    grown(dataset)
    query = lance_nb.MatchQuery("c", "x")
    ids = sorted(dataset.to_table(["id"], full_text_query=query)["id"].to_pylist())
    rows = dataset.to_table(["id", "x"]).to_pylist()
    assert ids == sorted(row["id"] for row in rows if "c" in row["x"])


def test_rows_of_null_lists_in_the_sets_of_items_are_computed_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So pylance indexes files of version 2.0, which keep what lies under null lists."""
    mask = pa.array([number % 5 == 2 for number in range(40)])
    dataset = write(pa.ListArray.from_arrays(OFFSETS, WORDS, mask=mask), "2.0")
    with monkeypatch.context() as patched:
        patched.setattr(
            "lance_nb.indices.kinds.label_list._items", _items_of_null_lists, raising=True
        )
        dataset.create_scalar_index("x", "LABEL_LIST")
    for condition in ("array_has(x, 'a')", "array_has_any(x, ['b', 'c'])", "NOT array_has(x, 'a')",
                      "array_has_all(x, ['a', 'b'])", "x IS NULL"):  # fmt: skip
        scanned = dataset.to_table(["id"], filter=condition, use_scalar_index=False)
        assert dataset.to_table(["id"], filter=condition) == scanned, condition
        assert dataset.count_rows(condition) == scanned.num_rows, condition
    assert [finding.code for finding in dataset.verify().findings] == ["index-values-wrong"]


def _items_of_null_lists(
    batches: Iterator[pa.RecordBatch], schema: pa.Schema, null_lists: list[Any]
) -> Iterator[pa.RecordBatch]:
    """Yield the items of all lists, with one under each null list."""
    for batch in batches:
        lists, rows = batch.columns
        hidden = rows.filter(lists.is_null())
        null_lists.append(hidden.to_numpy())
        yield from label_list_items(iter([batch]), schema, [])
        items = pa.array(["a"] * len(hidden))
        yield pa.RecordBatch.from_arrays([items, hidden], schema=schema)
