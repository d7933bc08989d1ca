"""Dictionaries that stay dictionaries: the same values, whatever they were stored as."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop

ROWS = 6000
VERSIONS = ("legacy", "2.0", "2.1", "2.2")


def columns(version: str) -> dict[str, pa.Array]:
    picks = np.random.default_rng(1).integers(0, 50, ROWS)
    few = pa.array([f"v{pick}" if pick % 11 else None for pick in picks])
    found = {
        "few": few,
        "unique": pa.array([f"unique value {at}" for at in range(ROWS)]),
        "number": pa.array(range(ROWS)),
    }
    if version != "legacy":
        found |= {
            "same": pa.array(["same"] * ROWS),
            "dictionary": few.dictionary_encode(),
            "null": pa.nulls(ROWS, pa.string()),
            "large": few.cast(pa.large_binary()),
            "struct": pa.StructArray.from_arrays([few], ["text"]),
        }
    return found


@pytest.fixture(scope="module", params=VERSIONS)
def dataset(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    lance = require_pylance()
    path: Path = tmp_path_factory.mktemp("dictionaries") / request.param
    table = pa.table(columns(request.param))
    lance.write_dataset(
        table, str(path), data_storage_version=request.param, max_rows_per_file=2500
    )
    return lance_nb.dataset(path)


def same(kept: pa.Table, plain: pa.Table) -> None:
    for name in plain.column_names:
        assert kept[name].cast(plain[name].type).equals(plain[name]), name


def test_text_comes_as_dictionaries_of_the_same_values(dataset: Any) -> None:
    plain, kept = dataset.to_table(), dataset.to_table(keep_dictionaries=True)
    same(kept, plain)
    text = pa.dictionary(pa.int32(), pa.string())
    assert kept.schema.field("few").type == text
    assert kept.schema.field("unique").type == text
    assert kept.schema.field("number").type == pa.int64()
    if "struct" in kept.column_names:
        assert kept.schema.field("large").type == pa.dictionary(pa.int32(), pa.large_binary())
        assert kept.schema.field("struct").type == plain.schema.field("struct").type
    assert kept.unify_dictionaries().num_rows == ROWS


def test_every_form_of_a_scan_keeps_them(dataset: Any) -> None:
    options: list[dict[str, Any]] = [
        {"filter": "number % 3 = 0"},
        {"filter": "few = 'v7'", "with_row_id": True},
        {"order_by": "number", "columns": ["few"], "limit": 4000},
        {"limit": 10, "offset": 2495},
        {"columns": ["number"]},
    ]
    for one in options:
        kept = dataset.to_table(keep_dictionaries=True, **one)
        same(kept, dataset.to_table(**one))
        scanner = dataset.scanner(keep_dictionaries=True, **one)
        assert scanner.projected_schema == kept.schema
        read = scanner.to_reader().read_all()
        assert read.schema == kept.schema
        same(read, dataset.to_table(**one))


def test_few_values_are_not_spelled_out(tmp_path: Path) -> None:
    lance = require_pylance()
    words = pa.array([f"a rather long word, number {at}" for at in range(20)])
    column = words.take(pa.array(np.random.default_rng(2).integers(0, 20, 50_000)))
    lance.write_dataset(pa.table({"word": column}), str(tmp_path / "few"))
    kept = lance_nb.dataset(tmp_path / "few").to_table(keep_dictionaries=True)
    assert kept["word"].nbytes < 4 * 50_000 + 2000
    assert kept["word"].cast(pa.string()).combine_chunks().equals(column)
