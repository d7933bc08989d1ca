"""LanceDB searches the indices that we build, and finds what pylance and we find."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb

pytestmark = [pytest.mark.interop, pytest.mark.filterwarnings("ignore::DeprecationWarning")]
lancedb = pytest.importorskip("lancedb")

ROWS, DIMENSION = 2000, 16
WORDS = np.array(["fox", "dog", "cat", "river", "stone", "cloud"])


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, lance_nb.LanceDataset]:
    """Return a table of LanceDB, and the same dataset here."""
    folder: Path = tmp_path_factory.mktemp("db")
    rng = np.random.default_rng(3)
    vectors = rng.random(ROWS * DIMENSION, np.float32)
    data = pa.table(
        {
            "id": range(ROWS),
            "n": rng.permutation(ROWS),
            "kind": [f"k{one}" for one in rng.integers(0, 9, ROWS)],
            "tags": [[f"t{one}", f"t{one + 1}"] for one in rng.integers(0, 9, ROWS)],
            "text": [" ".join(rng.choice(WORDS, rng.integers(1, 6))) for _ in range(ROWS)],
            "v": pa.FixedSizeListArray.from_arrays(pa.array(vectors), DIMENSION),
        }
    )
    ds = lance_nb.write_dataset(data, folder / "t.lance", max_rows_per_file=700)
    for column, kind in (("n", "BTREE"), ("kind", "BITMAP"), ("tags", "LABEL_LIST")):
        ds.create_scalar_index(column, kind)
    ds.create_scalar_index("text", "INVERTED", with_position=True)
    ds.create_index("v", "IVF_FLAT", num_partitions=4)
    ds.delete("id % 10 = 3")
    return lancedb.connect(str(folder)).open_table("t"), ds


def test_indices_are_listed(tables: tuple[Any, lance_nb.LanceDataset]) -> None:
    table, ds = tables
    listed = {one.name: list(one.columns) for one in table.list_indices()}
    assert listed == {one.name: list(one.field_names) for one in ds.describe_indices()}
    assert len(listed) == 5


@pytest.mark.parametrize(
    "text", ["n = 77", "n BETWEEN 10 AND 30", "kind = 'k3'", "array_has_any(tags, ['t2'])"]
)
def test_filters(tables: tuple[Any, lance_nb.LanceDataset], text: str) -> None:
    table, ds = tables
    found = table.search().where(text).select(["id"]).limit(ROWS).to_arrow()
    assert sorted(found["id"].to_pylist()) == ds.to_table(["id"], filter=text)["id"].to_pylist()
    assert table.count_rows(text) == ds.count_rows(text)


def test_texts(tables: tuple[Any, lance_nb.LanceDataset]) -> None:
    table, ds = tables
    for words in ("fox", "river stone", "cloud"):
        found = table.search(words, query_type="fts", fts_columns="text").limit(ROWS).to_arrow()
        mine = ds.to_table(["id"], full_text_query=lance_nb.MatchQuery(words, "text"))
        assert by_id(found, "_score") == pytest.approx(by_id(mine, "_score"), rel=1e-4)


def test_vectors(tables: tuple[Any, lance_nb.LanceDataset]) -> None:
    table, ds = tables
    for seed in range(3):
        query = np.random.default_rng(seed).random(DIMENSION, np.float32)
        found = table.search(query, vector_column_name="v").nprobes(4).limit(20).to_arrow()
        search = {"column": "v", "q": query, "k": 20, "nprobes": 4}
        mine = ds.to_table(["id"], nearest=search)
        assert by_id(found, "_distance") == pytest.approx(by_id(mine, "_distance"), rel=1e-4)


def by_id(table: pa.Table, score: str) -> dict[int, float]:
    return dict(zip(table["id"].to_pylist(), table[score].to_pylist(), strict=True))


def test_a_connection_is_explored_as_its_tables(
    tables: tuple[Any, lance_nb.LanceDataset], tmp_path: Path
) -> None:
    db = lancedb.connect(str(tmp_path / "shop"))
    db.create_table("photos", pa.table({"id": range(5)}))
    db.create_table("orders", pa.table({"id": range(7)}))
    found = lance_nb.explore(db)
    assert found.error is None
    assert found.database.table_names() == ["orders", "photos"]
    text = repr(found)
    assert "photos" in text
    assert "orders" in text
    cloud = lance_nb.explore(lancedb.connect("db://shop", api_key="sk_none"))
    assert "is read by its service only" in str(cloud.error)
