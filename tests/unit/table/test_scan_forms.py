"""Forms of a scan: dictionaries, parts of descriptions, several searches, what its plan tells."""

from __future__ import annotations

from itertools import count

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from lance_nb import ColumnOrdering
from lance_nb.errors import ColumnNotFoundError, InvalidInputError

_NUMBERS = count()


def _written(table: pa.Table, **options: object) -> lance_nb.LanceDataset:
    uri = f"memory://forms/{next(_NUMBERS)}.lance"
    lance_nb.write_dataset(table, uri, **options)
    return lance_nb.dataset(uri)


WORDS = ["a", "bb", None, "a", "", "bb"] * 4
TABLE = pa.table({
    "s": WORDS, "t": pa.array(WORDS, pa.large_string()),
    "b": pa.array([w and w.encode() for w in WORDS], pa.binary()), "n": range(24),
    "l": [[w] for w in WORDS], "k": pa.array(WORDS).dictionary_encode(),
})  # fmt: skip


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("filter_", [None, "n % 2 = 0"], ids=str)
def test_texts_and_bytes_come_as_dictionaries_where_they_are_asked_for(
    version: str, filter_: str | None
) -> None:
    ds = _written(TABLE, data_storage_version=version, max_rows_per_file=10)
    table = TABLE if filter_ is None else TABLE.filter(np.arange(24) % 2 == 0)
    scanner = ds.scanner(filter=filter_, keep_dictionaries=True)
    found = scanner.to_table()

    assert scanner.projected_schema == found.schema
    for name, type_ in (("s", pa.string()), ("t", pa.large_string()), ("b", pa.binary())):
        assert found.schema.field(name).type == pa.dictionary(pa.int32(), type_)
        assert found[name].cast(type_).to_pylist() == table[name].to_pylist()
    for name in ("n", "l", "k"):
        assert found.schema.field(name).type == ds.schema.field(name).type
        assert found[name].to_pylist() == table[name].to_pylist()
    batches = ds.scanner(["s"], filter_, keep_dictionaries=True, batch_size=5).to_batches()
    assert [v for one in batches for v in one["s"].to_pylist()] == table["s"].to_pylist()


def test_parts_of_descriptions_of_blobs_are_columns() -> None:
    field = pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    payloads = [b"x" * size for size in (3, 0, 70_000, 5)]
    table = pa.table([pa.array(payloads, pa.large_binary()), pa.array(range(4))],
                     schema=pa.schema([field, ("id", pa.int64())]))  # fmt: skip
    ds = _written(table, data_storage_version="2.2")

    found = ds.to_table(["b.size", "id"])
    assert found.column_names == ["b.size", "id"]
    assert found["b.size"].to_pylist() == [3, 0, 70_000, 5]
    assert ds.to_table(["id"], "b.size > 3")["id"].to_pylist() == [2, 3]
    whole = ds.to_table(["b"])["b"].to_pylist()
    for part in ("kind", "position", "blob_id"):
        values = ds.to_table([f"b.{part}"])[f"b.{part}"].to_pylist()
        assert values == [one[part] for one in whole]
    with pytest.raises(ColumnNotFoundError, match=r"b\.size"):
        ds.to_table(["b.length"])


VECTORS = np.array([[0, 0], [3, 4], [1, 0], [0, 2], [1, 1], [6, 8], [0, 1]], np.float32)
SEARCHED = pa.table({
    "v": pa.FixedSizeListArray.from_arrays(pa.array(VECTORS.ravel()), 2),
    "id": range(7), "n": [3, 1, 2, 1, 2, 3, 1],
})  # fmt: skip


def test_several_queries_give_the_rows_of_each() -> None:
    ds = _written(SEARCHED, max_rows_per_file=3)
    queries = np.array([[0, 0], [3, 3]], np.float32)
    found = ds.to_table(["id"], nearest={"column": "v", "q": queries, "k": 3})
    expected = []
    for number, query in enumerate(queries):
        distances = ((VECTORS - query) ** 2).sum(axis=1)
        order = np.argsort(distances, kind="stable")[:3].tolist()
        expected += [(number, at, float(distances[at])) for at in order]

    assert found.column_names == ["query_index", "id", "_distance"]
    assert not found.schema.field("query_index").nullable
    assert [tuple(row.values()) for row in found.to_pylist()] == expected
    clash = SEARCHED.append_column("query_index", SEARCHED["id"])
    with pytest.raises(InvalidInputError, match="query_index"):
        _written(clash).to_table(nearest={"column": "v", "q": queries})


def test_found_rows_can_be_put_in_another_order() -> None:
    ds = _written(SEARCHED, max_rows_per_file=3)
    nearest = {"column": "v", "q": [0.0, 0.0], "k": 5}
    order = [ColumnOrdering("n", ascending=False), "id"]
    near = np.argsort((VECTORS**2).sum(axis=1), kind="stable")[:5].tolist()
    numbers = SEARCHED["n"].to_pylist()
    expected = sorted(near, key=lambda at: (-numbers[at], at))

    assert ds.to_table(["id"], nearest=nearest, order_by=order)["id"].to_pylist() == expected
    part = ds.to_table(["id"], nearest=nearest, order_by=order, offset=1, limit=2)
    assert part["id"].to_pylist() == expected[1:3]
    distances = (VECTORS**2).sum(axis=1)
    assert part["_distance"].to_pylist() == [float(distances[at]) for at in expected[1:3]]
    with pytest.raises(InvalidInputError, match="cannot be combined with nearest"):
        ds.to_table(nearest=nearest, include_deleted_rows=True, with_row_id=True)


def test_a_plan_tells_what_is_read_first() -> None:
    ds = _written(SEARCHED, max_rows_per_file=3)
    nearest = {"column": "v", "q": [0.0, 0.0], "k": 5}

    assert ds.scanner(["id"]).explain_plan().splitlines() == [
        "LanceScan: version 1, 3 fragments", "  decoded: id", "  result: id",
    ]  # fmt: skip
    plan = ds.scanner(["id"], "n > 1", nearest=nearest, order_by=["n"], limit=2).explain_plan()
    assert plan.splitlines() == [
        "LanceScan: version 1, 3 fragments", "  filter: n > 1",
        "  nearest: 5 by l2 of 'v', exact, before the filter", "  order by: n",
        "  decoded first, for every row: n, v", "  decoded for the rows that are left: id",
        "  offset 0, limit 2", "  result: id, _distance",
    ]  # fmt: skip
    after = ds.scanner(["n"], "n > 1", nearest=nearest, prefilter=True, offset=3).explain_plan()
    assert "exact, after the filter" in after
    assert "  decoded for the rows that are left: nothing" in after
    assert "  offset 3, limit None" in after
    few = ds.scanner([], fragments=ds.get_fragments()[:1]).explain_plan()
    assert few.splitlines() == [
        "LanceScan: version 1, 1 fragments", "  decoded: nothing", "  result: no columns",
    ]  # fmt: skip


def test_row_columns_and_fields_of_structs_stay_as_they_are_beside_dictionaries() -> None:
    table = pa.table({"p": [{"s": word} for word in WORDS], "s": WORDS})
    ds = _written(table, max_rows_per_file=20)
    scanner = ds.scanner(["p.s", "s"], with_row_address=True, keep_dictionaries=True)
    found = scanner.to_table()

    assert found.schema.types == [pa.string(), pa.dictionary(pa.int32(), pa.string()), pa.uint64()]
    assert found["p.s"].to_pylist() == found["s"].to_pylist() == WORDS
    assert found["_rowaddr"].to_pylist() == [n // 20 << 32 | n % 20 for n in range(24)]
