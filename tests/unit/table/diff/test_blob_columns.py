"""Blobs are compared by their bytes, wherever these lie."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb

OLD = pa.schema([
    pa.field("id", pa.int64()), pa.field("k", pa.int64()),
    pa.field("b", pa.large_binary(), metadata={"lance-encoding:blob": "true"}),
])  # fmt: skip
KINDS: dict[str, tuple[str, Any]] = {
    "second generation": ("2.2", None), "first, 2.1": ("2.1", OLD), "first, 2.0": ("2.0", OLD),
}  # fmt: skip


def rows(schema: pa.Schema | None, blobs: dict[int, bytes | None]) -> pa.Table:
    columns = {"id": list(blobs), "k": [0] * len(blobs)}
    if schema is None:
        return pa.table({**columns, "b": lance_nb.blob_array(list(blobs.values()))})
    values = pa.array(list(blobs.values()), pa.large_binary())
    return pa.table([pa.array(one) for one in columns.values()] + [values], schema=schema)


@pytest.mark.parametrize("size", [10, 100_000])
@pytest.mark.parametrize("stable", [True, False], ids=["row ids", "key"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_blob_differs_where_its_bytes_do(
    tmp_path: Path, kind: str, stable: bool, size: int
) -> None:
    version, schema = KINDS[kind]
    ds = lance_nb.write_dataset(
        rows(schema, {1: b"a" * size, 2: None, 3: b"c" * size, 4: b""}), tmp_path / "d",
        data_storage_version=version, enable_stable_row_ids=stable,
    )  # fmt: skip

    def upsert(blobs: dict[int, bytes | None]) -> None:
        lance_nb.dataset(ds.uri).merge_insert("id").when_matched_update_all().execute(
            rows(schema, blobs)
        )

    lance_nb.dataset(ds.uri).update({"k": "1"}, where="id <> 2")  # the payloads move
    upsert({1: b"z" * size})  # as long as before, and at the same place in its file
    upsert({3: b"c" * size})
    upsert({2: b"now", 4: None})
    lance_nb.dataset(ds.uri).insert(rows(schema, {9: b"new"}))
    lance_nb.dataset(ds.uri).delete("id = 1")

    now = lance_nb.dataset(ds.uri)
    key: dict[str, Any] = {} if stable else {"key": "id"}
    found = [now.diff(a, b, **key).summary() for a, b in zip(range(1, 7), range(2, 8), strict=True)]

    assert [one.cells for one in found] == [
        {"k": 3}, {"k": 1, "b": 1}, {"k": 1}, {"k": 1, "b": 2}, {}, {},
    ]  # fmt: skip
    whole = now.diff(1, 7, **key).summary()
    assert (whole.added, whole.removed, whole.changed, whole.cells) == (1, 1, 2, {"b": 2})


def test_cells_of_blobs_are_listed_with_both_values(tmp_path: Path) -> None:
    ds = lance_nb.write_dataset(
        rows(None, {1: b"one", 2: None}), tmp_path / "d", enable_stable_row_ids=True
    )
    ds = lance_nb.dataset(ds.uri)
    ds.update({"b": "x'00ff'"}, where="id = 2")
    diff = lance_nb.dataset(ds.uri).diff(1, 2)
    (cell,) = diff.cells().read_all().to_pylist()
    assert cell["b"]["old"] is None
    assert cell["b"]["new"]["size"] == 2
    changed = diff.rows().read_all()
    assert set(changed["id"].to_pylist()) == {2}
