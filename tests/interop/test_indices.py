"""Secondary indices that pylance built, as the manifest tells of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from tests.support.requirements import require_pylance

pytestmark = [
    pytest.mark.interop,
    # pylance says so of the very call that is compared here
    pytest.mark.filterwarnings("ignore:.*list_indices.*:DeprecationWarning"),
]

ROWS = 1000
SCALAR = {
    "BTREE": "number",
    "ZONEMAP": "number",
    "BLOOMFILTER": "number",
    "BITMAP": "word",
    "NGRAM": "word",
    "INVERTED": "word",
    "LABEL_LIST": "labels",
}
VECTOR = ("IVF_FLAT", "IVF_PQ", "IVF_SQ", "IVF_HNSW_SQ", "IVF_HNSW_PQ", "IVF_RQ")


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Write a dataset with an index of every kind, and rows that none of them covers."""
    lance = require_pylance()
    path = tmp_path_factory.mktemp("indexed")
    vectors = np.random.default_rng(3).random(ROWS * 16, np.float32)
    table = pa.table(
        {
            "number": range(ROWS),
            "word": [f"word {at % 7}" for at in range(ROWS)],
            "labels": [[at % 5] for at in range(ROWS)],
            "vector": pa.FixedSizeListArray.from_arrays(pa.array(vectors), 16),
        }
    )
    dataset = lance.write_dataset(table, str(path))
    for kind, column in SCALAR.items():
        dataset.create_scalar_index(column, kind, name=f"{column}_{kind}")
    for kind in VECTOR:
        extra = {"num_sub_vectors": 4} if kind.endswith("_PQ") else {}
        dataset.create_index("vector", kind, name=f"v_{kind}", num_partitions=2, **extra)
    dataset.insert(table.slice(0, 30))
    dataset.delete("number = 3")
    return lance.dataset(str(path))


def test_segments_are_listed_as_pylance_lists_them(indexed: Any) -> None:
    theirs = [one | {"fragment_ids": set(one["fragment_ids"])} for one in indexed.list_indices()]

    assert lance_nb.dataset(indexed.uri).list_indices() == theirs


def test_descriptions_say_what_is_covered(indexed: Any) -> None:
    ours = lance_nb.dataset(indexed.uri).describe_indices()
    theirs = {one.name: one for one in indexed.describe_indices()}

    assert [one.name for one in ours] == sorted(theirs)
    for one in ours:
        other = theirs[one.name]
        assert one.index_type == other.index_type
        assert one.type_url == other.type_url
        assert list(one.field_names) == other.field_names
        assert one.total_size_bytes == other.total_size_bytes
        assert one.num_rows_indexed == other.num_rows_indexed
        assert one.num_segments == len(other.segments)


def test_rows_and_fragments_without_index_are_counted(indexed: Any) -> None:
    btree = next(
        one
        for one in lance_nb.dataset(indexed.uri).describe_indices()
        if one.name == "number_BTREE"
    )
    theirs = indexed.stats.index_stats("number_BTREE")

    assert btree.num_unindexed_rows == theirs["num_unindexed_rows"]
    assert btree.num_unindexed_fragments == theirs["num_unindexed_fragments"]


def test_a_dataset_without_indices_lists_none(tmp_path: Path) -> None:
    require_pylance().write_dataset(pa.table({"a": [1]}), str(tmp_path))

    assert lance_nb.dataset(tmp_path).list_indices() == []
    assert lance_nb.dataset(tmp_path).describe_indices() == []
