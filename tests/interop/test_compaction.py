"""Compaction by us, read, indexed and continued by pylance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_nb
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop

LINEAGE = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]


@pytest.fixture
def lance() -> Any:
    return require_pylance()


def table(count: int = 2000) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(count), pa.int64()),
            "name": [None if n % 9 == 0 else f"name {n % 300}" for n in range(count)],
            "tags": [[n, None] if n % 3 else [] for n in range(count)],
            "point": [{"x": n / 2, "y": None} if n % 4 else None for n in range(count)],
        }
    )


@pytest.mark.parametrize("version", ["2.0", "2.1", "2.2"])
@pytest.mark.parametrize("stable", [False, True])
def test_pylance_reads_and_continues_what_we_compacted(
    lance: Any, tmp_path: Path, version: str, stable: bool
) -> None:
    uri = str(tmp_path / "t.lance")
    rows = table().drop_columns(["point"]) if version == "2.0" else table()
    theirs = lance.write_dataset(
        rows, uri, max_rows_per_file=150, data_storage_version=version,
        enable_stable_row_ids=stable,
    )  # fmt: skip
    theirs.delete("id % 7 = 0")
    theirs.update({"name": "'changed'"}, where="id % 11 = 5")
    columns = [*rows.schema.names, *(LINEAGE if stable else [])]
    before = lance.dataset(uri).to_table(columns=columns)
    ours = lance_nb.dataset(uri)
    done = ours.optimize.compact_files(target_rows_per_fragment=700)
    assert done.fragments_removed > done.fragments_added
    found = lance.dataset(uri)
    found.validate()
    assert found.to_table(columns=columns).equals(before)
    found.optimize.compact_files()
    found.delete("id = 12")
    assert lance_nb.dataset(uri).to_table().equals(lance.dataset(uri).to_table())


@pytest.mark.parametrize("stable", [False, True])
@pytest.mark.parametrize("kind", ["BTREE", "BITMAP"])
def test_indices_give_right_answers_after_our_compaction(
    lance: Any, tmp_path: Path, stable: bool, kind: str
) -> None:
    uri = str(tmp_path / "t.lance")
    theirs = lance.write_dataset(table(), uri, max_rows_per_file=150, enable_stable_row_ids=stable)
    theirs.create_scalar_index("name", kind)
    theirs.insert(table(400))
    theirs.delete("id % 5 = 0")
    lance_nb.dataset(uri).optimize.compact_files(target_rows_per_fragment=600)
    found = lance.dataset(uri)
    found.validate()
    for predicate in ("name = 'name 7'", "name >= 'name 29'", "name IS NULL"):
        plain = found.to_table(filter=predicate, use_scalar_index=False).sort_by("id")
        indexed = found.to_table(filter=predicate, use_scalar_index=True).sort_by("id")
        assert indexed.equals(plain)
        assert plain.num_rows == lance_nb.dataset(uri).count_rows(predicate)
    found.optimize.optimize_indices()
    again = found.to_table(filter="name = 'name 7'", use_scalar_index=True)
    assert again.num_rows == lance_nb.dataset(uri).count_rows("name = 'name 7'")
