"""Scans of many fragments of a few rows agree with pylance, whatever is among them."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import lance_nb
from tests.support.requirements import require_pylance

pytestmark = pytest.mark.interop
TYPES = [
    pa.int8(), pa.uint16(), pa.int32(), pa.int64(), pa.float16(), pa.float32(), pa.float64(),
    pa.date32(), pa.timestamp("us", "UTC"), pa.time64("ns"), pa.duration("ms"), pa.bool_(),
    pa.decimal128(20, 3), pa.string(), pa.list_(pa.int32()),
]  # fmt: skip


def write(lance: Any, path: Path, tables: list[pa.Table]) -> None:
    lance.write_dataset(tables[0], path)
    fragments = [
        one
        for table in tables[1:]
        for one in lance.fragment.write_fragments(table, path, mode="append")
    ]
    operation = lance.LanceOperation.Append(fragments)
    lance.LanceDataset.commit(path, operation, read_version=1)


def value(type_: pa.DataType, at: int) -> Any:
    if pa.types.is_floating(type_):
        return np.float16([1.5, -0.0, float("inf")][at % 3]).astype(type_.to_pandas_dtype())
    if pa.types.is_timestamp(type_):
        return datetime(2020, 1, 1 + at % 28, tzinfo=UTC)
    if pa.types.is_boolean(type_):
        return at % 2 == 0
    if pa.types.is_string(type_):
        return f"row {at}"
    if pa.types.is_list(type_):
        return [at]
    if pa.types.is_date(type_):
        return date(2020, 1, 1 + at % 28)
    if pa.types.is_time(type_):
        return time(1, at % 60)
    if pa.types.is_duration(type_):
        return timedelta(milliseconds=at)
    return at % 100


@pytest.mark.parametrize("type_", TYPES, ids=str)
def test_fragments_of_one_and_more_rows(tmp_path: Path, type_: pa.DataType) -> None:
    lance = require_pylance()
    tables = []
    for at in range(40):
        rows = [value(type_, at)] * (1 + at % 3)
        if at == 11:
            rows = [None]
        if at == 12:
            rows = [value(type_, at), value(type_, at + 1), None]
        tables.append(pa.table({"c": pa.array(rows, type_), "n": pa.array([at] * len(rows))}))
    write(lance, tmp_path / "d", tables)

    theirs = lance.dataset(tmp_path / "d").to_table()
    ours = lance_nb.dataset(tmp_path / "d").to_table()

    assert ours.schema.equals(theirs.schema)
    assert str(ours.to_pylist()) == str(theirs.to_pylist())  # as text: -0.0 and nan count


def test_deleted_rows_added_columns_and_lost_files_among_them(tmp_path: Path) -> None:
    lance = require_pylance()
    write(lance, tmp_path / "d", [pa.table({"n": [at, at], "m": [at, 7]}) for at in range(30)])
    theirs = lance.dataset(tmp_path / "d")
    theirs.delete("n = 4 and m = 7")
    theirs.delete("n = 9")
    theirs.insert(pa.table({"n": [99], "m": [1]}))
    ours = lance_nb.dataset(tmp_path / "d")
    for columns in (None, ["n"], ["m", "n"]):
        assert ours.to_table(columns).equals(theirs.to_table(columns))

    theirs.add_columns({"k": "n + 1"})
    assert lance_nb.dataset(tmp_path / "d").to_table().equals(theirs.to_table())

    lost = ours.get_fragments()[2].data_files()[0].path
    (tmp_path / "d" / "data" / lost).unlink()
    with pytest.raises(lance_nb.LanceError, match="fragment 2"):
        lance_nb.dataset(tmp_path / "d").to_table(["n"])
